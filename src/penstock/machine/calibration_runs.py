"""The runs of calibration: queries in each of which one operation more happens than in another.

Each run pushes the same number of tuples of A, whose window is short and in its steady state: as
many tuples die as arrive. The other streams are filled before, or empty. Feedback is off, or what a
run is there to measure would not be made. A tuple of A costs

===========  ==============================================================================
dropped      arrival                                          (a predicate on A fails)
taken in     arrival + window
indexed      arrival + window + index                         (A is looked up by two keys)
looking      arrival + window + probe                         (and finds nothing)
glancing     the same, into a state that fits the cache
reading      looking + text                                   (the key is a text)
joining      looking + m · (join + a glance)                  (m partial results, no result)
storing      looking + m · (join + insert + delete)           (m stored combinations)
resulting    looking + m · (join + result)
showing      resulting + m · n · column                       (n columns more)
counting     looking + m · (join + group) + 2 · answer        (COUNT(*) of results of one group)
spreading    looking + m · (join + group + 2 · answer)        (each result has another group)
summing      counting + m · aggregate
checking     looking + m · check                              (a comparison fails)
evaluating   looking + m · residual                           (an expression fails)
comparing    arrival + window + n · compare                   (nested loops over n rows)
===========  ==============================================================================

A group answers for each instant at which it changes: when results come, and when they go. Those of
one tuple of A do both together.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.engine import Engine
from penstock.query.parse import parse

Int64s = NDArray[np.int64]

ROWS = 160_000
"""Rows in a state that is probed."""
BATCH = 10_000
"""Tuples of A in a push."""
PUSHES = 8
"""Pushes of a run that are timed."""
FANOUT = 4
"""Partners that a tuple of A finds, if any."""
COMPARED = 2_000
"""Rows that a nested loop goes over."""
ROWS_IN_CACHE = 1_000
"""Rows of a state that fits the cache."""
COLUMNS = 4
"""Columns that a result of the run called showing has more than others."""
SMALL_PUSHES = 64
"""Pushes of one tuple per stream."""
COUNTED = 0.9
"""The share of them, the quickest, of which the mean is taken: the others were disturbed."""
BETWEEN = 1 << 20
"""Numbers of 64 bits that are gone over between two of them. Whoever pushes makes or receives
batches meanwhile: an engine that finds everything in the caches takes half of the time."""

_WARMING = 2
"""Pushes before the clock starts: kernels are loaded, windows are full."""
_END = 1 << 50
_OTHER_DATA = np.zeros(BETWEEN, np.int64)

_TYPES = (("id", pa.int64()), ("ts", pa.int64()), ("x", pa.int64()), ("y", pa.int64()))
_SCHEMA = pa.schema([*_TYPES, ("g", pa.int64()), ("t", pa.string()), ("h", pa.int64())])
_A = f"A [RANGE {BATCH} MILLISECONDS]"
_FROM = f"FROM {_A}, B [UNBOUNDED] WHERE A.x = B.x"
_TWO = f"SELECT A.id AS a, B.id AS b {_FROM}"
_MORE = f"SELECT A.id AS a, B.id AS b, A.y AS ay, B.y AS b2, A.g AS ag, B.g AS bg {_FROM}"
_TEXT = f"SELECT A.id AS a, B.id AS b FROM {_A}, B [UNBOUNDED] WHERE A.t = B.t"
_THREE = f"SELECT A.id FROM {_A}, B [UNBOUNDED], C [UNBOUNDED]"
_STAR = f"{_THREE} WHERE A.x = B.x AND A.y = C.y"
_CHAIN = f"{_THREE} WHERE A.x = B.x AND B.y = C.y"


@dataclass(frozen=True)
class CalibrationRun:
    """One workload: what is there before, and how many rows of A are pushed each time."""

    query: str
    plan: str
    before: Mapping[str, pa.Table] = field(default_factory=dict)
    batch: int = BATCH
    join: str = "hash"

    def seconds(self, clock: Callable[[], float]) -> tuple[float, float]:
        """Seconds per tuple of A, and seconds to let go of everything in the end."""
        query = parse(self.query, schemas=dict.fromkeys("ABC", _SCHEMA))
        engine = Engine(query, plan=self.plan, join=self.join, feedback="off")
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


@lru_cache(maxsize=64)
def _arriving(number: int, batch: int) -> pa.Table:
    """Rows of A with even keys, in an order that caches do not like."""
    at = np.arange(number * batch, (number + 1) * batch, dtype=np.int64)
    return _table(at, at, 2 * (at * 7919 % (ROWS // FANOUT)))


def _standing(rows: int, odd: int, values: int = ROWS // FANOUT) -> pa.Table:
    """Rows that are there before; ``odd`` is 0 for keys that A finds, 1 for others."""
    at = np.arange(rows, dtype=np.int64)
    return _table(at, np.zeros(rows, np.int64), 2 * (at * 104_729 % values) + odd)


def _table(at: Int64s, ts: Int64s, key: Int64s) -> pa.Table:
    texts = pa.array(key).cast(pa.string())
    columns = {"id": at, "ts": ts, "x": key, "y": key, "g": at % ROWS_IN_CACHE, "t": texts}
    return pa.table(columns | {"h": (at * 31 // 7) % ROWS_IN_CACHE}, schema=_SCHEMA)


def calibration_runs() -> dict[str, CalibrationRun]:
    """The runs by name."""
    found, missed, few = _standing(ROWS, 0), _standing(ROWS, 1), _standing(ROWS_IN_CACHE, 1)
    orders = "(A B C | A:B,C B:A,C C:B,A)"
    run = CalibrationRun
    return {
        "dropped": run(f"{_TWO} AND A.g < 0", "(A B)"),
        "taken in": run(_TWO, "(A B)"),
        "indexed": run(_STAR, "(A B C)"),
        "looking": run(_TWO, "(A B)", {"B": missed}),
        "glancing": run(_TWO, "(A B)", {"B": few}),
        "reading": run(_TEXT, "(A B)", {"B": missed}),
        "joining": run(_CHAIN, orders, {"B": found, "C": few}),
        "storing": run(_CHAIN, "((A B) C)", {"B": found}),
        "resulting": run(_TWO, "(A B)", {"B": found}),
        "showing": run(_MORE, "(A B)", {"B": found}),
        "counting": run(f"SELECT A.g, COUNT(*) AS n {_FROM} GROUP BY A.g", "(A B)", {"B": found}),
        "spreading": run(f"SELECT B.h, COUNT(*) AS n {_FROM} GROUP BY B.h", "(A B)", {"B": found}),
        "summing": run(
            f"SELECT A.g, COUNT(*) AS n, SUM(B.id) AS s {_FROM} GROUP BY A.g",
            "(A B)",
            {"B": found},
        ),
        "checking": run(f"{_TWO} AND A.g > B.y", "(A B)", {"B": _shifted(found)}),
        "evaluating": run(f"{_TWO} AND (A.g + B.g) % 2 = 5", "(A B)", {"B": found}),
        "comparing": run(
            _TWO, "(A B)", {"B": _standing(COMPARED, 1)}, batch=1_000, join="nested-loops"
        ),
    }


def _shifted(table: pa.Table) -> pa.Table:
    """``table`` with values of y that no g exceeds."""
    place = table.schema.get_field_index("y")
    return table.set_column(place, "y", pa.array(np.full(table.num_rows, 10 * ROWS_IN_CACHE)))


def small_pushes(
    names: str, clock: Callable[[], float], matching: bool, grouped: bool = False
) -> float:
    """Seconds of a push of one tuple of each stream into one mjoin: with ``matching``, each finds
    those of this push and of the one before, and no step is left out; else there is one step for
    each stream. Results are counted by group if it is ``grouped``."""
    sources = ", ".join(f"{name} [RANGE 1 SECOND]" for name in names)
    links = " AND ".join(f"A.x = {name}.x" for name in names[1:])
    select = "A.id, COUNT(*) AS n" if grouped else "A.id"
    query = parse(
        f"SELECT {select} FROM {sources} WHERE {links}{' GROUP BY A.id' * grouped}",
        schemas=dict.fromkeys(names, _SCHEMA),
    )
    engine = Engine(query, plan=f"({' '.join(names)})", feedback="off")
    took = []
    for number in range(SMALL_PUSHES):
        ts, keys = np.array([1_000 * number]), np.arange(len(names)) * (not matching)
        tables = {n: _table(ts, ts, keys[i : i + 1]) for i, n in enumerate(names)}
        np.add(_OTHER_DATA, 1, out=_OTHER_DATA)
        begin = clock()
        engine.push(tables)
        took.append(clock() - begin)
    return statistics.mean(sorted(took)[: int(COUNTED * SMALL_PUSHES)])
