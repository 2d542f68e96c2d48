"""``format("penstock")`` on Spark: streams, bounded answers, restarts, mistakes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from case_deliveries import spark_oracle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from roll_back import roll_back
from spark_case import SparkCase, cases

import penstock.spark
from penstock.spark.jobs.spark_mistake import one_line

pytestmark = pytest.mark.xdist_group("spark")


class SourceCase(SparkCase):
    """A case that runs as a data source."""

    def answer(self, streaming: bool = True, **options: Any) -> DataFrame:
        penstock.spark.register(self.spark)
        reader: Any = self.spark.readStream if streaming else self.spark.read
        reader = reader.format("penstock").option("query", self.case.text)
        times = self.case.event_time
        if isinstance(times, str):
            reader = reader.option("eventTime", times)
        for name, stream in self.streams.items():
            reader = reader.option(f"{name}.path", str(self.folder / name))
            if stream.is_static:
                reader = reader.option(f"{name}.static", "true")
            elif not isinstance(times, str):
                reader = reader.option(f"{name}.eventTime", times[name])
        if isinstance(self.case.lateness, int) and not self.graph.by_rows:
            reader = reader.option("watermark", f"{self.case.lateness} MILLISECONDS")
        if streaming:
            reader = reader.option("checkpointLocation", str(self.folder / "checkpoint"))
            reader = reader.option("maxFilesPerTrigger", 1)
        return reader.options(**options).load()  # type: ignore[no-any-return]

    def run(self, cells: int, **options: Any) -> None:
        query = (
            self.answer(cells=str(cells), **options)
            .writeStream.option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(self.folder / "results"), format="parquet")
        )
        query.awaitTermination()


@pytest.mark.parametrize(
    ("features", "cells"),
    [
        (("lateness", "late"), (1, 1)),
        (("self-join", "splits"), (2, 3)),
        (("static", "key types"), (2, 1)),
        (("except", "lateness"), (1, 2)),
        (("group by", "splits"), (1, 1)),
        (("rows", "splits"), (1, 1)),
    ],
    ids=lambda value: "-".join(map(str, value)).replace(" ", "_"),
)
def test_the_oracles_answer_across_restarts_with_other_cells(
    features: tuple[str, ...], cells: tuple[int, int], spark: SparkSession, tmp_path: Path
) -> None:
    case = SourceCase(next(c for c in cases(*features) if len(c.pushes) >= 3), tmp_path, spark)
    case.write(2)
    case.run(cells[0])
    case.write(len(case.case.pushes))
    case.run(cells[1])
    case.check(case.results(), case.expected())


def test_a_bounded_answer(spark: SparkSession, tmp_path: Path) -> None:
    case = SourceCase(next(cases("late", pushes=1, start=100)), tmp_path, spark)
    case.write(1)
    found = case.answer(streaming=False, cells="2").toArrow()
    case.check(found, [row for rows in case.case.expected() for row in rows])


def test_going_back_and_a_copied_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's log is cut back to the first batch; a copy of the checkpoint goes on elsewhere."""
    case = SourceCase(
        next(c for c in cases("lateness", "late") if len(c.pushes) >= 3), tmp_path / "one", spark
    )
    case.write(2)
    case.run(1)
    case.write(len(case.case.pushes))
    oracle = spark_oracle(case.case, case.graph)
    expected = [oracle.push(push) for push in case.case.pushes]
    for name, back in (("copy", 2), ("back", 1)):
        other = SourceCase(case.case, tmp_path / name, spark)
        shutil.copytree(case.folder, other.folder, ignore=shutil.ignore_patterns("results"))
        roll_back(other.folder / "checkpoint", back - 1)
        other.run(1)
        files = (other.folder / "results").glob("part-*")  # Spark's list lacks older batches.
        found = pa.concat_tables([pq.read_table(file) for file in files])
        other.check(found, [row for rows in expected[back:] for row in rows])


def mistake(spark: SparkSession, **options: str) -> str:
    penstock.spark.register(spark)
    with pytest.raises(PySparkException) as raised:
        spark.readStream.format("penstock").options(**options).load()
    return one_line(raised.value)


def test_mistakes_are_told_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    text = "SELECT A.id FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE A.x = B.x"
    assert 'option "query" is missing' in mistake(spark)
    assert "A.path is missing" in mistake(spark, query=text)
    assert "no such folder" in mistake(spark, query=text, **{"A.path": str(tmp_path / "a")})
    assert "did you mean" in mistake(spark, query=text, **{"A.pth": "x"})
    assert "all others late" in mistake(spark, query=text, latestFirst="true")
    schema = {"A.schema": "id BIGINT, ts TIMESTAMP, x INT", "B.schema": "x INT"}
    paths = {"A.path": str(tmp_path), "B.path": str(tmp_path)}
    assert "B" in mistake(spark, query=text, **schema, **paths)
