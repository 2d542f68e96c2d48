"""``penstock bench session``: what is run in which turn, and what the ratios stand for."""

from __future__ import annotations

import re
from typing import Any

import pytest

from penstock.cli import bench_session
from penstock.cli.main import main
from penstock.spark.start.tuning import TRICKS

USUAL = {"": 10.0, "compiler": 15.0, "daemon": 10.1}


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What was ordered; no Spark runs."""
    found: list[dict[str, Any]] = []

    def watched(order: dict[str, Any]) -> dict[str, Any]:
        found.append(order)
        cpu = USUAL[order["without"][0]]
        return {"query_cpu_seconds": cpu, "cpu_seconds": 2 * cpu, "query_wall_seconds": cpu}

    monkeypatch.setattr(bench_session, "watched", watched)
    monkeypatch.setattr(bench_session, "keep_classes", lambda: None)
    monkeypatch.setenv("COLUMNS", "200")
    return found


@pytest.mark.parametrize("more", [[], ["--side-by-side"]])
def test_one_thing_is_left_out_at_a_time_and_in_turn(
    orders: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    usual = ["--only", "compiler,daemon", "--rounds", "2", "--rows", "100", "--batches", "2"]
    assert main(["bench", "session", *usual, *more]) == 0
    turns = [order["without"][0] for order in orders]
    last = [] if more else [""]
    if more:  # Which of two that run at once is first, is open.
        turns = [each for two in range(0, 8, 2) for each in sorted(turns[two : two + 2])]
    assert turns == ["", "compiler", "", "daemon", "", "compiler", "", "daemon", *last]
    assert len({order["work"] for order in orders}) == len(orders)
    told = capsys.readouterr().out
    assert re.search(r"compiler +1\.50 \(1\.50–1\.50\)", told)
    assert re.search(r"daemon +1\.01 ", told)
    assert "CPU with start, with all: 20.0 s" in told


def test_a_run_is_compared_with_those_beside_it() -> None:
    runs = [{"without": w, "s": s} for w, s in [("", 2.0), ("a", 6.0), ("", 4.0), ("a", 8.0)]]
    assert bench_session.ratios("a", [*runs, {"without": "", "s": 4.0}], "s", False) == [2.0, 2.0]
    assert bench_session.ratios("a", runs, "s", True) == [3.0, 2.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "luck"], "nothing is called 'luck'; choose from: "),
        (["--rounds", "0"], "rounds, rows and batches are 1 or more, not 0"),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "session", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_tricks_can_be_left_out_alone() -> None:
    assert len({each.name for each in TRICKS}) == len(TRICKS)
    names = [name for each in TRICKS for name in (*each.settings, *each.environment())]
    assert len(names) == len(set(names))
