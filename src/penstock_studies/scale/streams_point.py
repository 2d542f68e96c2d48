"""Cost by number of streams: a chain or a star of so many, with one result for each tuple.

The key of a stream is a permutation of as many values as a window has rows, over and over: every
window holds every value once, so that a tuple has exactly one partner on each predicate and is in
one result, however many streams there are. With random keys the number of results would be a
product of random numbers, and of twenty of them nothing but the tail would be measured.

Plans are that of the planner (two-layer, told the rates and selectivities) with demand feedback on
and off, and one mjoin over all streams, which stores nothing between joins. A result has a column
for each stream.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa

import penstock
from penstock_studies.lab.experiment import Parameters, Row
from penstock_studies.scale.steady_state import PARTS, Batches, steady_state

Shape = Literal["chain", "star"]
FORMS = {"planned": "off", "planned, feedback": "jit", "mjoin": "off"}
"""What is run, and with which feedback."""


@dataclass(frozen=True)
class ManyStreams:
    """``S1 … Sn``: a chain, or a star around ``S1``, over windows of ``window`` rows."""

    shape: Shape
    streams: int
    window: int

    @property
    def names(self) -> list[str]:
        return [f"S{number}" for number in range(1, self.streams + 1)]

    @property
    def predicates(self) -> list[tuple[str, str, str]]:
        """(stream, other stream, their column)."""
        names = self.names
        return [
            (names[i - 1] if self.shape == "chain" else names[0], names[i], f"k{i}")
            for i in range(1, len(names))
        ]

    def columns(self, stream: str) -> list[str]:
        return [column for one, other, column in self.predicates if stream in (one, other)]

    @cached_property
    def query(self) -> penstock.JoinGraph:
        select = ", ".join(f"{name}.id AS {name.lower()}" for name in self.names)
        sources = ", ".join(f"{name} [RANGE {self.window} MILLISECONDS]" for name in self.names)
        where = " AND ".join(f"{a}.{c} = {b}.{c}" for a, b, c in self.predicates)
        return penstock.parse(
            f"SELECT {select} FROM {sources} WHERE {where}",
            schemas={
                name: pa.schema([(c, pa.int64()) for c in ("id", "ts", *self.columns(name))])
                for name in self.names
            },
        )

    def planned(self) -> str:
        """The planner's plan."""
        statistics = penstock.Statistics(
            rates=dict.fromkeys(self.names, 1000.0),
            selectivities={(a, b): 1 / self.window for a, b, _ in self.predicates},
        )
        return str(penstock.plan(self.query, statistics))

    def batches(self, seed: int) -> Batches:
        chance = np.random.default_rng(seed)
        orders = {
            name: {each: chance.permutation(self.window) for each in self.columns(name)}
            for name in self.names
        }

        def batch(start: int, count: int) -> dict[str, pa.RecordBatch]:
            times = np.arange(start, start + count, dtype=np.int64)
            return {
                name: pa.RecordBatch.from_pydict(
                    {
                        "id": times,
                        "ts": times,
                        **{each: order[times % self.window] for each, order in own.items()},
                    }
                )
                for name, own in orders.items()
            }

        return batch


def measure_streams(parameters: Parameters, seed: int) -> list[Row]:
    """``shape``, ``streams``, ``window`` in rows, ``batch`` and ``tuples`` over all streams."""
    given: Any = parameters
    many = ManyStreams(given["shape"], given["streams"], given["window"])
    start = time.process_time()
    planned = many.planned()
    planning = time.process_time() - start
    push = max(1, given["batch"] // many.streams)
    pushes = max(1, given["tuples"] // (PARTS * push * many.streams))
    rows: list[Row] = []
    for form, feedback in FORMS.items():
        plan = f"({' '.join(many.names)})" if form == "mjoin" else planned
        engine = penstock.Engine(many.query, plan=plan, feedback=feedback)
        found = steady_state(engine, many.batches(seed), many.window, push, pushes)
        rows.append(
            {
                "shape": many.shape,
                "streams": many.streams,
                "form": form,
                "ns": found.nanoseconds,
                "bytes_per_row": found.bytes_per_row,
                "results_per_tuple": found.results,
                "planning_ms": 1000 * planning,
                "plan": str(engine.plan),
            }
        )
    return rows
