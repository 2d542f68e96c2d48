"""Operators of Spark's own behind the join: windows by the event time of results."""

from __future__ import annotations

import datetime
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import penstock
import penstock.spark
from penstock.errors import OptionError
from penstock.testing import Oracle

pytestmark = pytest.mark.xdist_group("spark")

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("x", pa.int64())])
TEXT = (
    "SELECT A.id AS a, B.id AS b, A.x AS x FROM A [RANGE 7 SECONDS], B [RANGE 9 SECONDS] "
    "WHERE A.x = B.x"
)
START = 1_767_268_800
BATCHES = 6


def delivered(folder: Path) -> list[dict[str, pa.Table]]:
    """Ten seconds in each batch, out of order by three seconds at most, one stream behind."""
    chance = random.Random(3)
    pushes = []
    for number in range(BATCHES):
        push = {}
        for source, behind in (("A", 0), ("B", 4)):
            rows = [
                (
                    100 * number + i,
                    1_000_000 * START
                    + chance.randint(1_000 * (10 * number - behind - 3), 1_000 * 10 * (number + 1))
                    * 1_000,
                    chance.randint(1, 4),
                )
                for i in range(25)
            ]
            columns = zip(zip(*rows, strict=True), SCHEMA.types, strict=True)
            push[source] = pa.table([pa.array(c, t) for c, t in columns], schema=SCHEMA)
            file = folder / source / f"{number}.parquet"
            file.parent.mkdir(exist_ok=True)
            pq.write_table(push[source], file)
            os.utime(file, (1_700_000_000 + 10 * number,) * 2)
        pushes.append(push)
    return pushes


def stream(spark: SparkSession, folder: Path, source: str) -> DataFrame:
    reader = spark.readStream.schema("id BIGINT, ts TIMESTAMP, x BIGINT")
    return reader.option("maxFilesPerTrigger", 1).parquet(str(folder / source))


def test_a_windowed_aggregate_behind_the_join(spark: SparkSession, tmp_path: Path) -> None:
    pushes = delivered(tmp_path)
    frames = {
        "A": stream(spark, tmp_path, "A").withWatermark("ts", "2 seconds"),
        "B": stream(spark, tmp_path, "B"),  # Its watermark comes from lateness.
    }
    results = penstock.spark.join(
        TEXT, frames, cells=2, lateness={"B": "3 SECONDS"}, result_time="born", dropped="aside"
    )
    assert results.columns == ["a", "b", "x", "born", "aside"]
    counts = (
        results.where("aside IS NULL")
        .groupBy(sf.window("born", "5 seconds"), "x")
        .agg(sf.count("*").alias("n"))
    )
    running = (
        counts.writeStream.outputMode("append")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "counts"), format="parquet")
    )
    running.awaitTermination()
    query = penstock.parse(TEXT, schemas={"A": SCHEMA, "B": SCHEMA})
    oracle = Oracle(query, {"A": 2_000, "B": 3_000})
    for push in pushes:
        oracle.push(push)
    expected: Counter[tuple[int, int]] = Counter()
    for result in oracle.results(query):
        window = int(result.birth) // 5_000_000 * 5
        expected[window, result.selected[2]] += 1
    rows: list[Any] = spark.read.parquet(str(tmp_path / "counts")).collect()
    found = {
        (round(row.window.start.replace(tzinfo=datetime.UTC).timestamp()), row.x): row.n
        for row in rows
    }
    assert len(found) == len(rows) > 20
    last = max(window for window, _ in found)
    assert found == {key: n for key, n in expected.items() if key[0] <= last}
    assert sum(oracle.late.values()) > 0


def test_what_has_no_result_time_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    delivered(tmp_path)
    frames = {source: stream(spark, tmp_path, source) for source in "AB"}
    with pytest.raises(OptionError, match="watermark on every stream, and A has none"):
        penstock.spark.join(TEXT, frames, result_time="born")
    delayed = {s: frame.withWatermark("ts", "1 second") for s, frame in frames.items()}
    with pytest.raises(OptionError, match="has a delay of 1000 ms, and lateness says 5000 ms"):
        penstock.spark.join(TEXT, delayed, lateness=5_000, result_time="born")
    with pytest.raises(OptionError, match="'x' is a column of the answer"):
        penstock.spark.join(TEXT, delayed, result_time="x")
    grouped = TEXT.replace("A.id AS a, B.id AS b, A.x AS x", "A.x AS x, COUNT(*) AS n")
    with pytest.raises(OptionError, match="leave at birth"):
        penstock.spark.join(f"{grouped} GROUP BY A.x", delayed, result_time="born")
