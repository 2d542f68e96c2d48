"""What a tuple costs when the windows are full.

Windows are filled in large pushes. Then as many tuples come as go, in pushes of one size; what they
cost is the CPU time around them, not around making them. The first pushes of that size do not
count, since they load what large ones did not need. The rest is taken in parts, and the median of
their means counts: a mean, since what happens once in a while belongs to the cost, and a median,
since a busy machine disturbs a part or two.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

import penstock

Batches = Callable[[int, int], dict[str, pa.RecordBatch]]
"""The tuples of all streams from a time on, one for each stream and millisecond."""

PARTS = 5
_OVERFULL = 1.1
_FILLING = 100_000
"""The most tuples of a stream in a push that fills."""


@dataclass(frozen=True)
class SteadyState:
    """Of an engine whose windows are full."""

    nanoseconds: float
    """CPU time of a tuple."""
    held: int
    """Tuples in all windows."""
    bytes: int
    """Of windows, indexes and stored joins."""
    results: float
    """For each tuple."""

    @property
    def bytes_per_row(self) -> float:
        return self.bytes / max(1, self.held)


def steady_state(
    engine: penstock.Engine,
    batches: Batches,
    window: int,
    push: int,
    pushes: int,
    clock: Callable[[], float] = time.process_time,
) -> SteadyState:
    """Fill windows of ``window`` milliseconds, then measure ``pushes`` of ``push`` milliseconds in
    each of some parts."""
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        now, full = 0, int(window * _OVERFULL)
        step = max(push, min(_FILLING, window // 20))
        while now < full:
            engine.push(batches(now, step))
            now += step
        costs, results, tuples = [], 0, 0
        for part in range(1 + PARTS):
            spent, came = 0.0, 0
            for _ in range(pushes):
                batch = batches(now, push)
                now += push
                start = clock()
                found = engine.push(batch).num_rows
                spent += clock() - start
                came += sum(each.num_rows for each in batch.values())
                if part:
                    results += found
            if part:
                costs.append(spent / came)
                tuples += came
        state = engine.metrics()["state"]
        held = sum(each["rows"] for each in state["windows"].values())
        return SteadyState(
            1e9 * statistics.median(costs), held, int(state["bytes"]), results / tuples
        )
    finally:
        pa.set_cpu_count(threads)
