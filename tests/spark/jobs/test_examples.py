"""The example jobs run, and the Python of the pages prints what it says."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from job_case import JobCase
from pyspark.sql import SparkSession

import penstock
import penstock.spark
from penstock.job import read_job
from penstock.spark.jobs.job_run import JobRun
from penstock.telemetry import Batch, Event, Stop

pytestmark = pytest.mark.xdist_group("spark")

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n\n```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns("out")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=ignored)
    return tmp_path / "examples"


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def test_auctions_and_the_pages_about_them(
    spark: SparkSession, examples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = JobCase(examples / "auctions", spark)
    events = case.run()
    assert isinstance(events[-1], Stop)

    job = read_job(case.file)
    tables: dict[str, pa.Table] = {}
    for name, source in job.sources.items():
        reader = spark.read.format(source.format).options(**source.options)
        tables[name] = reader.schema(str(source.schema)).load(source.path).toArrow()
    query = penstock.parse(job.query, {name: table.schema for name, table in tables.items()})
    expected = penstock.Engine(query, lateness="3 SECONDS").push(tables)
    found = spark.read.parquet(str(examples / "auctions" / "out" / "results")).toArrow()
    assert len(expected) > 10
    answers = (
        Counter(tuple(row.values()) for row in each.to_pylist()) for each in (found, expected)
    )
    assert next(answers) == next(answers)

    monkeypatch.chdir(examples.parent)
    for page in ("how-to/run-a-job.md", "reference/events.md"):
        for block in BLOCK.finditer((ROOT / "docs" / page).read_text()):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(block["code"], page, "exec"), {})
            assert printed.getvalue() == (block["output"] or "finished 611\n")


def test_rate_runs_until_it_is_stopped(spark: SparkSession, examples: Path) -> None:
    def stop(run: JobRun, event: Event) -> None:
        if isinstance(event, Batch) and any(event.rows.values()):
            run.stop("enough")

    case = JobCase(examples / "rate", spark)
    case.file.write_text(case.file.read_text().replace("2 SECONDS", "500 MILLISECONDS"))
    case.run(stop)
    rows = spark.read.parquet(str(examples / "rate" / "out" / "results")).collect()
    assert all(row["n"] % 2 == 0 for row in rows)
