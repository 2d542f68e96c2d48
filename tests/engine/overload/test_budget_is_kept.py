"""A budget of CPU on several kinds of work, with a clock that counts what is done: it is kept, what
is lost is told, and what fits is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock
from penstock.cli.bench.overload_bench import WORKLOADS, Workload, _rows, _uniform
from penstock.engine.overload.overload import Overload
from penstock.engine.overload.probe_budget import ProbeBudget

ROWS, WARM, PUSHES = 600, 12, 64


def clocked(engine: penstock.Engine, option: Overload) -> Any:
    """A clock of the work of ``engine``, in seconds; its budget goes by it."""
    control = engine._join.overload
    assert control is not None

    def cpu() -> float:
        tree = engine._join.trees[0]
        made = [operator.made for operator in tree.operators]
        rows = sum(leaf.rows.head for leaf in tree.leaves.values())
        return (
            3e-5 * rows + 7e-6 * control.join.counts.probes + 17e-6 * sum(made) + 19e-6 * made[-1]
        )

    control.join.budget = ProbeBudget(option, cpu, lambda: 0.0)
    return cpu


@pytest.mark.parametrize("name", ["chain", "star, one mjoin", "bushy"])
@pytest.mark.parametrize("share", [0.6, 0.3])
def test_a_budget_is_kept_and_the_loss_is_told(name: str, share: float) -> None:
    work = WORKLOADS[name]
    chance = np.random.default_rng(7)
    pushes = [
        {stream: _rows(chance, work.keys, ROWS, number) for stream in work.streams}
        for number in range(PUSHES)
    ]
    options: Any = {"plan": work.plan, "feedback": "off", "adapt": "off"}
    whole = Overload("exact", cpu=1.0)
    exact = penstock.Engine(work.query, overload=whole, **options)
    clock = clocked(exact, whole)
    began = clock()
    for rows in pushes[:WARM]:
        exact.push(rows)
        began, before = clock(), began
    each = began - before
    option = Overload("shed", cpu=share * each, seed=1)
    engine = penstock.Engine(work.query, overload=option, **options)
    ours = clocked(engine, option)
    began = 0.0
    for number, rows in enumerate(pushes):
        if number == 2 * WARM:
            began = ours()
        if number >= WARM:
            exact.push(rows)
        engine.push(rows)
    took = (ours() - began) / (PUSHES - 2 * WARM)
    assert took == pytest.approx(share * each, rel=0.15)
    missing = exact.metrics()["results"] - engine.metrics()["results"]
    lost = engine.metrics()["overload"]["lost"]
    assert abs(lost["results"] - missing) < 4 * lost["error"]
    assert lost["error"] < 0.25 * missing


class FixedCosts:
    """A clock of the work of an engine whose pushes take ``push`` seconds in any case, and for each
    row that comes, taken in or not, ``row`` more."""

    def __init__(self, engine: penstock.Engine, option: Overload, push: float, row: float) -> None:
        self.engine, self.each_push, self.each_row = engine, push, row
        self.spent = self.coming = 0.0
        self.reads = 0
        self.work = clocked(engine, option)
        control = engine._join.overload
        assert control is not None
        control.join.budget = ProbeBudget(option, self, lambda: 0.0)

    def __call__(self) -> float:
        self.reads += 1
        done: float = self.work()
        return done + self.spent + (self.coming if self.reads > 1 else 0.0)

    def push(self, batches: Any) -> int:
        rows = sum(each.num_rows for each in batches.values())
        self.reads, self.coming = 0, self.each_push + self.each_row * rows
        made: int = self.engine.push(batches).num_rows
        self.spent, self.coming, self.reads = self.spent + self.coming, 0.0, 0
        return made


PAIR = Workload("(A B)", "A.x = B.x", _uniform(50))
FIXED = {
    "pair, pushes": (PAIR, 0.035, 0.0),
    "pair, rows outside": (PAIR, 0.0, 2e-5),
    "mostly inserts, pushes": (WORKLOADS["mostly inserts"], 0.05, 0.0),
    "skewed keys, both": (WORKLOADS["skewed keys"], 0.02, 1e-5),
}


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize("share", [0.8, 0.5, 0.2])
def test_what_costs_as_much_whatever_comes_in_is_not_paid_with_results(
    name: str, share: float
) -> None:
    """Where most of a push cannot be saved, no fewer results are made than if rows had been drawn
    outside, for the CPU that is used; and a budget that can be kept is."""
    work, push, row = FIXED[name]
    chance = np.random.default_rng(7)
    batches = [
        {stream: _rows(chance, work.keys, ROWS, number) for stream in work.streams}
        for number in range(2 * PUSHES)
    ]
    options: Any = {"plan": work.plan, "feedback": "off", "adapt": "off"}
    whole = Overload("exact", cpu=1.0)
    exact = FixedCosts(penstock.Engine(work.query, overload=whole, **options), whole, push, row)
    for each in batches[: 2 * WARM]:
        exact.push(each)
    began = exact()
    wanted = sum(exact.push(each) for each in batches[2 * WARM :])
    full = (exact() - began) / (len(batches) - 2 * WARM)
    option = Overload("shed", cpu=share * full, seed=1)
    ours = FixedCosts(penstock.Engine(work.query, overload=option, **options), option, push, row)
    for each in batches[: 2 * WARM]:
        ours.push(each)
    began = ours()
    made = sum(ours.push(each) for each in batches[2 * WARM :])
    took = (ours() - began) / (len(batches) - 2 * WARM) / full
    least = (push + row * len(work.streams) * ROWS) / full
    drawn = max(0.0, (took - least) / (1.0 - least)) ** len(work.streams)
    assert made / wanted >= 0.9 * min(1.0, drawn)
    assert made / wanted > 0.01
    assert took <= 1.15 * max(share, 10 / 9 * least)
