"""The first batches after a change of plan, against a normal batch.

Windows are full, and the plan goes to and fro between the two plans of a case
(:mod:`penstock_studies.first_batch_cases`). What has to be told apart:

- the call of ``migrate`` and the first push after it,
- pushes by the old plan beside which a change is prepared, if there are any,
- the first push that the new plan works off, which completes what it asks for,
- the slowest of those that follow: states grow, and are completed.

A normal batch is the median of those of another engine, whose plan never changes and which gets the
same batches in turn, at the same time: what a push takes on a machine with neighbours may double
within a minute. The first result is told in normal batches as well: the time from the call of
``migrate`` to the first push with a result, against the same pushes of the other engine.

:func:`wanted_share` changes the plan every few pushes and tells in which share of them the plan
that was asked for last is the one that ran.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

import penstock
from penstock_studies.first_batch_cases import CASES, Case

_WARMING = 20_000
_PUSHES = 16
"""Tuples of the windows in which everything runs once before it counts, at least; and pushes that
they hold, since a push that is long against the windows takes another way."""
_FILLING = 100
"""Pushes that fill the windows."""
_FOLLOWING = 100
"""Pushes by the new plan."""
_PATIENCE = 5_000
"""Pushes that a change may be prepared for."""


@dataclass(frozen=True)
class Setting:
    """What is pushed."""

    case: str = "two-columns"
    rows: int = 1_000
    """Tuples of each stream in a push."""
    window: int = 1_000_000
    """Tuples of each stream."""
    normal: int = 100
    """Pushes before the first change."""

    @property
    def of(self) -> Case:
        return CASES[self.case]

    def engine(self) -> penstock.Engine:
        """An engine with the first of the plans."""
        case = self.of
        return penstock.Engine(case.query(self.window), plan=case.plans[0], **case.options)

    def batches(self, seed: int) -> Iterator[dict[str, pa.Table]]:
        """First those that fill the windows, then those that count; without end."""
        chance = np.random.default_rng(seed)
        start, number = 0, 0
        while True:
            rows = self.rows if number > _FILLING else -(-self.window // _FILLING)
            times = np.arange(start, start + rows)
            start, number = start + rows, number + 1
            yield self.of.batch(times, self.window, chance)


@dataclass(frozen=True)
class Change:
    """What took how long, in normal batches."""

    plan: str
    normal: float
    """CPU seconds of a normal batch."""
    call: float
    first: float
    prepared: int
    """Pushes after which the new plan took over."""
    preparing: float
    """The slowest of them."""
    new: float
    """The first push of the new plan."""
    following: float
    """The slowest of those after it."""
    result: float
    """Until the first result, against an engine whose plan stays."""

    @property
    def call_and_first(self) -> float:
        return self.call + self.first

    @property
    def worst(self) -> float:
        """The slowest push, with the call of ``migrate`` before the first one."""
        return max(self.call_and_first, self.preparing, self.new, self.following)


def first_batches(
    setting: Setting,
    changes: int = 4,
    seed: int = 1,
    clock: Callable[[], float] = time.process_time,
) -> list[Change]:
    """Change the plan so many times.

    Before, the same on small windows: what a process loads or compiles once is not counted. And
    what is there then is no garbage: to look through it takes Python as long as 250 pushes of one
    tuple.
    """
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        window = min(setting.window, max(_WARMING, _PUSHES * setting.rows))
        warming = replace(setting, window=window)
        list(_changes(warming, 2, seed, time.process_time))
        gc.collect()
        gc.freeze()
        return list(_changes(setting, changes, seed, clock))
    finally:
        gc.unfreeze()
        pa.set_cpu_count(threads)


def _changes(
    setting: Setting, changes: int, seed: int, clock: Callable[[], float]
) -> Iterator[Change]:
    engine, steady = setting.engine(), setting.engine()
    plans = setting.of.plans
    batches = setting.batches(seed)
    normals: list[float] = []

    results: list[int] = []

    def timed(each: penstock.Engine, batch: dict[str, pa.Table]) -> float:
        start = clock()
        found = each.push(batch).num_rows
        spent = clock() - start
        results.append(found)
        return spent

    def push() -> float:
        batch = next(batches)
        normals.append(timed(steady, batch))
        return timed(engine, batch)

    for _ in range(_FILLING + 2 + setting.normal):
        push()
    for number in range(changes):
        plan = plans[(number + 1) % 2]
        normals.clear()
        results.clear()
        start = clock()
        engine.migrate(plan)
        call = clock() - start
        before: list[float] = []
        while str(engine.running_plan) != plan and len(before) < _PATIENCE:
            before.append(push())
        after = [push() for _ in range(_FOLLOWING)]
        normal = float(np.median(normals))
        pushes = [*before, *after]
        shown = next((at + 1 for at, found in enumerate(results[1::2]) if found), len(pushes))
        yield Change(
            plan,
            normal,
            call / normal,
            pushes[0] / normal,
            len(before),
            max(before, default=0.0) / normal,
            after[0] / normal,
            max(after[1:]) / normal,
            (call + sum(pushes[:shown])) / sum(normals[:shown]),
        )


def wanted_share(setting: Setting, every: int, pushes: int = 400, seed: int = 1) -> float:
    """The share of ``pushes`` that the wanted plan worked off, if it changes ``every`` so many."""
    engine, plans = setting.engine(), setting.of.plans
    batches, kept = setting.batches(seed), 0
    for _ in range(_FILLING + 2):
        engine.push(next(batches))
    for number in range(pushes):
        wanted = plans[(number // every + 1) % 2]
        if number % every == 0:
            engine.migrate(wanted)
        kept += str(engine.running_plan) == wanted
        engine.push(next(batches))
    return kept / pushes
