"""Which strategy a change takes: what fits the budget is done at once, and it can all be read."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.engine.completion.missing import Missing
from penstock.engine.completion.trial import Trial, Work
from penstock.engine.migration.strategy_choice import (
    NORMAL_PUSHES,
    ChangeCosts,
    Prices,
    corrected,
)
from penstock.engine.running.push_clock import PushClock
from penstock.engine.tree import tree_completion
from penstock.testing.compare import assert_same_rows
from penstock.testing.oracle import Oracle

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
PLANS = ("(((A B) C) D)", "((A C) (B D))", "((A (C D)) B)", "((A B) C D)", "(A B C D)")
WORK = Work(states=2, rows=1_000, pairs=0)


def query(window: str = "RANGE 24 MILLISECONDS") -> penstock.JoinGraph:
    return penstock.parse(
        "SELECT A.id AS a, B.id AS b, C.id AS c, D.id AS d FROM "
        + ", ".join(f"{name} [{window}]" for name in "ABCD")
        + " WHERE A.x = B.x AND A.y = C.y AND C.x = D.x",
        schemas=dict.fromkeys("ABCD", SCHEMA),
    )


class Run:
    """An engine beside the oracle."""

    def __init__(self, plan: str, seed: int = 1, window: str = "", **options: Any) -> None:
        self.graph = query(window) if window else query()
        self.engine = penstock.Engine(self.graph, plan=plan, **options)
        self.oracle = Oracle(self.graph, None)
        self.random = random.Random(seed)
        self.start = 0

    def push(self, rows: int, values: int = 12, least: int = 0) -> None:
        times = list(range(self.start, self.start + rows))
        self.start += rows
        batch = {
            name: pa.table(
                [
                    times,
                    times,
                    *([least + self.random.randrange(values) for _ in times] for _ in "xy"),
                ],
                schema=SCHEMA,
            )
            for name in "ABCD"
        }
        assert_same_rows(self.engine.push(batch), self.oracle.push(batch, None), self.graph)

    def lacks(self) -> bool:
        """Whether a state lacks combinations."""
        return any(tree.missing for tree in self.engine.trees)

    def tick(self, step: Callable[[], float]) -> None:
        """Let a made-up clock tell what completing takes."""
        told = itertools.accumulate(iter(step, None))
        for tree in self.engine.trees:
            tree.completion.time.clock = lambda: next(told)


def test_what_takes_less_than_the_budget_is_completed_at_once() -> None:
    run = Run(PLANS[0], feedback="off", max_halt="1 MINUTE")
    run.push(24)
    run.engine.migrate(PLANS[1])
    assert not run.lacks()
    event = run.engine.history[-1]
    assert event.strategy == "moving-state"
    assert "may halt it for 6e+04 ms" in event.strategy_reason
    assert event.numbers["max_halt"] == 60
    assert event.numbers["jisc_cost"] > event.numbers["moving_state_cost"] > 0
    assert event.strategy_reason in run.engine.explain()
    assert "by moving-state" in run.engine.explain(analyze=True)
    run.push(10)


def test_a_query_that_must_not_halt_is_completed_on_demand() -> None:
    run = Run(PLANS[0], feedback="off", max_halt=0)
    run.push(24)
    run.engine.migrate(PLANS[1])
    assert run.lacks()
    event = run.engine.drain_events()[-1]
    assert (event.action, event.strategy) == ("set", "jisc")
    assert "would take at least" in event.strategy_reason
    while run.lacks():
        run.push(10)
    (done,) = [each for each in run.engine.drain_events() if each.action == "complete"]
    assert done.numbers["pushes"] >= 1
    assert done.numbers["priced"] == event.numbers["jisc_cost"]
    assert done not in run.engine.history
    assert run.engine.history[-1] == event


def test_a_change_that_lacks_nothing_says_so_and_one_that_was_asked_for_too() -> None:
    run = Run(PLANS[0], feedback="off")
    run.push(20)
    run.engine.migrate(PLANS[-1])
    assert "lacks nothing" in run.engine.history[-1].strategy_reason
    run.engine.migrate(PLANS[0], strategy="moving-state")
    assert run.engine.history[-1].strategy == "moving-state"
    assert run.engine.history[-1].strategy_reason == "it was asked for"


def test_a_trial_that_takes_too_long_is_left_to_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_completion, "_FIRST_LOT_ROWS", 2)
    monkeypatch.setattr(tree_completion, "_LOT_GROWTH", 1)
    run = Run(PLANS[0], feedback="off", max_halt="1 SECOND")
    run.push(24)
    run.tick(lambda: 0.1)
    run.engine.migrate(PLANS[1])
    assert run.lacks()
    completed = [missing.completed for tree in run.engine.trees for missing in tree.missing]
    assert any(completed)
    assert run.engine.history[-1].strategy == "jisc"
    assert "about" in run.engine.history[-1].strategy_reason
    run.push(20)


@pytest.mark.parametrize("seed", range(10))
def test_answers_do_not_depend_on_where_a_trial_ends(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes that overlap, and a clock that ends each trial somewhere."""
    monkeypatch.setattr(tree_completion, "_FIRST_LOT_ROWS", 2)
    monkeypatch.setattr(tree_completion, "_LOT_GROWTH", 2)
    chance = random.Random(seed)
    run = Run(
        chance.choice(PLANS),
        seed,
        window=chance.choice(["RANGE 24 MILLISECONDS", "ROWS 20", "UNBOUNDED"]),
        feedback=chance.choice(["off", "jit"]),
        execution=chance.choice(["auto", "reference"]),
        max_halt="1 SECOND",
    )
    strategies = set()
    for _ in range(8):
        for _ in range(chance.randrange(3)):
            run.push(chance.choice([1, 3, 8]), chance.choice([9, 18]))
        run.tick(lambda: chance.choice([0.0, 0.01, 0.3]))
        run.engine.migrate(chance.choice(PLANS))
        if run.engine.history:
            strategies.add(run.engine.history[-1].strategy)
    run.push(10)
    assert strategies


