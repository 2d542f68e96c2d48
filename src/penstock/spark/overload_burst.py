"""A burst on Spark, in real time: batch times, debt and memory of a job that gets too much.

``python -m penstock.spark.overload_burst --policy shed`` writes a file per stream and trigger
interval while the query runs: first calm, then ``factor`` times as many rows, then calm again. The
budget of the cells is that of jobs, a part of the interval (:mod:`penstock.spark.trigger_budget`).
It prints a line per micro-batch, with what the cells reported.

``exact`` falls behind in the burst: a batch takes in all files that have come during the one
before it, so batches get longer. ``shed`` keeps them within the interval. ``defer`` does too, and
pays when the burst has passed.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import penstock
from penstock.engine.overload import Overload
from penstock.spark.cell_report import cell_reports
from penstock.spark.join import join
from penstock.spark.session import session
from penstock.spark.trigger_budget import SHARE

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("k", pa.int64())])
_DDL = "id BIGINT, ts BIGINT, k BIGINT"
_START = 1_700_000_000_000

Row = dict[str, Any]


def run_burst(
    spark: SparkSession,
    policy: Any,
    folder: Path,
    *,
    interval: float = 2.0,
    rate: int = 2_000,
    factor: int = 5,
    keys: int = 2_000,
    phases: tuple[int, int, int] = (5, 30, 20),
    cells: int = 1,
) -> Iterator[Row]:
    """A row per micro-batch, as they end.

    ``rate`` is in rows per second and stream, ``phases`` are in intervals: calm, burst, calm.
    """
    streams = ", ".join(f"{s} [RANGE 10 SECONDS] FRESHNESS 1 HOURS" for s in "ABC")
    query = penstock.parse(
        f"SELECT A.id AS a, B.id AS b, C.id AS c FROM {streams} WHERE A.k = B.k AND B.k = C.k",
        schemas=dict.fromkeys("ABC", SCHEMA),
    )
    for stream in "ABC":
        (folder / stream).mkdir(parents=True, exist_ok=True)
    cores = spark.sparkContext.defaultParallelism
    option = Overload(policy, seconds=SHARE * interval * min(1.0, cores / cells))
    frames = {s: spark.readStream.schema(_DDL).parquet(str(folder / s)) for s in "ABC"}
    results = join(query, frames, cells, plan="((A B) C)", overload=option)
    ready = threading.Event()
    sizes = [round(interval * rate) * (factor if n == 1 else 1) for n in range(3)]
    counts = [size for size, turns in zip(sizes, phases, strict=True) for _ in range(turns)]
    writer = threading.Thread(target=_write, args=(folder, interval, counts, keys, ready))
    running = (
        results.writeStream.format("noop")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime=f"{interval} seconds")
        .start()
    )
    writer.start()
    rows: dict[int, Row] = {}
    while running.isActive and sum(row["rows"] for row in rows.values()) < 3 * sum(counts):
        for progress in running.recentProgress:
            reports = cell_reports(progress.observedMetrics or {})
            if reports and int(progress.batchId) not in rows:
                rows[int(progress.batchId)] = _row(progress, reports)
                yield rows[int(progress.batchId)]
                ready.set()
        time.sleep(interval / 4)
    ready.set()
    running.stop()
    writer.join()


def _row(progress: Any, reports: list[Any]) -> Row:
    overload: list[Mapping[str, Any]] = [r.overload for r in reports if r.overload]
    return {
        "batch": int(progress.batchId),
        "rows": int(progress.numInputRows),
        "results": sum(report.results for report in reports),
        "seconds": progress.durationMs.get("triggerExecution", 0) / 1000,
        "engine_seconds": max(report.engine_seconds for report in reports),
        "state_mib": sum(report.state_bytes for report in reports) / 2**20,
        "short": any(each["short"] for each in overload),
        "skipped": sum(each["skipped"] for each in overload),
        "debt": sum(each["debt"]["probes"] for each in overload),
        "lost": sum(each["lost"]["results"] for each in overload),
    }


def _write(
    folder: Path, interval: float, counts: list[int], keys: int, ready: threading.Event
) -> None:
    """A file per stream and interval, when its time has come; the first one starts the query."""
    chance = np.random.default_rng(1)
    start = time.monotonic()
    for turn, count in enumerate(counts):
        first = _START + round(1000 * interval * turn)
        for stream in "ABC":
            ts = np.sort(first + chance.integers(0, round(1000 * interval), count))
            table = pa.table(
                [np.arange(count) + 10**8 * turn, ts, chance.integers(0, keys, count)],
                schema=SCHEMA,
            )
            file = folder / stream / f"{turn:05}.parquet"
            pq.write_table(table, file.with_name(f".{file.name}"))
            file.with_name(f".{file.name}").rename(file)
        if turn == 0:
            ready.wait()
            start = time.monotonic()
        time.sleep(max(0.0, start + interval * turn - time.monotonic()))


def main() -> None:
    parser = argparse.ArgumentParser(description="a burst on Spark, in real time")
    parser.add_argument("--policy", choices=("exact", "shed", "defer"), default="shed")
    parser.add_argument("--interval", type=float, default=2.0, help="seconds between triggers")
    parser.add_argument("--rate", type=int, default=2_000, help="rows per second and stream")
    parser.add_argument("--factor", type=int, default=5, help="how much larger the burst is")
    parser.add_argument("--keys", type=int, default=2_000, help="different join keys")
    parser.add_argument("--phases", default="5,30,20", help="intervals: calm, burst, calm")
    options = parser.parse_args()
    calm, burst, after = map(int, options.phases.split(","))
    spark = session()
    with tempfile.TemporaryDirectory() as folder:
        for row in run_burst(
            spark,
            options.policy,
            Path(folder),
            interval=options.interval,
            rate=options.rate,
            factor=options.factor,
            keys=options.keys,
            phases=(calm, burst, after),
        ):
            print("  ".join(f"{name} {_short(value)}" for name, value in row.items()), flush=True)
    spark.stop()


def _short(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
