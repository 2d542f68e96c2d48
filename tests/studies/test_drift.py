"""The drifting workload: its data follow the phases, all runs agree, and the ratios are theirs."""

from __future__ import annotations

import argparse
import itertools
from dataclasses import replace
from types import SimpleNamespace

import pytest

from penstock.errors import OptionError
from penstock_studies import drift_study
from penstock_studies.drift import ADAPTIVE, WORKLOADS, Drift, Run, Workload, bill_of, drift

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


def test_what_changes_were_priced_at_is_told_beside_what_they_cost() -> None:
    ended = [
        SimpleNamespace(action=action, numbers={"priced": priced, "cost": 2 * priced})
        for action, priced in (("complete", 1.0), ("begin", 9.0), ("complete", 3.0))
    ]
    ended.append(SimpleNamespace(action="overtaken", numbers={"priced": 5.0, "cost": 0.5}))
    engine = SimpleNamespace(drain_events=lambda: ended)
    assert bill_of(engine) == (4.5, 8.5)  # type: ignore[arg-type]
    found = Drift(SMALL, Run(ADAPTIVE, (1.0,), 0, (), 4.0, 8.0), ())
    assert (found.adaptive.priced, found.adaptive.cost) == (4.0, 8.0)


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
    plans = Workload(streams=4).plans()
    assert "(((A B) C) D)" in plans
    assert not any("(B C)" in plan or "(C D)" in plan for plan in plans)


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_gives_each_plan_the_same_results(name: str) -> None:
    small = replace(WORKLOADS[name], rate=200, window=1, windows=2, phases=2, many=8.0, slices=2)
    ticks = itertools.count()
    found = drift(small, feedback="jit", rounds=2, clock=lambda: float(next(ticks)))
    assert {run.results for run in found.fixed} == {found.adaptive.results}
    assert found.against_best == 1.0


def test_a_faster_stream_has_more_rows_and_links_take_turns() -> None:
    uneven = Workload("cycle", rate=100, first=3.0, slices=1, phases=3, windows=1)
    assert uneven.links == (("A", "B"), ("B", "C"), ("A", "C"))
    for _, batch in uneven.batches():
        assert (batch["A"].num_rows, batch["B"].num_rows) == (300, 100)
        assert batch["A"].column_names == ["ts", "id", "a_b", "a_c"]


def test_of_several_rounds_the_least_counts() -> None:
    """The second round is quicker; its first push alone is disturbed."""
    small = replace(SMALL, phases=1)
    pushes = small.seconds * small.slices
    plans = ["(A B C)"]
    warming = 2 * pushes * 2
    took = [0.0] * warming + [3.0] * (2 * pushes) + [9.0] + [1.0] * (2 * pushes - 1)
    moments = iter([moment for each in took for moment in (0.0, each)])
    found = drift(small, plans, rounds=2, clock=lambda: next(moments))
    assert found.adaptive.cpu == 3.0 + (pushes - 1)
    assert found.fixed[0].cpu == pushes


def test_the_study_reports_every_seed(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    drift_study.add_arguments(parser)
    options = parser.parse_args(["--rate", "80", "--phases", "1", "--seeds", "2", "--seed", "5"])
    drift_study.run(options)
    shown = capsys.readouterr().out
    assert "seed 5" in shown
    assert "seed 6" in shown
    assert "controller / best of each phase" in shown
    with pytest.raises(OptionError, match="--phases must be 1 or more"):
        drift_study.run(parser.parse_args(["--phases", "0"]))
