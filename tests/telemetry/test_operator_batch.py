"""What operators did between two looks at an engine: sums agree with the engine's own counts."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.engine.tree import tree_completion
from penstock.telemetry.events import Batch, from_json, to_json
from penstock.telemetry.operator_batch import (
    MOST_PLANS,
    OperatorBatch,
    in_all_cells,
    operator_batches,
)

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.int64()), ("ts", pa.int64())])
TEXT = """SELECT a.id AS a, b.id AS b, C.id AS c
FROM A [RANGE 1 SECOND] AS a, A [RANGE 1 SECOND] AS b, C [RANGE 1 SECOND]
WHERE a.x = b.x AND b.x = C.x"""


def run() -> tuple[list[tuple[OperatorBatch, ...]], dict[str, Any]]:
    query = penstock.parse(TEXT, schemas={"A": SCHEMA, "C": SCHEMA})
    engine = penstock.Engine(query, plan="((a b) C)", feedback="off")
    found = []
    before = engine.metrics()
    for step in range(6):
        rows = pa.table({"id": [step] * 4, "x": [0, 1, 2, 3], "ts": [step * 100] * 4})
        engine.push({"A": rows, "C": rows.slice(0, 1)})
        after = engine.metrics()
        found.append(operator_batches(str(engine.plan), before, after))
        before = after
    return found, before


def test_counts_of_batches_add_up_to_those_of_the_engine() -> None:
    batches, metrics = run()
    for place, streams in ((0, "{a}"), (1, "{b}"), (2, "{C}")):
        assert {batch[place].streams for batch in batches} == {streams}
    assert sum(batch[0].made for batch in batches) == metrics["sources"]["A"]["rows"] == 24
    assert sum(batch[2].made for batch in batches) == 6
    for join in metrics["joins"]:
        mine = [each for batch in batches for each in batch if each.streams == join["streams"]]
        for name in ("made", "probes", "matches"):
            assert sum(getattr(each, name) for each in mine) == join[name]
    state = next(each for each in batches[-1] if each.streams == "{a, b}")
    assert state.rows == metrics["state"]["joins"]["{a, b}"]["rows"] > 0
    assert state.completion == 1.0


def test_a_count_that_began_again_is_new() -> None:
    _, metrics = run()
    again = operator_batches("((a b) C)", metrics, metrics | {"joins": [metrics["joins"][0]]})
    assert all(each.made == 0 for each in again)
    smaller = [each | {"made": 1} for each in metrics["joins"]]
    fresh = operator_batches("((a b) C)", metrics, metrics | {"joins": smaller})
    assert [each.made for each in fresh if "," in each.streams] == [1, 1]


def test_overload_is_told_where_the_engine_tells_it() -> None:
    _, metrics = run()
    short = metrics | {"overload": {"shares": {"{a}": 0.25}, "staleness": {"C": 3.5}}}
    found = {each.streams: each for each in operator_batches("((a b) C)", metrics, short)}
    assert (found["{a}"].allowance, found["{C}"].allowance) == (0.25, 1.0)
    assert (found["{a}"].staleness, found["{C}"].staleness) == (0.0, 3.5)
    other = dataclasses.replace(found["{a}"], allowance=0.75, staleness=9.0)
    (both,) = in_all_cells([found["{a}"], other])
    assert (both.allowance, both.staleness) == (0.5, 9.0)


def test_completion_after_a_change_of_plan_goes_up_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_completion, "_ROWS_WORTH_COMPLETING", 1 << 30)  # Nothing beside.
    query = penstock.parse(TEXT, schemas={"A": SCHEMA, "C": SCHEMA})
    engine = penstock.Engine(query, plan="((a b) C)", feedback="off")
    rows = pa.table({"id": range(100), "x": range(100), "ts": [0] * 100})
    engine.push({"A": rows, "C": rows})
    engine.migrate("((b C) a)", strategy="jisc")
    found = []
    for step in range(3):
        some = rows.slice(30 * step, 30).set_column(2, "ts", pa.array([10 + step] * 30))
        engine.push({"A": some, "C": some})
        found.append(engine.metrics()["state"]["joins"]["{C, b}"]["completion"])
    assert 0.0 < found[0] < found[1] < found[2] < 1.0
    late = rows.set_column(2, "ts", pa.array([5_000] * 100))
    engine.push({"A": late, "C": late})
    assert engine.metrics()["state"]["joins"]["{C, b}"]["completion"] == 1.0


def test_cells_add_up_by_plan() -> None:
    one = OperatorBatch("(A B)", "{A}", rows=1, made=2, completion=1.0)
    other = dataclasses.replace(one, rows=5, completion=0.5)
    rare = dataclasses.replace(one, plan="(B A)")
    summed = in_all_cells([rare, one, other])
    assert summed == (
        dataclasses.replace(one, cells=2, rows=6, made=4, completion=0.75),
        rare,
    )
    many = in_all_cells(OperatorBatch(f"plan {n}", "{A}") for n in range(3 * MOST_PLANS))
    assert len(many) == MOST_PLANS


def test_json_both_ways() -> None:
    batch = Batch("t", "r", 0, 1.0, {}, 0, {}, 0, 0, 0.0)
    batch = dataclasses.replace(batch, operators=(OperatorBatch("(A B)", "{A}", rows=3),))
    assert from_json(to_json(batch)) == batch
