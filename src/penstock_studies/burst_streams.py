"""Three streams with a burst, the query over them, and its answer computed another way.

Equal keys are frequent and values are near each other rarely, so that a result costs the engine
many pairs to look at and Spark next to nothing: what is short in the burst is the CPU of the join.
Every row that finds a partner finds it in a window of ten seconds, so five times the rows are more
than five times the work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import penstock

Int64s = NDArray[np.int64]

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "k", "v")])
DDL = "id BIGINT, ts BIGINT, k BIGINT, v BIGINT"
WINDOW = 10
"""Seconds."""
_NEAR, _VALUES = 4, 10_000
_START = 1_700_000_000_000
_BITS = 21

QUERY = f"""\
SELECT A.id AS a, B.id AS b, C.id AS c
FROM {", ".join(f"{s} [RANGE {WINDOW} SECONDS] FRESHNESS 2 HOURS" for s in "ABC")}
WHERE A.k = B.k AND B.k = C.k
  AND B.v - A.v BETWEEN 0 AND {_NEAR} AND C.v - B.v BETWEEN 0 AND {_NEAR}"""
PLAN = "((A B) C)"


@dataclass(frozen=True, slots=True)
class BurstStreams:
    """``rate`` rows per second and stream, ``factor`` times as many in the burst.

    ``phases`` are in intervals of ``interval`` seconds: calm, burst, calm.
    """

    interval: float = 5.0
    rate: int = 1_000
    factor: float = 5.0
    keys: int = 20
    phases: tuple[int, int, int] = (4, 12, 4)
    seed: int = 1

    @property
    def query(self) -> penstock.JoinGraph:
        return penstock.parse(QUERY, schemas=dict.fromkeys("ABC", SCHEMA))

    def counts(self) -> list[int]:
        """Rows of each stream in each interval."""
        calm = round(self.interval * self.rate)
        burst = round(self.interval * self.rate * self.factor)
        before, during, after = self.phases
        return [calm] * before + [burst] * during + [calm] * after

    @property
    def burst_end(self) -> int:
        """The interval after the burst."""
        return self.phases[0] + self.phases[1]

    def intervals(self) -> Iterator[dict[str, pa.Table]]:
        """The rows of each interval, in the order of event time."""
        chance = np.random.default_rng(self.seed)
        span = round(1000 * self.interval)
        first = 0
        for turn, count in enumerate(self.counts()):
            start = _START + span * turn
            yield {
                stream: pa.table(
                    [
                        np.arange(first, first + count),
                        np.sort(start + chance.integers(0, span, count)),
                        chance.integers(0, self.keys, count),
                        chance.integers(0, _VALUES, count),
                    ],
                    schema=SCHEMA,
                )
                for stream in "ABC"
            }
            first += count


def codes(answer: pa.Table) -> Int64s:
    """One number for each result, in order; ids are below two million."""
    a, b, c = (answer[name].to_numpy().astype(np.int64) for name in "abc")
    return np.sort((a << 2 * _BITS) | (b << _BITS) | c)


def truth(intervals: Sequence[dict[str, pa.Table]]) -> Int64s:
    """The :func:`codes` of the whole answer: no windows, no states, two sorts and a filter."""
    rows = {
        stream: {
            name: np.concatenate([each[stream][name].to_numpy() for each in intervals])
            for name in SCHEMA.names
        }
        for stream in "ABC"
    }
    b, a = _near(rows["B"], rows["A"], -_NEAR, 0)
    pairs = {name: rows["B"][name][b] for name in ("k", "v")}
    first = np.minimum(rows["A"]["ts"][a], rows["B"]["ts"][b])
    last = np.maximum(rows["A"]["ts"][a], rows["B"]["ts"][b])
    alive = last - first <= 1000 * WINDOW
    a, b, first, last = a[alive], b[alive], first[alive], last[alive]
    ab, c = _near({name: each[alive] for name, each in pairs.items()}, rows["C"], 0, _NEAR)
    born = rows["C"]["ts"][c]
    alive = np.maximum(last[ab], born) - np.minimum(first[ab], born) <= 1000 * WINDOW
    ab, c = ab[alive], c[alive]
    found = pa.table(
        {"a": rows["A"]["id"][a[ab]], "b": rows["B"]["id"][b[ab]], "c": rows["C"]["id"][c]}
    )
    return codes(found)


def _near(
    left: dict[str, Int64s], right: dict[str, Int64s], low: int, high: int
) -> tuple[Int64s, Int64s]:
    """Positions of all pairs with equal keys where right.v - left.v is from ``low`` to ``high``."""
    wide = 4 * _VALUES
    places = right["k"] * wide + right["v"]
    order = np.argsort(places, kind="stable")
    sought = left["k"] * wide + left["v"]
    begin = np.searchsorted(places[order], sought + low, "left")
    end = np.searchsorted(places[order], sought + high, "right")
    sizes = end - begin
    mine = np.repeat(np.arange(len(sought)), sizes)
    within = np.arange(len(mine)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return mine, order[np.repeat(begin, sizes) + within]
