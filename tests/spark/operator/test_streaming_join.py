"""The join on Spark gives the oracle's answer: any cells, several batches, restarts."""

from __future__ import annotations

import os
import random
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from spark_case import SparkCase, cases

import penstock
import penstock.spark
from penstock.cells.placement import place
from penstock.spark.rows.watermarks import POLICY
from penstock.testing import Case, Oracle, difference

pytestmark = pytest.mark.xdist_group("spark")


def is_cut(case: Case, cells: int) -> bool:
    """Whether ``case`` runs in several cells, if it is of a kind that can, and several batches."""
    query = case.graph()
    in_one = query.by_rows or bool(query.minus) or cells == 1
    return len(case.pushes) >= 3 and (in_one or place(query, cells).cells > 1)


@pytest.mark.parametrize(
    ("features", "cells"),
    [
        (("lateness", "splits"), 2),
        (("theta", "splits"), 4),
        (("self-join", "splits"), 7),
        (("static", "key types"), 2),
        (("except", "lateness"), 4),
        (("group by", "splits"), 7),
        (("rows", "splits"), 4),
        (("dstream", "splits"), 2),
        (("rstream", "splits"), 1),
        (("key types", "late"), 7),
        (("lateness", "late"), 1),
        (("lateness", "late"), 4),
    ],
    ids=lambda value: "-".join(value).replace(" ", "_") if isinstance(value, tuple) else str(value),
)
def test_the_oracles_answer_across_a_restart(
    features: tuple[str, ...], cells: int, spark: SparkSession, tmp_path: Path
) -> None:
    case = SparkCase(next(c for c in cases(*features) if is_cut(c, cells)), tmp_path, spark)
    assert len(case.case.pushes) >= 3
    case.write(2)
    case.run(cells)
    case.write(len(case.case.pushes))
    case.run(cells)
    case.check(case.results(), case.expected())


@pytest.mark.skipif("PENSTOCK_LONG" not in os.environ, reason="long: set PENSTOCK_LONG=1")
@pytest.mark.parametrize("seed", range(40))
def test_random_queries_at_length(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(seed)
    case = SparkCase(next(cases(start=100_000 + 1_000 * seed)), tmp_path, spark)
    cells = chance.choice([1, 2, 4, 7])
    while case.written < len(case.case.pushes):
        case.write(chance.randint(1, 2))
        case.run(cells)
    case.check(case.results(), case.expected())


@pytest.mark.parametrize(
    ("features", "cells"), [(("late",), 4), (("static",), 3), (("dstream", "group by"), 2)]
)
def test_batch_frames_are_one_push(
    features: tuple[str, ...], cells: int, spark: SparkSession, tmp_path: Path
) -> None:
    case = SparkCase(next(cases(*features, pushes=1, start=100)), tmp_path, spark)
    case.write(1)
    oracle_rows = case.case.expected()
    found = case.join(cells, streaming=False).toArrow()
    case.check(found, [row for rows in oracle_rows for row in rows])


@pytest.mark.parametrize(
    ("delays", "policy"),
    [
        ({"A": 40_000, "B": 2_000}, "min"),
        ({"A": 40_000, "B": 2_000}, "max"),
        ({"A": 2_000}, "min"),
        ({}, "min"),
    ],
    ids=["min", "max", "one without", "none"],
)
def test_watermarks_by_the_rules_of_spark(
    delays: dict[str, int], policy: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Each source has its own delay, or none and is never late; the policy makes them one."""
    chance = random.Random(5)
    schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("x", pa.float64())])
    lead = {"A": 38, "B": 0}
    pushes: list[dict[str, pa.Table]] = []
    for number in range(4):
        push = {}
        for source in lead:
            rows: list[tuple[Any, ...]] = [
                (
                    100 * number + i,
                    1_000_000 * (30 * number + lead[source] + chance.randint(-70, 30)),
                    chance.choice([0.0, -0.0, float("nan"), 1.5, None]),
                )
                for i in range(30)
            ]
            columns = [
                pa.array(c, t) for c, t in zip(zip(*rows, strict=True), schema.types, strict=True)
            ]
            push[source] = pa.Table.from_arrays(columns, schema=schema)
            file = tmp_path / source / f"{number}.parquet"
            file.parent.mkdir(exist_ok=True)
            pq.write_table(push[source], file)
            os.utime(file, (1_700_000_000 + 10 * number,) * 2)
        pushes.append(push)
    frames = {
        source: spark.readStream.schema("id BIGINT, ts TIMESTAMP, x DOUBLE")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(tmp_path / source))
        for source in lead
    }
    for source, delay in delays.items():
        frames[source] = frames[source].withWatermark("ts", f"{delay} milliseconds")
    query = penstock.parse(
        "SELECT A.id AS a, B.id AS b, A.ts AS ts FROM A [RANGE 20 SECONDS], B [RANGE 20 SECONDS] "
        "WHERE A.x = B.x",
        schemas={source: penstock.spark.arrow_schema(frame) for source, frame in frames.items()},
    )
    spark.conf.set(POLICY, policy)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            results = penstock.spark.join(query, frames, cells=3)
        running = (
            results.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "results"), format="parquet")
        )
        running.awaitTermination()
    finally:
        spark.conf.unset(POLICY)
    told = [str(each.message) for each in warned if each.category is penstock.PenstockWarning]
    without = ", ".join(source for source in lead if source not in delays)
    assert len(told) == bool(without)
    assert all(text.startswith(f"{without} ha") and "withWatermark" in text for text in told)
    oracle = Oracle(query, delays, policy=policy)
    expected = [row for push in pushes for row in oracle.push(push)]
    late = {source: count for source, count in oracle.late.items() if count}
    assert late.keys() == delays.keys()
    found = spark.read.parquet(str(tmp_path / "results")).toArrow()
    rows = list(zip(*(found.column(i).to_pylist() for i in (0, 1)), strict=True))
    assert difference(rows, [row[:2] for row in expected]) is None
    assert found.schema.field("ts").type.tz is not None


def test_nested_columns_and_a_column_called_report(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"id": i, "ts": i, "tags": [i, None], "report": f"r{i}"} for i in range(5)]
    schema = "id BIGINT, ts BIGINT, tags ARRAY<BIGINT>, report STRING"
    spark.createDataFrame(rows, schema).write.parquet(str(tmp_path / "A"))
    frame = spark.readStream.schema(schema).parquet(str(tmp_path / "A"))
    for number, column in enumerate(("tags", "report")):
        query = penstock.parse(
            f"SELECT a.id AS id, b.{column} AS {column} FROM A [RANGE 1 SECOND] AS a, "
            "A [RANGE 1 SECOND] AS b WHERE a.id = b.id",
            schemas={"A": penstock.spark.arrow_schema(frame)},
        )
        running = (
            penstock.spark.join(query, {"A": frame}, cells=2)
            .writeStream.option("checkpointLocation", str(tmp_path / f"checkpoint {number}"))
            .trigger(availableNow=True)
            .start(str(tmp_path / column), format="parquet")
        )
        running.awaitTermination()
        found = spark.read.parquet(str(tmp_path / column)).orderBy("id").collect()
        assert [row.asDict() for row in found] == [{"id": r["id"], column: r[column]} for r in rows]
        reports = penstock.spark.cell_reports(running.recentProgress[0].observedMetrics)
        assert [report.cell for report in reports] == [0, 1]
        assert sum(report.results for report in reports) == 5
        assert sum(report.rows["A"] for report in reports) == 5
        assert {report.origin for report in reports} == {"new"}
