"""The demo on Spark: an auction house writes files, and an ordinary job joins them.

Everything is in a temporary folder: the job file, the files of the three streams, the checkpoint
and the results. What the job file says is all that Spark knows. New files come several times a
second, as long as Spark keeps up; when the time is over, the rest is joined and the job is stopped.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console, RenderableType
from rich.table import Table

import penstock
from penstock.cli.demo.streams import ABOUT, LATENESS, QUERY, SCHEMAS, AuctionHouse
from penstock.cli.demo.surge import PROBES, SURGE_QUERY, Policy, factor_at
from penstock.cli.run.latest_results import LatestResults
from penstock.cli.run.progress import Progress
from penstock.cli.run.run_job import run_job
from penstock.job import read_job

if TYPE_CHECKING:
    from penstock.cli.live_page import LivePage
    from penstock.spark.jobs.job_run import JobRun

STEPS = 5
"""Seconds of the auction house in one delivery."""
_EVERY = 0.5
_BEHIND = 4
"""So many deliveries may wait to be read."""
_SHOWN = 5

JOB = '''\
name = "{about}"
query = """
{query}"""
checkpoint = "checkpoint"
plan = "{plan}"
{overload}{sources}
[sink]
format = "parquet"
path = "results"
'''
SOURCE = """
[sources.{name}]
format = "parquet"
path = "{name}"
schema = "{schema}"
watermark = "{lateness}"
"""
OVERLOAD = """\
overload = "{policy}"

[limits]
probes = {probes}
"""
_DDL = {"int64": "BIGINT", "string": "STRING", "timestamp[ms]": "TIMESTAMP_NTZ"}


def run_spark_demo(
    plan: str,
    seed: int,
    seconds: float | None,
    rows: int | None,
    plain: bool = False,
    spark_log: str | None = None,
    console: Console | None = None,
    page: LivePage | None = None,
    overload: Policy | None = None,
) -> int:
    """Run the demo; the exit code."""
    penstock.Engine(penstock.parse(QUERY, schemas=SCHEMAS), plan=plan)  # A wrong plan shows now.
    console = console or Console(highlight=False)
    with _folder() as folder:
        job = read_job(write_job(folder, plan, overload))
        job = replace(job, file=None, spark={"spark.driver.memory": "1g"})
        arrivals = Arrivals(folder, AuctionHouse(seed), seconds, rows, surges=bool(overload))
        latest = LatestResults(folder / "results")
        code = run_job(
            job,
            plain,
            spark_log,
            console,
            lambda: result_table(latest.rows()),
            arrivals.tick,
            page,
            latest,
        )
        if code == 0 and (plain or not console.is_terminal):
            for row in latest.rows()[-3:]:
                line = f"{'a result':<12}" + ", ".join(map(str, row.values()))
                console.print(line, markup=False, soft_wrap=True)
        return code


def write_job(folder: Path, plan: str, overload: Policy | None = None) -> Path:
    """The job file of the demo, with the folders of its sources."""
    sources = ""
    for name, schema in SCHEMAS.items():
        (folder / name).mkdir()
        ddl = ", ".join(f"{field.name} {_DDL[str(field.type)]}" for field in schema)
        sources += SOURCE.format(name=name, schema=ddl, lateness=LATENESS)
    file = folder / "job.toml"
    limits = OVERLOAD.format(policy=overload, probes=PROBES) if overload else ""
    query = SURGE_QUERY if overload else QUERY
    file.write_text(
        JOB.format(about=ABOUT, query=query, plan=plan, overload=limits, sources=sources)
    )
    return file


class Arrivals:
    """Writes files while the demo runs, and stops the run when all are read."""

    def __init__(
        self,
        folder: Path,
        house: AuctionHouse,
        seconds: float | None,
        rows: int | None,
        clock: Callable[[], float] = time.monotonic,
        surges: bool = False,
    ) -> None:
        self._surges = surges
        self._folder = folder
        self._house = house
        self._seconds = seconds
        self._rows = rows
        self._clock = clock
        self._begin: float | None = None
        self._next = 0.0
        self._deliveries = 0
        self._largest = 1
        self.written = 0

    def tick(self, run: JobRun, progress: Progress) -> None:
        """Called a few times a second."""
        now = self._clock()
        read = sum(progress.rows.values())
        if progress.batches and self._begin is None:
            self._begin = now  # Spark has warmed up.
        if self._is_over(now):
            if read >= self.written:
                run.stop("finished")
            return
        if now >= self._next and self.written - read < _BEHIND * self._largest:
            self._deliver()
            self._next = now + _EVERY

    def _is_over(self, now: float) -> bool:
        if self._rows is not None:
            return self.written >= self._rows
        return self._begin is not None and now - self._begin >= (self._seconds or 0.0)

    def _deliver(self) -> None:
        first = STEPS * self._deliveries
        steps = [
            self._house.step(factor_at(second) if self._surges else 1)
            for second in range(first, first + STEPS)
        ]
        count = 0
        for name in SCHEMAS:
            table = pa.concat_tables([step[name] for step in steps])
            count += len(table)
            draft = self._folder / name / f".{self._deliveries:06}.parquet"
            pq.write_table(table, draft)
            draft.rename(draft.with_name(f"{self._deliveries:06}.parquet"))
        self._deliveries += 1
        self._largest = max(self._largest, count)
        self.written += count


def result_table(rows: list[dict[str, Any]]) -> RenderableType | None:
    """The newest of ``rows`` for the terminal."""
    if not rows:
        return None
    table = Table(box=None, expand=True, pad_edge=False, show_header=False)
    for style in ("dim", "bold", "", "", "green"):
        table.add_column(style=style, justify="right" if style == "green" else "left")
    for row in rows[-_SHOWN:]:
        moment = f"{row['ts']:%H:%M:%S}.{row['ts'].microsecond // 1000:03d}"
        table.add_row(moment, row["name"], row["city"], row["item"], f"{row['price']:,} €")
    return table


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="penstock-demo-", ignore_cleanup_errors=True) as name:
        yield Path(name)
