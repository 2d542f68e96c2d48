"""A budget of CPU on several kinds of work, with a clock that counts what is done: it is kept, what
is lost is told, and what fits is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock
from penstock.cli.bench.overload_bench import WORKLOADS, _rows
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
        return 3e-5 * rows + 7e-6 * control._counts.probes + 17e-6 * sum(made) + 19e-6 * made[-1]

    control.budget = ProbeBudget(option, cpu, lambda: 0.0)
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
