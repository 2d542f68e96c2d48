"""Spark's rules for time against the oracle: delays by source, none at all, policies, idle."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.engine.push.lateness import Lateness
from penstock.engine.state.clock import START
from penstock.testing import Case, Knobs, Oracle, generate
from penstock.testing.compare import assert_same_rows
from penstock.testing.time_rules import with_time_rules

KNOBS = Knobs(streams=(2, 3)).without(["rows", "partition", "no event time", "watermark"])
BLOCK = 15


def case_of(seed: int) -> Case:
    return with_time_rules(generate(seed, KNOBS), random.Random(seed))


def engine_of(case: Case, **options: Any) -> penstock.Engine:
    return penstock.Engine(
        case.graph(),
        plan=case.plan,
        lateness=case.lateness,
        idle=case.idle,
        watermark_policy=case.policy,
        **options,
    )


@pytest.mark.parametrize("start", range(0, 120, BLOCK))
@pytest.mark.parametrize("feedback", ["jit", "off"])
def test_the_oracles_answer_under_random_rules(start: int, feedback: str) -> None:
    """Push by push, with late rows counted by source, also across restarts."""
    for seed in range(start, start + BLOCK):
        case = case_of(seed)
        graph, chance = case.graph(), random.Random(seed)
        oracle, engine = case.oracle(graph), engine_of(case, feedback=feedback)
        for number, batches in enumerate(case.pushes):
            if chance.random() < 0.2:
                engine = penstock.Engine.restore(graph, engine.checkpoint())
            found, expected = engine.push(batches), oracle.push(batches)
            where = f"seed {seed}, push {number}\n{case}"
            assert_same_rows(found, expected, graph, instants=oracle.instants, context=where)
            sources = engine.metrics()["sources"]
            assert {s: each["late"] for s, each in sources.items()} == oracle.late, where
        found, expected = engine.finish(), oracle.finish()
        assert_same_rows(found, expected, graph, instants=oracle.instants, context=f"{seed}")


def test_the_rules_that_are_drawn_are_all_there() -> None:
    cases = [case_of(seed) for seed in range(120)]
    late = 0
    for case in cases[:40]:
        oracle = case.oracle()
        for push in case.pushes:
            oracle.take(push)
            oracle.push({})
        late += sum(oracle.late.values()) > 0
    assert late > 5
    assert {case.policy for case in cases} == {"min", "max"}
    assert any(case.idle is not None for case in cases)
    assert any(not case.lateness for case in cases)
    assert any(case.lateness and len(case.lateness) < len(case.schemas) for case in cases)  # type: ignore[arg-type]


SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("x", pa.int64())])
QUERY = penstock.parse(
    "SELECT A.id AS a, B.id AS b FROM A [RANGE 3 SECONDS], B [RANGE 3 SECONDS] WHERE A.x = B.x",
    schemas={"A": SCHEMA, "B": SCHEMA},
)


def rows(*times: int) -> pa.Table:
    columns = [list(range(len(times))), list(times), [1] * len(times)]
    return pa.table([pa.array(c, pa.int64()) for c in columns], schema=SCHEMA)


def test_with_no_delays_nothing_is_late_and_nothing_goes() -> None:
    engine, oracle = penstock.Engine(QUERY, lateness={}), Oracle(QUERY, {})
    pushes = [
        {"A": rows(10_000, 20_000), "B": rows(20_000)},
        {"A": rows(1_000), "B": rows(500, 8_500)},
    ]
    found = [engine.push(push).num_rows for push in pushes]
    assert found == [len(oracle.push(push)) for push in pushes] == [1, 2]
    assert engine.metrics()["late"] == 0
    assert engine.watermark is None
    assert engine.metrics()["state"]["windows"]["A"]["rows"] == 3


def test_a_source_without_a_delay_is_never_late_and_moves_nothing() -> None:
    engine = penstock.Engine(QUERY, lateness={"A": "1 SECOND"})
    engine.push({"A": rows(10_000), "B": rows(90_000)})
    assert engine.watermark is None
    found = engine.push({"A": rows(8_999, 9_000), "B": rows(7_000, 2_000)})
    sources = engine.metrics()["sources"]
    assert (sources["A"]["late"], sources["B"]["late"]) == (1, 0)
    assert found.num_rows == 2  # 9000 and 10000 of A with 7000 of B.


def test_the_watermark_of_the_note() -> None:
    three = Lateness({"A": 5, "B": 2, "C": 0}, ("A", "B", "C"))
    assert three.watermark({"A": 10, "B": 9}) == START
    assert three.watermark({"A": 10, "B": 9, "C": 6}) == 5
    assert three.waits_for({"A": 100, "B": 9, "C": 60}) == {"B": 91}
    assert three.waits_for({"A": 100, "C": 60}) == {"B": None}
    assert three.waits_for({"A": 7, "B": 7, "C": 7}) == {}
    largest = Lateness({"A": 5, "B": 2}, ("A", "B"), policy="max")
    assert largest.watermark({"A": 10}) == 5
    assert largest.watermark({"A": 10, "B": 9}) == 7
    idle = Lateness({"A": 1, "B": 1}, ("A", "B"), idle=20)
    assert idle.watermark({"A": 100}) == 79
    assert idle.watermark({"A": 100, "B": 90}) == 89


def test_a_lateness_for_no_stream_is_refused() -> None:
    with pytest.raises(penstock.PenstockError, match="'C', which is no stream; streams are: A, B"):
        penstock.Engine(QUERY, lateness={"C": 5})
    with pytest.raises(penstock.PenstockError, match="watermark_policy='most' does not exist"):
        penstock.Engine(QUERY, watermark_policy="most")


def test_the_first_row_out_of_order_is_told_once() -> None:
    engine = penstock.Engine(QUERY)
    engine.push({"A": rows(10_000), "B": rows(9_000)})
    with pytest.warns(penstock.PenstockWarning, match=r"A is out of order: 2 .* 4,000 ms.*=4000"):
        engine.push({"A": rows(5_000, 8_999, 9_000)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.push({"A": rows(5_000)})
        declared = penstock.Engine(QUERY, lateness=0)
        declared.push({"A": rows(10_000), "B": rows(9_000)})
        declared.push({"A": rows(5_000)})
    assert engine.metrics()["late"] == 3


def test_dropped_rows_can_be_had() -> None:
    engine = penstock.Engine(QUERY, lateness=1_000, keep_dropped=True)
    engine.push({"A": rows(10_000), "B": rows(9_000)})
    assert engine.drain_dropped() == []
    timeless = pa.table([[7], pa.array([None], pa.int64()), [1]], schema=SCHEMA)
    engine.push({"A": pa.concat_tables([rows(5_000, 8_000), timeless]), "B": rows(7_999)})
    found = engine.drain_dropped()
    told = [(d.source, d.reason, d.rows.column("ts").to_pylist(), d.watermark) for d in found]
    assert told == [
        ("A", "late", [5_000], 8_000),
        ("A", "no event time", [None], None),
        ("B", "late", [7_999], 8_000),
    ]
    assert found[1].rows.column("id").to_pylist() == [7]
    assert engine.drain_dropped() == []
    assert engine.metrics()["sources"]["A"] == {
        "rows": 4,
        "late": 1,
        "null_time": 1,
        "ahead": 0,
        "filtered": 0,
        "shed": 0,
    }
