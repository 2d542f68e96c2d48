"""What no paper has: the four ideas together against each alone, on streams that drift and burst.

A star: A is joined with every other stream on a column of its own. In each phase one of the others
has many partners for a tuple of A and the rest have few, and phases take turns, so that the best
plan of one phase is a bad one in the next (drift). In the middle of a phase all rates are several
times as high for a second (burst).

==================  ============================================================================
as written          the tree in the order of the query, no feedback: what others run
JTree alone         the plan that the planner chooses for the first phase, and keeps
JIT alone           the tree as written, with demand feedback
JTree + JISC        ``plan="auto"``: replanned as the streams change, migrated without a halt
JTree + JISC + JIT  the same with demand feedback
JAQPOT alone        the tree as written, probes limited (``overload="shed"``)
all, shed           ``plan="auto"``, feedback, probes limited
all, defer          the same, and what was skipped is made up for while it is fresh
==================  ============================================================================

The machine is slowed down: a push is done when its CPU time, at that speed, has passed since it
arrived or the one before was done. The CPU that there is lies half-way (geometrically) between what
the tree as written and the best plan of the first phase need in calm seconds, and so does the limit
of probes, by the model. A result is *in time* if its push is done
within a second of its arrival. Runs take turns push by push, so that what disturbs the machine
disturbs all alike; of several rounds the least CPU time of each push counts.

What an engine does not offer is left out, and named in the rows.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

import penstock
from penstock.errors import OptionError
from penstock_studies.lab.experiment import Parameters, Row
from penstock_studies.random_graph import chain_query

Batches = dict[str, pa.Table]
IN_TIME = 1.0
"""Seconds that a result may be late."""


@dataclass(frozen=True)
class Drifting:
    """A star of A and ``others`` streams."""

    others: int = 2
    rate: int = 20_000
    """Tuples per second of each stream when it is calm."""
    burst: int = 2
    """Times as many in the middle second of a phase."""
    window: int = 2
    """Seconds."""
    phase: int = 8
    """Seconds."""
    phases: int = 4
    many: float = 12.0
    """Partners that a tuple has in the stream that has many, when it is calm."""
    few: float = 0.1
    slices: int = 4
    """Pushes per second."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple("ABCDEFGH"[: 1 + self.others])

    @property
    def query(self) -> penstock.JoinGraph:
        return chain_query(self.names, tuple(("A", n) for n in self.names[1:]), self.window)

    @property
    def as_written(self) -> str:
        """The left-deep tree in the order of the query."""
        plan = self.names[0]
        for name in self.names[1:]:
            plan = f"({plan} {name})"
        return plan

    @property
    def seconds(self) -> int:
        return self.phase * self.phases

    def partners(self, second: int, other: int) -> float:
        return self.many if other == second // self.phase % self.others else self.few

    def is_burst(self, second: int) -> bool:
        return second % self.phase == self.phase // 2

    def statistics(self) -> penstock.Statistics:
        """Of the first phase, when it is calm."""
        held = self.rate * self.window
        return penstock.Statistics(
            rates=dict.fromkeys(self.names, float(self.rate)),
            selectivities={
                ("A", name): self.partners(0, other) / held
                for other, name in enumerate(self.names[1:])
            },
            pushes=float(self.slices),
        )

    def probes(self) -> float:
        """Half-way between the probes per second of the first order and of the best, when calm.

        A left-deep tree probes with both inputs of each join; of the combinations of A with the
        first k others, rate · (k + 1) · Π partners are born per second.
        """
        partners = [self.partners(0, other) for other in range(self.others)]

        def of(order: list[float]) -> float:
            born = [self.rate * (k + 1) * math.prod(order[:k]) for k in range(self.others)]
            return sum(born) + self.rate * self.others

        return math.sqrt(of(partners) * of(sorted(partners)))

    def batches(self, seed: int) -> Iterator[Batches]:
        chance = np.random.default_rng(seed)
        first = 0
        for second in range(self.seconds):
            rate = self.rate * (self.burst if self.is_burst(second) else 1)
            rows = rate // self.slices
            for turn in range(self.slices):
                start = 1000 * second + 1000 * turn // self.slices
                times = start + np.arange(rows, dtype=np.int64) * (1000 // self.slices) // rows
                numbers = np.arange(first, first + rows, dtype=np.int64)
                first += rows
                columns = {name: {"ts": times, "id": numbers} for name in self.names}
                for other, name in enumerate(self.names[1:]):
                    held = self.rate * self.window
                    values = max(1, round(held / self.partners(second, other)))
                    for side in ("A", name):
                        columns[side][f"a_{name}".lower()] = chance.integers(0, values, rows)
                yield {name: pa.table(each) for name, each in columns.items()}


def configurations(workload: Drifting) -> dict[str, Callable[[], penstock.Engine]]:
    """By name, how an engine is made; some may be refused by an engine that cannot do it yet."""
    query, written = workload.query, workload.as_written
    make: Any = penstock.Engine
    limits: Any = penstock.Limits

    def limited(**options: Any) -> Callable[[], penstock.Engine]:
        return lambda: make(query, limits=limits(probes=workload.probes()), **options)

    def adaptive(**options: Any) -> Callable[[], penstock.Engine]:
        def made() -> penstock.Engine:
            if not hasattr(make, "history"):
                raise OptionError("this engine has no controller")
            engine: penstock.Engine = make(query, plan="auto", **options)
            return engine

        return made

    def both(overload: str) -> Callable[[], penstock.Engine]:
        def made() -> penstock.Engine:
            return adaptive(
                feedback="jit", overload=overload, limits=limits(probes=workload.probes())
            )()

        return made

    return {
        "as written": lambda: make(query, plan=written, feedback="off"),
        "JTree alone": lambda: make(
            query, plan=penstock.plan(query, workload.statistics()), feedback="off"
        ),
        "JIT alone": lambda: make(query, plan=written, feedback="jit"),
        "JTree + JISC": adaptive(feedback="off"),
        "JTree + JISC + JIT": adaptive(feedback="jit"),
        "JAQPOT alone": limited(plan=written, feedback="off", overload="shed"),
        "all, shed": both("shed"),
        "all, defer": both("defer"),
    }


@dataclass(frozen=True)
class Trace:
    """A run, push by push."""

    cpu: list[float]
    results: list[int]
    plans: list[str]


def traces(
    workload: Drifting,
    engines: Mapping[str, penstock.Engine],
    seed: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, Trace]:
    """Run all engines side by side."""
    found = {name: Trace([], [], []) for name in engines}
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        for batch in workload.batches(seed):
            for name, engine in engines.items():
                start = clock()
                table = engine.push(batch)
                found[name].cpu.append(clock() - start)
                found[name].results.append(table.num_rows)
                found[name].plans.append(str(engine.plan))
    finally:
        pa.set_cpu_count(threads)
    return found


def slowed_down(trace: Trace, workload: Drifting, capacity: float) -> list[dict[str, float]]:
    """Second by second: CPU, results in time so far, and how late a push is done."""
    done, in_time = 0.0, 0
    rows: list[dict[str, float]] = []
    for i, (cost, results) in enumerate(zip(trace.cpu, trace.results, strict=True)):
        arrival = (i + 1) / workload.slices
        done = max(arrival, done) + cost / capacity
        in_time += results if done - arrival <= IN_TIME else 0
        if (i + 1) % workload.slices == 0:
            rows.append(
                {
                    "second": arrival,
                    "cpu": sum(trace.cpu[i + 1 - workload.slices : i + 1]),
                    "in_time": float(in_time),
                    "delay": done - arrival,
                }
            )
    return rows


def measure_together(parameters: Parameters, seed: int) -> list[Row]:
    """A row for each configuration and second, and one for each that is left out."""
    given: Any = dict(parameters)
    rounds = given.pop("rounds")
    workload = Drifting(**given)
    makers: dict[str, Callable[[], penstock.Engine]] = {}
    rows: list[Row] = []
    for name, make in configurations(workload).items():
        try:
            warm = make()
        except (OptionError, TypeError) as error:
            rows.append({"configuration": name, "left_out": str(error).partition("\n")[0]})
            continue
        makers[name] = make
        for batch in itertools.islice(workload.batches(seed), 2):  # Kernels are loaded.
            warm.push(batch)
    found: dict[str, Trace] = {}
    for _ in range(rounds):
        for name, trace in traces(
            workload, {n: make() for n, make in makers.items()}, seed
        ).items():
            before = found.get(name, trace)
            found[name] = replace(trace, cpu=list(map(min, trace.cpu, before.cpu)))
    capacity = capacity_of(workload, found)
    everything = sum(found["as written"].results)
    for name, trace in found.items():
        changes = sum(a != b for a, b in itertools.pairwise(trace.plans))
        rows += [
            {
                "configuration": name,
                **each,
                "capacity": capacity,
                "made": sum(trace.results),
                "exact": everything,
                "plan_changes": changes,
            }
            for each in slowed_down(trace, workload, capacity)
        ]
    return rows


def capacity_of(workload: Drifting, found: Mapping[str, Trace]) -> float:
    """CPU seconds per second of the machine, as argued above."""

    def calm(name: str) -> float:
        """The median over the calm seconds of the first phase in which windows are full."""
        seconds = [s for s in range(workload.window, workload.phase) if not workload.is_burst(s)]
        cpu, n = found[name].cpu, workload.slices
        return statistics.median(sum(cpu[s * n : (s + 1) * n]) for s in seconds)

    return math.sqrt(calm("as written") * calm("JTree alone"))
