"""A drifting workload: selectivities that swap every few windows, with and without the controller.

A star of streams: A is joined with every other stream on a column of its own. In each phase one of
the others has many partners for a tuple of A and the rest have few, and phases take turns. The good
plan joins A with the selective streams first; when the phase ends, it has become the worst.

Every plan runs on the same data, and so does an engine with ``plan="auto"``. Its total CPU is
compared with the best plan *of each phase* (somebody who knows the future and changes plans for
nothing), and with the worst plan that somebody might have fixed. CPU is process time, taken around
each push; runs take turns batch by batch, so that what disturbs the machine disturbs all of them
alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module

import numpy as np
import pyarrow as pa

import penstock
from penstock.experiments.random_graph import chain_query
from penstock.plan.notation import write
from penstock.planning.jtree_finder import jtree_finder
from penstock.planning.limits import Limits
from penstock.planning.problem import Problem
from penstock.planning.statistics import Statistics

ADAPTIVE = "auto"
Batches = dict[str, pa.Table]


@dataclass(frozen=True)
class Workload:
    """A star of ``1 + others`` streams, each with ``rate`` tuples per second."""

    others: int = 2
    rate: int = 100_000
    window: int = 2
    """Seconds."""
    windows: int = 4
    """Windows per phase."""
    phases: int = 6
    many: float = 20.0
    """Partners of a tuple in the stream that has many."""
    few: float = 0.02
    slices: int = 8
    """Batches per second."""
    seed: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        return tuple("ABCDEFGHIJ"[: 1 + self.others])

    @property
    def query(self) -> penstock.JoinGraph:
        return chain_query(self.names, tuple(("A", n) for n in self.names[1:]), self.window)

    @property
    def seconds(self) -> int:
        """Of one phase."""
        return self.windows * self.window

    def batches(self) -> Iterator[tuple[int, Batches]]:
        """Each batch with the number of its phase."""
        chance = np.random.default_rng(self.seed)
        rows = self.rate // self.slices
        for turn in range(self.phases * self.seconds * self.slices):
            phase = turn // (self.seconds * self.slices)
            numbers = np.arange(turn * rows, (turn + 1) * rows, dtype=np.int64)
            times = (numbers * (1000 / self.rate)).astype(np.int64)
            tables = {name: {"ts": times, "id": numbers} for name in self.names}
            for position, name in enumerate(self.names[1:]):
                partners = self.many if position == phase % self.others else self.few
                values = max(1, round(self.rate * self.window / partners))
                for side in ("A", name):
                    tables[side][f"a_{name}".lower()] = chance.integers(0, values, rows)
            yield phase, {name: pa.table(columns) for name, columns in tables.items()}

    def plans(self) -> list[str]:
        """All plans, none of which joins streams without a predicate."""
        pairs = {("A", name): 0.001 for name in self.names[1:]}
        problem = Problem(self.query, Statistics(dict.fromkeys(self.names, 1.0), pairs))
        found = jtree_finder(problem, Limits(), keep="all")
        return [write(problem.plan_of(each)) for each in found]


@dataclass(frozen=True)
class Run:
    """One plan, or the engine that adapts."""

    plan: str
    phases: tuple[float, ...]
    """CPU seconds of each phase."""
    results: int
    history: tuple[str, ...] = ()

    @property
    def cpu(self) -> float:
        return sum(self.phases)


@dataclass(frozen=True)
class Drift:
    """All runs."""

    workload: Workload
    adaptive: Run
    fixed: tuple[Run, ...]

    @property
    def best_of_each_phase(self) -> float:
        """CPU seconds of somebody who has the best plan in every phase."""
        return sum(
            min(run.phases[phase] for run in self.fixed) for phase in range(self.workload.phases)
        )

    @property
    def against_best(self) -> float:
        """CPU of the controller over that of the best plan of each phase."""
        return self.adaptive.cpu / self.best_of_each_phase

    @property
    def worst(self) -> Run:
        return max(self.fixed, key=lambda run: run.cpu)

    @property
    def best_fixed(self) -> Run:
        return min(self.fixed, key=lambda run: run.cpu)

    @property
    def against_worst(self) -> float:
        """CPU of the worst fixed plan over that of the controller."""
        return self.worst.cpu / self.adaptive.cpu


def drift(
    workload: Workload,
    plans: Sequence[str] | None = None,
    feedback: str = "off",
    clock: Callable[[], float] = time.process_time,
) -> Drift:
    """Run the controller and ``plans`` (all there are, unless given) on ``workload``."""
    import_module("penstock.planning.adaptation")  # What a process loads once is not counted.
    query = workload.query
    names = [ADAPTIVE, *(workload.plans() if plans is None else plans)]
    engines = [penstock.Engine(query, plan=plan, feedback=feedback) for plan in names]
    spent = np.zeros((len(names), workload.phases))
    results = [0] * len(names)
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        for phase, batch in workload.batches():
            for number, engine in enumerate(engines):
                start = clock()
                table = engine.push(batch)
                spent[number, phase] += clock() - start
                results[number] += table.num_rows
    finally:
        pa.set_cpu_count(threads)
    runs = [
        Run(
            plan,
            tuple(spent[number].tolist()),
            results[number],
            tuple(f"{e.at:.2f}s {e.before} → {e.plan}" for e in engines[number].history),
        )
        for number, plan in enumerate(names)
    ]
    return Drift(workload, runs[0], tuple(runs[1:]))
