"""``plan="auto"`` and plans by hand on the same batches: the CPU that each takes.

As in :mod:`penstock_studies.drift`: engines take turns batch by batch, in another order each time.
All of them have run on the first part of the data before, and ``auto`` on all of it, so that what
a process loads or compiles once is not counted. What that has left is kept out of the search for
garbage, which is charged to whoever happens to be at it. CPU is process time around each push. With
several rounds the least time of each batch counts.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import penstock
from penstock_studies.auto.workload import Workload

AUTO = "auto"
WARMING = 0.05
"""The share of the run with which everything has run once before it counts."""
OVER = 8.0
"""A plan by hand that has taken so many times the CPU of the best is not run to its end."""
SECONDS_TO_GIVE_UP = 0.5
"""CPU seconds of the best before any is given up."""


@dataclass(frozen=True)
class Contest:
    """What one workload took."""

    workload: Workload
    cpu: dict[str, float]
    """CPU seconds by plan, of those that ran to the end."""
    late: dict[str, float]
    """The same in the second half of the run."""
    results: int
    changes: tuple[str, ...]
    looks: int
    looks_cpu: float
    """CPU seconds of these."""

    @property
    def best(self) -> str:
        """The plan by hand with the least CPU."""
        return min((plan for plan in self.cpu if plan != AUTO), key=self.cpu.__getitem__)

    @property
    def whole(self) -> float:
        """CPU of auto over that of the best plan by hand."""
        return self.cpu[AUTO] / self.cpu[self.best]

    @property
    def second_half(self) -> float:
        """The same of the second half, against the best plan of that half."""
        return self.late[AUTO] / min(s for plan, s in self.late.items() if plan != AUTO)


def contest(
    workload: Workload, rounds: int = 1, clock: Callable[[], float] = time.process_time
) -> Contest:
    """Run ``workload`` with every plan."""
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        _warm_up(workload.shortened(WARMING))
        auto = penstock.Engine(workload.query)
        for batch in workload.batches():
            auto.push(batch)
        del auto
        gc.collect()
        gc.freeze()
        runs = [_round(workload, clock) for _ in range(rounds)]
    finally:
        gc.unfreeze()
        pa.set_cpu_count(threads)
    spent = np.min([each.spent for each in runs], axis=0)
    ended = [i for i, name in enumerate(runs[0].names) if not np.isnan(spent[i]).any()]
    half = workload.turns // 2
    names = runs[0].names
    return Contest(
        workload,
        {names[i]: float(spent[i].sum()) for i in ended},
        {names[i]: float(spent[i, half:].sum()) for i in ended},
        runs[0].results,
        runs[0].changes,
        runs[0].looks,
        runs[0].looks_cpu,
    )


def _warm_up(workload: Workload) -> None:
    """Run every plan on the data, and all changes between them: what they need is loaded."""
    query, plans = workload.query, (AUTO, *workload.plans)
    engines = [penstock.Engine(query, plan=plan) for plan in plans]
    changing, turns = penstock.Engine(query), workload.turns
    for turn, batch in enumerate(workload.batches()):
        for engine in (changing, *engines):
            engine.push(batch)
        if turn % max(1, turns // len(plans)) == 0:
            changing.migrate(plans[1 + turn * len(workload.plans) // turns])
    penstock.plan(query, changing.statistics())


@dataclass(frozen=True)
class _Round:
    names: list[str]
    spent: NDArray[np.float64]
    """CPU seconds by plan and batch; not a number for plans that were given up."""
    results: int
    changes: tuple[str, ...]
    looks: int
    looks_cpu: float


def _round(workload: Workload, clock: Callable[[], float]) -> _Round:
    query, names = workload.query, [AUTO, *workload.plans]
    engines = [penstock.Engine(query, plan=plan) for plan in names]
    spent = np.full((len(names), workload.turns), np.nan)
    totals, results = [0.0] * len(names), [0] * len(names)
    running = list(range(len(names)))
    chance = np.random.default_rng(workload.seed)
    for turn, batch in enumerate(workload.batches()):
        for number in chance.permutation(running).tolist():
            start = clock()
            table = engines[number].push(batch)
            spent[number, turn] = took = clock() - start
            totals[number] += took
            results[number] += table.num_rows
        least = min(totals[number] for number in running[1:])
        if least > SECONDS_TO_GIVE_UP:
            running = [n for n in running if n == 0 or totals[n] <= OVER * least]
    ended = {results[number] for number in running}
    if len(ended) > 1 and not query.is_grouped:
        raise AssertionError(f"{workload.name}: answers of {sorted(ended)} rows")
    auto = engines[0]
    changes = tuple(f"{each.at:.2f}s {each.before} → {each.plan}" for each in auto.history)
    control = auto.metrics()["control"]
    return _Round(names, spent, results[0], changes, control["looks"], control["looks_cpu"])
