"""Event times that are texts, read by Penstock itself: what Spark makes of them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from penstock.errors import OptionError
from penstock.sources.rate_source import RateSource
from penstock.spark.data_source.text_time_source import TextTimeSource, arrow_format, text_times

pytestmark = pytest.mark.xdist_group("spark")

TEXTS = {
    "dd.MM.yyyy HH:mm:ss": (
        *("01.03.2026 12:00:01", "31.02.2026 00:00:00", "29.02.2024 23:59:59"),
        *("1.03.2026 12:00:01", "00.03.2026 01:02:03"),
        *("01.03.2026 24:00:00", "01.03.2026 12:00", " 01.03.2026 12:00:01", ""),
        *("01.03.2026 12:00:60", "01-03-2026 12:00:01", "01.03.2026 12:00:01Z"),
    ),
    "yyyy-MM-dd'T'HH:mm": ("2026-03-01T12:30", "2026-03-01 12:30", "2026-13-01T12:30"),
    "yyyy/MM/dd": ("2026/03/01", "2026/3/1", "2023/02/29"),
    "iso": (
        *("2026-03-01T12:00:00Z", "2026-03-01 12:00:00.25", "2026-03-01", "soon", ""),
        *("2026-03-01T12:00:00+02:00", "2026-02-30", "2026-03-01T25:00:00", "2026-03-01T12:00"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("pattern", TEXTS)
def test_texts_are_what_spark_makes_of_them(pattern: str, spark: SparkSession) -> None:
    texts = TEXTS[pattern]
    frame = spark.createDataFrame([(text,) for text in texts], "text STRING")
    patterns = () if pattern == "iso" else (sf.lit(pattern),)
    seconds = sf.unix_micros(sf.try_to_timestamp("text", *patterns))
    wanted = {row.text: row.at for row in frame.select("text", seconds.alias("at")).collect()}
    found = text_times(pa.array(texts), pattern).cast(pa.int64()).to_pylist()
    assert dict(zip(texts, found, strict=True)) == wanted
    assert sum(value is not None for value in found) >= 1


@pytest.mark.parametrize(
    "pattern", ["HH:mm:ss", "yyyy-MM-dd HH:mm:ss.SSS", "d.M.yyyy", "MMM dd yyyy"]
)
def test_what_only_spark_reads(pattern: str) -> None:
    assert arrow_format(pattern) is None


def test_a_time_that_is_no_text() -> None:
    with pytest.raises(OptionError, match="is for an event time that is a text; timestamp is"):
        TextTimeSource(RateSource("A", 1), "timestamp", "iso")
