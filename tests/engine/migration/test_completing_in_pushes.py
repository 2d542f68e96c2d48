"""After a change of plan, what is missing is completed in the middle of compiled pushes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock
from penstock.engine.compiled.plain_answer import PlainAnswer

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "x", "y", "ts")])
TEXT = (
    "SELECT A.id AS a, B.id AS b, C.id AS c, D.id AS d FROM A [RANGE 9 SECONDS], "
    "B [RANGE 9 SECONDS], C [RANGE 9 SECONDS], D [RANGE 9 SECONDS] "
    "WHERE A.x = B.x AND A.y = C.y AND C.x = D.x"
)
PLANS = ["(((A B) C) D)", "(((A C) B) D)", "(((A C) D) B)", "(((C D) A) B)"]
PLANS += ["((A B) (C D))", "((A C) B D)", "(A (B (C D)))", "((A C) (B D))"]


def engine_for(plan: str, execution: str = "auto") -> penstock.Engine:
    query = penstock.parse(TEXT, dict.fromkeys("ABCD", SCHEMA))
    return penstock.Engine(query, plan=plan, feedback="off", execution=execution)


def batches(seed: int, number: int, streams: str = "ABCD") -> dict[str, pa.RecordBatch]:
    chance, clock = np.random.default_rng([seed, number]), np.arange(30) + number * 30
    return {
        name: pa.record_batch(
            [clock, chance.integers(0, 20, 30), chance.integers(0, 20, 30), clock], schema=SCHEMA
        )
        for name in streams
    }


def answer(engine: penstock.Engine, push: dict[str, pa.RecordBatch]) -> list[tuple[int, ...]]:
    table = engine.push(push)
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def accounts(engine: penstock.Engine) -> tuple[list[int], list[Any]]:
    """What was completed, and what joins have counted."""
    joins = engine.metrics()["joins"]
    counts = [(each["made"], each["probes"], each["matches"]) for each in joins]
    return [each.completed for each in engine.trees[0].missing], counts


@settings(max_examples=25)
@given(
    st.integers(0, 99),
    st.lists(st.sampled_from(PLANS), min_size=1, max_size=4),
    st.integers(0, 8),
    st.sampled_from(["ABCD", "AB", "D", "BD"]),
)
def test_it_makes_no_difference(seed: int, plans: list[str], fails: int, streams: str) -> None:
    compiled, step_by_step = engine_for(PLANS[0]), engine_for(PLANS[0], "reference")
    number = 0
    for plan in plans:
        compiled.migrate(plan, strategy="jisc")
        step_by_step.migrate(plan, strategy="jisc")
        for given_streams in ("ABCD", streams):
            push = batches(seed, number, given_streams)
            if number == fails:
                _fail_to(compiled, push)
            found = answer(compiled, push)
            assert answer(step_by_step, push) == found
            assert accounts(step_by_step) == accounts(compiled)
            number += 1
    assert compiled.metrics()["execution"]["reference"] == 0


def _fail_to(engine: penstock.Engine, push: dict[str, pa.RecordBatch]) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(engine._join.output), "stage", fail)
        patch.setattr(PlainAnswer, "table", fail)
        with pytest.raises(ZeroDivisionError):
            engine.push(push)


def test_small_states_on_top_of_each_other_are_soon_complete() -> None:
    """Each is made of the one below: as soon as that has all, in the same push."""
    streams = [f"S{number}" for number in range(9)]
    equal = " AND ".join(f"S0.x = {each}.x" for each in streams[1:])
    sources = ", ".join(f"{each} [RANGE 300 MILLISECONDS]" for each in streams)
    query = penstock.parse(
        f"SELECT S0.id AS a, S8.id AS b FROM {sources} WHERE {equal}",
        dict.fromkeys(streams, SCHEMA),
    )

    def left_deep(order: list[str]) -> str:
        tree = order[0]
        for each in order[1:]:
            tree = f"({tree} {each})"
        return tree

    def push(engine: penstock.Engine, number: int) -> list[tuple[int, ...]]:
        chance, clock = np.random.default_rng(number), np.arange(100) + number * 100
        values = [chance.integers(0, 300, 100) for _ in streams]
        rows = [pa.record_batch([clock, x, x, clock], schema=SCHEMA) for x in values]
        return answer(engine, dict(zip(streams, rows, strict=True)))

    engine, other = [
        penstock.Engine(query, plan=left_deep(streams), feedback="off") for _ in range(2)
    ]
    for number in range(4):
        assert push(engine, number) == push(other, number)
    engine.migrate(left_deep(streams[::-1]), strategy="jisc")
    assert len(engine.trees[0].missing) == 7
    for number in range(4, 6):
        assert push(engine, number) == push(other, number)
    assert not engine.trees[0].missing
    for number in range(6, 9):
        assert push(engine, number) == push(other, number)
