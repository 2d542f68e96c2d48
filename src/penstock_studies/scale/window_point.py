"""Cost by window: one join and one size of window at a time.

Domains grow with the windows, so that a tuple finds as many partners in a window of ten million
rows as in one of ten thousand. What is left to grow is what memory costs: an index that no longer
fits a cache. Two joins:

- *pair*: A.x = B.x with as many values as rows in a window, one partner for each tuple;
- *three*: W1 of ``penstock bench engine``, A.x = B.x AND A.y = C.y, where a tuple meets 2.5 on x
  and one in twenty meets one on y; the plan that the planner chooses, ((A C) B).

The plan is fixed: what looking for another one costs does not depend on the window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import penstock
from penstock_studies.lab.experiment import Parameters, Row
from penstock_studies.scale.cache_sizes import cache_sizes
from penstock_studies.scale.steady_state import PARTS, Batches, steady_state


@dataclass(frozen=True)
class WindowJoin:
    """Streams with uniform columns, joined on columns of the same name."""

    columns: Mapping[str, tuple[str, ...]]
    values: Mapping[str, float]
    """Of each column: values for each row of a window."""
    where: str
    plan: str

    def query(self, window: int) -> penstock.JoinGraph:
        select = ", ".join(f"{name}.id AS {name.lower()}" for name in self.columns)
        sources = ", ".join(f"{name} [RANGE {window} MILLISECONDS]" for name in self.columns)
        schemas = {
            name: pa.schema([(each, pa.int64()) for each in ("id", "ts", *own)])
            for name, own in self.columns.items()
        }
        return penstock.parse(f"SELECT {select} FROM {sources} WHERE {self.where}", schemas=schemas)

    def batches(self, window: int, seed: int) -> Batches:
        values = {name: max(2, int(share * window)) for name, share in self.values.items()}

        def batch(start: int, count: int) -> dict[str, pa.RecordBatch]:
            made = {}
            times = np.arange(start, start + count, dtype=np.int64)
            for number, (name, own) in enumerate(self.columns.items()):
                chance = np.random.default_rng([seed, number, start])
                columns = {each: chance.integers(0, values[each], count) for each in own}
                made[name] = pa.RecordBatch.from_pydict({"id": times, "ts": times, **columns})
            return made

        return batch


JOINS = {
    "pair": WindowJoin({"A": ("x",), "B": ("x",)}, {"x": 1.0}, "A.x = B.x", "(A B)"),
    "three": WindowJoin(
        {"A": ("x", "y"), "B": ("x",), "C": ("y",)},
        {"x": 0.4, "y": 20.0},
        "A.x = B.x AND A.y = C.y",
        "((A C) B)",
    ),
}


def measure_window(parameters: Parameters, seed: int) -> list[Row]:
    """``join``, ``window`` in rows, ``batch`` and ``tuples``, both over all streams."""
    given: Any = parameters
    join, window = JOINS[given["join"]], given["window"]
    push = max(1, given["batch"] // len(join.columns))
    engine = penstock.Engine(join.query(window), plan=join.plan)
    pushes = max(1, given["tuples"] // (PARTS * push * len(join.columns)))
    found = steady_state(engine, join.batches(window, seed), window, push, pushes)
    return [
        {
            "join": given["join"],
            "window": window,
            "ns": found.nanoseconds,
            "held": found.held,
            "bytes": found.bytes,
            "bytes_per_row": found.bytes_per_row,
            "results_per_tuple": found.results,
            **cache_sizes(),
        }
    ]
