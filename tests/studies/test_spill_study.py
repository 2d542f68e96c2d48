"""Windows larger than memory, small: the study finds the same answers and says so."""

from __future__ import annotations

import argparse
import dataclasses

import pytest

from penstock_studies import spill_study
from penstock_studies.spill_study import Found, Run, measure


def found(memory: int | None) -> Found:
    return measure(Run(12_000_000, memory, None, None, seed=1))


def test_answers_are_the_same_and_the_limit_holds() -> None:
    free, limited = found(None), found(3_000_000)
    assert free.results == limited.results > 0
    assert free.checksum == limited.checksum
    assert free.disk == 0
    assert limited.disk > 5_000_000
    assert limited.state <= 3_000_000 < free.state
    assert limited.rows_back > 0
    assert limited.over == 0


def test_a_difference_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = Found(pushes=60, rows=1, results=5, checksum=7, cpu=1.0, plan="(A B C)")
    wrong = dataclasses.replace(right, checksum=8)
    options = argparse.Namespace(windows="4GB", memory="1GB", process=None, folder=None, seed=1)
    for second, verdict in ((right, True), (wrong, False)):
        answers = iter([right, second])
        monkeypatch.setattr(spill_study, "in_a_process", lambda run, given=answers: next(given))
        assert spill_study.run(options) is verdict
        assert ("DIFFERENT" in capsys.readouterr().out) is not verdict
