"""Every row is accounted for: late, unreadable and timeless rows are counted, and can be had."""

from __future__ import annotations

import datetime
import json
import os
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
import penstock.spark
from penstock.job import read_job
from penstock.spark.jobs.job_run import JobRun
from penstock.spark.jobs.prepared_job import prepare
from penstock.telemetry import Batch, Event, Warned
from penstock.testing import Oracle

pytestmark = pytest.mark.xdist_group("spark")

NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
JOB = """
trigger = "available-now"
checkpoint = "state/checkpoint"
cells = 4
query = '''
SELECT A.id AS a, B.id AS b, C.id AS c
FROM A [RANGE 10 SECONDS], B [RANGE 10 SECONDS], C [RANGE 10 SECONDS]
WHERE A.x = B.x AND B.y = C.y AND A.id < 900
'''
[sources.A]
format = "json"
path = "A"
schema = "id BIGINT, ts TIMESTAMP, x BIGINT, note STRING"
watermark = "5 SECONDS"
options.maxFilesPerTrigger = "1"
[sources.B]
format = "text"
path = "B"
decode = "json"
schema = "id BIGINT, ts TIMESTAMP, x BIGINT, y BIGINT"
watermark = "5 SECONDS"
options.maxFilesPerTrigger = "1"
[sources.C]
format = "csv"
path = "C"
schema = "id BIGINT, ts TIMESTAMP, y BIGINT"
select = ["id", "ts", "y"]
options.maxFilesPerTrigger = "1"
{watermark_of_c}
[sink]
format = "parquet"
path = "results"
"""
SIDES = """
[late]
format = "json"
path = "late"
[rejected]
format = "parquet"
path = "rejected"
"""
FILES: list[dict[str, list[Any]]] = [
    {
        "A": [(1, 10, 1), (2, 12, 2), "{broken", (901, 12, 1)],
        "B": [(1, 11, 1, 1), "not json", "[1]"],
        "C": [(1, 12, 1), "x,y,z", "7,,1"],
    },
    {
        "A": [(3, 40, 1), (4, None, 1)],
        "B": [(2, 41, 1, 1), (3, 42, 2, 2)],
        "C": [(2, 43, 1), (3, 44, 2)],
    },
    {
        "A": [(5, 20, 1), (6, 41, 1), (902, 1, 1)],
        "B": [(4, 34, 1, 1), (5, 35, 2, 2), (6, None, 1, 1)],
        "C": [(4, 2, 1), (5, 44, 1)],
    },
]
NAMES = {"A": ("id", "ts", "x"), "B": ("id", "ts", "x", "y"), "C": ("id", "ts", "y")}


def at(seconds: int | None) -> str | None:
    return None if seconds is None else (NOON + datetime.timedelta(seconds=seconds)).isoformat()


def write(folder: Path, number: int, files: Sequence[Mapping[str, list[Any]]] = FILES) -> None:
    for name, rows in files[number].items():
        lines = []
        for row in rows:
            if isinstance(row, str):
                lines.append(row)
                continue
            values = {**dict(zip(NAMES[name], row, strict=True)), "ts": at(row[1])}
            if name == "A":
                values["note"] = f"note {row[0]}"
            line = json.dumps(values)
            if name == "C":
                line = ",".join("" if v is None else str(v) for v in values.values())
            lines.append(line)
        file = folder / name / f"{number}.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(lines) + "\n")
        os.utime(file, (1_700_000_000 + 10 * number,) * 2)


def run(folder: Path, spark: SparkSession) -> list[Event]:
    with JobRun(prepare(read_job(folder / "job.toml"), spark)) as job:
        events = [job.start()]
        while not job.ended:
            events += job.poll(0.1)
    assert job.failure is None, job.failure
    return events


def oracle_of(delays: dict[str, int]) -> tuple[Oracle, list[tuple[Any, ...]]]:
    kinds = {"ts": pa.timestamp("us", "UTC")}
    schemas = {
        name: pa.schema([(column, kinds.get(column, pa.int64())) for column in columns])
        for name, columns in NAMES.items()
    }
    query = penstock.parse(JOB.split("'''")[1], schemas=schemas)
    oracle = Oracle(query, delays)
    rows: list[tuple[Any, ...]] = []
    for push in FILES:
        tables = {}
        for name, each in push.items():
            found = [r for r in each if not isinstance(r, str)]
            values = [
                {**dict(zip(NAMES[name], row, strict=True)),
                 "ts": None if row[1] is None else NOON + datetime.timedelta(seconds=row[1])}
                for row in found
            ]  # fmt: skip
            tables[name] = pa.Table.from_pylist(values, schema=schemas[name])
        rows += oracle.push(tables)
    return oracle, rows


