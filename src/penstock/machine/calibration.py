"""What operations cost on this machine: small runs of the engine, and differences between them.

Each run pushes the same number of tuples of A into a query in which one operation more happens than
in another run, so that the difference is its cost. A has a short window and is in its steady state:
as many tuples die as arrive. The other streams are filled before, or empty. A tuple of A costs

==========  ==============================================================================
taken in    arrival + insert + delete
indexed     arrival + insert + delete + index                 (A is looked up by two keys)
looking     arrival + insert + delete + probe                 (and finds nothing)
glancing    the same, into a state that fits the cache
joining     looking + m · (join + a glance)                   (m partial results, no result)
storing     looking + m · (join + insert + delete)            (m stored combinations)
resulting   looking + m · (join + result)
comparing   arrival + insert + delete + n · compare           (nested loops over n rows)
==========  ==============================================================================

and in the end all rows of the run called storing are let go at once, which gives ``delete``. Pushes
of one tuple per stream into joins of two and of six streams give the fixed cost of a batch: two
streams and two steps against six streams and thirty steps.
``insert`` is the cost of a *stored combination*, as that is what plans differ in; what a tuple's
own insertion costs more or less is counted as part of its arrival. ``join`` has in it that the next
key of a partial result is fetched from a window, which happens whether it is stored or goes on.
Storing includes one index, so it is not cheaper than that.

Rounds are interleaved and the least time of each run is taken: what disturbs a machine only ever
makes a run longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from penstock.engine.engine import Engine
from penstock.planning.unit_costs import UnitCosts
from penstock.query.parse import parse

ROWS = 160_000
"""Rows in a state that is probed."""
BATCH = 10_000
PUSHES = 8
FANOUT = 4
COMPARED = 2_000
FEW = 1_000
SMALL_PUSHES = 200
LEAST = 1e-10
"""No operation is free, whatever the noise says."""

_WARMING = 2
"""Pushes before the clock starts: kernels are loaded, windows are full."""
_END = 1 << 50

_SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("x", pa.int64()), ("y", pa.int64())])
_A = f"A [RANGE {BATCH} MILLISECONDS]"
_TWO = f"SELECT A.id AS a, B.id AS b FROM {_A}, B [UNBOUNDED] WHERE A.x = B.x"
_THREE = f"SELECT A.id FROM {_A}, B [UNBOUNDED], C [UNBOUNDED]"
_STAR = f"{_THREE} WHERE A.x = B.x AND A.y = C.y"
_CHAIN = f"{_THREE} WHERE A.x = B.x AND B.y = C.y"


@dataclass(frozen=True)
class _Run:
    """One workload: what is there before, and how many rows of A are pushed each time."""

    query: str
    plan: str
    before: Mapping[str, pa.Table] = field(default_factory=dict)
    batch: int = BATCH
    join: str = "hash"

    def seconds(self, clock: Callable[[], float]) -> tuple[float, float]:
        """Seconds per tuple of A, and seconds to let go of everything in the end."""
        query = parse(self.query, schemas=dict.fromkeys("ABC", _SCHEMA))
        engine = Engine(query, plan=self.plan, join=self.join)
        engine.push(self.before)
        total = 0.0
        for number in range(_WARMING + PUSHES):
            batch = _arriving(number, self.batch)
            start = clock()
            engine.push({"A": batch}, watermark=number * self.batch)
            if number >= _WARMING:
                total += clock() - start
        start = clock()
        engine.push({}, watermark=_END)
        return total / (PUSHES * self.batch), clock() - start


def _arriving(number: int, batch: int) -> pa.Table:
    """Rows of A with even keys, in an order that caches do not like."""
    at = np.arange(number * batch, (number + 1) * batch, dtype=np.int64)
    keys = 2 * (at * 7919 % (ROWS // FANOUT))
    return pa.table({"id": at, "ts": at, "x": keys, "y": keys}, schema=_SCHEMA)


def _standing(rows: int, x: int, y: int, values: int) -> pa.Table:
    """Rows that are there before; ``x`` and ``y`` are 0 for keys that A finds, 1 for others."""
    at = np.arange(rows, dtype=np.int64)
    key = 2 * (at * 104_729 % values)
    return pa.table(
        {"id": at, "ts": np.zeros(rows, np.int64), "x": key + x, "y": key + y}, schema=_SCHEMA
    )


def _runs() -> dict[str, _Run]:
    values = ROWS // FANOUT
    found = _standing(ROWS, 0, 0, values)
    missed = _standing(ROWS, 1, 1, values)
    few = _standing(FEW, 1, 1, values)
    orders = "(A B C | A:B,C B:A,C C:B,A)"
    return {
        "taken in": _Run(_TWO, "(A B)"),
        "indexed": _Run(_STAR, "(A B C)"),
        "looking": _Run(_TWO, "(A B)", {"B": missed}),
        "glancing": _Run(_TWO, "(A B)", {"B": few}),
        "joining": _Run(_CHAIN, orders, {"B": found, "C": few}),
        "storing": _Run(_CHAIN, "((A B) C)", {"B": found}),
        "resulting": _Run(_TWO, "(A B)", {"B": found}),
        "comparing": _Run(
            _TWO,
            "(A B)",
            {"B": _standing(COMPARED, 1, 1, values)},
            batch=1_000,
            join="nested-loops",
        ),
    }


def _small_pushes(names: str, clock: Callable[[], float]) -> float:
    """Seconds of a push of one tuple of each stream into one mjoin, in which each matches those
    of this push and of the one before: no step is left out."""
    sources = ", ".join(f"{name} [RANGE 1 SECOND]" for name in names)
    links = " AND ".join(f"A.x = {name}.x" for name in names[1:])
    query = parse(
        f"SELECT A.id FROM {sources} WHERE {links}", schemas=dict.fromkeys(names, _SCHEMA)
    )
    engine = Engine(query, plan=f"({' '.join(names)})")
    least = float("inf")
    for start in range(0, SMALL_PUSHES, SMALL_PUSHES // 4):
        tables = []
        for number in range(start, start + SMALL_PUSHES // 4):
            row = {"id": [number], "ts": [1_000 * number], "x": [1], "y": [1]}
            tables.append(pa.table(row, schema=_SCHEMA))
        begin = clock()
        for table in tables:
            engine.push(dict.fromkeys(names, table))
        least = min(least, (clock() - begin) / len(tables))
    return least


def calibrate(clock: Callable[[], float] = time.process_time, rounds: int = 3) -> UnitCosts:
    """Measure; some seconds."""
    runs = _runs()
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        least = dict.fromkeys(runs, float("inf"))
        letting_go = two = six = float("inf")
        for _ in range(rounds):
            for name, run in runs.items():
                each, end = run.seconds(clock)
                least[name] = min(least[name], each)
                if name == "storing":
                    letting_go = min(letting_go, end)
            two = min(two, _small_pushes("AB", clock))
            six = min(six, _small_pushes("ABCDEF", clock))
    finally:
        pa.set_cpu_count(threads)
    # At the end, the window of A holds a batch or two.
    return costs_from(least, letting_go / (1.5 * BATCH * (1 + FANOUT)), two, six)


def costs_from(seconds: Mapping[str, float], delete: float, two: float, six: float) -> UnitCosts:
    """The unit costs behind the seconds per tuple of each run, and of small pushes."""
    # two = 2 push + 2 step; six = 6 push + 30 step
    step = max(LEAST, (six - 3 * two) / 24)
    taken_in, looking = seconds["taken in"], seconds["looking"]
    probe = max(LEAST, looking - taken_in)
    glance = max(LEAST, seconds["glancing"] - taken_in)
    join = max(LEAST, (seconds["joining"] - looking) / FANOUT - glance)
    index = max(LEAST, seconds["indexed"] - taken_in)
    insert = max(index, (seconds["storing"] - looking) / FANOUT - join - delete)
    return UnitCosts(
        insert=insert,
        delete=max(LEAST, delete),
        join=join,
        probe=probe,
        compare=max(LEAST, (seconds["comparing"] - taken_in) / COMPARED),
        index=index,
        arrival=max(LEAST, taken_in - insert - delete),
        step=step,
        push=max(LEAST, two / 2 - step),
        result=max(LEAST, (seconds["resulting"] - looking) / FANOUT - join),
    )
