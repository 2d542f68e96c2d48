"""A burst of too much on Spark, in real time: does each policy do what it says?

``penstock experiment spark-burst`` writes a file per stream and trigger interval while the query
runs: first calm, then a burst, then calm again (:mod:`penstock_studies.burst_streams`). The budget
of the cells is that of jobs, a part of the interval (:mod:`penstock.spark.cells.trigger_budget`).
It prints a line per micro-batch and, at the end, a verdict:

- The load of the burst, in units of the capacity: the seconds that the exact join needs for an
  interval of it, divided by those that all cores have in an interval. It is measured in an engine
  without Spark, so it is what the join alone needs: in CPU seconds, and in those by the clock,
  which are more on a machine that has other things to do.
- ``shed``: every result is one of the answer, none comes twice, and no batch takes longer than the
  interval. The first batch is left out: it starts Python workers and opens the state.
- ``defer``: calm intervals follow until nothing is owed, and then the results are the answer.

Memory is that of the whole job, the driver's Python and JVM and all workers, where shared pages
count once. Under ``shed`` it must not grow from the first half of the burst to the second by more
than a quarter; under ``defer`` windows are held for what is owed, so it must be given back: at the
end the engines hold no more than twice what they held before the burst.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

import penstock
from penstock.spark.cells.cell_report import cell_reports
from penstock.spark.join import join
from penstock.spark.session import session
from penstock.spark.start import process_tree
from penstock_studies.burst_streams import DDL, PLAN, WINDOW, BurstStreams, Int64s, codes, truth

ABOUT = "more than a minute of five times the capacity on Spark, in real time, shed and deferred"

Policy = Literal["shed", "defer"]
Row = dict[str, Any]
Verdict = list[tuple[bool, str]]

_CALM = 2
"""Intervals after the burst before it can be over."""
_LEAD = 0.4
"""Rows are there this part of an interval before the trigger that takes them."""
_LONGEST = 3600.0
"""Seconds after which nobody waits any longer for a debt to be paid."""


def run_burst(
    spark: Any,
    policy: Policy,
    streams: BurstStreams,
    folder: Path,
    longest: float = _LONGEST,
) -> Iterator[Row]:
    """A row per micro-batch, as they end; results are in ``folder`` / ``results``.

    After the burst calm intervals follow until nothing is owed, as long as ``streams`` have any and
    ``longest`` seconds have not passed.
    """
    for stream in "ABC":
        (folder / stream).mkdir(parents=True)
    frames = {s: spark.readStream.schema(DDL).parquet(str(folder / s)) for s in "ABC"}
    results = join(
        streams.query,
        frames,
        plan=PLAN,
        overload=policy,
        trigger=streams.interval,
    )
    running = (
        results.writeStream.format("parquet")
        .option("path", str(folder / "results"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime=f"{streams.interval} seconds")
        .start()
    )
    writer = _Writer(folder, streams)
    writer.start()
    seen: set[int] = set()
    end = time.monotonic() + longest
    read, owing = 0, False
    try:
        while running.isActive and time.monotonic() < end:
            if writer.is_done and read >= writer.rows:
                break
            for progress in running.recentProgress:
                reports = cell_reports(progress.observedMetrics or {})
                if not reports or int(progress.batchId) in seen:
                    continue
                seen.add(int(progress.batchId))
                row = _row(progress, reports)
                read += row["rows"]
                owing = row["owed"] > 0
                yield row
                writer.is_wanted.set()
                if not owing and writer.turn >= streams.burst_end + _CALM:
                    writer.stop()
            time.sleep(0.2)
    finally:
        writer.stop()
        writer.join()
        running.stop()


def _row(progress: Any, reports: list[Any]) -> Row:
    overload: list[Mapping[str, Any]] = [r.overload for r in reports if r.overload]
    return {
        "batch": int(progress.batchId),
        "rows": int(progress.numInputRows),
        "results": sum(report.results for report in reports),
        "seconds": progress.durationMs.get("triggerExecution", 0) / 1000,
        "cell": max(report.total_seconds for report in reports),
        "engine": max(report.engine_seconds for report in reports),
        "engines": "/".join(sorted({report.origin for report in reports})),
        "short": any(each["short"] for each in overload),
        "skipped": sum(each["skipped"] for each in overload),
        "owed": sum(each["debt"]["probes"] for each in overload),
        "lost": round(sum(each["lost"]["results"] for each in overload)),
        "state MiB": round(sum(report.state_bytes for report in reports) / 2**20, 1),
        "memory MiB": round(process_tree.memory(os.getpid()) / 2**20),
    }


class _Writer(threading.Thread):
    """Writes the files of each interval when its time has come, the first ones at once."""

    def __init__(self, folder: Path, streams: BurstStreams) -> None:
        super().__init__(daemon=True)
        self._folder = folder
        self._streams = streams
        self._stopped = threading.Event()
        self.is_wanted = threading.Event()
        """Set when the first batch is done: Spark has warmed up."""
        self.is_done = False
        self.rows = self.turn = 0
        """What was written, and how many intervals of it."""

    def run(self) -> None:
        for tables in self._streams.intervals():
            for stream, table in tables.items():
                file = self._folder / stream / f"{self.turn:05}.parquet"
                draft = file.with_name(f".{file.name}")
                pq.write_table(table, draft)
                draft.rename(file)
                self.rows += len(table)
            self.turn += 1
            if self.turn == 1:
                self.is_wanted.wait()
            interval = self._streams.interval
            phase = time.time() % interval
            due = (1 - _LEAD) * interval
            if self._stopped.wait(due - phase if phase < due / 2 else due - phase + interval):
                break
        self.is_done = True

    def stop(self) -> None:
        """Write no more."""
        self._stopped.set()
        self.is_wanted.set()


# -- the verdict -----------------------------------------------------------------------------


def load(streams: BurstStreams, cores: int) -> tuple[float, float]:
    """What the exact join needs in the burst, in units of what ``cores`` can do: CPU, and by clock.

    Keys have nothing to do with each other, so one of them tells, once its windows are full.
    """
    engine = penstock.Engine(streams.query, PLAN)
    short = replace(streams, interval=WINDOW / 2, phases=(0, 4, 0))
    *before, last = (
        {name: each.filter(pc.equal(each["k"], 0)) for name, each in tables.items()}
        for tables in short.intervals()
    )
    for part in before:
        engine.push(part)
    start = time.process_time(), time.monotonic()
    engine.push(last)
    scale = streams.keys / (cores * short.interval)
    return scale * (time.process_time() - start[0]), scale * (time.monotonic() - start[1])


def verdict(
    policy: Policy, rows: Sequence[Row], streams: BurstStreams, found: Int64s, wanted: Int64s
) -> Verdict:
    """What must hold, whether it does, and the numbers."""
    said: Verdict = []
    twice = len(found) - len(np.unique(found))
    wrong = len(np.setdiff1d(found, wanted))
    share = len(found) / max(1, len(wanted))
    about = (
        f"{len(found):,} results, {100 * share:.1f} % of the answer; {wrong} wrong, {twice} twice"
    )
    if policy == "shed":
        said.append((wrong + twice == 0, about))
        late = [row for row in rows[1:] if row["seconds"] > streams.interval]
        slowest = max(row["seconds"] for row in rows[1:])
        said.append(
            (
                not late,
                f"batches took up to {slowest:.2f} s of {streams.interval:g} s, {len(late)} of "
                f"{len(rows) - 1} longer",
            )
        )
        missed = len(wanted) - len(found)
        said.append((True, f"{missed:,} results lost, {rows[-1]['lost']:,} by the estimate"))
        burst = [row["memory MiB"] for row in rows if row["rows"] > 3 * min(streams.counts())]
        first, second = burst[: len(burst) // 2], burst[len(burst) // 2 :]
        grown = max(second, default=0) / max(max(first, default=0), 1)
        said.append((grown <= 1.25, f"memory in the burst: {_range(first)}, then {_range(second)}"))
    else:
        said.append((len(found) == len(wanted) and wrong + twice == 0, about))
        most = max(row["owed"] for row in rows)
        said.append((rows[-1]["owed"] == 0, f"owed: {most:,} probes at most, 0 at the end"))
        calm = [row["state MiB"] for row in rows[: streams.phases[0]]]
        peak, last = max(row["state MiB"] for row in rows), rows[-1]["state MiB"]
        said.append(
            (
                last <= 2 * max(calm),
                f"state: {max(calm):g} MiB before, {peak:g} at most, {last:g} at the end; "
                f"memory up to {max(row['memory MiB'] for row in rows):,} MiB",
            )
        )
        slowest = max(row["seconds"] for row in rows[1:])
        said.append((True, f"batches took up to {slowest:.2f} s of {streams.interval:g} s"))
    return said


def _range(values: Sequence[int]) -> str:
    return f"{min(values, default=0):,} to {max(values, default=0):,} MiB"


# -- the command -----------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--policies", default="shed,defer", help="those to run")
    parser.add_argument("--interval", type=float, default=10.0, help="seconds between triggers")
    parser.add_argument("--rate", type=int, default=1_000, help="rows per second and stream")
    parser.add_argument(
        "--factor", type=float, default=6.0, help="how many times more in the burst"
    )
    parser.add_argument("--burst", type=float, default=60.0, help="seconds that the burst takes")
    parser.add_argument("--seed", type=int, default=1)


def run(options: argparse.Namespace) -> bool:
    """Run the policies; whether all of them did what they say."""
    calm, turns = 3, round(options.burst / options.interval)
    streams = BurstStreams(options.interval, options.rate, options.factor, seed=options.seed)
    spark = session()
    cores = spark.sparkContext.defaultParallelism
    cpu, clock = load(streams, cores)
    print(
        f"the burst is {cpu:.1f} times what {cores} cores can join, and {clock:.1f} times what they"
        " can beside all else that runs here",
        flush=True,
    )
    holds = True
    for policy in options.policies.split(","):
        after = calm if policy == "shed" else 3_000  # For defer, as many as it takes.
        streams = replace(streams, phases=(calm, turns, after))
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            for is_so, text in _observed(spark, policy, streams, Path(folder)):
                print(f"{'yes' if is_so else 'NO':>4}  {text}", flush=True)
                holds &= is_so
    spark.stop()
    return holds


def _observed(spark: Any, policy: Policy, streams: BurstStreams, folder: Path) -> Verdict:
    """Run a policy and print what it does; the verdict."""
    print(f"\n{policy}: a burst of {streams.phases[1] * streams.interval:g} s", flush=True)
    rows: list[Row] = []
    for row in run_burst(spark, policy, streams, folder):
        if not rows:
            print("  ".join(f"{name:>{_width(name)}}" for name in row))
        print("  ".join(f"{_short(v):>{_width(name)}}" for name, v in row.items()), flush=True)
        rows.append(row)
    found = codes(pq.read_table(folder / "results"))
    written = len(list((folder / "A").glob("0*.parquet")))
    wanted = truth(list(itertools.islice(streams.intervals(), written)))
    return verdict(policy, rows, streams, found, wanted)


def _width(name: str) -> int:
    return max(len(name), 8)


def _short(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    _parser = argparse.ArgumentParser(description=ABOUT)
    add_arguments(_parser)
    raise SystemExit(0 if run(_parser.parse_args()) else 1)