class Wage:
    """A made-up clock that goes on by a second for each row that is completed, and in pushes by
    another thousand seconds each."""

    def __init__(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        make = Missing._make

        def paid(missing: Missing, position: int, rows: Any) -> None:
            before = sum(each.left for each in missing._inputs)
            make(missing, position, rows)
            self.now += before - sum(each.left for each in missing._inputs)

        monkeypatch.setattr(Missing, "_make", paid)
        for tree in run.engine.trees:
            tree.completion.time.clock = lambda: self.now
        hours = itertools.count(step=1000.0)
        run.engine._changes.clock = PushClock(lambda: next(hours), lambda: next(hours))


def bills(run: Run, action: str) -> list[float]:
    """What changes have cost."""
    return [each.numbers["cost"] for each in run.engine.drain_events() if each.action == action]


def test_rows_that_are_dearer_by_themselves_are_no_cost_of_a_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(PLANS[0], feedback="off", max_halt=0)
    run.push(24)
    Wage(run, monkeypatch)
    run.engine.migrate("(((A C) B) D)")
    assert run.lacks()
    while run.lacks():
        run.push(10, least=100)  # Nobody asks for what is old.
    assert bills(run, "complete") == [0.0]
    assert run.engine._changes.costs.ratio < 1


def test_a_change_costs_what_completing_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(PLANS[0], feedback="off", max_halt=0)
    run.push(24)
    wage = Wage(run, monkeypatch)
    run.engine.migrate(PLANS[1])
    while run.lacks():
        run.push(3)
    assert wage.now > 0
    assert bills(run, "complete") == [wage.now]


def test_a_change_at_once_has_a_bill_too(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(PLANS[0], feedback="off", max_halt="1 MINUTE")
    run.push(20)
    wage = Wage(run, monkeypatch)
    run.engine.migrate(PLANS[1])
    run.push(3)
    assert wage.now > 0
    assert bills(run, "complete") == [wage.now]


def test_of_a_change_that_is_overtaken_nothing_is_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(PLANS[0], feedback="off", max_halt=0)
    run.push(24)
    wage = Wage(run, monkeypatch)
    run.engine.migrate(PLANS[1])
    run.push(3)
    spent = wage.now
    assert spent > 0
    run.engine.migrate(PLANS[0])
    assert bills(run, "overtaken") == [spent]
    assert run.engine._changes.costs.ratio == 1
    while run.lacks():
        run.push(3)
    assert bills(run, "complete") == [wage.now - spent]


def test_parallel_track_costs_what_the_older_plan_takes() -> None:
    run = Run(PLANS[0], feedback="off")
    run.push(20)
    run.push(20)
    now = itertools.count()
    for tree in run.engine.trees:
        tree.completion.time.clock = lambda: float(next(now))
    run.engine.migrate(PLANS[1], strategy="parallel-track")
    pushes = 0
    while run.engine.trees[0].older is not None:
        run.push(10)
        pushes += 1
    assert bills(run, "complete") == [pushes]  # One tick each.
    assert run.engine._changes.costs.parallel_ratio > 1


def test_the_default_budget_is_two_normal_pushes() -> None:
    costs = ChangeCosts(None)
    assert costs.budget == 0
    for seconds in (1.0, 1.0, 30.0):  # One of them has had to wait.
        costs.note_push(seconds)
    assert costs.budget == NORMAL_PUSHES == 2 * costs.push
    assert ChangeCosts(0.5).budget == 0.5


def test_jisc_is_priced_by_the_pushes_until_nothing_is_missing() -> None:
    costs = ChangeCosts(1.0)
    costs.note_push(1e-3)
    trial = Trial(False, 0.0, 2.0)
    long, brief = (costs.choice(WORK, trial, rows, 3_000).prices for rows in (1, 100))
    assert long is not None
    assert brief is not None
    assert long.jisc > 10 * (brief.jisc - 2.0) > 0
    assert long.moving_state == brief.moving_state == 2.0
    assert long.parallel_track == pytest.approx(100 * brief.parallel_track)


def test_what_changes_have_cost_corrects_the_next_price() -> None:
    costs = ChangeCosts(1.0)

    def prices() -> Prices:
        found = costs.choice(WORK, Trial(False, 0.0, 2.0), 10, 3_000).prices
        assert found is not None
        return found

    asking = prices().jisc - 2.0
    for _ in range(8):
        costs.learn("jisc", prices(), 2.0 + 3 * asking)
    assert prices().jisc == pytest.approx(2.0 + 3 * asking, rel=0.01)
    for _ in range(8):
        costs.learn("jisc", prices(), 0.0)
    assert 2.0 < prices().jisc < 2.0 + asking


def test_a_ratio_is_corrected_by_degrees_and_within_bounds() -> None:
    assert corrected(1.0, 4.0) == pytest.approx(2.0)
    assert corrected(2.0, 1.0) == pytest.approx(2.0)
    assert corrected(8.0, 1e9) == 8.0
    assert corrected(1 / 8, -1.0) == 1 / 8


def test_a_budget_that_is_no_duration_is_refused() -> None:
    with pytest.raises(penstock.PenstockError, match="max_halt='soon' is not a duration"):
        penstock.Engine(query(), max_halt="soon")
