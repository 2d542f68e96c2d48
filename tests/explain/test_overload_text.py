"""Too little CPU, in words: since when, what takes it, and whose rows probe."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock import Overload
from penstock.explain.instant_text import instant_text
from penstock.explain.overload_text import overload_text

NOON = 1_772_712_250_123
"""Milliseconds since 1970 of 2026-03-05T12:04:10.123Z."""


def short(event_time: pa.DataType, ticks: int, window: str = "RANGE 10 SECONDS") -> penstock.Engine:
    """An engine that got 20 rows of A and 60 of B at noon, and may make one probe per second."""
    schema = pa.schema([("x", pa.int64()), ("ts", event_time)])
    text = f"SELECT A.x FROM A [{window}], B [{window}], C [{window}] WHERE A.x = B.x AND B.x = C.x"
    query = penstock.parse(text, schemas=dict.fromkeys("ABC", schema))
    engine = penstock.Engine(query, "((A B) C)", overload=Overload("exact", probes=1))
    for source, count in (("A", 20), ("B", 60)):
        times = pa.array([NOON * ticks] * count, pa.int64()).cast(event_time)
        engine.push({source: pa.table([range(count), times], schema=schema)})
    return engine


def first_line(engine: penstock.Engine) -> str:
    return overload_text(engine.metrics()).splitlines()[0]


@pytest.mark.parametrize(
    ("event_time", "ticks"),
    [
        (pa.timestamp("ms", "UTC"), 1),
        (pa.timestamp("us", "Europe/Berlin"), 1_000),
        (pa.timestamp("us"), 1_000),
        (pa.timestamp("ns", "UTC"), 1_000_000),
    ],
    ids=str,
)
def test_timestamps_are_told_by_the_clock(event_time: pa.DataType, ticks: int) -> None:
    told = first_line(short(event_time, ticks))
    assert "exact, SHORT of CPU since 2026-03-05T12:04:10Z, falling behind: the last" in told


def test_integers_are_told_as_they_are() -> None:
    assert f"SHORT of CPU since instant {NOON}, falling" in first_line(short(pa.int64(), 1))


def test_arrivals_are_no_times_though_there_are_timestamps() -> None:
    engine = short(pa.timestamp("ms", "UTC"), 1, "ROWS 100")
    assert engine.metrics()["time_unit"] is None
    assert "SHORT of CPU since instant " in first_line(engine)


def test_an_instant_that_no_calendar_has_is_told_as_it_is() -> None:
    assert instant_text(2**62, "ms") == f"instant {2**62}"
    assert instant_text(-1, "ms") == "1969-12-31T23:59:59Z"


def test_probes_are_told_by_input() -> None:
    engine = short(pa.timestamp("ms", "UTC"), 1)
    (pair, whole) = engine.metrics()["joins"]
    for join in (pair, whole):
        assert sum(join["probes_of"].values()) == join["probes"]
    assert pair["probes_of"].keys() == {"{A}", "{B}"}
    assert whole["probes_of"].keys() == {"{A, B}", "{C}"}
    metrics: dict[str, Any] = engine.metrics()
    metrics["joins"] = [
        pair | {"probes_of": {"{A}": 200, "{B}": 710}},
        whole | {"probes_of": {"{A, B}": 89, "{C}": 1}},
    ]
    lines = overload_text(metrics).splitlines()
    assert "  probes      since this plan runs: of B 71%, of A 20%, of A B 9%" in lines
    metrics["overload"]["short"] = False
    assert "since this plan runs" not in overload_text(metrics)


def test_what_takes_the_most_is_named_first() -> None:
    metrics: dict[str, Any] = short(pa.timestamp("ms", "UTC"), 1).metrics()
    metrics["overload"]["parts"] = {"bookkeeping": 0.1, "rows": 0.3, "probes and results": 0.6}
    first, second = overload_text(metrics).splitlines()[:2]
    assert ", most goes into probes and results (60%): the last push needed work of " in first
    assert second == "  CPU         probes and results 60%, rows 30%, bookkeeping 10%"
