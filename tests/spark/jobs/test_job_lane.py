"""Which lane a job takes, and what both lanes do alike: side outputs, counts, warnings."""

from __future__ import annotations

import datetime
import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_case import JobCase
from pyspark.sql import SparkSession

from penstock.errors import CheckpointError, OptionError
from penstock.job import read_job
from penstock.job.job import LANES
from penstock.spark.jobs.job_lane import choose_lane
from penstock.telemetry import Batch, Failure, Start, Warned

PARQUET = dict.fromkeys("ABC", "parquet")


def case_in(folder: Path, kinds: dict[str, str] = PARQUET, top: str = "", **more: Any) -> JobCase:
    no_spark: Any = None
    return JobCase(folder, no_spark).write(kinds, top, **more)


def test_files_of_this_machine_are_read_by_penstock(tmp_path: Path) -> None:
    chosen = choose_lane(case_in(tmp_path, PARQUET | {"B": "json"}).job())
    assert str(chosen) == (
        "lane source: Penstock reads the sources itself, since they are parquet and json, which it "
        "reads as Spark does"
    )
    chosen = choose_lane(case_in(tmp_path, PARQUET | {"B": "csv"}, 'lane = "source"').job())
    assert str(chosen) == "lane source: Penstock reads the sources itself, since the job says so"


@pytest.mark.parametrize(
    ("kinds", "more", "why"),
    [
        (PARQUET | {"B": "csv"}, {}, "B has the format csv, whose values Spark reads"),
        (PARQUET | {"C": "orc"}, {}, "C has the format orc"),
        (PARQUET, {"options": 'select = ["id", "ts", "x"]'}, "A has select"),
        (PARQUET, {"top": 'overload = "defer"'}, "probes that are put off"),
        (PARQUET | {"B": "json"}, {"schema": False}, "B is JSON, and no schema is given"),
        (PARQUET, {"top": "spark.master = 'spark://there'"}, "there is a cluster, spark://there"),
        (PARQUET, {"top": "lane = 'dataframes'"}, "the job says so"),
    ],
)
def test_else_spark_reads_them(
    kinds: dict[str, str], more: dict[str, str], why: str, tmp_path: Path
) -> None:
    chosen = choose_lane(case_in(tmp_path, kinds, **more).job())
    assert chosen.name == "dataframes"
    assert why in str(chosen)


def test_many_cells_that_read_everything_are_sent_their_rows(tmp_path: Path) -> None:
    job = case_in(tmp_path).job()
    assert choose_lane(replace(job, cells="auto")).name == "source"
    assert choose_lane(replace(job, cells=8)).name == "source"
    assert str(choose_lane(replace(job, cells=9))) == (
        "lane dataframes: Spark reads them, since 9 cells that each read all of A, B, C would read "
        "9 times what there is"
    )
    assert choose_lane(replace(job, cells=9, lane="source")).name == "source"
    said = {"partitionedBy": "x", "buckets": "16"}
    sources = {n: replace(s, options={**s.options, **said}) for n, s in job.sources.items()}
    assert choose_lane(replace(job, cells=9, sources=sources)).name == "source"
    sources["C"] = replace(job.sources["C"], rate=10.0)
    sources |= {name: replace(sources[name], rate=100.0) for name in "AB"}
    assert choose_lane(replace(job, cells=9, sources=sources)).name == "source"
    lines = case_in(tmp_path, dict.fromkeys("ABC", "json")).job()
    assert choose_lane(replace(lines, cells=4)).name == "source"
    assert "would read 5 times what there is" in str(choose_lane(replace(lines, cells=5)))


def test_a_flush_is_for_the_lane_source(tmp_path: Path) -> None:
    case = case_in(tmp_path, PARQUET, 'trigger = "available-now"\nflush = true')
    assert choose_lane(case.job()).name == "source"
    case = case_in(tmp_path, PARQUET | {"B": "csv"}, 'trigger = "available-now"\nflush = true')
    with pytest.raises(OptionError, match=r'job\.toml: flush: .* format csv.*lane = "source"'):
        choose_lane(case.job())


def test_json_whose_times_or_types_are_sparks_own(tmp_path: Path) -> None:
    job = case_in(tmp_path, dict.fromkeys("ABC", "json")).job()
    assert choose_lane(job).name == "source"
    zone = {"spark.sql.session.timeZone": "Europe/Vienna"}
    assert "times may be of the zone Europe/Vienna" in str(choose_lane(job, zone.get))
    sources = {**job.sources, "B": replace(job.sources["B"], schema="id BIGINT, x BINARY")}
    assert "x is of the type binary" in str(choose_lane(replace(job, sources=sources)))


