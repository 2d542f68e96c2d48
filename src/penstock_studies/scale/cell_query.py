"""The queries whose tuples are spread over cells, and their data.

How well a join can be spread is known. With p cells, streams of equal rates and no skew, each cell
of the best grid gets about 1 / p^(1/τ) of the input, where τ is the largest fractional packing of
the query's streams: weights, one for each stream, that add up to at most 1 at every class of
equated columns (Beame, Koutris and Suciu, Communication Steps for Parallel Query Processing). So a
tuple is copied about p^(1 - 1/τ) times:

======== ===================== === =========== =================================================
query                          τ   copies      the packing
======== ===================== === =========== =================================================
key      one key for all       1   1           one stream
chain    A.x = B.x, B.y = C.y  2   p^(1/2)     A and C
cycle    A–B, B–C, C–A         3/2 p^(1/3)     half of each
star     A.x = B.x, A.y = C.y, 3   p^(2/3)     B, C and D
         A.z = D.z
theta    A.x near B.x          2   p^(1/2)     A and B: they share no class
======== ===================== === =========== =================================================

*zipf*, *hot* and *sized* are one pair: A.x = B.x, where x of A is Zipf distributed and B has
every value equally often. In *hot*, the values that a survey of the sample finds hot have cells of
their own; in *sized*, it also tells what share of each stream they are.

Engines are measured on the same queries with as many values as a window has rows: a tuple has one
partner in each window that it is joined with, and one in a window of rows closes a cycle. With a
Zipf distribution it is one partner as well, since B has every value about once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import penstock

ZIPF = 1.2
"""The k-th value has a weight of k^-ZIPF."""


@dataclass(frozen=True)
class CellQuery:
    """Streams with int64 columns, and how they are joined."""

    name: str
    columns: Mapping[str, tuple[str, ...]]
    where: str
    packing: float
    """τ, above."""
    zipf: str | None = None
    """The stream whose columns are Zipf distributed."""
    hot: Literal["values", "shares"] | None = None
    """What the placement is told about hot values."""
    near: int = 0
    """Of a theta join: values are so many times more, and so far apart is near."""

    @property
    def is_theta(self) -> bool:
        return self.near > 0

    def schema(self, stream: str) -> pa.Schema:
        return pa.schema([(each, pa.int64()) for each in ("id", "ts", *self.columns[stream])])

    def query(self, window: int) -> penstock.JoinGraph:
        select = ", ".join(f"{name}.id AS {name.lower()}" for name in self.columns)
        sources = ", ".join(f"{name} [RANGE {window} MILLISECONDS]" for name in self.columns)
        return penstock.parse(
            f"SELECT {select} FROM {sources} WHERE {self.where}",
            schemas={name: self.schema(name) for name in self.columns},
        )

    def batch(self, start: int, count: int, values: int, seed: int) -> dict[str, pa.RecordBatch]:
        """``count`` tuples of each stream, one a millisecond from ``start`` on."""
        times = np.arange(start, start + count, dtype=np.int64)
        made = {}
        for number, (name, own) in enumerate(self.columns.items()):
            chance = np.random.default_rng([seed, number, start])
            columns = {
                each: zipf(chance, values, count)
                if name == self.zipf
                else chance.integers(0, values * max(1, self.near), count)
                for each in own
            }
            arrays = [pa.array(each) for each in (times, times, *columns.values())]
            made[name] = pa.RecordBatch.from_arrays(arrays, schema=self.schema(name))
        return made


def zipf(chance: np.random.Generator, values: int, count: int) -> NDArray[np.int64]:
    """``count`` of the values 0, 1, … with weights 1, 2^-ZIPF, 3^-ZIPF, …"""
    weights = np.cumsum(np.arange(1, values + 1, dtype=np.float64) ** -ZIPF)
    drawn = np.searchsorted(weights, chance.random(count) * weights[-1])
    return np.asarray(drawn, np.int64)


_PAIR = {"A": ("x",), "B": ("x",)}
QUERIES = {
    each.name: each
    for each in (
        CellQuery("key", {"A": ("x",), "B": ("x",), "C": ("x",)}, "A.x = B.x AND B.x = C.x", 1.0),
        CellQuery(
            "chain", {"A": ("x",), "B": ("x", "y"), "C": ("y",)}, "A.x = B.x AND B.y = C.y", 2.0
        ),
        CellQuery(
            "cycle",
            {"A": ("x", "z"), "B": ("x", "y"), "C": ("y", "z")},
            "A.x = B.x AND B.y = C.y AND C.z = A.z",
            1.5,
        ),
        CellQuery(
            "star",
            {"A": ("x", "y", "z"), "B": ("x",), "C": ("y",), "D": ("z",)},
            "A.x = B.x AND A.y = C.y AND A.z = D.z",
            3.0,
        ),
        CellQuery("theta", _PAIR, "A.x BETWEEN B.x - 5 AND B.x + 4", 2.0, near=10),
        CellQuery("zipf", _PAIR, "A.x = B.x", 1.0, zipf="A"),
        CellQuery("hot", _PAIR, "A.x = B.x", 1.0, zipf="A", hot="values"),
        CellQuery("sized", _PAIR, "A.x = B.x", 1.0, zipf="A", hot="shares"),
    )
}
