"""What cannot be joined is refused before anything runs, in words that help."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
import penstock.spark
from penstock.errors import InputError, OptionError
from penstock.spark.session import PROVIDER

pytestmark = pytest.mark.xdist_group("spark")

TEXT = "SELECT A.id AS a, B.id AS b FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE A.x = B.x"
COLUMNS = "id BIGINT, ts TIMESTAMP, x STRING"


@pytest.fixture(scope="module")
def batch(spark: SparkSession) -> DataFrame:
    moment = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    return spark.createDataFrame([(1, moment, "k"), (2, None, "k"), (3, moment, None)], COLUMNS)


@pytest.fixture(scope="module")
def query(batch: DataFrame) -> penstock.JoinGraph:
    schema = penstock.spark.arrow_schema(batch)
    return penstock.parse(TEXT, schemas={"A": schema, "B": schema})


@pytest.fixture
def stream(spark: SparkSession) -> DataFrame:
    rate = spark.readStream.format("rate").load()
    return rate.selectExpr("value AS id", "timestamp AS ts", "CAST(value AS STRING) AS x")


def test_schemas_of_frames(batch: DataFrame) -> None:
    expected = [("id", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("x", pa.string())]
    assert penstock.spark.arrow_schema(batch).equals(pa.schema(expected))


def test_a_batch_answer(query: penstock.JoinGraph, batch: DataFrame) -> None:
    assert penstock.spark.join(query, {"A": batch, "B": batch}).collect() == [(1, 1)]


def test_missing_and_unknown_frames(query: penstock.JoinGraph, batch: DataFrame) -> None:
    with pytest.raises(InputError, match="the query reads 'B', which has no DataFrame; given: A"):
        penstock.spark.join(query, {"A": batch})
    with pytest.raises(InputError, match="a DataFrame for 'Z', but the query reads: A, B"):
        penstock.spark.join(query, {"A": batch, "B": batch, "Z": batch})


def test_columns_and_types(query: penstock.JoinGraph, batch: DataFrame) -> None:
    with pytest.raises(InputError, match="of B has no column 'x'; its columns are: id, ts"):
        penstock.spark.join(query, {"A": batch, "B": batch.drop("x")})
    numbers = batch.withColumn("x", batch.id)
    with pytest.raises(InputError, match="of B is of type int64, and the query was given string"):
        penstock.spark.join(query, {"A": batch, "B": numbers})
    clock = batch.withColumn("ts", batch.ts.cast("timestamp_ntz"))
    with pytest.raises(InputError, match=r"parse the query with penstock\.spark\.arrow_schema"):
        penstock.spark.join(query, {"A": batch, "B": clock})


def test_types_that_arrow_has_not(query: penstock.JoinGraph, batch: DataFrame) -> None:
    """They may be there, as long as the query does not read them."""
    months = batch.selectExpr("*", "INTERVAL 3 MONTHS AS span")
    schema = penstock.spark.arrow_schema(months)
    schemas = {"A": schema, "B": schema}
    assert schema.names == ["id", "ts", "x"]
    assert penstock.spark.join(query, {"A": months, "B": months}).collect() == [(1, 1)]
    parsed = penstock.parse(TEXT, schemas=schemas)
    assert penstock.spark.join(parsed, {"A": months, "B": months}).collect() == [(1, 1)]
    for text, message in {
        TEXT.replace("A.id", "A.span"): r"A\.span is of type interval month, which Arrow has not",
        TEXT.replace("A.id", "SPAN"): r"A\.span is of type interval month",
        TEXT.replace("A.id AS a", "A.*"): r"\* includes A\.span of type interval month",
    }.items():
        with pytest.raises(penstock.QueryError, match=message):
            penstock.parse(text, schemas=schemas)
    other = penstock.parse(
        TEXT.replace("A.id", "A.span"),
        schemas={name: schema.append(pa.field("span", pa.int64())) for name in schemas},
    )
    with pytest.raises(InputError, match="'span' of the DataFrame of A is of type interval month"):
        penstock.spark.join(other, {"A": months, "B": months})


def test_streams_and_batches(
    query: penstock.JoinGraph, batch: DataFrame, stream: DataFrame
) -> None:
    with pytest.raises(InputError, match="of A is a batch and others are streams"):
        penstock.spark.join(query, {"A": batch, "B": stream})


def test_options(query: penstock.JoinGraph, stream: DataFrame) -> None:
    frames = {"A": stream, "B": stream}
    with pytest.raises(OptionError, match="cells is a number of 1 or more"):
        penstock.spark.join(query, frames, cells=0)
    with pytest.raises(OptionError, match="'soon' is not a duration"):
        penstock.spark.join(query, frames, lateness="soon")
    with pytest.raises(OptionError, match="feedback='no' does not exist"):
        penstock.spark.join(query, frames, feedback="no")


def test_a_session_without_rocksdb(
    query: penstock.JoinGraph, stream: DataFrame, spark: SparkSession
) -> None:
    before = spark.conf.get(PROVIDER)
    spark.conf.unset(PROVIDER)
    try:
        spark.conf.set(PROVIDER, "some.OtherProvider")
        with pytest.raises(OptionError, match=r"some\.OtherProvider, and a streaming join needs"):
            penstock.spark.join(query, {"A": stream, "B": stream})
    finally:
        spark.conf.set(PROVIDER, str(before))


def test_watermarks_of_frames_are_the_lateness(stream: DataFrame) -> None:
    from penstock.spark.rows.watermarks import watermark_delays as _delays

    schema = penstock.spark.arrow_schema(stream)
    query = penstock.parse(TEXT, schemas={"A": schema, "B": schema})
    moving = {s.source: s for s in query.streams}
    delayed = {"A": stream.withWatermark("ts", "7 seconds"), "B": stream}
    assert _delays(query, delayed, moving, None) == {"A": 7_000}
    assert _delays(query, {"A": stream, "B": stream}, moving, None) == {}
    assert _delays(query, delayed, moving, "1 SECOND") == {"A": 1_000, "B": 1_000}
    assert _delays(query, delayed, moving, {"B": 5}) == {"A": 7_000, "B": 5}
    assert _delays(query, delayed, moving, {"A": 1, "B": None}) == {"A": 1}