def test_kafka_is_read_by_penstock_if_its_client_can(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("confluent_kafka")
    job = read_job(Path(__file__).parents[3] / "examples" / "kafka" / "job.toml", {})
    assert choose_lane(job).name == "source"
    orders = job.sources["orders"]
    secret = {**orders.options, "kafka.ssl.truststore.location": "there.jks"}
    sources = {**job.sources, "orders": replace(orders, options=secret)}
    assert "only Java reads" in str(choose_lane(replace(job, sources=sources)))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "its client is not installed" in str(choose_lane(job))


def test_files_elsewhere_are_read_by_spark(tmp_path: Path) -> None:
    case = case_in(tmp_path)
    text = case.file.read_text()
    case.file.write_text(text.replace('path = "B"', 'path = "s3a://bucket/B"'))
    assert "B is not on this machine" in str(choose_lane(case.job()))
    case.file.write_text(text.replace("state/checkpoint", "s3a://bucket/checkpoint"))
    assert "the checkpoint is not on this machine" in str(choose_lane(case.job()))


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


def test_relations_that_are_refreshed_are_read_by_spark(tmp_path: Path) -> None:
    job = case_in(tmp_path).job()
    fixed = replace(job.sources["C"], static=True, refresh="asked")
    job = replace(job, sources={**job.sources, "C": fixed})
    assert "C is refreshed, which is done in the other lane" in str(choose_lane(job))
    with pytest.raises(OptionError, match='found "source", and C is refreshed'):
        choose_lane(replace(job, lane="source"))


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
    (offsets / "0").write_text('v1\n{"batchWatermarkMs":0}\n{"batch": 0, "entry": ""}')
    assert choose_lane(case_in(tmp_path).job()).name == "source", "of a run that found no rows"
    (offsets / "0").write_text("")
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
def test_a_budget_of_probes_is_kept_and_told(
    lane: str, spark: SparkSession, tmp_path: Path
) -> None:
    case = JobCase(tmp_path, spark)
    for number, name in enumerate(PARQUET):
        case.deliver(name, "parquet", 1 + number)
    top = (
        f'lane = "{lane}"\ntrigger = "available-now"\noverload = {{ policy = "shed", probes = 1 }}'
    )
    events = case.write(PARQUET, f"{top}\ncells = 1").run()
    (batch,) = [event for event in events if isinstance(event, Batch)]
    (cell,) = batch.cells
    assert cell.overload["policy"] == "shed"
    assert cell.overload["skipped"] > 0
    assert case.results() < case.expected()


LINES = {
    "json": {
        "A": [
            '{"id": 1, "ts": "2026-01-01T12:00:10Z", "x": "k"}',
            "{no row",
            '{"id": 2, "x": "k"}',
        ],
        "B": ['{"id": "one", "ts": "2026-01-01T12:00:11Z", "x": "k"}', '{"id": 3, "ts": "then"}'],
        "C": ['{"id": 4, "ts": "2026-01-01T12:00:12Z", "x": "k"}', "7", ""],
    },
    "csv": {
        "A": ["1,2026-01-01T12:00:10Z,k", "no row", "2,,k"],
        "B": ["one,2026-01-01T12:00:11Z,k", "3,then,k"],
        "C": ["4,2026-01-01T12:00:12Z,k", '5,"', "6,2026-01-01T12:00:12Z,l,more"],
    },
}
"""Of each stream, a line that can be read, except that one of B has no id, and then one that
cannot."""
HEADINGS = {"json": [], "csv": ["id,ts,x"]}


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize(("form", "cells"), [("json", 1), ("json", 2), ("csv", 1)])
def test_lines_that_cannot_be_read_are_counted_and_handed_out(
    form: str, cells: int, lane: str, spark: SparkSession, tmp_path: Path
) -> None:
    case = JobCase(tmp_path, spark)
    top = f'lane = "{lane}"\ntrigger = "available-now"\ncells = {cells}'
    case.write(dict.fromkeys("ABC", form), top)
    case.file.write_text(case.file.read_text() + SIDES)
    for name, lines in LINES[form].items():
        (tmp_path / name / f"0.{form}").write_text("\n".join([*HEADINGS[form], *lines]))
    dropped: Counter[tuple[str, str]] = Counter()
    for event in case.run():
        if isinstance(event, Batch):
            for source, reasons in event.dropped.items():
                dropped.update({(source, reason): count for reason, count in reasons.items()})
    assert {k: v for k, v in dropped.items() if v} == {
        ("A", "unreadable"): 1,
        ("A", "no event time"): 1,
        ("B", "unreadable"): 1,
        ("C", "unreadable"): 1,
    }
    assert case.results() == {(1, None, 4, "k"): 1}
    rejected = spark.read.parquet(str(tmp_path / "rejected")).where("reason = 'unreadable'")
    found = sorted((row.source, row.value) for row in rejected.collect())
    assert found == [(name, lines[1]) for name, lines in LINES[form].items()]


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("lane", LANES)
def test_a_job_with_too_many_results_fails_in_one_line_and_goes_on(
    lane: str, spark: SparkSession, tmp_path: Path
) -> None:
    case = JobCase(tmp_path, spark)
    for number, name in enumerate(PARQUET):
        case.deliver(name, "parquet", 1 + number)
    top = f'lane = "{lane}"\ntrigger = "available-now"\ncells = 1\nmax_results = '
    (failure,) = [e for e in case.write(PARQUET, f"{top}10").run() if isinstance(e, Failure)]
    assert "a push would make more than max_results = 10 results" in failure.reason
    assert "in the join A.x = B.x" in failure.reason
    assert sum(case.results().values()) == 0
    case.write(PARQUET, f"{top}1_000_000").run()
    assert case.results() == case.expected()


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
