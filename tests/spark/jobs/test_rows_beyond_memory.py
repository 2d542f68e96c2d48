"""Jobs whose windows are larger than their memory: rows go to disk, and the answer is the same."""

from __future__ import annotations

import datetime
import os
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_case import JobCase
from pyspark.sql import SparkSession

import penstock
from penstock.job.job import LANES
from penstock.testing import Oracle, rows_of

pytestmark = pytest.mark.xdist_group("spark")
PAYLOAD = tuple(f"p{number}" for number in range(40))
SCHEMA = pa.schema(
    [("ts", pa.timestamp("us", "UTC")), *((name, pa.int64()) for name in ("x", *PAYLOAD))]
)
QUERY = f"""SELECT {", ".join(f"{s}.{p} AS {s.lower()}{p}" for s in "AB" for p in PAYLOAD)}
FROM A [RANGE 1 HOUR], B [RANGE 1 HOUR] WHERE A.x = B.x"""
JOB = """\
lane = "{lane}"
trigger = "available-now"
query = \"""{query}\"""
checkpoint = "checkpoint"
spill_folder = "{spill}"
limits.memory = "100 KB"
[sources.A]
format = "parquet"
path = "A"
watermark = "1 MINUTE"
options.maxFilesPerTrigger = 1
[sources.B]
format = "parquet"
path = "B"
watermark = "1 MINUTE"
options.maxFilesPerTrigger = 1
[sink]
format = "parquet"
path = "results"
"""
BATCHES, ROWS = 4, 90
NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)


def delivered(folder: Path) -> list[dict[str, pa.Table]]:
    """Files of both streams, a minute for each batch."""
    chance = random.Random(21)
    pushes: list[dict[str, pa.Table]] = []
    for batch in range(BATCHES):
        pushes.append({})
        for name in "AB":
            rows = [
                {
                    "ts": NOON + datetime.timedelta(minutes=batch, milliseconds=60 * number),
                    "x": chance.randrange(4 * ROWS),
                    **{column: chance.randrange(1 << 40) for column in PAYLOAD},
                }
                for number in range(ROWS)
            ]
            pushes[-1][name] = pa.Table.from_pylist(rows, SCHEMA)
            file = folder / name / f"{batch}.parquet"
            file.parent.mkdir(exist_ok=True)
            pq.write_table(pushes[-1][name], file)
            os.utime(file, (1_700_000_000 + 10 * batch,) * 2)
    return pushes


@pytest.mark.parametrize("lane", LANES)
def test_rows_go_to_disk_and_come_back(lane: str, spark: SparkSession, tmp_path: Path) -> None:
    spill = tmp_path / "spill"
    spill.mkdir()
    pushes = delivered(tmp_path)
    case = JobCase(tmp_path, spark)
    case.file.write_text(JOB.format(lane=lane, query=QUERY, spill=spill))
    events = case.run()
    assert any("memory is full" in str(e) and "go to disk" in str(e) for e in events)
    oracle = Oracle(penstock.parse(QUERY, dict.fromkeys("AB", SCHEMA)), 60_000)
    expected = Counter(row for push in pushes for row in oracle.push(push))
    assert expected
    found = pq.read_table([str(f) for f in (tmp_path / "results").glob("*.parquet")])
    assert Counter(rows_of(found)) == expected
