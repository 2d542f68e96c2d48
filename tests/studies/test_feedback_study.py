"""The study of demand feedback: all ways agree, and what is counted is what was made."""

from __future__ import annotations

import argparse

import pytest

from penstock_studies import feedback_study
from penstock_studies.feedback_cases import CASES, FeedbackCase, below, made

SMALL = made(
    "A.x = B.x AND A.y = C.y",
    {
        "A": {"x": below(20), "y": below(1_000)},
        "B": {"x": below(20)},
        "C": {"y": below(1_000, 990)},
    },
    {"A": 400, "B": 400, "C": 400},
    3_000,
)


def test_a_table_of_all_ways(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(CASES, "triangle", FeedbackCase("triangle", "((A B) C)", SMALL))
    parser = argparse.ArgumentParser()
    feedback_study.add_arguments(parser)
    assert feedback_study.run(parser.parse_args(["--case", "triangle", "--rounds", "1"]))
    lines = [line for line in capsys.readouterr().out.splitlines() if "triangle" in line]
    assert [line.split()[1] for line in lines] == list(feedback_study.WAYS)


def test_what_is_asleep_makes_nothing() -> None:
    case = FeedbackCase("small", "((A B) C)", SMALL)
    query, pushes = case.made_of(1)
    off, always = (
        feedback_study.measure(case, query, pushes, feedback_study.WAYS[way])
        for way in ("off", "always")
    )
    assert off.results == always.results > 0
    assert 0 < always.partial < off.partial / 4
