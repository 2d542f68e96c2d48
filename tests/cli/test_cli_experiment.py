"""``penstock experiment``: names, runs, files, and what is told when something is missing."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.cli import main as cli
from penstock_studies.figures import registry
from penstock_studies.lab.chart import Chart, Panel, series_by
from penstock_studies.lab.experiment import Experiment, Point, Row, Verdict
from penstock_studies.unit_cost_point import measure_unit_costs


@pytest.fixture
def table_3(monkeypatch: pytest.MonkeyPatch) -> None:
    """One real experiment, with a measurement that is there at once."""
    rows: list[Row] = [
        {"operation": symbol, "name": name, "paper": 200.0, "here": here}
        for symbol, name, here in (
            ("C_j", "join", 20.0),
            ("C_i", "insert", 10.0),
            ("C_d", "delete", 2.0),
        )
    ]

    def at_once(*_: object) -> tuple[list[Row], str]:
        return rows, ""

    monkeypatch.setattr("penstock_studies.lab.runner.in_a_process", at_once)


def test_list_has_all_names(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["experiment"], ["experiment", "list"]):
        assert cli.main(command) == 0
        shown = capsys.readouterr().out
        for each in registry.EXPERIMENTS:
            assert f"{each.name} " in shown
            assert each.title in shown
        for study in ("planners", "sets", "model", "jit"):
            assert f"\n  {study} " in shown


def test_an_unknown_name_is_refused_with_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["experiment", "jtree-15", "--quick"]) == cli.USER_ERROR
    said = capsys.readouterr().err
    assert "no experiment is called 'jtree-15'" in said
    assert "jit-10, jit-11" in said
    assert "hint: did you mean jtree-1" in said


@pytest.mark.parametrize("name", ["all", "jit-10", "planners"])
def test_help_of_a_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["experiment", name, "--help"])
    assert ended.value.code == 0
    assert f"example: penstock experiment {name}" in capsys.readouterr().out


def test_quick_and_full_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["experiment", "all", "--quick", "--full"])
    assert ended.value.code == 2
    assert "not allowed with" in capsys.readouterr().err


@pytest.mark.usefixtures("table_3")
def test_a_run_writes_data_plot_and_report_and_resumes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "docs" / "results.md"
    command = ["experiment", "jtree-table-3", "--folder", str(tmp_path / "kept")]
    assert cli.main([*command, "--report", str(page)]) == 0
    said = capsys.readouterr()
    assert "shape:    holds in part" in said.out
    assert "[1/1] jtree-table-3: calibration … 0 s, the last one" in said.err
    text = page.read_text()
    assert "JTree, Table 3" in text
    assert "(images/results/jtree-table-3.svg)" in text
    assert "Not run: JIT Figure 10" in text
    assert (tmp_path / "docs/images/results/jtree-table-3.svg").exists()
    assert (tmp_path / "kept/jtree-table-3.csv").read_text().startswith("operation,name,paper,here")
    # Nothing is left to do; without plots the page is beside the data.
    assert cli.main([*command, "--no-plots"]) == 0
    assert "[1/1]" not in capsys.readouterr().err
    assert "svg" not in (tmp_path / "kept/results.md").read_text()
    assert cli.main([*command, "--no-plots", "--again"]) == 0
    assert "[1/1]" in capsys.readouterr().err


def test_a_point_that_fails_is_told_and_the_exit_code_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("penstock_studies.lab.runner.in_a_process", lambda *_: (None, "it broke"))
    command = ["experiment", "jtree-table-3", "--folder", str(tmp_path), "--no-plots"]
    assert cli.main(command) == 1
    said = capsys.readouterr()
    assert "failed: it broke" in said.err
    assert "missing:  calibration: it broke" in said.out
    assert "shape:    not measured" in said.out


def test_without_matplotlib_nothing_is_measured_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert cli.main(["experiment", "all", "--folder", str(tmp_path)]) == cli.USER_ERROR
    said = capsys.readouterr().err
    assert "pip install 'penstock[experiments]', or run with --no-plots" in said
    assert not list(tmp_path.iterdir())


def test_time_left_is_told_in_seconds_or_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def made_up(weights: Sequence[float]) -> Experiment:
        return Experiment(
            "made-up", "Paper", "Figure 1", "title", "Claim.", "Setting.",
            lambda scale: [
                Point(measure_unit_costs, {"x": i}, f"x = {i}", each)
                for i, each in enumerate(weights)
            ],
            lambda rows: Chart(((Panel("", "x", "y", series_by(rows, "x", "x", "x")),),)),
            lambda rows: Verdict("holds", "yes"),
        )  # fmt: skip

    clock = iter(range(100))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    monkeypatch.setattr("penstock_studies.lab.runner.in_a_process", lambda *_: ([{"x": 1}], ""))
    monkeypatch.setattr(registry, "find", lambda name: [made_up([1, 10, 600, 1])])
    assert cli.main(["experiment", "made-up", "--folder", str(tmp_path), "--no-plots"]) == 0
    told = [line.rpartition("… ")[2] for line in capsys.readouterr().err.splitlines()]
    assert told == [
        "1 s, about 10 min left",
        "1 s, about 2 min left",
        "1 s, the last one",
        "1 s, the last one",
    ]


def test_without_the_studies_it_says_where_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in an environment with the installed package alone."""
    monkeypatch.setattr("penstock.cli.studies.find_spec", lambda name: None)
    for command in (["experiment", "all"], ["bench", "peers", "--quick"]):
        assert cli.main(command) == cli.USER_ERROR
        said = capsys.readouterr().err
        assert "not in the installed package" in said
        assert "pip install --editable" in said
