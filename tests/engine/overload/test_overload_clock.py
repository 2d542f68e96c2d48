"""A budget of time is kept by the clock, whatever probes turn out to cost.

The clock here is one of work: it is moved on by every probe and every result, so that a test knows
what is to come out, and a slow machine makes no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.overload.fitted_line import FittedLine
from penstock.engine.overload.overload import Overload
from penstock.engine.overload.probe_budget import ProbeBudget
from penstock.engine.overload.probe_cost import ProbeCost

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("k", pa.int64())])
PLANS = ["((A B) C)", "(A B C)"]
PROBE = 1e-5
"""Seconds of a probe, and of a result, by the clock of work; a hundred times the first guess."""


def query() -> penstock.JoinGraph:
    streams = ", ".join(f"{s} [RANGE 4 SECONDS] FRESHNESS 1 HOURS" for s in "ABC")
    return penstock.parse(
        f"SELECT A.id AS a, B.id AS b, C.id AS c FROM {streams} WHERE A.k = B.k AND B.k = C.k",
        schemas=dict.fromkeys("ABC", SCHEMA),
    )


def seconds_of(counts: list[int], seed: int = 1) -> Iterator[dict[str, pa.Table]]:
    chance = np.random.default_rng(seed)
    for second, count in enumerate(counts):
        yield {
            stream: pa.table(
                [
                    np.arange(count) + 100_000 * second,
                    np.sort(1000 * second + chance.integers(0, 1000, count)),
                    chance.integers(0, 2_000, count),
                ],
                schema=SCHEMA,
            )
            for stream in "ABC"
        }


def engine_by_work(policy: str, plan: str, seconds: float) -> Any:
    option = Overload(policy, seconds=seconds)  # type: ignore[arg-type]
    engine = penstock.Engine(query(), plan, overload=option)
    control = engine._join.overload
    assert control is not None
    counts = control.join.counts
    control.join.budget = ProbeBudget(
        option,
        wall_time=lambda: PROBE * (counts.probes + sum(o.made for o in counts._operators)),
    )
    return engine


def work(engine: Any) -> float:
    return float(engine._join.overload.budget._wall_time())


BURST = [300] * 5 + [3_000] * 4 + [300] * 3


@pytest.mark.parametrize("plan", PLANS)
def test_no_push_of_a_burst_takes_much_longer_than_it_may(plan: str) -> None:
    """Nothing is known about costs, and the burst needs more than ten times the time."""
    engine, unlimited = engine_by_work("shed", plan, 0.1), engine_by_work("exact", plan, 0.1)
    took: list[float] = []
    would: list[float] = []
    for batches in seconds_of(BURST):
        for each, times in ((engine, took), (unlimited, would)):
            start = work(each)
            each.push(batches)
            times.append(work(each) - start)
    assert max(would) > 1.0
    assert max(took) < 0.15
    # And the time is used: who makes no probe at all would be in time as well.
    assert min(took[5:9]) > 0.05


def test_a_first_push_that_is_far_too_large_is_limited_as_well() -> None:
    """It is all that has piled up, and nothing at all is known."""
    engine = engine_by_work("shed", "((A B) C)", 0.1)
    engine.push(next(seconds_of([30_000])))
    assert 0.05 < work(engine) < 0.2


@pytest.mark.parametrize("plan", PLANS)
def test_what_was_put_off_by_the_clock_is_made_up_for(plan: str) -> None:
    engine, exact = engine_by_work("defer", plan, 0.2), penstock.Engine(query(), plan)
    found: Counter[Any] = Counter()
    wanted: Counter[Any] = Counter()
    owed, took = [], []
    for batches in seconds_of([300] * 3 + [2_500] * 2 + [100] * 45):
        start = work(engine)
        found.update(map(tuple, (row.values() for row in engine.push(batches).to_pylist())))
        took.append(work(engine) - start)
        wanted.update(map(tuple, (row.values() for row in exact.push(batches).to_pylist())))
        assert not found - wanted
        owed.append(engine.metrics()["overload"]["debt"]["probes"])
    assert max(owed) > 1000
    assert owed[-1] == 0
    assert found == wanted
    assert max(took) < 0.3


def test_states_that_there_is_no_time_to_complete_are_given_up_and_the_loss_is_told() -> None:
    first = engine_by_work("shed", "((A B) C)", 0.1)
    batches = list(seconds_of([2_000] * 9))
    for each in batches[:6]:
        first.push(each)
    exact = penstock.Engine(query(), "((A B) C)")
    wanted = Counter(r["a"] for each in batches for r in exact.push(each).to_pylist())
    again = penstock.Engine.restore(query(), first.checkpoint(), overload=first.options.overload)
    assert again.trees[0].missing
    assert again._join.overload is not None
    again._join.overload.budget.cost = ProbeCost((0.0,) * 5 + (1.0,), (0.0, 0.0, PROBE), 9)
    lost = again.metrics()["overload"]["lost"]["results"]
    found: Counter[Any] = Counter()
    for each in batches[6:]:
        found.update(r["a"] for r in again.push(each, seconds=0.01).to_pylist())
    assert not again.trees[0].missing
    assert not found - wanted
    assert again.metrics()["overload"]["lost"]["results"] > lost


def test_a_push_made_again_loses_nothing() -> None:
    engine = engine_by_work("shed", "((A B) C)", 0.1)
    *before, last = seconds_of([2_000] * 4)
    for each in before:
        engine.push(each)
    known, lost = engine.metrics()["overload"], engine._join.overload.join.losses.estimate
    engine.push(last, again=True)
    after = engine.metrics()["overload"]
    assert lost.lost > 0
    assert engine._join.overload.join.losses.estimate.lost == lost.lost
    assert (after["skipped"], after["probes"]) == (known["skipped"], known["probes"])


def test_the_plan_stays_while_probes_are_owed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another plan would have to make all of them at once."""
    engine = engine_by_work("defer", "((A B) C)", 0.1)
    looked: list[bool] = []
    monkeypatch.setattr(
        engine._changes.control, "after_push", lambda *_: looked.append(engine.owes)
    )
    owing = 0
    for batches in seconds_of([300] * 3 + [4_000] * 2 + [100] * 2):
        engine.push(batches)
        owing += engine.owes
    assert owing >= 2
    assert looked
    assert not any(looked)


