"""The first batches after a change of plan: the plans do change, and times are put where they
belong."""

from __future__ import annotations

import argparse
import itertools

import pytest

from penstock.errors import OptionError
from penstock_studies import first_batch_study
from penstock_studies.first_batch import PLANS, Columns, Setting, first_batches


@pytest.mark.parametrize(
    ("columns", "rows", "prepared"),
    [("one", 3_000, False), ("two", 3_000, True), ("one", 200, True), ("two", 200, True)],
)
def test_the_plan_goes_to_and_fro(columns: Columns, rows: int, prepared: bool) -> None:
    """Only new columns need new indexes, and only beside small pushes a tree is built in steps;
    with a clock that ticks once a push all are normal."""
    ticks = itertools.count()
    setting = Setting(rows=rows, window=12_000, columns=columns, normal=3)
    found = first_batches(setting, changes=2, clock=lambda: float(next(ticks)))
    assert [each.plan for each in found] == [PLANS[1], PLANS[0]]
    assert (found[0].prepared > 0) is prepared
    for each in found:
        assert each.normal == each.call == each.first == each.new == each.following == 1.0
        assert each.call_and_first == 2.0
        assert each.switching == float(each.prepared > 0)


def test_a_tuple_has_one_partner() -> None:
    setting = Setting(rows=500, window=1_000)
    batches = setting.batches(seed=3)
    shown = [next(batches) for _ in range(102)]
    assert [batch["A"].num_rows for batch in shown] == [10] * 101 + [500]
    times = [at for batch in shown for at in batch["B"]["ts"].to_pylist()]
    assert times == list(range(1_510))


def test_the_study_reports_every_change(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    first_batch_study.add_arguments(parser)
    given = ["--window", "2000", "--rows", "50", "100", "--changes", "2"]
    first_batch_study.run(parser.parse_args(given))
    shown = capsys.readouterr().out
    assert shown.count("((A C) B)") == shown.count("((A B) C)") == 2
    assert "3 × 50 " in shown
    with pytest.raises(OptionError, match="--rows must be 1 or more, not 0"):
        first_batch_study.run(parser.parse_args(["--rows", "5", "0"]))
