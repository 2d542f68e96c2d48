"""Random cases from a seed: a query, its tuples, the pushes and a plan.

>>> case = generate(7)
>>> str(generate(7)) == str(case)
True
"""

from __future__ import annotations

import random

from penstock.testing.case import Case
from penstock.testing.knobs import Knobs
from penstock.testing.random_plan import random_plan
from penstock.testing.random_pushes import random_pushes
from penstock.testing.random_query import random_query


def generate(seed: int | random.Random, knobs: Knobs | None = None) -> Case:
    """The case of ``seed`` (or the next one of a generator of random numbers)."""
    chance = seed if isinstance(seed, random.Random) else random.Random(seed)
    knobs = knobs or Knobs()
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
