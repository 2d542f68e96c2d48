"""A change of plan that needs new indexes over long windows waits for them, without a halt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.compiled.plain_answer import PlainAnswer
from penstock.engine.migration import preparation
from penstock.engine.tree import tree_completion

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("x", pa.int64()), ("y", pa.int64())])
OLD, NEW = "((A B) C)", "((A C) B)"
"""Only the new plan looks up A by y."""


@pytest.fixture(autouse=True)
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty rows are entered with each push."""
    for name, rows in (
        ("_ROWS_PER_PUSH", 40),
        ("_ROWS_PER_ROW", 0),
        ("_ROWS_PER_MATCH", 0),
    ):
        monkeypatch.setattr(preparation, name, rows)


class Run:
    """An engine beside one that keeps the old plan."""

    def __init__(self, **options: Any) -> None:
        self.graph = penstock.parse(
            """SELECT A.id AS a, B.id AS b, C.id AS c
            FROM A [RANGE 1 SECONDS], B [RANGE 1 SECONDS], C [RANGE 1 SECONDS]
            WHERE A.x = B.x AND A.y = C.y""",
            schemas=dict.fromkeys("ABC", SCHEMA),
        )
        self.engine = penstock.Engine(self.graph, plan=OLD, **options)
        self.other = penstock.Engine(self.graph, plan=OLD, feedback="off")
        self.random = np.random.default_rng(5)
        self.clock = 0

    def push(self, rows: int, streams: str = "ABC") -> None:
        times = np.arange(self.clock, self.clock + rows)
        self.clock += rows
        batches = {
            s: pa.table([times, times, *self.random.integers(0, 50, (2, rows))], schema=SCHEMA)
            for s in streams
        }
        answer, expected = self.engine.push(batches), self.other.push(batches)
        order = [(name, "ascending") for name in answer.column_names]
        assert answer.sort_by(order).equals(expected.sort_by(order))

    @property
    def running(self) -> str:
        return str(self.engine.running_plan)


@pytest.mark.parametrize("strategy", ["jisc", "parallel-track"])
def test_the_old_plan_goes_on_until_the_indexes_are_full(strategy: str) -> None:
    run = Run(feedback="off")
    run.push(200)
    run.engine.migrate(NEW, strategy)
    assert str(run.engine.plan) == NEW
    seen = []
    for _ in range(18):
        seen.append(run.running)
        run.push(10)
    assert seen[0] == OLD
    assert seen[-1] == NEW
    assert seen == sorted(seen)  # From the one to the other, once.


def test_moving_state_waits_for_nothing() -> None:
    run = Run(feedback="off")
    run.push(200)
    run.engine.migrate(NEW, "moving-state")
    assert run.running == NEW
    run.push(10)


def test_a_plan_whose_indexes_are_there_runs_from_the_next_push_on() -> None:
    run = Run(feedback="off")
    run.push(200)
    for plan in ("(C (A B))", "(C (B A))", OLD):
        run.engine.migrate(plan, strategy="jisc")
        assert run.running == plan
        run.push(1)


def users(run: Run) -> dict[str, dict[Any, int]]:
    """How many use each index of each window."""
    return {
        alias: {keys: users for keys, users in leaf._users.items() if users}
        for alias, leaf in run.engine.trees[0].leaves.items()
    }


def test_what_was_filled_is_not_lost_when_another_plan_is_asked_for() -> None:
    """Two pushes of forty rows are too few for a window of four hundred, but not again and again;
    and when all are in, every change takes effect at once."""
    run = Run(feedback="off")
    run.push(400)
    seen = []
    for number in range(40):
        wanted = (NEW, OLD)[number // 2 % 2]
        if number % 2 == 0:
            run.engine.migrate(wanted, strategy="jisc")
        seen.append(run.running == wanted)
        run.push(2)
    assert not seen[0]
    assert all(seen[20:])


def test_an_index_that_is_not_used_any_more_is_kept_for_a_window() -> None:
    run = Run(feedback="off")
    run.push(200)
    before = users(run)
    run.engine.migrate("(A B C)", strategy="jisc")
    run.push(1)
    run.engine.migrate(OLD, strategy="jisc")
    run.push(1)
    assert users(run) != before
    for _ in range(8):
        run.push(60)
    assert users(run) == before


def test_nothing_is_kept_where_memory_is_limited() -> None:
    run = Run(feedback="off", limits=penstock.Limits(memory=10**9))
    run.push(200)
    before = users(run)
    for plan in (NEW, OLD, NEW, OLD):
        run.engine.migrate(plan, strategy="jisc")
        run.push(20)
    assert users(run) == before


def test_a_window_that_becomes_empty_meanwhile() -> None:
    run = Run(feedback="off")
    run.push(200)
    run.engine.migrate(NEW, strategy="jisc")
    run.push(1)
    run.clock += 10_000
    for _ in range(3):
        run.push(1, "B")
        run.push(1, "C")
        run.push(1, "A")
    run.engine.metrics()
    for _ in range(12):
        run.push(30)
    assert run.running == NEW


def test_another_change_of_plan_meanwhile_and_back() -> None:
    run = Run()
    run.push(200)
    for plan in (NEW, "((B C) A)", OLD, NEW, "(A B C)", NEW):
        run.engine.migrate(plan, strategy="jisc")
        run.push(20)
    for _ in range(40):
        run.push(5)
    assert run.running == NEW


def test_a_failed_push_and_a_restart_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(feedback="off")
    run.push(200)
    run.engine.migrate(NEW, strategy="jisc")
    run.push(20)

    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    rows = pa.table([[1], [run.clock], [1], [1]], schema=SCHEMA)
    with monkeypatch.context() as patch:
        patch.setattr(type(run.engine._join.output), "stage", fail)
        patch.setattr(PlainAnswer, "table", fail)
        with pytest.raises(ZeroDivisionError):
            run.engine.push({"A": rows})
    run.push(20)
    blob = run.engine.checkpoint()
    run.engine = penstock.Engine.restore(run.graph, blob)
    assert run.running == NEW
    run.push(20)


def test_the_indexes_that_are_prepared_are_the_ones_that_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After the change, no index is made that was not prepared: while values are asked for, since
    all would soon be completed beside."""
    monkeypatch.setattr(tree_completion, "_ROWS_WORTH_COMPLETING", 1 << 30)
    run = Run(feedback="off")
    run.push(200)
    run.engine.migrate(NEW, strategy="jisc")
    while run.running == OLD:
        run.push(1)
    (tree,) = run.engine.trees
    before = {alias: set(leaf._indexes) for alias, leaf in tree.leaves.items()}
    run.push(50)
    assert tree.missing
    assert {alias: set(leaf._indexes) for alias, leaf in tree.leaves.items()} == before


def _pushes_until_new(run: Run) -> int:
    run.push(200)
    run.engine.migrate(NEW, strategy="jisc")
    for number in range(1, 50):
        run.push(10)
        if run.running == NEW:
            return number
    raise AssertionError("the change was never made")


def test_a_plan_that_makes_many_matches_is_left_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    by_rows = _pushes_until_new(Run(feedback="off"))
    monkeypatch.setattr(preparation, "_ROWS_PER_MATCH", 5)
    assert _pushes_until_new(Run(feedback="off")) < by_rows
