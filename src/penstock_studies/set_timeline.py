"""Figures 7 and 8 of JTree: plans of sets 1 to 4 over time, with a bounded CPU and memory.

The paper's machine was slow enough for 60 tuples a second to matter. This one is not, so it is
*slowed down*: a plan is run once without bounds, and each push has its CPU time, its results and
the bytes held after it. From these, what happens on a machine that gives only ``c`` CPU seconds per
second follows exactly: a push is done at

    done(i) = max(arrival(i), done(i - 1)) + cpu(i) / c,

the queue at time t holds the tuples of the pushes that have arrived before and are not done, and a
plan that exceeds the memory ends. In sets 2 and 4 the machine is just fast enough for the plan that
is qualified according to the paper (the binary tree, and the jtree); otherwise it has twice the CPU
that the dearest plan needs. Memory is bounded in sets 3 and 4, half-way (geometrically) between the
tree and the plan that should fit. So the bounds are chosen; who keeps up, who does not, and how the
others fare is measured.

Nested loops are what the paper's numbers fit (see :mod:`penstock_studies.qualified_sets`); hash
joins are run as well.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import penstock
from penstock_studies.lab.experiment import Parameters, Row
from penstock_studies.qualified_sets import SETTINGS, Setting, plans_of
from penstock_studies.stream_data import uniform_batches

SLICES = 2
"""Pushes per second of event time."""
SETS = {setting.name: setting for setting in SETTINGS if setting.runs}
SHORT_OF_CPU = {"2": "bjtree", "4 at 15 s": "jtree"}
SHORT_OF_MEMORY = {"3": "mjoin", "4 at 15 s": "jtree"}
"""Sets, and the plan that should fit."""
JUST_ENOUGH = 1.15
"""Times what a plan needs in the steady state."""


@dataclass(frozen=True)
class Trace:
    """A run without bounds, push by push."""

    cpu: tuple[float, ...]
    results: tuple[int, ...]
    memory: tuple[int, ...]

    @property
    def steady_cpu(self) -> float:
        """CPU seconds per second in the last third of the run."""
        last = self.cpu[-max(1, len(self.cpu) // 3) :]
        return SLICES * sum(last) / len(last)

    @property
    def peak(self) -> int:
        return max(self.memory)


@dataclass(frozen=True)
class Moment:
    """A slowed-down run at one time."""

    second: float
    results: int
    queue: int
    memory: int


def traces(
    setting: Setting,
    join: str,
    seconds: int,
    rounds: int,
    seed: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, Trace]:
    """All plans of a set; the least CPU time of each push over interleaved rounds."""
    problem = setting.problem(join)
    plans = {name: str(problem.plan_of(each)) for name, each in plans_of(problem).items()}
    best: dict[str, Trace] = {}
    for _ in range(rounds):
        for name, plan in plans.items():
            found = _trace(problem.query, plan, setting, join, seconds, seed, clock)
            if name in best:
                least = tuple(map(min, found.cpu, best[name].cpu))
                found = Trace(least, found.results, found.memory)
            best[name] = found
    return best


def _trace(
    query: penstock.JoinGraph,
    plan: str,
    setting: Setting,
    join: str,
    seconds: int,
    seed: int,
    clock: Callable[[], float],
) -> Trace:
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        engine = penstock.Engine(query, plan=plan, join=join, feedback="off")
        cpu, results, memory = [], [], []
        for batch in uniform_batches(setting.rates, setting.values, seconds, seed, SLICES):
            start = clock()
            table = engine.push(batch)
            cpu.append(clock() - start)
            results.append(table.num_rows)
            memory.append(int(engine.metrics()["state"]["bytes"]))
        return Trace(tuple(cpu), tuple(results), tuple(memory))
    finally:
        pa.set_cpu_count(threads)


def slowed_down(
    trace: Trace, per_push: float, capacity: float, room: float, every: int = 1
) -> list[Moment]:
    """The run on a machine with ``capacity`` CPU seconds per second and ``room`` bytes.

    It is looked at every so many seconds, until the input ends or memory does. ``per_push`` is how
    many tuples a push has.
    """
    done: list[float] = []
    for i, cost in enumerate(trace.cpu):
        arrival = (i + 1) / SLICES
        done.append(max(arrival, done[-1] if done else 0.0) + cost / capacity)
    found: list[Moment] = []
    finished, results = 0, 0
    for second in range(every, len(trace.cpu) // SLICES + 1, every):
        while finished < len(done) and done[finished] <= second:
            if trace.memory[finished] > room:
                return found
            results += trace.results[finished]
            finished += 1
        arrived = second * SLICES - 1  # Before: what arrives right now does not wait yet.
        queue = round(per_push * (arrived - finished))
        memory = trace.memory[finished - 1] if finished else 0
        found.append(Moment(second, results, queue, memory))
    return found


def bounds_of(name: str, found: Mapping[str, Trace]) -> tuple[float, float]:
    """The capacity and the room for a set, as argued above."""
    capacity = 2 * max(trace.steady_cpu for trace in found.values())
    if name in SHORT_OF_CPU:
        capacity = JUST_ENOUGH * found[SHORT_OF_CPU[name]].steady_cpu
    room = math.inf
    if name in SHORT_OF_MEMORY:
        room = math.sqrt(found[SHORT_OF_MEMORY[name]].peak * found["bjtree"].peak)
    return capacity, room


def measure_set(parameters: Parameters, seed: int) -> list[Row]:
    """One set with one kind of join: a row for each plan and second."""
    given: Any = parameters
    setting = SETS[given["set"]]
    found = traces(setting, given["join"], given["seconds"], given["rounds"], seed)
    capacity, room = bounds_of(setting.name, found)
    per_push = sum(setting.rates.values()) / SLICES
    rows: list[Row] = []
    for plan, trace in found.items():
        moments = slowed_down(trace, per_push, capacity, room)
        rows += _rows(setting.name, given["join"], plan, trace, moments, capacity, room)
    return rows


def _rows(
    name: str,
    join: str,
    plan: str,
    trace: Trace,
    moments: Sequence[Moment],
    capacity: float,
    room: float,
) -> list[Row]:
    return [
        {
            "set": name,
            "join": join,
            "plan": plan,
            "second": each.second,
            "results": each.results,
            "queue": each.queue,
            "memory": each.memory,
            "cpu": trace.steady_cpu,
            "peak": trace.peak,
            "capacity": capacity,
            "room": None if math.isinf(room) else room,
        }
        for each in moments
    ]
