"""Which lane a job takes, and what both lanes do alike: side outputs, counts, warnings."""

from __future__ import annotations

import datetime
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_case import JobCase
from pyspark.sql import SparkSession

from penstock.errors import CheckpointError, OptionError
from penstock.job.job import LANES
from penstock.spark.jobs.job_lane import choose_lane
from penstock.telemetry import Batch, Start, Warned

PARQUET = dict.fromkeys("ABC", "parquet")


def case_in(folder: Path, kinds: dict[str, str] = PARQUET, top: str = "", **more: str) -> JobCase:
    return JobCase(folder, None).write(kinds, top, **more)  # type: ignore[arg-type]


def test_spark_reads_unless_the_job_says_otherwise(tmp_path: Path) -> None:
    assert choose_lane(case_in(tmp_path).job()).name == "dataframes"
    chosen = choose_lane(case_in(tmp_path, top='lane = "source"').job())
    assert str(chosen) == "lane source: Penstock reads the sources itself, since the job says so"


@pytest.mark.parametrize(
    ("kinds", "more", "why"),
    [
        (PARQUET | {"C": "orc"}, {}, "C has the format orc"),
        (PARQUET, {"options": 'select = ["id", "ts", "x"]'}, "A has select"),
        (PARQUET, {"options": "options.mergeSchema = true"}, "A has the option mergeSchema"),
        (PARQUET, {"top": 'overload = "defer"'}, "probes that are put off"),
    ],
)
def test_what_penstock_cannot_read_is_told(
    kinds: dict[str, str], more: dict[str, str], why: str, tmp_path: Path
) -> None:
    top = 'lane = "source"\n' + more.get("top", "")
    with pytest.raises(OptionError, match=why):
        choose_lane(case_in(tmp_path, kinds, **{**more, "top": top}).job())


def test_a_lane_that_is_asked_for_and_cannot_be_had(tmp_path: Path) -> None:
    case = case_in(tmp_path, PARQUET | {"C": "orc"}, 'lane = "source"')
    with pytest.raises(OptionError, match='lane: found "source", and C has the format orc'):
        choose_lane(case.job())


def test_a_checkpoint_goes_on_in_its_lane(tmp_path: Path) -> None:
    offsets = tmp_path / "state" / "checkpoint" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").touch()
    assert choose_lane(case_in(tmp_path).job()).name == "dataframes"
    with pytest.raises(CheckpointError, match='found "source", expected "dataframes"'):
        choose_lane(case_in(tmp_path, PARQUET, 'lane = "source"').job())
    (offsets.parent / "penstock").mkdir()
    assert choose_lane(case_in(tmp_path).job()).name == "source"
    with pytest.raises(OptionError, match="was begun in the lane source, and B has the format orc"):
        choose_lane(case_in(tmp_path, PARQUET | {"B": "orc"}).job())


NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
ROWS: list[dict[str, list[tuple[int, int | None, str | None]]]] = [
    {"A": [(1, 10, "k"), (2, 12, "l"), (3, None, "k")], "B": [(1, 11, "k")], "C": [(1, 12, "k")]},
    {"A": [(4, 60, "k")], "B": [(2, 61, "k"), (3, None, None)], "C": [(2, 62, "k")]},
    {"A": [(5, 20, "k"), (6, 61, "k")], "B": [(4, 2, "l")], "C": [(3, 63, "k")]},
]
SIDES = """
[late]
format = "json"
path = "late"
[rejected]
format = "parquet"
path = "rejected"
"""


def deliver(folder: Path, number: int) -> None:
    for name, rows in ROWS[number].items():
        values = [
            {"id": i, "ts": None if s is None else NOON + datetime.timedelta(seconds=s), "x": x}
            for i, s, x in rows
        ]
        kinds = [("id", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("x", pa.string())]
        file = folder / name / f"{number}.parquet"
        pq.write_table(pa.Table.from_pylist(values, schema=pa.schema(kinds)), file)
        os.utime(file, (1_700_000_000 + 10 * number,) * 2)


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("lane", LANES)
def test_dropped_rows_are_counted_and_handed_out(
    lane: str, spark: SparkSession, tmp_path: Path
) -> None:
    case = JobCase(tmp_path, spark)
    top = f'lane = "{lane}"\ntrigger = "available-now"\ncells = 2'
    case.write(PARQUET, top, options="options.maxFilesPerTrigger = 1")
    text = case.file.read_text().replace('watermark = "5 MINUTES"', 'watermark = "5 SECONDS"')
    case.file.write_text(text + SIDES)
    deliver(tmp_path, 0)
    deliver(tmp_path, 1)
    events = case.run()
    deliver(tmp_path, 2)
    events += case.run()
    start = events[0]
    assert isinstance(start, Start)
    assert start.lane.startswith(f"lane {lane}")
    dropped: Counter[tuple[str, str]] = Counter()
    read = 0
    for event in events:
        if isinstance(event, Batch):
            read += sum(event.rows.values())
            for source, reasons in event.dropped.items():
                for reason, count in reasons.items():
                    dropped[source, reason] += count
    wanted = {("A", "late"): 1, ("B", "late"): 1, ("A", "no event time"): 1}
    assert {k: v for k, v in dropped.items() if v} == wanted | {("B", "no event time"): 1}
    assert read == sum(len(rows) for push in ROWS for rows in push.values())
    assert case.results() == {(1, 1, 1, "k"): 1, (4, 2, 2, "k"): 1, (6, 2, 2, "k"): 1,
                              (4, 2, 3, "k"): 1, (6, 2, 3, "k"): 1}  # fmt: skip
    late = spark.read.json(str(tmp_path / "late")).orderBy("source").collect()
    assert [(row.source, json.loads(row.value)["id"]) for row in late] == [("A", 5), ("B", 4)]
    assert late[0].event_time[:19] == "2026-01-01T12:00:20"
    rejected = spark.read.parquet(str(tmp_path / "rejected")).orderBy("source").collect()
    found: list[Any] = [(row.source, row.reason, json.loads(row.value)["id"]) for row in rejected]
    assert found == [("A", "no event time", 3), ("B", "no event time", 3)]


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("lane", LANES)
def test_a_stream_without_a_watermark_is_warned_of(
    lane: str, spark: SparkSession, tmp_path: Path
) -> None:
    case = JobCase(tmp_path, spark).write(PARQUET, f'lane = "{lane}"\ntrigger = "available-now"')
    case.file.write_text(case.file.read_text().replace('watermark = "5 MINUTES"\n', "", 1))
    deliver(tmp_path, 0)
    warned = [event.text for event in case.run() if isinstance(event, Warned)]
    assert sum("A has no watermark: nothing there is late" in text for text in warned) == 1
    kept = [text for text in warned if "a snapshot of each cell" in text]
    assert len(kept) == (lane == "source")
