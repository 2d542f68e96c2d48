"""The first batches after a change of plan: the plans do change, and times are put where they
belong."""

from __future__ import annotations

import argparse
import itertools

import pytest

from penstock.errors import OptionError
from penstock_studies import first_batch_study
from penstock_studies.first_batch import Setting, first_batches, wanted_share
from penstock_studies.first_batch_cases import CASES


@pytest.mark.parametrize("case", CASES)
def test_the_plan_goes_to_and_fro(case: str) -> None:
    """With a clock that ticks once a push all are normal."""
    ticks = itertools.count()
    setting = Setting(case, rows=20, window=200, normal=3)
    found = first_batches(setting, changes=2, clock=lambda: float(next(ticks)))
    assert [each.plan for each in found] == [*CASES[case].plans[:0:-1], CASES[case].plans[0]]
    for each in found:
        assert each.normal == each.call == each.first == each.new == each.following == 1.0
        assert each.call_and_first == each.worst == 2.0
        assert each.prepared == 0
        assert each.result <= 2.0


@pytest.mark.parametrize("case", CASES)
def test_a_tuple_has_about_one_partner(case: str) -> None:
    engine, batches = Setting(case, 100, 1_000).engine(), Setting(case, 100, 1_000).batches(3)
    for _ in range(200):
        engine.push(next(batches))
    states = engine.metrics()["state"]["joins"]
    assert 250 < states["{A, B}"]["rows"] < 4_000


def test_the_wanted_plan_runs_if_windows_are_short() -> None:
    assert wanted_share(Setting("two-columns", 50, 500), every=2, pushes=12) == 1.0


def test_the_study_reports_every_case(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    first_batch_study.add_arguments(parser)
    given = ["--case", "theta", "rows", "--window", "500", "--rows", "50", "--changes", "2"]
    first_batch_study.run(parser.parse_args([*given, "--every", "40"]))
    shown = capsys.readouterr().out
    assert "theta" in shown
    assert "rows" in shown
    assert "3 × 50 " in shown
    with pytest.raises(OptionError, match="--rows must be 1 or more, not 0"):
        first_batch_study.run(parser.parse_args(["--rows", "5", "0"]))
