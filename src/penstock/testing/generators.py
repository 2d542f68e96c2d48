"""Random cases from a seed: a query, its tuples, the pushes and a plan.

Cases are small: the oracle needs some hundredths of a second for one. A draft with no result at
all is mostly thrown away, and one with too many is cut short, so a case has between one and a few
hundred results.

>>> case = generate(7)
>>> str(generate(7)) == str(case)
True
"""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

from penstock.testing.case import Case
from penstock.testing.knobs import Knobs
from penstock.testing.oracle import Oracle
from penstock.testing.random_plan import random_plan
from penstock.testing.random_pushes import random_pushes
from penstock.testing.random_query import random_query

DRAFTS = 4
MOST_RESULTS = 500
MOST_WORK = 8_000
"""Results times pushes: the oracle looks at all results in every push."""


def generate(seed: int | random.Random, knobs: Knobs | None = None) -> Case:
    """The case of ``seed`` (or the next one of a generator of random numbers)."""
    chance = seed if isinstance(seed, random.Random) else random.Random(seed)
    knobs = knobs or Knobs()
    case = draft(chance, knobs)
    for _ in range(DRAFTS - 1):
        if _results(case, 1):
            break
        case = draft(chance, knobs)
    while True:
        limit = max(20, min(MOST_RESULTS, MOST_WORK // (len(case.pushes) + 1)))
        if _results(case, limit + 1) <= limit:
            return case
        case = _shortened(case)


def draft(chance: random.Random, knobs: Knobs) -> Case:
    """Any case within ``knobs``, however many results it has."""
    query = random_query(chance, knobs)
    run = random_pushes(chance, query, knobs)
    return Case(
        text=query.text,
        schemas={source.name: source.schema for source in query.sources},
        event_time=query.event_time,
        pushes=run.pushes,
        plan=random_plan(chance, query.aliases),
        lateness=run.lateness,
        watermarks=run.watermarks,
        features=query.features | run.features,
    )


def _results(case: Case, most: int) -> int:
    """The number of results of the first block, or ``most`` if there are more."""
    graph = case.graph()
    oracle = Oracle(graph)
    for batches in case.pushes:
        oracle.take(batches)
    return sum(1 for _ in itertools.islice(oracle.results(graph), most))


def _shortened(case: Case) -> Case:
    """The first half of the pushes, or of the tuples where there is one push."""
    if len(case.pushes) > 1:
        half = len(case.pushes) // 2
        return replace(case, pushes=case.pushes[:half], watermarks=case.watermarks[:half])
    halves = {source: t.slice(0, t.num_rows // 2) for source, t in case.pushes[0].items()}
    return replace(case, pushes=(halves,))
