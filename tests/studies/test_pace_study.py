"""A CPU limit paced by a clock: what is over is counted, and must be told; no clock of the wall."""

from __future__ import annotations

import argparse

import pytest

import penstock
from penstock_studies import pace_study
from penstock_studies.pace_study import TICKS, Paced, paced, query


class Clock:
    """Time that passes only while somebody sleeps; CPU that passes with every look at it."""

    def __init__(self, cpu: float) -> None:
        self.now = self.spent = 0.0
        self.cpu = cpu

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def __call__(self) -> float:
        return self.now

    def cpu_clock(self) -> float:
        self.spent += self.cpu
        return self.spent


def _run(limit: float | None, engine: penstock.Engine, cpu: float) -> Paced:
    clock = Clock(cpu)
    return paced(engine, limit, 5.0, 1, 200, clock, clock.sleep, clock.cpu_clock)


def test_cpu_is_counted_per_second_of_the_clock() -> None:
    used = _run(None, penstock.Engine(query()), 0.01)
    assert used.cpu == pytest.approx(0.01 * TICKS)
    assert used.most == pytest.approx(0.01 * TICKS)
    assert used.over == used.untold == 0
    assert used.pushes > TICKS


def test_a_limit_that_breaks_is_told_in_every_push() -> None:
    limit = 1e-9
    engine = penstock.Engine(query(), limits=penstock.Limits(cpu=limit))
    used = _run(limit, engine, 0.01)
    assert used.over == used.pushes > 0
    assert used.untold == 0


def test_a_limit_that_nobody_tells_is_counted() -> None:
    engine = penstock.Engine(query(), limits=penstock.Limits(cpu=1000.0))
    used = _run(0.05, engine, 0.01)
    assert used.untold == used.over == used.pushes > 0


def test_the_verdict(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Free, it needs 0.1; then every setting of the study in turn."""
    options = argparse.Namespace(seconds=1.0, seed=1)

    def verdict(exact: Paced, shed: Paced) -> bool:
        free = Paced(cpu=0.1, pushes=10, results=100)
        answers = iter([free, free, *[exact] * 4, *[shed] * 4])
        monkeypatch.setattr(pace_study, "paced", lambda *_: next(answers))
        return pace_study.run(options)

    low = Paced(cpu=0.01, pushes=10, results=50)
    told = Paced(cpu=5.0, pushes=10, results=50, over=3)
    untold = Paced(cpu=5.0, pushes=10, results=50, over=3, untold=1)
    assert verdict(low, low)
    assert "held" in capsys.readouterr().out
    assert verdict(told, low)
    assert "flagged" in capsys.readouterr().out
    assert not verdict(untold, low)
    assert not verdict(low, told), "shed must keep it"
