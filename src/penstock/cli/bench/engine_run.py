"""One run of the engine on one workload, with one plan and one batch size.

A batch is a number of tuples over all streams, taken in time order, round robin: a batch of one is
one tuple of one stream. Large batches run through the whole input. Small ones start when large
ones have filled the windows, and go on for a given time.

CPU seconds are counted around pushes only, not around cutting the input into batches. Kernels are
loaded before by a run on smaller windows.
"""

from __future__ import annotations

import gc
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

import penstock
from penstock.cli.bench import process_memory
from penstock.cli.bench.push_child import pushes
from penstock.cli.bench.workloads import Workload

FILLING = 10_000
_BLOCK = 256
_SMALLER = 100
_SMALLEST = 50
"""Windows with which kernels are loaded are so many times smaller, and have so many milliseconds at
least."""


def run_engine(
    workload: Workload,
    plan: str,
    batch: int,
    seconds: float | None = None,
    feedback: str = "off",
) -> dict[str, Any]:
    """Measure; ``seconds`` of CPU time after the windows are full, or the whole input if None."""
    pa.set_cpu_count(1)
    tables = workload.tables()
    query = penstock.parse(
        workload.query, schemas={name: table.schema for name, table in tables.items()}
    )
    load_kernels(workload, plan, feedback)
    engine = penstock.Engine(query, plan=plan, feedback=feedback)
    total = workload.rows * len(tables)
    before = process_memory.resident()
    start = results = 0
    if seconds is not None:
        start = min(filled(workload), total // 2) // len(tables) * len(tables)
        for push in pushes(tables, FILLING, 0, start):
            results += engine.push(push).num_rows
    done, made, cpu, walls = _timed(engine, tables, batch, start, total, seconds)
    results += made
    metrics = engine.metrics()
    state = metrics["state"]["bytes"]
    # To the end of the millisecond, so that the number of results can be checked.
    end = min(-(-done // len(tables)) * len(tables), total)
    for push in pushes(tables, batch, done, end):
        results += engine.push(push).num_rows
    matches = sum(join["matches"] for join in metrics["joins"])
    return {
        "tuples": done - start,
        "cpu_seconds": cpu,
        "pushes": len(walls),
        "push_p50_us": float(np.percentile(walls, 50)) / 1e3,
        "push_p99_us": float(np.percentile(walls, 99)) / 1e3,
        "push_max_us": float(walls.max()) / 1e3,
        "state_bytes": state,
        "resident_before_bytes": before,
        "peak_bytes": process_memory.peak(),
        "until": end // len(tables),
        "results": results,
        "intermediates_per_tuple": (matches - metrics["results"]) / max(1, metrics["rows"]),
    }


def _timed(
    engine: penstock.Engine,
    tables: dict[str, pa.RecordBatch],
    batch: int,
    start: int,
    total: int,
    seconds: float | None,
) -> tuple[int, int, float, np.ndarray[Any, np.dtype[np.int64]]]:
    """Push until the time is up or the input ends: (end, results, CPU seconds, ns per push)."""
    cpu = 0.0
    results = 0
    walls: list[int] = []
    at = start
    while at < total and (seconds is None or cpu < seconds):
        until = min(at + _BLOCK * batch, total) if batch < FILLING else min(at + batch, total)
        block = list(pushes(tables, batch, at, until))
        begin = time.process_time()
        for push in block:
            clock = time.perf_counter_ns()
            results += engine.push(push).num_rows
            walls.append(time.perf_counter_ns() - clock)
        cpu += time.process_time() - begin
        at = until
    return at, results, cpu, np.array(walls or [0], np.int64)


def filled(workload: Workload) -> int:
    """Tuples after which all windows are full and have begun to let go."""
    return (workload.window + workload.window // 10) * len(workload.streams)


def load_kernels(workload: Workload, plan: str, feedback: str) -> None:
    """Let small windows fill, grow, give results, expire and start over in their rings, with guards
    that come by themselves and with all of them, so that every kernel is loaded."""
    small = replace(
        workload,
        window=max(_SMALLEST, workload.window // _SMALLER),
        domains={name: max(2, size // _SMALLER) for name, size in workload.domains.items()},
        rows=6 * max(_SMALLEST, workload.window // _SMALLER),
    )
    tables = small.tables()
    query = penstock.parse(
        small.query, schemas={name: table.schema for name, table in tables.items()}
    )
    total = small.rows * len(tables)
    for each in (feedback,) if feedback == "off" else (feedback, penstock.Feedback(adaptive=False)):
        engine = penstock.Engine(query, plan=plan, feedback=each)
        for batch, start, end in ((50, 0, total // 6), (300, total // 6, total // 2)):
            for push in pushes(tables, batch, start, end):
                engine.push(push)
        for push in pushes(tables, total, total // 2, total):
            engine.push(push)
        engine.push({}, watermark=1 << 40)
        engine.metrics()
    # To look through all that is loaded takes Python's collector 70 ms, at any time.
    gc.collect()
    gc.freeze()
