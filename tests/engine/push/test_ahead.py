"""Rows far ahead of their arrival do not move the clock: set aside, counted, kept."""

from __future__ import annotations

import datetime
import warnings
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.engine.push.ahead import AHEAD
from penstock.errors import CheckpointError, OptionError, PenstockWarning

CENTURY = 100 * 365 * 86_400_000


def query(type_: pa.DataType, text: str = "SELECT RSTREAM") -> penstock.JoinGraph:
    schema = pa.schema([("ts", type_), ("x", pa.int64())])
    return penstock.parse(
        f"{text} A.x AS a, B.x AS b FROM A [RANGE 1 MINUTE], B [RANGE 1 MINUTE] WHERE A.x = B.x",
        dict.fromkeys("AB", schema),
    )


def rows(type_: pa.DataType, *times: int | None) -> pa.Table:
    """Times in milliseconds."""
    unit = {"s": 0.001, "ms": 1, "us": 1_000, "ns": 1_000_000}[getattr(type_, "unit", "ms")]
    ticks = [None if each is None else int(each * unit) for each in times]
    column = pa.array(ticks, pa.int64()).cast(type_)
    return pa.table({"ts": column, "x": pa.array([1] * len(times), pa.int64())})


@pytest.mark.parametrize(
    "type_",
    [pa.int64(), pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.timestamp("ms")],
    ids=str,
)
def test_a_row_a_century_ahead_poisons_nothing(type_: pa.DataType) -> None:
    now = 1_700_000_000_000
    engine = penstock.Engine(query(type_), max_ahead="1 HOUR", keep_dropped=True)
    both = rows(type_, now, now + 1_000)
    assert engine.push({"A": both, "B": both}, arrived=now).num_rows == 4
    poisoned = rows(type_, None, now + 2_000, now + CENTURY)
    with pytest.warns(PenstockWarning, match="ahead of their arrival"):
        answer = engine.push({"A": poisoned, "B": poisoned}, arrived=now)
    assert answer.num_rows == 9
    assert engine.push({"A": rows(type_, now + 3_000)}, arrived=now).num_rows == 12
    metrics = engine.metrics()
    assert (metrics["ahead"], metrics["late"], metrics["null_time"]) == (2, 0, 2)
    assert metrics["sources"]["A"]["ahead"] == 1
    dropped = [each for each in engine.drain_dropped() if each.reason == AHEAD]
    assert [(each.source, each.rows.num_rows) for each in dropped] == [("A", 1), ("B", 1)]
    restored = penstock.Engine.restore(query(type_), engine.checkpoint())
    assert restored.options.max_ahead == 3_600_000
    assert restored.metrics()["ahead"] == 2


def test_without_it_one_row_poisons_the_clock() -> None:
    engine = penstock.Engine(query(pa.int64()))
    engine.push({"A": rows(pa.int64(), 0), "B": rows(pa.int64(), 0)})
    assert engine.push({"A": rows(pa.int64(), CENTURY)}).num_rows == 0


def test_by_source_and_by_the_clock_of_this_machine() -> None:
    now = int(1000 * datetime.datetime.now(datetime.UTC).timestamp())
    engine = penstock.Engine(query(pa.int64(), "SELECT"), max_ahead={"A": 3_600_000})
    with pytest.warns(PenstockWarning):
        engine.push({"A": rows(pa.int64(), now, now + CENTURY)})
    assert engine.metrics()["sources"]["A"]["ahead"] == 1
    engine.push({"B": rows(pa.int64(), now + CENTURY)})
    assert engine.metrics()["sources"]["B"]["ahead"] == 0


@pytest.mark.parametrize("wrong", [{"C": 5}, -1, "soon", {"A": "soon"}])
def test_mistakes(wrong: Any) -> None:
    with pytest.raises(OptionError, match="max_ahead"):
        penstock.Engine(query(pa.int64()), max_ahead=wrong)


@pytest.mark.parametrize("text", ["SELECT", "SELECT RSTREAM", "SELECT DSTREAM"])
@pytest.mark.parametrize("lateness", [None, 10_000])
def test_a_poisoned_query_is_brought_back(text: str, lateness: int | None) -> None:
    kind = pa.int64()
    engine = penstock.Engine(query(kind, text), lateness=lateness)
    engine.push({"A": rows(kind, 1_000), "B": rows(kind, 1_000)})
    engine.push({"A": rows(kind, CENTURY), "B": rows(kind, CENTURY)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PenstockWarning)
        engine.push({"A": rows(kind, 2_000)})
    assert engine.metrics()["late"] == 1
    back = penstock.Engine.restore(query(kind, text), engine.checkpoint(), until=2_000)
    fresh = penstock.Engine(query(kind, text), lateness=lateness)
    for push in ({"A": rows(kind, 3_000), "B": rows(kind, 3_000)}, {"B": rows(kind, 4_000)}):
        assert back.push(push).to_pylist() == fresh.push(push).to_pylist()
    assert back.metrics()["late"] == 1
    late = {"A": rows(kind, 90_000), "B": rows(kind, 90_000)}
    assert back.push(late).to_pylist() == fresh.push(late).to_pylist()


def test_what_cannot_be_cut_says_so() -> None:
    schema = pa.schema([("ts", pa.int64()), ("x", pa.int64())])
    graph = penstock.parse(
        "SELECT A.x AS x FROM A [ROWS 5], B [ROWS 5] WHERE A.x = B.x", dict.fromkeys("AB", schema)
    )
    engine = penstock.Engine(graph)
    engine.push({"A": rows(pa.int64(), 1)})
    with pytest.raises(CheckpointError, match="cannot be cut"):
        penstock.Engine.restore(graph, engine.checkpoint(), until=5)
