"""The drifting workload: its data follow the phases, all runs agree, and the ratios are theirs."""

from __future__ import annotations

import itertools

from penstock.experiments.drift import ADAPTIVE, Workload, drift

SMALL = Workload(rate=400, window=1, windows=2, phases=2, many=6.0, few=0.1, slices=4)


def test_all_plans_give_the_same_results() -> None:
    ticks = itertools.count()
    found = drift(SMALL, clock=lambda: float(next(ticks)))
    assert found.adaptive.plan == ADAPTIVE
    assert len(found.fixed) == 3
    assert {run.results for run in found.fixed} == {found.adaptive.results}
    assert found.adaptive.results > 0
    # With a clock that ticks once a push, all runs cost the same.
    assert found.against_best == found.against_worst == 1.0


def test_phases_take_turns() -> None:
    values = {}
    for phase, batch in SMALL.batches():
        values[phase] = [
            max(batch["A"]["a_b"].to_pylist()),
            max(batch["A"]["a_c"].to_pylist()),
        ]
    assert values[0][0] < values[0][1]
    assert values[1][0] > values[1][1]


def test_plans_of_a_star_join_no_strangers() -> None:
    plans = Workload(others=3).plans()
    assert "(((A B) C) D)" in plans
    assert not any("(B C)" in plan or "(C D)" in plan for plan in plans)
