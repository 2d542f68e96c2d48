"""After a change of plan, what a push is going to ask for is completed before it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock
from penstock.engine.compiled.compiled_push import CompiledPush
from penstock.engine.compiled.plain_answer import PlainAnswer
from penstock.engine.tree.join_tree import JoinTree

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "x", "y", "ts")])
TEXT = (
    "SELECT A.id AS a, B.id AS b, C.id AS c, D.id AS d FROM A [RANGE 9 SECONDS], "
    "B [RANGE 9 SECONDS], C [RANGE 9 SECONDS], D [RANGE 9 SECONDS] "
    "WHERE A.x = B.x AND A.y = C.y AND C.x = D.x"
)
LEFT_DEEP = ["(((A B) C) D)", "(((A C) B) D)", "(((A C) D) B)", "(((C D) A) B)"]


def engine_for(plan: str) -> penstock.Engine:
    return penstock.Engine(
        penstock.parse(TEXT, dict.fromkeys("ABCD", SCHEMA)), plan=plan, feedback="off"
    )


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
    st.lists(st.sampled_from(LEFT_DEEP), min_size=1, max_size=4),
    st.integers(0, 8),
    st.sampled_from(["ABCD", "AB", "D", "BD"]),
)
def test_it_makes_no_difference(seed: int, plans: list[str], fails: int, streams: str) -> None:
    ahead, edge_by_edge, number = engine_for(LEFT_DEEP[0]), engine_for(LEFT_DEEP[0]), 0
    for plan in plans:
        ahead.migrate(plan)
        with _edge_by_edge():
            edge_by_edge.migrate(plan)
        for given_streams in ("ABCD", streams):
            push = batches(seed, number, given_streams)
            if number == fails:
                _fail_to(ahead, push)
            found = answer(ahead, push)
            with _edge_by_edge():
                assert answer(edge_by_edge, push) == found
            assert accounts(edge_by_edge) == accounts(ahead)
            number += 1


@contextmanager
def _edge_by_edge() -> Iterator[None]:
    """Nobody knows who is going to ask, if anything is missing."""

    def find(tree: JoinTree) -> list[Any] | None:
        return None if any(edge.source.missing is not None for edge in tree.edges) else []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JoinTree, "_find_askers", find)
        yield


def _fail_to(engine: penstock.Engine, push: dict[str, pa.RecordBatch]) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(engine._join.output), "stage", fail)
        patch.setattr(PlainAnswer, "table", fail)
        with pytest.raises(ZeroDivisionError):
            engine.push(push)


@pytest.mark.parametrize(
    ("plan", "is_compiled"),
    [("(((A C) B) D)", True), ("((A C) B D)", True), ("((A B) (C D))", False)],
)
def test_a_push_after_a_change_is_one_call_if_only_windows_ask(
    plan: str, is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_for("(((A B) C) D)")
    for number in range(3):
        engine.push(batches(1, number))
    engine.migrate(plan)
    calls: list[Any] = []
    run = CompiledPush.run

    def note(self: CompiledPush, *given: Any) -> Any:
        calls.append(given)
        return run(self, *given)

    monkeypatch.setattr(CompiledPush, "run", note)
    assert engine.trees[0].missing
    engine.push(batches(1, 3))
    assert bool(calls) == is_compiled
