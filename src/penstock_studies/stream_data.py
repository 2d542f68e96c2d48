"""Data that follows given rates and selectivities, and the cost of running a plan on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import penstock

Pair = tuple[str, str]
Batches = dict[str, pa.Table]


def uniform_batches(
    rates: Mapping[str, float],
    values: Mapping[Pair, int],
    seconds: int,
    seed: int,
    slices: int = 1,
) -> Iterator[Batches]:
    """``slices`` batches per second: evenly spaced tuples with uniform columns.

    ``values`` is how many different values the column of a pair has: a pair of tuples matches with
    the chance 1 / values.
    """
    chances = {name: np.random.default_rng([seed, i]) for i, name in enumerate(rates)}
    done = dict.fromkeys(rates, 0)
    for turn in range(1, seconds * slices + 1):
        batches = {}
        for name, rate in rates.items():
            first, last = done[name], int(rate * turn / slices)
            done[name] = last
            numbers = np.arange(first, last, dtype=np.int64)
            columns = {"ts": (numbers * (1000 / rate)).astype(np.int64), "id": numbers}
            for (a, b), count in values.items():
                if name in (a, b):
                    column = f"{a}_{b}".lower()
                    columns[column] = chances[name].integers(0, count, last - first)
            batches[name] = pa.table(columns)
        yield batches


@dataclass(frozen=True)
class Measured:
    """A run after its windows had filled."""

    cpu: float
    """CPU seconds per second of event time."""
    rows: int
    """Rows in all windows and states."""
    memory: int
    """Bytes of all windows and states, the largest seen."""
    results: int
    metrics: dict[str, Any]


def run_plan(
    query: penstock.JoinGraph,
    plan: str,
    batches: Iterator[Batches],
    filled: int,
    slices: int = 1,
    join: str = "hash",
    feedback: str = "jit",
    clock: Callable[[], float] = time.process_time,
) -> Measured:
    """Run ``plan``; the clock starts after ``filled`` seconds of event time."""
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        engine = penstock.Engine(query, plan=plan, join=join, feedback=feedback)
        spent, counted, results, most, rows = 0.0, 0, 0, 0, 0
        for number, batch in enumerate(batches):
            start = clock()
            table = engine.push(batch)
            took = clock() - start
            results += table.num_rows
            if number >= filled * slices:
                spent += took
                counted += 1
                state = engine.metrics()["state"]
                most = max(most, state["bytes"])
                held = [*state["windows"].values(), *state["joins"].values()]
                rows = max(rows, sum(each["rows"] for each in held))
        return Measured(spent * slices / max(1, counted), rows, most, results, engine.metrics())
    finally:
        pa.set_cpu_count(threads)
