"""Calibration: the arithmetic of the differences, the file, and a run with a clock of our own."""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
from pathlib import Path

import pytest

from penstock.cli import calibrate as command
from penstock.errors import OptionError, PenstockError
from penstock.machine import calibration
from penstock.machine.calibration_runs import (
    COLUMNS,
    COMPARED,
    FANOUT,
    PUSHES,
    SMALL_PUSHES,
    calibration_runs,
)
from penstock.planning.calibrated import calibrated_costs, calibration_file, keep_costs
from penstock.planning.unit_costs import UnitCosts


def _times(costs: UnitCosts, noise: float = 0.0, seed: int = 0) -> dict[str, float]:
    """A round of runs priced with ``costs``; disturbances only ever make a run longer."""
    m, glance = FANOUT, 5e-9
    taken_in = costs.arrival + costs.window
    looking = taken_in + costs.probe
    resulting = looking + m * (costs.join + costs.result)
    counting = looking + m * (costs.join + costs.group) + 2 * costs.answer
    two = costs.call + 2 * costs.push + 2 * costs.step
    times = {
        "dropped": costs.arrival,
        "taken in": taken_in,
        "indexed": taken_in + costs.index,
        "looking": looking,
        "glancing": taken_in + glance,
        "reading": looking + costs.text,
        "joining": looking + m * (costs.join + glance),
        "storing": looking + m * (costs.join + costs.insert + costs.delete),
        "resulting": resulting,
        "showing": resulting + m * COLUMNS * costs.column,
        "counting": counting,
        "spreading": looking + m * (costs.join + costs.group + 2 * costs.answer),
        "summing": counting + m * costs.aggregate,
        "checking": looking + m * costs.check,
        "evaluating": looking + m * costs.residual,
        "comparing": taken_in + COMPARED * costs.compare,
        "letting go": costs.delete,
        "two apart": two,
        "two together": two,
        "two grouped": two + costs.grouping,
        "six apart": costs.call + 6 * costs.push + 6 * costs.step,
        "six together": costs.call + 6 * costs.push + 30 * costs.step,
    }
    chance = random.Random(seed)
    return {name: each * (1 + noise * chance.random() ** 3) for name, each in times.items()}


COSTS = UnitCosts(
    insert=25e-9, delete=3e-9, join=15e-9, probe=14e-9, compare=2e-9, index=9e-9, arrival=5e-9,
    window=22e-9, result=20e-9, text=50e-9, column=6e-9, group=80e-9, aggregate=40e-9,
    answer=50e-9, grouping=200e-6,    check=8e-9, residual=30e-9, push=10e-6, step=2e-6, call=40e-6,
)  # fmt: skip


def test_differences_give_the_costs_back() -> None:
    """Runs priced with known costs: the same costs come out, but those that nobody measures."""
    assert set(calibration_runs()) <= set(_times(COSTS))
    found = calibration.calibration_from([_times(COSTS)] * 3)
    assert found.unresolved == calibration.NOT_MEASURED
    expected = {**COSTS.to_json(), "state": found.speed * COSTS.state}
    assert found.costs.to_json() == pytest.approx(expected)
    assert found.spread == pytest.approx(dict.fromkeys(found.spread, 0.0), abs=1e-9)


def test_a_disturbed_machine_is_told_by_the_spread() -> None:
    calm = calibration.calibration_from([_times(COSTS, 0.02, seed) for seed in range(9)])
    wild = calibration.calibration_from([_times(COSTS, 0.2, seed) for seed in range(9)])
    assert statistics.median(calm.spread.values()) < statistics.median(wild.spread.values())
    for name, value in calm.costs.to_json().items():
        if name in calm.spread:
            assert value == pytest.approx(getattr(COSTS, name), rel=0.5)


def test_what_is_not_resolved_is_a_scaled_default_and_named() -> None:
    """A machine twice as slow whose probes drown in noise: no clamp, no cost of nothing."""
    defaults = UnitCosts().to_json()
    slow = UnitCosts(**{name: 2 * value for name, value in defaults.items()})
    times = [_times(slow) for _ in range(6)]
    for number, each in enumerate(times):
        each["looking"] = each["taken in"] - 1e-9 * (number + 1)
    found = calibration.calibration_from(times)
    assert "probe" in found.unresolved
    assert found.costs.probe == pytest.approx(found.speed * defaults["probe"])
    assert found.speed == pytest.approx(2, rel=0.2)
    assert min(found.costs.to_json().values()) > 0


def test_calibrate_goes_on_while_costs_are_unresolved() -> None:
    """A clock that ticks by one at each look: no run differs from another of the same size."""
    ticks = itertools.count()
    found = calibration.calibrate(clock=lambda: float(next(ticks)), rounds=1)
    assert "probe" in found.unresolved
    assert found.costs.compare == pytest.approx((1e-3 - 1e-4) / COMPARED)
    # Twice per push, once in each of two that warm up, and at the end.
    looks = len(calibration_runs()) * (2 * PUSHES + 2 + 2) + 5 * 2 * SMALL_PUSHES
    assert next(ticks) == calibration.LONGEST * looks


def test_costs_are_kept_and_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert calibrated_costs() is None
    costs = UnitCosts(insert=1e-6)
    file = keep_costs(costs)
    assert file == calibration_file() == tmp_path / "cache" / "penstock" / "unit-costs.json"
    assert calibrated_costs() == costs
    assert [each.name for each in file.parent.iterdir()] == ["unit-costs.json"]
    for damage in ("", "{", '{"insert": "much"}', '{"inserts": 1}', "[1]", '{"insert": -1}'):
        file.write_text(damage)
        assert calibrated_costs() is None, damage
    keep_costs(costs)
    assert calibrated_costs() == costs


def test_a_relative_cache_folder_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", "/somewhere")
    assert calibration_file() == Path("/somewhere/.cache/penstock/unit-costs.json")


def test_a_folder_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "penstock").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(PenstockError, match="cannot keep the measured costs"):
        keep_costs(UnitCosts())


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    costs = UnitCosts(insert=5e-9)
    measured = calibration.Calibration(costs, {"insert": 0.5}, 1.0)
    monkeypatch.setattr(calibration, "calibrate", lambda rounds: measured)
    parser = argparse.ArgumentParser(prog="penstock")
    command.add_parser(parser.add_subparsers())
    chosen = parser.parse_args(["calibrate", "--dry-run"])
    assert chosen.run(chosen) == 0
    printed = capsys.readouterr().out
    assert "insert       5.00 ns  ± 25 %" in printed
    assert "default, scaled" in printed
    assert calibrated_costs() is None
    chosen = parser.parse_args(["calibrate"])
    assert chosen.run(chosen) == 0
    assert "kept in" in capsys.readouterr().out
    assert calibrated_costs() == costs
    chosen = parser.parse_args(["calibrate", "--rounds", "0"])
    with pytest.raises(OptionError, match="--rounds must be 1 or more"):
        chosen.run(chosen)
