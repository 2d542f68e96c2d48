"""The study of demand feedback: all ways agree, and what is counted is what was made."""

from __future__ import annotations

import argparse

import pytest

import penstock
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
    *ways, side = lines
    assert [line.split()[1] for line in ways] == list(feedback_study.WAYS)
    assert "2,875,617" in side, "what it was before"


def test_what_is_asleep_makes_nothing() -> None:
    case = FeedbackCase("small", "((A B) C)", SMALL)
    query, pushes = case.made_of(1)
    off, always = (
        feedback_study.measure(case, query, pushes, feedback_study.WAYS[way])
        for way in ("off", "always")
    )
    assert off.results == always.results > 0
    assert 0 < always.partial < off.partial / 4


@pytest.mark.parametrize(
    "name", ["clique, left-deep", "triangle", "bushy, fertile first", "bushy, fertile last"]
)
def test_by_default_a_quarter_is_made(name: str) -> None:
    query, pushes = CASES[name].made_of(1)
    off, default = (
        feedback_study.measure(CASES[name], query, pushes, feedback_study.WAYS[way])
        for way in ("off", "default")
    )
    assert off.results == default.results
    assert 0 < default.partial <= off.partial / 4


def test_the_best_fixed_guards_are_looked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = FeedbackCase("triangle", "((A B) C)", SMALL, None, ("(A B C)",), literal=True)
    monkeypatch.setitem(CASES, "triangle", case)
    parser = argparse.ArgumentParser()
    feedback_study.add_arguments(parser)
    options = ["--case", "triangle", "--rounds", "1", "--ways", "off", "--best", "--plans"]
    assert feedback_study.run(parser.parse_args(options))
    printed = capsys.readouterr().out
    assert "triangle: the best fixed guards are" in printed
    for row in ("best fixed", "(A B C)", "literal, level 1", "literal, all of the lattice"):
        assert f"triangle  {row}" in printed


def test_few_guards_are_searched_whole_and_many_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    case = FeedbackCase("small", "((A B) C)", SMALL)
    query, pushes = case.made_of(1)
    both = ("{A} waits for {C}", "{B} waits for {C}")
    price = {(): 5.0, both[:1]: 4.0, both[1:]: 9.0, both: 3.0}
    tried: list[feedback_study.Guards] = []

    def priced(
        case: FeedbackCase,
        query: object,
        pushes: object,
        feedback: penstock.Feedback,
    ) -> feedback_study.Measured:
        assert feedback.guards is not None
        tried.append(feedback.guards)
        return feedback_study.Measured(0, price[feedback.guards], 0, 0)

    monkeypatch.setattr(feedback_study, "measure", priced)
    assert feedback_study.best_guards(1, case, query, pushes) == both
    assert set(tried) == set(price)
    monkeypatch.setattr(feedback_study, "_FEW_GUARDS", 1)
    assert feedback_study.best_guards(1, case, query, pushes) == both
    price[both[1:]] = 1.0
    price[both] = 0.99
    assert feedback_study.best_guards(1, case, query, pushes) == both[1:], "2 % are not worth it"