def dropped(events: list[Event]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for event in events:
        if isinstance(event, Batch):
            for source, reasons in event.dropped.items():
                found.setdefault(source, Counter()).update(reasons)
    return found


def test_a_job_counts_and_hands_out_every_row_it_drops(spark: SparkSession, tmp_path: Path) -> None:
    job = JOB.format(watermark_of_c='watermark = "5 SECONDS"')
    (tmp_path / "job.toml").write_text(job + SIDES)
    write(tmp_path, 0)
    write(tmp_path, 1)
    events = run(tmp_path, spark)
    write(tmp_path, 2)
    events += run(tmp_path, spark)
    oracle, expected = oracle_of({"A": 5_000, "B": 5_000, "C": 5_000})
    found = [tuple(row) for row in spark.read.parquet(str(tmp_path / "results")).collect()]
    assert Counter(found) == Counter(expected)
    assert len(found) >= 3

    # 902 of A is older than the watermark, and the query rejects it: it is filtered, not late.
    assert oracle.late == {"A": 2, "B": 1, "C": 1}
    assert dropped(events) == {
        "A": {"unreadable": 1, "no event time": 1, "late": 1},
        "B": {"unreadable": 2, "no event time": 1, "late": 1},
        "C": {"unreadable": 1, "no event time": 1, "late": 1},
    }
    batches = [event for event in events if isinstance(event, Batch)]
    assert sum(batch.filtered["A"] for batch in batches) == 2
    read = sum(sum(batch.rows.values()) for batch in batches)
    assert read == sum(len(rows) for push in FILES for rows in push.values())

    late = spark.read.json(str(tmp_path / "late")).orderBy("source").collect()
    assert [(row.source, row.reason) for row in late] == [(s, "late") for s in "ABC"]
    assert json.loads(late[0].value)["note"] == "note 5"
    assert (late[0].event_time[:19], late[0].watermark[:19]) == (
        "2026-01-01T12:00:20",
        "2026-01-01T12:00:35",
    )
    rejected = spark.read.parquet(str(tmp_path / "rejected")).collect()
    values = Counter((row.source, row.reason, row.value) for row in rejected)
    assert values.total() == 7
    assert values["A", "unreadable", "{broken"] == 1
    assert values["B", "unreadable", "not json"] == 1
    assert values["C", "unreadable", "x,y,z"] == 1
    (timeless,) = [row for row in rejected if row.source == "A" and row.value.startswith('{"id"')]
    assert json.loads(timeless.value) == {"id": 4, "ts": None, "x": 1, "note": "note 4"}
    assert all(row.watermark is None for row in rejected)


def test_without_side_outputs_the_numbers_are_the_same(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(JOB.format(watermark_of_c=""))
    for number in range(3):
        write(tmp_path, number)
    events = run(tmp_path, spark)
    oracle, expected = oracle_of({"A": 5_000, "B": 5_000})
    found = [tuple(row) for row in spark.read.parquet(str(tmp_path / "results")).collect()]
    assert Counter(found) == Counter(expected)
    assert oracle.late["C"] == 0
    assert dropped(events)["C"] == {"unreadable": 1, "no event time": 1}
    assert dropped(events)["B"]["late"] == oracle.late["B"]
    (warned,) = [event for event in events if isinstance(event, Warned)]
    assert warned.text.startswith("C has no watermark")


def random_files(seed: int) -> list[dict[str, list[Any]]]:
    """Files of three sources with every kind of badness."""
    chance = random.Random(seed)
    broken = {"A": "{broken", "B": "not json", "C": "x,y,z"}

    def row(name: str, number: int) -> Any:
        if chance.random() < 0.1:
            return broken[name]
        time = None if chance.random() < 0.1 else 20 * number + chance.randint(-12, 20)
        keys = [None if chance.random() < 0.15 else chance.randint(0, 4) for _ in NAMES[name][2:]]
        return (chance.randint(0, 999), time, *keys)

    return [
        {name: [row(name, number) for _ in range(chance.randint(20, 40))] for name in NAMES}
        for number in range(4)
    ]


def reasons_of(files: list[dict[str, list[Any]]]) -> dict[str, Counter[str]]:
    """What becomes of each row, by the rules in words: docs/how-to/late-rows.md."""
    found: dict[str, Counter[str]] = {name: Counter() for name in NAMES}
    newest: dict[str, int] = {}
    for push in files:
        watermark = min(newest.values()) - 5 if len(newest) == len(NAMES) else -(10**9)
        for name, rows in push.items():
            for row in rows:
                if isinstance(row, str):
                    found[name]["unreadable"] += 1
                elif row[1] is None:
                    found[name]["no event time"] += 1
                elif None in row[2:] or (name == "A" and row[0] >= 900):
                    found[name]["filtered"] += 1
                elif row[1] < watermark:
                    found[name]["late"] += 1
                else:
                    found[name]["joined"] += 1
        for name, rows in push.items():
            times = [row[1] for row in rows if not isinstance(row, str) and row[1] is not None]
            newest[name] = max([*times, newest.get(name, -(10**9))])
    return found


@pytest.mark.parametrize("cells", [1, 2, 4])
def test_rows_in_are_rows_joined_and_rows_by_reason(
    cells: int, spark: SparkSession, tmp_path: Path
) -> None:
    files = random_files(cells)
    job = JOB.format(watermark_of_c='watermark = "5 SECONDS"')
    (tmp_path / "job.toml").write_text(job.replace("cells = 4", f"cells = {cells}"))
    for number in range(len(files)):
        write(tmp_path, number, files)
    events = run(tmp_path, spark)
    expected = reasons_of(files)
    read: Counter[str] = Counter()
    found = dropped(events)
    for event in events:
        if isinstance(event, Batch):
            read.update(event.rows)
            for name, count in event.filtered.items():
                found[name]["filtered"] += count
    for name, reasons in expected.items():
        assert read[name] == reasons.total()
        reasons["joined"] -= read[name] - sum(found[name].values())
        assert +reasons == found[name], name
        assert all(reasons[each] for each in ("unreadable", "no event time", "filtered", "late"))


def test_split_hands_each_batch_to_its_functions(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path, number)
    schema = "id BIGINT, ts TIMESTAMP, x BIGINT, note STRING, _corrupt_record STRING"
    frame = (
        spark.readStream.schema(schema)
        .option("maxFilesPerTrigger", 1)
        .json(str(tmp_path / "A"))
        .withWatermark("ts", "5 seconds")
    )
    query = penstock.parse(
        "SELECT a.id AS a, b.id AS b FROM A [RANGE 5 SECONDS] AS a, A [RANGE 5 SECONDS] AS b "
        "WHERE a.x = b.x",
        schemas={"A": penstock.spark.arrow_schema(frame)},
    )
    found: dict[str, list[tuple[Any, ...]]] = {"results": [], "late": [], "rejected": []}

    def keep(name: str) -> Any:
        def write_batch(batch: DataFrame, number: int) -> None:
            found[name] += [(number, *row) for row in batch.collect()]

        return write_batch

    results = penstock.spark.join(query, {"A": frame}, cells=2, dropped="aside")
    assert results.columns == ["a", "b", "aside"]
    writers = {name: keep(name) for name in found}
    running = (
        results.writeStream.foreachBatch(penstock.spark.split(**writers, column="aside"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()
    assert sorted(row[1:] for row in found["results"] if row[1] != row[2]) == [
        (1, 901), (3, 6), (6, 3), (901, 1),
    ]  # fmt: skip
    assert sorted((row[0], row[2], json.loads(row[5])["id"]) for row in found["late"]) == [
        (2, "late", 5),
        (2, "late", 902),
    ]
    assert sorted((row[0], row[2]) for row in found["rejected"]) == [
        (0, "unreadable"),
        (1, "no event time"),
    ]
    with pytest.raises(penstock.PenstockError, match="dropped='a' is a column of the answer"):
        penstock.spark.join(query, {"A": frame}, dropped="a")