# -- what things cost ------------------------------------------------------------------------


def test_a_jump_of_the_costs_is_followed_within_a_few_slices() -> None:
    cost = ProbeCost()
    for turn in range(30):
        rows = 900 + 10 * turn
        cost = cost.observe(rows, 2 * rows, 1e-6 * rows + 2e-6 * 2 * rows)
    for turn in range(4):
        rows = 900 + 10 * turn
        cost = cost.observe(rows, 2 * rows, 5 * (1e-6 * rows + 2e-6 * 2 * rows))
    push, row, probe = cost.costs
    assert push + 1000 * row + 2000 * probe == pytest.approx(5 * 5e-3, rel=0.3)


def test_one_slow_push_is_soon_forgotten() -> None:
    """It compiled something, say, and took a thousand times as long."""
    cost = ProbeCost()
    for _ in range(10):
        cost = cost.observe(1000, 2000, 5e-3)
    cost = cost.observe(1000, 2000, 5.0)
    for _ in range(6):
        cost = cost.observe(1000, 2000, 5e-3)
    push, row, probe = cost.costs
    assert push + 1000 * row + 2000 * probe < 1.5 * 5e-3


def test_a_line_tells_the_fixed_part_from_the_rest() -> None:
    line = FittedLine()
    for count in (10, 400, 90, 1000):
        line = line.through(count, 0.05 + 0.001 * count)
    assert line.each == pytest.approx(0.001)
    assert line.fixed == pytest.approx(0.05)


def test_with_counts_all_alike_everything_is_put_on_the_pieces() -> None:
    line = FittedLine()
    for count in (100, 101, 99):
        line = line.through(count, 0.2)
    assert line.each == pytest.approx(0.002, rel=0.01)
    assert FittedLine().each == FittedLine().fixed == 0.0


def test_time_is_kept_for_what_a_host_does_with_the_results() -> None:
    now = 0.0
    budget = ProbeBudget(Overload("shed", seconds=1.0), wall_time=lambda: now)
    budget.start()
    alone = budget.fitting(0, 1.0, made=0)
    budget.note_after("host results", 1000, 0.5)
    assert budget.fitting(0, 1.0, made=0) < alone
    assert budget.fitting(0, 1.0, made=1000) < budget.fitting(0, 1.0, made=0)
    budget.note_after("host rows", 0, 100.0)  # Too slow for any budget: still some probes are made.
    assert budget.fitting(0, 1.0, made=0) > 0
