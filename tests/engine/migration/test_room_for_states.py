"""A state that a change of plan has to fill has room for all of it before the change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock
from penstock.engine.migration import preparation
from penstock.engine.tree import join_tree
from penstock.engine.tree.expected_rows import expected_rows
from penstock.engine.tree.join_tree import JoinTree
from penstock.plan.notation import read
from penstock.plan.stream_set import StreamSet

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
STREAMS = "ABCD"


def engine_for(plan: str, span: int, lateness: int | None = None, **more: Any) -> penstock.Engine:
    sources = ", ".join(f"{name} [RANGE {span} MILLISECONDS]" for name in STREAMS)
    query = penstock.parse(
        f"SELECT A.id AS a, B.id AS b, C.id AS c, D.id AS d FROM {sources} "
        "WHERE A.x = B.x AND A.y = C.y AND C.x = D.x",
        dict.fromkeys(STREAMS, SCHEMA),
    )
    return penstock.Engine(query, plan=plan, feedback="off", lateness=lateness, **more)


def batch(chance: np.random.Generator, start: int, rows: int, keys: int) -> dict[str, pa.Table]:
    times = np.arange(start, start + rows)
    return {
        name: pa.table([times, times, *chance.integers(0, keys, (2, rows))], schema=SCHEMA)
        for name in STREAMS
    }


def same(one: pa.Table, other: pa.Table) -> bool:
    order = [(name, "ascending") for name in one.column_names]
    return bool(one.sort_by(order).equals(other.sort_by(order)))


# -- how much is expected -----------------------------------------------------------------------


@pytest.mark.parametrize("keys", [1_000, 2_500, 8_000])
def test_samples_tell_how_large_states_will_be(keys: int) -> None:
    """Both states of a left-deep plan, which another plan has by the same rows."""
    chance = np.random.default_rng(keys)
    engines = [engine_for(plan, 10**6) for plan in ("(A B C D)", "(((A C) D) B)")]
    push = batch(chance, 0, 4_000, keys)
    for engine in engines:
        engine.push(push)
    flat, filled = (engine.trees[0] for engine in engines)
    tree = flat.successor(read("(((A C) D) B)").root, {}, in_steps=True)
    while not tree.operators or tree.operators[-1].streams != tree.root.streams:
        assert tree.build()
    sizes = {state.streams: len(state.rows) for state in filled.states}
    edges = [edge for edge in tree.edges if edge.streams in sizes]
    assert len(edges) == 2
    for edge in edges:
        assert expected_rows(edge) == pytest.approx(sizes[edge.streams], rel=0.4)


def test_nothing_is_expected_where_samples_cannot_tell() -> None:
    """A join of two states that are both to be filled; and windows that share no value."""
    engine = engine_for("(A B C D)", 10**6)
    push = batch(np.random.default_rng(1), 0, 1_000, 50)
    push["B"] = push["B"].set_column(2, "x", pa.array(np.arange(5_000, 6_000)))
    engine.push(push)
    expected: dict[StreamSet, int] = {}
    for plan in ("(((A B) C) D)", "((A B) (C D))"):
        tree = engine.trees[0].successor(read(plan).root, {}, in_steps=True)
        while tree.build():
            pass
        assert not any(tree._counts)  # Samples are nobody's probes.
        expected |= {edge.streams: expected_rows(edge) for edge in tree.edges if edge.producer}
        tree.dispose()
    sizes = {"".join(sorted(streams)): rows for streams, rows in expected.items()}
    assert sizes["AB"] == sizes["ABC"] == 0
    assert sizes["CD"] > 0


# -- room for it --------------------------------------------------------------------------------


def changed_in_steps(engine: penstock.Engine, plan: str, push: Any) -> JoinTree:
    engine.migrate(plan)
    for _ in range(400):
        if str(engine.running_plan) == plan:
            return engine.trees[0]
        push()
    raise AssertionError("the change was never made")


def pushing_to(
    engine: penstock.Engine, other: penstock.Engine, seed: int, domain: int, usual: int
) -> Callable[..., None]:
    """Pushes so many rows, or as many as ``usual``, to both, whose answers must be the same."""
    chance, clock = np.random.default_rng(seed), 0

    def push(rows: int = usual) -> None:
        nonlocal clock
        pushed = batch(chance, clock, rows, domain)
        clock += rows
        assert same(engine.push(pushed), other.push(pushed))

    return push


@pytest.mark.parametrize("plan", ["(((A C) B) D)", "(((A C) D) B)"])
def test_a_state_does_not_move_while_it_is_completed(plan: str) -> None:
    engine, other = (engine_for("(((A B) C) D)", 12_000) for _ in range(2))
    push = pushing_to(engine, other, seed=5, domain=12_000, usual=200)
    for _ in range(15):
        push(1_000)
    tree = changed_in_steps(engine, plan, push)
    assert tree.missing
    lowest = min(tree.states, key=lambda state: len(state.streams))
    memory, expected = lowest.rows.block, lowest.rows.capacity
    assert expected >= 12_000
    while tree.missing:
        assert lowest.rows.block is memory
        push()
    assert len(lowest.rows) > 6_000


def test_a_state_that_is_being_completed_keeps_its_room() -> None:
    """Also when a row has expired: there is more to come."""
    engine = engine_for("(((A B) C) D)", 40_000)
    chance, clock = np.random.default_rng(2), 0

    def push(rows: int = 50) -> None:
        nonlocal clock
        engine.push(batch(chance, clock, rows, 40_000))
        clock += rows

    for _ in range(42):
        push(1_000)
    tree = changed_in_steps(engine, "(((A C) B) D)", push)
    state = tree.missing[0].state
    room = state.rows.capacity
    push(2_000)
    state.rows.advance(state.rows.tail + 1)
    engine.metrics()  # Whoever looks makes states let go of what has passed.
    assert state.missing is not None
    assert len(state.rows) < room // 8
    assert state.rows.capacity == room
    state.rows.spare = None  # As when it is complete.
    state.rows.advance(state.rows.tail + 1)
    state.expire(0)
    assert state.rows.capacity < room


# -- what is hidden -----------------------------------------------------------------------------


@settings(max_examples=15)
@given(
    st.integers(0, 9_999),
    st.integers(0, 60),
    st.lists(
        st.sampled_from(["(((A B) C) D)", "(((A C) B) D)", "((A B) (C D))", "(A B C D)"]),
        min_size=1,
        max_size=4,
    ),
)
def test_what_was_hidden_before_a_change(seed: int, lateness: int, plans: list[str]) -> None:
    """Windows of 100, out of order by up to ``lateness`` now and then; rows are hidden at once."""
    chance = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_tree, "_ROWS_WORTH_HIDING", 1)
        patch.setattr(preparation, "_ROWS_AT_ONCE", 0)
        patch.setattr(preparation, "_WORK_PER_PART", 1)
        engine, other = (engine_for("(A B C D)", 100, lateness) for _ in range(2))
        clock = 0
        for plan in plans:
            engine.migrate(plan)
            for _ in range(int(chance.integers(3, 12))):
                push, latest = {}, lateness if chance.random() < 0.3 else 0
                for name in STREAMS:
                    rows = int(chance.integers(0, 30))
                    late = chance.integers(0, latest + 1, rows)
                    times = clock + chance.integers(0, 30, rows) - late
                    columns = [chance.integers(0, 1 << 40, rows), times]
                    columns += list(chance.integers(0, 30, (2, rows)))
                    push[name] = pa.table(columns, schema=SCHEMA)
                clock += 30
                assert same(engine.push(push), other.push(push))


# -- indexes of states that are carried over -----------------------------------------------------


def test_an_index_of_a_carried_state_that_is_filled_beside_pushes_gets_their_rows() -> None:
    """Nothing else moves meanwhile: that it is whole now has to be noticed."""
    with pytest.MonkeyPatch.context() as patch:
        for name, rows in (
            ("_ROWS_AT_ONCE", 0),
            ("_ROWS_PER_PUSH", 300),
            ("_ROWS_PER_ROW", 0),
            ("_ROWS_PER_MATCH", 0),
        ):
            patch.setattr(preparation, name, rows)
        engine, other = (engine_for("(((A C) B) D)", 2_000) for _ in range(2))
        push = pushing_to(engine, other, seed=3, domain=1_500, usual=20)
        for _ in range(30):
            push(100)
        changed_in_steps(engine, "(((A C) D) B)", push)  # {A, C} is looked up by C.x from now on.
        for _ in range(40):
            push()
