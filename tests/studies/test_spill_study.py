"""Windows larger than memory, small: the study finds the same answers and says so."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import pytest

from penstock_studies import spill_study
from penstock_studies.spill_study import Found, Run, go_on, measure


def test_answers_are_the_same_and_the_limit_holds(tmp_path: Path) -> None:
    runs = [
        Run(12_000_000, memory, None, None, 1, f"{tmp_path}/{memory}")
        for memory in (None, 3_000_000)
    ]
    free, limited = map(measure, runs)
    assert free.results == limited.results > 0
    assert free.checksum == limited.checksum
    assert free.disk == 0
    assert limited.disk > 5_000_000
    assert limited.state <= 3_000_000 < free.state
    assert limited.rows_back > 0
    assert limited.over == 0
    assert {go_on(run).went_on for run in runs} == {free.after} == {limited.after}
    assert limited.saved > 12_000_000


def test_a_difference_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = Found(pushes=60, rows=1, results=5, checksum=7, cpu=1.0, plan="(A B C)")
    wrong = dataclasses.replace(right, checksum=8)
    options = argparse.Namespace(windows="4GB", memory="1GB", process=None, folder=None, seed=1)
    strange = dataclasses.replace(right, went_on=(1, 1))
    for second, after, verdict in (
        (right, right, True),
        (wrong, right, False),
        (right, strange, False),
    ):
        answers = iter([right, right, second, after])
        monkeypatch.setattr(spill_study, "in_a_process", lambda *_, given=answers: next(given))
        assert spill_study.run(options) is verdict
        assert ("DIFFERENT" in capsys.readouterr().out) is not verdict
