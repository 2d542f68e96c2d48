"""The bench of two checkouts, with a small input; no test looks at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import penstock
from penstock.cli.bench.against_bench import against_bench, show_against
from penstock.cli.bench.workloads import WORKLOADS
from penstock.cli.main import main
from penstock.errors import OptionError, PenstockError

SMALL = replace(WORKLOADS["W1"], window=100, rows=600, domains={"x": 20, "y": 50})
CHECKOUT = Path(penstock.__file__).parents[2]


def test_two_checkouts_push_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    found = against_bench(CHECKOUT, (100, 1), 2, ("jit",), SMALL, {100: 2, 1: 5})
    assert set(found) == {"jit"}
    for figures in found.values():
        assert set(figures) == {100, 1}
        for each in figures.values():
            assert each["ratio"] > 0
            assert each["seconds"] > 0
            assert each["against"] > 0
    show_against(CHECKOUT, found)
    assert "ratio" in capsys.readouterr().out


def test_an_input_that_ends_is_told() -> None:
    with pytest.raises(PenstockError, match="has failed"):
        against_bench(CHECKOUT, (100,), 2, ("off",), SMALL, {100: 20})


def test_a_folder_that_is_no_checkout(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no src/penstock"):
        against_bench(tmp_path, (1,), 1, ("off",), SMALL, {1: 1})


def test_other_forms_are_not_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "paths", "--against", ".", "--only", "NULL"]) == 2
    assert "--against" in capsys.readouterr().err
