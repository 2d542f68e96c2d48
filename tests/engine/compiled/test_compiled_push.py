"""A push in one call: when room runs out, when it fails, and what it is not for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock
from penstock.engine.compiled import compiled_push
from penstock.engine.compiled.compiled_push import CompiledPush
from penstock.engine.join.workspace import WORKSPACE
from penstock.kernels import guards as kernel

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "x", "y", "ts")])
TEXT = (
    "SELECT A.id AS a, B.id AS b, C.id AS c FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS], "
    "C [RANGE 9 SECONDS] WHERE A.x = B.x AND A.y = C.y"
)
ALWAYS = penstock.Feedback(adaptive=False)


def batches(seed: int, count: int, xs: int, ys: int) -> dict[str, pa.RecordBatch]:
    random = np.random.default_rng(seed)
    clock = np.arange(count) + seed * count
    return {
        name: pa.record_batch(
            [clock, random.integers(0, xs, count), random.integers(0, ys, count), clock],
            schema=SCHEMA,
        )
        for name in "ABC"
    }


def engine_for(feedback: Any = ALWAYS, plan: str = "((A B) C)") -> penstock.Engine:
    return penstock.Engine(
        penstock.parse(TEXT, dict.fromkeys("ABC", SCHEMA)), plan=plan, feedback=feedback
    )


def answer(engine: penstock.Engine, push: dict[str, pa.RecordBatch]) -> list[tuple[int, ...]]:
    table = engine.push(push)
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.fixture
def lacked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What calls were short of."""
    seen: list[int] = []
    make_room = CompiledPush._make_room

    def note(self: CompiledPush, lacking: int) -> None:
        seen.append(lacking)
        make_room(self, lacking)

    monkeypatch.setattr(CompiledPush, "_make_room", note)
    return seen


@pytest.mark.parametrize("feedback", ["off", ALWAYS])
def test_a_push_goes_on_where_room_ran_out(
    feedback: Any, lacked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few values: every ring, the working space and the table of results are too small at first."""
    pushes = [batches(seed, 300, 20, 300) for seed in range(3)]
    monkeypatch.setattr(compiled_push, "_LARGE_ANSWER", 100)
    WORKSPACE.reserve(200)
    engine = engine_for(feedback)
    found = [answer(engine, push) for push in pushes]
    assert {kernel.RING_LACKS, kernel.WORK_LACKS, kernel.RESULTS_LACK} <= set(lacked)
    monkeypatch.setattr(CompiledPush, "why_not", lambda edges: "told so")
    general = engine_for(feedback)
    assert found == [answer(general, push) for push in pushes]
    assert _counts(engine) == _counts(general)


def _counts(engine: penstock.Engine) -> list[Any]:
    metrics = engine.metrics()
    joins = [(join["made"], join["probes"], join["matches"]) for join in metrics["joins"]]
    return [joins, metrics["feedback"], metrics["results"]]


def test_a_crowd_is_woken_in_several_turns() -> None:
    """More rows wait for one value than are let in at a time."""
    count = 10_000
    clock = np.arange(count)
    same = pa.record_batch([clock, clock, np.ones(count, np.int64), clock // 8], schema=SCHEMA)
    engine = engine_for()
    engine.push({"C": batches(0, 1, 1, 1)["C"]})
    assert engine.push({"A": same, "B": same}).num_rows == 0
    late = pa.record_batch([[5], [0], [1], [2_000]], schema=SCHEMA)
    assert engine.push({"C": late}).num_rows == count
    assert engine.metrics()["feedback"]["asleep"] == 0


@settings(max_examples=20)
@given(st.integers(0, 99), st.integers(1, 5), st.sampled_from(["off", ALWAYS]))
def test_a_failed_push_leaves_no_trace(seed: int, fails: int, feedback: Any) -> None:
    engine, untouched = engine_for(feedback), engine_for(feedback)
    for number in range(6):
        push = batches(seed + number, 30, 5, 8)
        if number == fails:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(type(engine._join.output), "stage", _fail)
                with pytest.raises(ZeroDivisionError):
                    engine.push(push)
        assert answer(engine, push) == answer(untouched, push)
        assert _counts(engine) == _counts(untouched)


def _fail(*_: Any) -> None:
    raise ZeroDivisionError


def test_no_room_at_all_is_a_failed_push_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, untouched = engine_for(), engine_for()
    push = batches(1, 300, 20, 300)
    with monkeypatch.context() as patch:
        patch.setattr(CompiledPush, "_make_room", _fail)
        with pytest.raises(ZeroDivisionError):
            engine.push(push)
    assert answer(engine, push) == answer(untouched, push)


def test_what_is_out_of_the_ordinary_goes_edge_by_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []
    run = CompiledPush._push

    def note(self: CompiledPush, *arguments: Any) -> None:
        made.append(True)
        run(self, *arguments)

    monkeypatch.setattr(CompiledPush, "_push", note)
    push = batches(1, 30, 5, 8)
    engine_for().push(push)
    assert made == [True]
    engine_for(penstock.Feedback(adaptive=False, record=True)).push(push)
    assert made == [True]
    engine_for(penstock.Feedback(adaptive=False, detection="bloom")).push(push)
    assert made == [True, True]
    times = push["A"].column("ts").to_numpy() * 1_000
    spread = {name: batch.set_column(3, "ts", pa.array(times)) for name, batch in push.items()}
    engine_for().push(spread)  # It spans much of a window, which is nothing special.
    assert made == [True, True, True]


def test_time_is_told_by_operator() -> None:
    engine = engine_for()
    for seed in range(4):
        engine.push(batches(seed, 300, 20, 300))
    joins = engine.metrics()["joins"]
    assert all(join["seconds"] > 0 for join in joins)
