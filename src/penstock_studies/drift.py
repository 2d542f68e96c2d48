"""Drifting workloads: selectivities that swap every few windows, with and without the controller.

Streams are joined along the links of a graph, each link on a column of its own. In each phase one
link has many partners for a tuple and the others few, and the links take turns. A good plan begins
with links that have few; when the phase ends, it may have become the worst. What is common to all
phases is the number of results, so that all of the difference is in partial results.

- ``star``: A with each of the others. A tuple with few has mostly none (1 in 50), so nearly all
  partial results are ones that nobody wants. That is what demand feedback is for: it makes the bad
  plans nearly as cheap as the good ones, and there is little left for a change of plan to save.
- ``chain``: A with B, B with C, C with D; the same for a longer way round.
- ``cycle``: A with B, B with C, and A with C. Few is two: every tuple has partners everywhere, but
  a pair seldom has a third. No tuple alone can be told to be useless, so feedback cannot help, and
  the plan decides.
- ``uneven``: a star in which A is four times as fast as the others, in longer phases.

Every plan runs on the same data, and so does an engine with ``plan="auto"``. Its total CPU is
compared with the best plan *of each phase* (somebody who knows the future and changes plans for
nothing), and with the worst plan that somebody might have fixed. CPU is process time, taken around
each push; runs take turns batch by batch, so that what disturbs the machine disturbs all of them
alike, and in another order each time: whoever comes first fetches the batch into the cache, and
whoever follows a plan that needs a lot of memory finds it gone. In a fixed order that was a tenth
of the CPU of the one that always came first. All of it is done in several rounds, and of each batch
the least time counts: engines decide by counts and not by clocks, so that rounds do the same, and
what disturbs only makes things longer.
Before, all of them run on a little data of the same kind: what a process loads or compiles once is
not counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import penstock
from penstock.plan.plan import write
from penstock.planning.jtree_finder import jtree_finder
from penstock.planning.limits import Limits
from penstock.planning.problem import Problem
from penstock.planning.statistics import Statistics
from penstock_studies.random_graph import chain_query

ADAPTIVE = "auto"
Shape = Literal["star", "chain", "cycle"]
Batches = dict[str, pa.Table]
WARMING = 5_000
"""The rate at which everything runs once before it counts."""


@dataclass(frozen=True)
class Workload:
    """Streams that are linked in the form of ``shape``."""

    shape: Shape = "star"
    streams: int = 3
    rate: int = 100_000
    """Tuples per second of a stream."""
    first: float = 1.0
    """How many times as fast A is."""
    window: int = 2
    """Seconds."""
    windows: int = 4
    """Windows per phase."""
    phases: int = 6
    many: float = 20.0
    """Partners that a tuple has across the link that has many, in the slower of its streams."""
    few: float = 0.02
    slices: int = 8
    """Batches per second."""
    seed: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        return tuple("ABCDEFGHIJ"[: self.streams])

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        names = self.names
        if self.shape == "star":
            return tuple((names[0], name) for name in names[1:])
        chain = tuple(pairwise(names))
        return (*chain, (names[0], names[-1])) if self.shape == "cycle" else chain

    @property
    def query(self) -> penstock.JoinGraph:
        return chain_query(self.names, self.links, self.window)

    @property
    def seconds(self) -> int:
        """Of one phase."""
        return self.windows * self.window

    def rate_of(self, name: str) -> int:
        return round(self.rate * (self.first if name == "A" else 1.0))

    def batches(self) -> Iterator[tuple[int, Batches]]:
        """Each batch with the number of its phase."""
        chance = np.random.default_rng(self.seed)
        for turn in range(self.phases * self.seconds * self.slices):
            phase = turn // (self.seconds * self.slices)
            tables: dict[str, dict[str, Any]] = {}
            for name in self.names:
                rows = self.rate_of(name) // self.slices
                numbers = np.arange(turn * rows, (turn + 1) * rows, dtype=np.int64)
                times = (numbers * (1000 / self.rate_of(name))).astype(np.int64)
                tables[name] = {"ts": times, "id": numbers}
            for position, link in enumerate(self.links):
                partners = self.many if position == phase % len(self.links) else self.few
                slower = min(self.rate_of(name) for name in link)
                values = max(1, round(slower * self.window / partners))
                for name in link:
                    rows = len(tables[name]["ts"])
                    tables[name]["_".join(link).lower()] = chance.integers(0, values, rows)
            yield phase, {name: pa.table(columns) for name, columns in tables.items()}

    def plans(self) -> list[str]:
        """All plans, none of which joins streams without a predicate."""
        pairs = dict.fromkeys(self.links, 0.001)
        problem = Problem(self.query, Statistics(dict.fromkeys(self.names, 1.0), pairs))
        found = jtree_finder(problem, Limits(), keep="all")
        return [write(problem.plan_of(each)) for each in found]


WORKLOADS = {
    "star": Workload(),
    "chain": Workload("chain", 4, rate=50_000),
    "cycle": Workload("cycle", rate=40_000, many=30.0, few=2.0, slices=4),
    "uneven": Workload(first=4.0, rate=40_000, windows=6, phases=4),
}


@dataclass(frozen=True)
class Run:
    """One plan, or the engine that adapts."""

    plan: str
    phases: tuple[float, ...]
    """CPU seconds of each phase."""
    results: int
    history: tuple[str, ...] = ()
    priced: float = 0.0
    """CPU seconds that its changes of plan were priced at, where something was missing."""
    cost: float = 0.0
    """CPU seconds that completing it, and asking for it, has taken."""

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
    def against_worst(self) -> float:
        """CPU of the worst fixed plan over that of the controller."""
        return self.worst.cpu / self.adaptive.cpu


def drift(
    workload: Workload,
    plans: Sequence[str] | None = None,
    feedback: str = "off",
    rounds: int = 1,
    clock: Callable[[], float] = time.process_time,
) -> Drift:
    """Run the controller and ``plans`` (all there are, unless given) on ``workload``."""
    names = [ADAPTIVE, *(workload.plans() if plans is None else plans)]
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        warming = replace(workload, rate=min(workload.rate, WARMING), phases=2)
        _round(warming, names, feedback, clock)
        measured = [_round(workload, names, feedback, clock) for _ in range(rounds)]
    finally:
        pa.set_cpu_count(threads)
    spent = np.min([each.spent for each in measured], axis=0)
    by_phase = spent.reshape(len(names), workload.phases, -1).sum(axis=2)
    last = measured[-1]
    runs = [
        Run(name, tuple(phases), results, history, *bill)
        for name, phases, results, history, bill in zip(
            names, by_phase.tolist(), last.results, last.histories, last.bills, strict=True
        )
    ]
    return Drift(workload, runs[0], tuple(runs[1:]))


@dataclass(frozen=True)
class _Round:
    """What each of the runs took for each batch, made, and changed."""

    spent: NDArray[np.float64]
    results: list[int]
    histories: list[tuple[str, ...]]
    bills: list[tuple[float, float]]
    """What changes were priced at, and what they have cost."""


def _round(
    workload: Workload, names: Sequence[str], feedback: str, clock: Callable[[], float]
) -> _Round:
    query = workload.query
    engines = [penstock.Engine(query, plan=plan, feedback=feedback) for plan in names]
    spent: list[list[float]] = []
    results = [0] * len(names)
    chance = np.random.default_rng(workload.seed)
    for _, batch in workload.batches():
        took = [0.0] * len(names)
        for number in chance.permutation(len(names)).tolist():
            start = clock()
            table = engines[number].push(batch)
            took[number] = clock() - start
            results[number] += table.num_rows
        spent.append(took)
    histories = [
        tuple(f"{each.at:.2f}s {each.before} → {each.plan}" for each in engine.history)
        for engine in engines
    ]
    return _Round(np.array(spent).T, results, histories, [bill_of(each) for each in engines])


def bill_of(engine: penstock.Engine) -> tuple[float, float]:
    """What the changes of ``engine`` were priced at, and what they have cost. Of one that another
    has overtaken no more of the price counts than what it has cost."""
    priced = cost = 0.0
    for event in engine.drain_events():
        if event.action in ("complete", "overtaken"):
            spent = event.numbers["cost"]
            whole = event.action == "complete"
            priced += event.numbers["priced"] if whole else min(spent, event.numbers["priced"])
            cost += spent
    return priced, cost
