"""The first batches after a change of plan, against a normal batch.

Windows are full, and the plan goes to and fro between ((A B) C) and ((A C) B). With two columns
(A.x = B.x AND A.y = C.y) the new plan needs indexes that the old one did not have, and is prepared
for while the old one goes on; with one (A.x = B.x AND A.x = C.x) it takes over at once. A tuple has
one partner in each other stream, on average. What has to be told apart:

- the call of ``migrate`` and the first push after it,
- the pushes beside which a change is prepared: the slowest, and the one after which it is made,
- the first push that the new plan works off, which completes what it asks for,
- the slowest of those that follow: states grow.

A normal batch is the median of those of another engine, whose plan never changes and which gets the
same batches in turn, at the same time: what a push takes on a machine with neighbours may double
within a minute.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa

import penstock

PLANS = ("((A B) C)", "((A C) B)")
Columns = Literal["one", "two"]
_SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
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

    rows: int = 1_000
    """Tuples of each stream in a push."""
    window: int = 1_000_000
    """Tuples of each stream."""
    columns: Columns = "two"
    feedback: str = "off"
    normal: int = 100
    """Pushes before the first change."""

    @property
    def query(self) -> penstock.JoinGraph:
        other = "x" if self.columns == "one" else "y"
        sources = ", ".join(f"{name} [RANGE {self.window} MILLISECONDS]" for name in "ABC")
        return penstock.parse(
            f"SELECT A.id AS a, B.id AS b, C.id AS c FROM {sources} "
            f"WHERE A.x = B.x AND A.{other} = C.{other}",
            schemas=dict.fromkeys("ABC", _SCHEMA),
        )

    def batches(self, seed: int) -> Iterator[dict[str, pa.Table]]:
        """First those that fill the windows, then those that count; without end."""
        chance = np.random.default_rng(seed)
        start, number = 0, 0
        while True:
            rows = self.rows if number > _FILLING else -(-self.window // _FILLING)
            times = np.arange(start, start + rows)
            start, number = start + rows, number + 1
            yield {
                name: pa.table(
                    [times, times, *(chance.integers(0, self.window, rows) for _ in "xy")],
                    schema=_SCHEMA,
                )
                for name in "ABC"
            }


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
    """The slowest of them, the last not counted: that is ``switching``."""
    switching: float
    new: float
    """The first push of the new plan."""
    following: float
    """The slowest of those after it."""

    @property
    def call_and_first(self) -> float:
        return self.call + self.first


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
    engine, steady = (
        penstock.Engine(setting.query, plan=PLANS[0], feedback=setting.feedback) for _ in range(2)
    )
    batches = setting.batches(seed)
    normals: list[float] = []

    def timed(each: penstock.Engine, batch: dict[str, pa.Table]) -> float:
        start = clock()
        each.push(batch)
        return clock() - start

    def push() -> float:
        batch = next(batches)
        normals.append(timed(steady, batch))
        return timed(engine, batch)

    for _ in range(_FILLING + 2 + setting.normal):
        push()
    for number in range(changes):
        plan = PLANS[(number + 1) % 2]
        normals.clear()
        start = clock()
        engine.migrate(plan)
        call = clock() - start
        before: list[float] = []
        while str(engine.running_plan) != plan and len(before) < _PATIENCE:
            before.append(push())
        after = [push() for _ in range(_FOLLOWING)]
        normal = float(np.median(normals))
        yield Change(
            plan,
            normal,
            call / normal,
            [*before, *after][0] / normal,
            len(before),
            max(before[:-1], default=0.0) / normal,
            before[-1] / normal if before else 0.0,
            after[0] / normal,
            max(after[1:]) / normal,
        )
