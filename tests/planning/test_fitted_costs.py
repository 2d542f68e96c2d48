"""Unit costs are fitted to what work has cost: by kind, never negative, and the plan follows."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.planning.adaptation import Memory
from penstock.planning.fitted_costs import COSTS, KINDS, MOST, FittedCosts, Work
from penstock.planning.unit_costs import UnitCosts

TRUE = {"probing": 3.0, "keeping": 0.5, "output": 2.0, "fixed": 6.0}


def test_every_cost_is_of_one_kind() -> None:
    named = [name for names in COSTS.values() for name in names]
    assert sorted(named) == sorted(field.name for field in fields(UnitCosts))
    assert tuple(COSTS) == KINDS


@pytest.mark.parametrize("seed", range(4))
def test_known_factors_are_found_from_mixes_that_differ(seed: int) -> None:
    chance = np.random.default_rng(seed)
    fit = FittedCosts(UnitCosts())
    true = np.array(list(TRUE.values()))
    for _ in range(60):
        work = chance.dirichlet(np.full(4, 0.5))
        fit.observe(Work(*work), float(work @ true) * np.exp(chance.normal(0, 0.05)))
    for kind, scale in fit.scales.items():
        assert scale == pytest.approx(TRUE[kind], rel=0.3), kind
    # A moment in which everything takes twenty times as long is hardly news.
    before_it = dict(fit.scales)
    fit.observe(Work(*work), 20 * float(work @ true))
    for kind, scale in fit.scales.items():
        assert scale == pytest.approx(before_it[kind], rel=0.2), kind
    told, before = fit.costs.to_json(), UnitCosts().to_json()
    assert told["join"] / before["join"] == pytest.approx(fit.scales["probing"])
    assert told["call"] / before["call"] == pytest.approx(fit.scales["fixed"])


def test_one_mix_moves_all_kinds_alike() -> None:
    fit = FittedCosts(UnitCosts())
    for _ in range(30):
        fit.observe(Work(0.4, 0.3, 0.2, 0.1), 10.0)
    assert sum(np.array([0.4, 0.3, 0.2, 0.1]) * list(fit.scales.values())) == pytest.approx(10)
    assert min(fit.scales.values()) > 4


def test_scales_are_positive_and_bounded() -> None:
    fit = FittedCosts(UnitCosts())
    for seconds in (1e-12, 1e12, 0.0):
        for _ in range(50):
            fit.observe(Work(1.0, 0.0, 0.0, 0.0), seconds)
            assert all(0.999 / MOST <= scale <= 1.001 * MOST for scale in fit.scales.values())
    assert FittedCosts(UnitCosts()).observe(Work(0.0, 0.0, 0.0, 0.0), 1.0) == 1.0


def test_ratios_of_plans_follow_the_prices() -> None:
    """What a plan has cost by measurement is the same before and after."""
    fit = FittedCosts(UnitCosts())
    work = Work(0.5, 0.2, 0.2, 0.1)
    factor = fit.observe(work, 5.0)
    assert 2 < factor <= 5.5
    again = Memory(ratios={"(A B)": (4.0, 2.0)}, modelled=3.0).repriced(factor)
    assert again.ratios["(A B)"] == pytest.approx((4.0 / factor, 2.0))
    assert again.modelled == pytest.approx(3.0 * factor)


def test_the_plan_follows_what_work_costs() -> None:
    """Where keeping rows is dear nothing is stored; where probing is, the join of A and B is."""
    schema = pa.schema([("ts", pa.int64()), ("x", pa.int64()), ("y", pa.int64())])
    query = penstock.parse(
        """SELECT A.ts FROM A [RANGE 10 SECONDS], B [RANGE 10 SECONDS], C [RANGE 10 SECONDS]
           WHERE A.x = B.x AND B.y = C.y""",
        schemas=dict.fromkeys("ABC", schema),
    )
    statistics = penstock.Statistics(
        dict.fromkeys("ABC", 1000.0), {("A", "B"): 1e-4, ("B", "C"): 2e-4}
    )
    plans = {}
    for kind in ("probing", "keeping"):
        fit = FittedCosts(UnitCosts())
        chance = np.random.default_rng(1)
        for _ in range(60):
            work = chance.dirichlet(np.full(4, 0.5))
            scales = [12.0 if each == kind else 1.0 for each in KINDS]
            fit.observe(Work(*work), float(work @ scales))
        plans[kind] = str(penstock.plan(query, statistics, costs=fit.costs))
    assert plans["keeping"].startswith("(A B C")
    assert plans["probing"].startswith("((")
