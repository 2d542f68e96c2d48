"""Calibration: the arithmetic of the differences, the file, and a run with a clock of our own."""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import pytest

from penstock.cli import calibrate as command
from penstock.errors import OptionError, PenstockError
from penstock.machine import calibration
from penstock.planning.calibrated import calibrated_costs, calibration_file, keep_costs
from penstock.planning.unit_costs import UnitCosts


def test_differences_give_the_costs_back() -> None:
    """Runs priced with known costs: the same costs come out."""
    costs = UnitCosts(
        insert=25, delete=3, join=15, probe=14, compare=2, index=9, arrival=50, result=20,
        push=1000, step=70,
    )  # fmt: skip
    taken_in = costs.arrival + costs.insert + costs.delete
    looking = taken_in + costs.probe
    m = calibration.FANOUT
    seconds = {
        "taken in": taken_in,
        "indexed": taken_in + costs.index,
        "looking": looking,
        "glancing": taken_in + 5,
        "joining": looking + m * (costs.join + 5),
        "storing": looking + m * (costs.join + costs.insert + costs.delete),
        "resulting": looking + m * (costs.join + costs.result),
        "comparing": taken_in + calibration.COMPARED * costs.compare,
    }
    two, six = 2 * costs.push + 2 * costs.step, 6 * costs.push + 30 * costs.step
    assert seconds.keys() == calibration._runs().keys()
    found = calibration.costs_from(seconds, costs.delete, two, six)
    assert found.to_json() == pytest.approx(costs.to_json())


def test_noise_makes_no_cost_free() -> None:
    same = dict.fromkeys(calibration._runs(), 1e-9)
    found = calibration.costs_from(same, 0.0, 1e-9, 1e-9)
    assert min(found.to_json().values()) >= calibration.LEAST


def test_calibrate_measures_with_the_clock_that_it_is_given() -> None:
    """A clock that ticks by one at each look: every push takes one second."""
    ticks = itertools.count()
    found = calibration.calibrate(clock=lambda: float(next(ticks)), rounds=1)
    # No run of 10,000 tuples per push differs from another; those of the nested loops are of 1,000.
    assert found.probe == calibration.LEAST
    assert found.compare == pytest.approx((1e-3 - 1e-4) / calibration.COMPARED)
    assert found.push == pytest.approx(1 / (calibration.SMALL_PUSHES // 4) / 2, rel=0.01)


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
    monkeypatch.setattr(calibration, "calibrate", lambda rounds: costs)
    parser = argparse.ArgumentParser(prog="penstock")
    command.add_parser(parser.add_subparsers())
    chosen = parser.parse_args(["calibrate", "--dry-run"])
    assert chosen.run(chosen) == 0
    assert "insert      5.00 ns" in capsys.readouterr().out
    assert calibrated_costs() is None
    chosen = parser.parse_args(["calibrate"])
    assert chosen.run(chosen) == 0
    assert "kept in" in capsys.readouterr().out
    assert calibrated_costs() == costs
    chosen = parser.parse_args(["calibrate", "--rounds", "0"])
    with pytest.raises(OptionError, match="--rounds must be 1 or more"):
        chosen.run(chosen)
