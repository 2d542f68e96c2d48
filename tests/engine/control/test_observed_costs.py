"""Work is counted by kind, and unit costs are fitted to a clock."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.control import controller
from penstock.engine.control.observed_costs import ObservedCosts
from penstock.engine.running.push_clock import PushClock
from penstock.planning.fitted_costs import COSTS, FittedCosts, Work
from penstock.planning.unit_costs import UnitCosts

TRUE = Work(probing=2.0, keeping=5.0, output=6.0, fixed=8.0)
SCHEMA = pa.schema([(name, pa.int64()) for name in ("ts", "x", "y")])
QUERY = penstock.parse(
    """SELECT A.ts AS a, B.ts AS b FROM A [RANGE 2 SECONDS], B [RANGE 2 SECONDS],
       C [RANGE 2 SECONDS] WHERE A.x = B.x AND A.y = C.y""",
    schemas=dict.fromkeys("ABC", SCHEMA),
)
UNITS = UnitCosts()


class Factory:
    """A machine on which each kind of work takes its factor times what it was calibrated to."""

    def __init__(self, engine: penstock.Engine) -> None:
        self._changes = engine._changes
        self._own = ObservedCosts(UNITS)
        self._own._fit = FittedCosts(UNITS)
        self._own._begin(self._changes, list(self._changes.trees))

    def start(self) -> None:
        """A push begins."""

    def stop(self) -> float:
        """CPU seconds of the push."""
        work = self._own._work(self._changes)
        self._own._begin(self._changes, list(self._changes.trees))
        return sum(scale * seconds for scale, seconds in zip(TRUE, work, strict=True))


def batch(chance: np.random.Generator, second: int) -> dict[str, pa.Table]:
    """Of many rows or few, with many partners or none: mixes that differ."""
    rows = int(chance.choice([5, 300, 3000]))
    values = (int(chance.choice([20, 10**9])), int(chance.choice([500, 10**9])))
    times = 1000 * second + np.arange(rows) * 1000 // rows
    return {
        name: pa.table([times, *(chance.integers(0, each, rows) for each in values)], schema=SCHEMA)
        for name in "ABC"
    }


def test_the_fit_finds_the_factors_of_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.engine.control.observed_costs.SECONDS_TO_BELIEVE", 0.0)
    monkeypatch.setattr("penstock.engine.control.observed_costs.calibrated_costs", lambda: UNITS)
    engine = penstock.Engine(QUERY, "((A C) B)", feedback="off")
    assert engine.statistics().costs is None
    monkeypatch.setattr(engine._changes, "clock", Factory(engine))
    chance = np.random.default_rng(7)
    for second in range(80):
        engine.push(batch(chance, second))
        costs = engine.statistics(brief=True).costs
    assert costs is not None
    told, before = costs.to_json(), UNITS.to_json()
    for kind, true in TRUE._asdict().items():
        for name in COSTS[kind]:
            assert told[name] / before[name] == pytest.approx(true, rel=0.5), name


def test_pushes_that_change_the_plan_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.engine.control.observed_costs.SECONDS_TO_BELIEVE", 0.0)
    engine = penstock.Engine(QUERY, "((A C) B)", feedback="off")
    chance = np.random.default_rng(7)
    observed = ObservedCosts(UNITS)
    observed.look(engine._changes)
    engine.push(batch(chance, 0))
    observed.note(1.0)
    engine.migrate("(A B C)", strategy="moving-state")
    assert observed.look(engine._changes) == 1.0
    assert observed.costs is None
    engine.push(batch(chance, 1))
    observed.note(1.0)
    assert observed.look(engine._changes) > 1.0
    assert observed.costs is not None


def test_a_look_plans_with_what_was_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pushes take as long as a clock says, a hundred times what their work should: so do plans."""
    monkeypatch.setattr("penstock.engine.control.observed_costs.calibrated_costs", lambda: UNITS)
    for name, value in (("SHARE", 1e9), ("GLANCE_WORK", 0.0), ("LEAST_ROWS", 1)):
        monkeypatch.setattr(controller, name, value)
    told = {}
    for seconds in (1e-2, 1.0):
        now = [0.0]

        def clock(step: float = seconds, now: list[float] = now) -> float:
            now[0] += step
            return now[0]

        engine = penstock.Engine(QUERY, feedback="off")
        engine._changes.clock = PushClock(clock, partial(now.__getitem__, 0))
        chance = np.random.default_rng(7)
        for second in range(12):
            engine.push(batch(chance, second))
        costs = engine.statistics(brief=True).costs
        assert costs is not None
        told[seconds] = costs.join
        assert engine.metrics()["control"]["looks"] > 1
    assert told[1.0] > 5 * told[1e-2]
