"""The text of a query is enough, and what becomes of it can be seen."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
import penstock.spark
from penstock.errors import InputError, OptionError

pytestmark = pytest.mark.xdist_group("spark")

TEXT = """SELECT bids.price, auctions.item
    FROM bids [RANGE 1 HOUR], auctions [RANGE 1 HOUR]
    WHERE bids.auction = auctions.id AND bids.price > 10 AND LOWER(auctions.item) = 'atlas'"""


@pytest.fixture
def frames(spark: SparkSession, tmp_path: Path) -> dict[str, DataFrame]:
    """Two streams; each calls its event time in another way."""
    bids = [(1, 5, 100), (1, 20, 200), (2, 30, 300)]
    auctions = [(1, "Atlas", 100), (2, "globe", 200)]
    for name, rows, columns in (
        ("bids", bids, "auction BIGINT, price BIGINT, at BIGINT"),
        ("auctions", auctions, "id BIGINT, item STRING, ts BIGINT"),
    ):
        frame = spark.createDataFrame(rows, columns)
        time = columns.split()[4]
        frame = frame.withColumn(time, frame[time].cast("timestamp"))
        frame.coalesce(1).write.parquet(str(tmp_path / name))
    opened = {
        name: spark.readStream.schema(spark.read.parquet(str(tmp_path / name)).schema).parquet(
            str(tmp_path / name)
        )
        for name in ("bids", "auctions")
    }
    opened["bids"] = opened["bids"].withWatermark("at", "10 seconds")
    opened["auctions"] = opened["auctions"].withWatermark("ts", "1 minute")
    return opened


def test_a_text_and_dataframes_are_enough(
    frames: dict[str, DataFrame], spark: SparkSession, tmp_path: Path
) -> None:
    results = penstock.spark.join(TEXT, frames, cells=2)
    assert penstock.spark.explain(results).splitlines()[:-1] == [
        "query",
        "  SELECT bids.price, auctions.item",
        "  FROM bids [RANGE 1 HOUR], auctions [RANGE 1 HOUR]",
        "  WHERE bids.auction = auctions.id AND bids.price > 10 AND LOWER(auctions.item) = 'atlas'",
        "plan (bids auctions), to begin with; each cell changes it as it pays",
        "2 cells, by bids.auction = auctions.id: each row goes to one of them",
        "source bids by at, late after 10 seconds",
        "  reads auction, price, at",
        "  Spark passes on, of others only the time: bids.price > 10",
        "source auctions by ts, late after 1 minute",
        "  reads id, item, ts",
        "  checked before the shuffle: LOWER(auctions.item) = 'atlas'",
        "in the cells bids.auction = auctions.id",
    ]
    running = (
        results.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "results"), format="parquet")
    )
    running.awaitTermination()
    found = spark.read.parquet(str(tmp_path / "results")).collect()
    assert [row.asDict() for row in found] == [{"price": 20, "item": "Atlas"}]
    (metric,) = running.recentProgress[0].observedMetrics.items()
    assert penstock.spark.explain(results).endswith(f'progress.observedMetrics["{metric[0]}"]')
    numbers = metric[1].asDict()
    assert len(numbers.pop("reports")) == 2
    assert numbers.pop("state_bytes") > 0
    assert numbers.pop("stored_bytes") > 0
    assert numbers.pop("engine_ms") >= 0
    dropped = ("late", "no_event_time", "unreadable")
    assert numbers == {
        "compiled": 2,
        "reference": 0,
        "results": 1,
        "rows.bids": 2,
        "rows.auctions": 1,
        **{f"{reason}.{source}": 0 for reason in dropped for source in frames},
    }


def test_sparks_plan_names_the_operators(frames: dict[str, DataFrame]) -> None:
    output = io.StringIO()
    with redirect_stdout(output):
        penstock.spark.join(TEXT, frames, cells=2).explain()
    plan = output.getvalue()
    assert "penstock_pack_bids(" in plan
    assert "penstock_pack_auctions(" in plan
    assert "CollectMetrics penstock " in plan


def test_batch_frames_and_an_event_time_of_ones_own(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 5), (2, 6)], "id BIGINT, moment BIGINT")
    text = "SELECT A.id FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE A.id = B.id AND A.id = 2"
    for time in ("moment", {"A": "moment", "B": "moment"}):
        results = penstock.spark.join(text, {"A": frame, "B": frame}, event_time=time)
        assert results.collect() == [(2,)]
    explained = penstock.spark.explain(results)
    assert "  Spark filters: A.id = 2" in explained
    assert "never late" in explained
    with pytest.raises(penstock.QueryError, match="needs an event-time column; A has id, moment"):
        penstock.spark.join(text, {"A": frame, "B": frame})


def test_what_cannot_be(frames: dict[str, DataFrame]) -> None:
    with pytest.raises(penstock.QueryError, match="unknown stream people"):
        penstock.spark.join(TEXT.replace("auctions", "people"), frames)
    schemas = {name: penstock.spark.arrow_schema(frame) for name, frame in frames.items()}
    query = penstock.parse(TEXT, schemas, {"bids": "at", "auctions": "ts"})
    with pytest.raises(OptionError, match="event_time belongs to the text"):
        penstock.spark.join(query, frames, event_time="ts")
    with pytest.raises(InputError, match=r"not one that penstock\.spark\.join returned"):
        penstock.spark.explain(frames["bids"])
