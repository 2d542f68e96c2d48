"""Every way to the answer: ``spark.read``, SQL, a job file; and what Spark does not allow."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import penstock.spark

pytestmark = pytest.mark.xdist_group("spark")

QUERY = "SELECT A.id AS a, B.id AS b FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS] WHERE A.x = B.x"
ANSWER = [(1, 2), (2, 1)]


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Path:
    penstock.spark.register(spark)
    times = pa.array([1_000_000, 2_000_000], pa.timestamp("us", "UTC"))
    for name, keys in {"A": [1, 2], "B": [2, 1]}.items():
        (tmp_path / name).mkdir()
        file = tmp_path / name / "0.parquet"
        pq.write_table(pa.table({"id": [1, 2], "ts": times, "x": keys}), file)
        os.utime(file, (1_700_000_000,) * 2)
    return tmp_path


def options(folder: Path) -> str:
    return f"query '{QUERY}', 'A.path' '{folder}/A', 'B.path' '{folder}/B', watermark '1 SECOND'"


def test_sql_has_it_as_a_view(spark: SparkSession, folder: Path) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW answer USING penstock OPTIONS ({options(folder)})")
    try:
        found = spark.sql("SELECT a, b FROM answer ORDER BY a").collect()
        assert [tuple(row) for row in found] == ANSWER
        counted = spark.sql("SELECT count(*) AS n FROM answer WHERE a > b").collect()
        assert counted[0].n == 1
    finally:
        spark.catalog.dropTempView("answer")


def test_sql_does_not_have_it_as_a_table(spark: SparkSession, folder: Path) -> None:
    """Spark would make one that cannot be read: its options do not reach a source in Python."""
    with pytest.raises(AnalysisException, match="CREATE TEMPORARY VIEW") as refused:
        spark.sql(f"CREATE TABLE answer USING penstock OPTIONS ({options(folder)})")
    assert "Traceback" not in str(refused.value)
    assert not spark.catalog.tableExists("answer")


def test_a_job_file_and_what_is_given_beside_it(spark: SparkSession, folder: Path) -> None:
    text = f'query = "{QUERY}"\ncheckpoint = "checkpoint"\ntrigger = "available-now"\n'
    for name in "AB":
        text += f'[sources.{name}]\nformat = "parquet"\npath = "{name}"\nwatermark = "1 SECOND"\n'
    (folder / "job.toml").write_text(f'{text}[sink]\nformat = "parquet"\npath = "results"\n')
    reader = spark.readStream.format("penstock").option("job", str(folder / "job.toml"))
    results = reader.option("cells", 2).load()
    query = results.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    query = query.trigger(availableNow=True)
    query.start(str(folder / "results"), format="parquet").awaitTermination()
    found = spark.read.parquet(str(folder / "results")).orderBy("a").collect()
    assert [tuple(row) for row in found] == ANSWER
    assert (folder / "checkpoint" / "penstock").is_dir()
    changed = QUERY.replace("A.x = B.x", "A.id = B.id")
    bounded = spark.read.format("penstock").option("job", str(folder / "job.toml"))
    rows = bounded.option("query", changed).load().orderBy("a").collect()
    assert [tuple(row) for row in rows] == [(1, 1), (2, 2)]
