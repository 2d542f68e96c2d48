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


def test_one_thing_is_left_out_at_a_time_and_in_turn(
    orders: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    usual = ["--only", "compiler,daemon", "--rounds", "3", "--rows", "100", "--batches", "2"]
    assert main(["bench", "session", *usual]) == 0
    first, *turns = [order["without"][0] for order in orders]
    assert first == "", "it fills the caches of the machine, and is not counted"
    block = ["compiler", "daemon", "daemon", "compiler"]
    assert turns == ["", *block, "", "compiler", "daemon", ""]
    assert len({order["work"] for order in orders}) == len(orders)
    told = capsys.readouterr()
    assert "9 of 9" in told.err
    assert re.search(r"compiler +1\.50 \(1\.50–1\.50\)", told.out)
    assert re.search(r"daemon +1\.01 ", told.out)
    assert "CPU with start, with all: 20.0 s" in told.out


def test_a_run_is_compared_with_the_nearest_with_all() -> None:
    said = [("", 2.0), ("a", 6.0), ("b", 3.0), ("", 4.0), ("a", 8.0), ("", 4.0)]
    runs = [{"without": without, "s": seconds} for without, seconds in said]
    assert bench_session.ratios("a", runs, "s") == [2.0, 2.0]
    assert bench_session.ratios("b", runs, "s") == [1.0]


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


def test_a_lane_has_its_own_tricks(
    orders: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "session", "--lane", "source", "--only", "changelog"]) == 2
    assert "nothing is called 'changelog'; choose from: one-daemon, " in capsys.readouterr().err
    assert main(["bench", "session", "--lane", "source", "--only", "daemon", "--rounds", "1"]) == 0
    assert {order["kind"] for order in orders} == {"source"}


def test_tricks_can_be_left_out_alone() -> None:
    assert len({each.name for each in TRICKS}) == len(TRICKS)
    names = [name for each in TRICKS for name in (*each.settings, *each.environment())]
    assert len(names) == len(set(names))
