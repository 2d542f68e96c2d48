"""The workloads of ``penstock bench engine``: streams, query, plans and their sizes.

Every stream has one tuple per millisecond and ``[RANGE window]``; columns are uniform integers.

**W1**, a chain of three: A(id, ts, x, y), B(id, ts, x), C(id, ts, y), with A.x = B.x and A.y = C.y.
Windows of 100,000 tuples, x over 40,000 and y over 2,000,000 values: over its life an A meets
4.75 B (up to 200,001 of them are in reach, fewer at both ends of the run), and 9.5 % of the A meet
a C.

**W2**, a clique of four: A, B, C, D with a column for each of the six pairs. The tree
((A B)(C D)) stores ab and cd. Windows have w = 50,000 tuples; with ab and cd over d values and the
four cross columns (ac, ad, bc, bd) over X values,

- a tuple makes about w / d intermediates in the tree,
- n = w² / d cd are alive, so an ab finds n / X of them on one cross column, and its component a
  finds n / X² on both of its columns jointly,
- as an mjoin, a tuple that starts with a cross column has w / X matches to go through.

======== ======== ======= ======================= ======================= =====================
variant  d        X       ab finds on one column  a finds on both jointly what it is for
======== ======== ======= ======================= ======================= =====================
W2s      25,000   200     500 cd                  2.5 cd: most do         the tree's home
W2j      25,000   1,500   67 cd                   0.04 cd: few do         feedback's home
W2u      1,250    1,000   2,000 cd                2 cd                    the mjoin's home
======== ======== ======= ======================= ======================= =====================

W2u makes 40 intermediates per tuple and almost no result. Chance alone would leave W2j with no
result at all to check, so once in a thousand milliseconds the four tuples of that millisecond
belong together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

SEED = 20


@dataclass(frozen=True)
class Workload:
    """Streams with uniform columns, joined on columns of the same name."""

    name: str
    about: str
    columns: Mapping[str, tuple[str, ...]]
    """Join columns by stream; two streams that share a name are joined on it."""
    domains: Mapping[str, int]
    window: int
    """In milliseconds, which is also in tuples per stream."""
    rows: int
    """Tuples per stream."""
    plans: Mapping[str, str]
    together_every: int | None = None
    """Once in so many milliseconds, the tuples of that millisecond agree on all columns."""

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(self.columns)

    @property
    def pairs(self) -> list[tuple[str, str, str]]:
        """Every predicate as (stream, other stream, column)."""
        return [
            (one, other, column)
            for i, one in enumerate(self.streams)
            for other in self.streams[i + 1 :]
            for column in self.columns[one]
            if column in self.columns[other]
        ]

    @property
    def query(self) -> str:
        selected = ", ".join(f"{s}.id AS {s.lower()}" for s in self.streams)
        sources = ", ".join(f"{s} [RANGE {self.window} MILLISECONDS]" for s in self.streams)
        predicates = " AND ".join(f"{a}.{c} = {b}.{c}" for a, b, c in self.pairs)
        return f"SELECT {selected} FROM {sources} WHERE {predicates}"

    def tables(self) -> dict[str, pa.RecordBatch]:
        """The streams, the same in every process."""
        clock = np.arange(self.rows, dtype=np.int64)
        values: dict[str, dict[str, NDArray[np.int64]]] = {}
        for number, (stream, columns) in enumerate(self.columns.items()):
            random = np.random.default_rng([SEED, number])
            values[stream] = {c: random.integers(0, self.domains[c], self.rows) for c in columns}
        if self.together_every is not None:
            for one, other, column in self.pairs:
                step = slice(None, None, self.together_every)
                values[other][column][step] = values[one][column][step]
        return {
            stream: pa.RecordBatch.from_pydict({"id": clock, "ts": clock, **columns})
            for stream, columns in values.items()
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "about": self.about,
            "columns": {stream: list(columns) for stream, columns in self.columns.items()},
            "domains": dict(self.domains),
            "window": self.window,
            "rows": self.rows,
            "plans": dict(self.plans),
            "together_every": self.together_every,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Workload:
        columns = {stream: tuple(names) for stream, names in values["columns"].items()}
        return cls(**{**values, "columns": columns})


def _clique(name: str, about: str, within: int, across: int) -> Workload:
    return Workload(
        name=name,
        about=about,
        columns={
            "A": ("ab", "ac", "ad"),
            "B": ("ab", "bc", "bd"),
            "C": ("ac", "bc", "cd"),
            "D": ("ad", "bd", "cd"),
        },
        domains={
            "ab": within,
            "cd": within,
            **dict.fromkeys(("ac", "ad", "bc", "bd"), across),
        },
        window=50_000,
        rows=150_000,
        plans={"tree": "((A B)(C D))", "mjoin": "(A B C D)"},
        together_every=1_000,
    )


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload(
            name="W1",
            about="chain of three; 4.75 B per A, 9.5 % of the A have a C",
            columns={"A": ("x", "y"), "B": ("x",), "C": ("y",)},
            domains={"x": 40_000, "y": 2_000_000},
            window=100_000,
            rows=1_000_000,
            plans={"tree": "((A B) C)", "mjoin": "(A B C | A:C,B B:A,C C:A,B)"},
        ),
        _clique("W2s", "clique of four; most ab find a cd on single columns", 25_000, 200),
        _clique("W2j", "clique of four; few ab find a cd on columns jointly", 25_000, 1_500),
        _clique("W2u", "clique of four; 40 intermediates per tuple, few results", 1_250, 1_000),
    )
}
