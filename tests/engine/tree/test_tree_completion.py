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
    engine.migrate(plan, strategy="jisc")
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


def test_an_index_of_a_carried_state_that_is_filled_beside_pushes_gets_their_rows() -> None:
    """Nothing else moves meanwhile: that it is whole now has to be noticed."""
    with pytest.MonkeyPatch.context() as patch:
        for name, rows in (
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
