"""One row a century ahead does not move the clock: it is set aside, counted and can be had."""

from __future__ import annotations

import datetime
import json
import os
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
import penstock.spark
from penstock.job import read_job
from penstock.job.job import LANES
from penstock.spark.jobs.job_run import JobRun
from penstock.spark.jobs.prepared_job import prepare
from penstock.telemetry import Batch

pytestmark = pytest.mark.xdist_group("spark")

JOB = """
trigger = "available-now"
checkpoint = "{name}/checkpoint"
lane = "{lane}"
cells = 2
{max_ahead}
query = '''
SELECT A.id AS a, B.id AS b FROM A [RANGE 10 SECONDS], B [RANGE 10 SECONDS]
WHERE A.x = B.x AND A.x > 0
'''
[sources.A]
format = "json"
path = "A"
schema = "id BIGINT, ts TIMESTAMP, x BIGINT"
watermark = "5 SECONDS"
options.maxFilesPerTrigger = "1"
[sources.B]
format = "json"
path = "B"
schema = "id BIGINT, ts BIGINT, x BIGINT"
watermark = "5 SECONDS"
options.maxFilesPerTrigger = "1"
[sink]
format = "parquet"
path = "{name}/results"
[rejected]
format = "json"
path = "{name}/rejected"
"""
NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
CENTURY = datetime.timedelta(days=36_525)


def write(folder: Path) -> None:
    """Three files for each source; in the second, a row of each is a century ahead. That of A
    passes the predicate of the query in one row and not in the other: both would move the clock."""
    for number in range(3):
        for source in "AB":
            rows = [(10 * number + n, NOON + datetime.timedelta(seconds=5 * number + n), 1 + n % 2)
                    for n in range(4)]  # fmt: skip
            if number == 1:
                rows += [(90, NOON + CENTURY, 1), (91, NOON + CENTURY, 0)]
            lines = [
                json.dumps({"id": i, "ts": t.isoformat() if source == "A" else _ms(t), "x": x})
                for i, t, x in rows
            ]
            file = folder / source / f"{number}.json"
            file.parent.mkdir(exist_ok=True)
            file.write_text("\n".join(lines) + "\n")
            os.utime(file, (1_700_000_000 + 10 * number,) * 2)


def _ms(time: datetime.datetime) -> int:
    return int(1000 * time.timestamp())


def run(
    folder: Path, name: str, spark: SparkSession, lane: str, max_ahead: str = ""
) -> Counter[str]:
    """Rows that were dropped, by reason."""
    (folder / f"{name}.toml").write_text(JOB.format(name=name, lane=lane, max_ahead=max_ahead))
    found: Counter[str] = Counter()
    with JobRun(prepare(read_job(folder / f"{name}.toml"), spark)) as job:
        events = [job.start()]
        while not job.ended:
            events += job.poll(0.1)
    assert job.failure is None, job.failure
    for event in events:
        if isinstance(event, Batch):
            for reasons in event.dropped.values():
                found.update(reasons)
    return found


@pytest.mark.parametrize("lane", LANES)
def test_a_row_a_century_ahead_is_set_aside(lane: str, spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path)
    assert run(tmp_path, "usual", spark, lane) == {"too far ahead": 4}
    found = Counter(map(tuple, spark.read.parquet(str(tmp_path / "usual/results")).collect()))
    times = {10 * m + n: (5 * m + n, 1 + n % 2) for m in range(3) for n in range(4)}
    expected = Counter(
        (a, b)
        for a, (at, x) in times.items()
        for b, (bt, y) in times.items()
        if x == y and abs(at - bt) <= 10
    )
    assert found == expected
    rejected = spark.read.json(str(tmp_path / "usual/rejected")).collect()
    assert Counter((row.source, row.reason) for row in rejected) == {
        ("A", "too far ahead"): 2,
        ("B", "too far ahead"): 2,
    }
    assert {json.loads(row.value)["id"] for row in rejected} == {90, 91}
    assert {tuple(sorted(json.loads(row.value))) for row in rejected} == {("id", "ts", "x")}

    # The test above can fail: with no bound, every row of the third file is late.
    assert run(tmp_path, "poisoned", spark, lane, 'max_ahead = "off"') == {"late": 8}


def test_max_ahead_of_a_source_that_is_none(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path)
    frame = spark.readStream.schema("id BIGINT, ts TIMESTAMP, x BIGINT").json(str(tmp_path / "A"))
    frames = {"A": frame.withWatermark("ts", "5 seconds")}
    text = "SELECT A.id AS a FROM A [RANGE 10 SECONDS]"
    with pytest.raises(penstock.OptionError, match="max_ahead is given for 'B', which is no"):
        penstock.spark.join(text, frames, max_ahead={"B": "1 HOUR"})
    with pytest.raises(penstock.OptionError, match="max_ahead"):
        penstock.spark.join(text, frames, max_ahead="soon")
