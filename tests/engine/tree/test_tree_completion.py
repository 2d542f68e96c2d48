"""A state that a change of plan has to fill has room for all of it before the change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from four_streams import batch, engine_for, same

import penstock
from penstock.engine.migration import preparation
from penstock.engine.tree.join_tree import JoinTree


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
