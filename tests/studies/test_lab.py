"""The machinery of experiments: bounded points, resumed runs, data, plots and the page."""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from made_up import (
    made_up,
    measure_broken,
    measure_large,
    measure_process,
    measure_slow,
    points,
)

import penstock
from penstock.errors import PenstockError
from penstock_studies.lab import drawing
from penstock_studies.lab.chart import Chart, Panel, Series, series, series_by
from penstock_studies.lab.code_version import version_of
from penstock_studies.lab.data_file import write_data
from penstock_studies.lab.experiment import Point, Row
from penstock_studies.lab.machine import this_machine
from penstock_studies.lab.report import markdown_table, relative_to_page, report
from penstock_studies.lab.runner import (
    Bench,
    Bounds,
    Outcome,
    Progress,
    collect,
    in_a_process,
    run,
)
from penstock_studies.lab.store import Measured, Store

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _workers_find_the_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    known = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{HERE}{os.pathsep}{known}")


def ticks() -> Iterator[float]:
    """A clock that goes on by a second whenever somebody looks."""
    now = 0.0
    while True:
        yield now
        now += 1.0


def at_once(point: Point, seed: int, bounds: Bounds) -> tuple[list[Row] | None, str]:
    """In this process."""
    return list(point.measure(point.parameters, seed)), ""


def bench(measure: Callable[..., tuple[list[Row] | None, str]] = at_once) -> Bench:
    clock = ticks()
    return Bench(this_machine(), lambda: next(clock), lambda: "2031-05-06T07:08:09+00:00", measure)


def test_a_run_gives_rows_data_plot_and_page(tmp_path: Path) -> None:
    experiment = made_up("squares", *points({"x": 1}, {"x": 2}, {"x": 3}))
    told: list[Progress] = []
    store = Store(tmp_path, "abc")
    (outcome,) = run([experiment], "quick", 7, store, bench(), told.append)
    assert [row["y"] for row in outcome.rows] == [8, 11, 16]
    assert not outcome.failures
    assert [each.state for each in told] == ["running", "done"] * 3
    assert [each.left for each in told] == [3, 2, 2, 1, 1, 0]

    data = write_data(outcome, tmp_path / "data")
    with data.open() as file:
        assert [row["y"] for row in csv.DictReader(file)] == ["8", "11", "16"]
    about = json.loads(data.with_suffix(".json").read_text())
    assert about["verdict"] == "holds"
    assert about["seed"] == 7
    assert about["points"][0]["machine"]["penstock"] == penstock.__version__
    assert about["points"][0]["code"] == "abc"

    page = report([outcome], Path("images"), "penstock experiment squares")
    assert "2031-05-06, seed 7, code abc" in page
    assert "Squares grow \\| always." in page
    assert "**holds**" in page
    assert "![Figure 1 of Paper, measured](images/squares.svg)" in page
    assert "| 3 | 16 | square |" in page


def test_what_was_measured_is_not_measured_again(tmp_path: Path) -> None:
    counted = str(tmp_path / "counted")
    one, two = points({"x": 1, "counted": counted}, {"x": 2, "counted": counted})
    store = Store(tmp_path, "abc")
    run([made_up("first", one)], "quick", 1, store, bench())
    # An interrupted run: one point is there, and shared by two experiments.
    outcomes = run([made_up("first", one), made_up("both", one, two)], "quick", 1, store, bench())
    assert Path(counted).read_text() == "1\n2\n"
    assert [len(each.rows) for each in outcomes] == [1, 2]
    run([made_up("both", one, two)], "quick", 1, store, bench())
    assert Path(counted).read_text() == "1\n2\n"
    run([made_up("both", one, two)], "quick", 1, store, bench(), again=True)
    assert Path(counted).read_text() == "1\n2\n1\n2\n"
    for other in (Store(tmp_path, "another code"), Store(tmp_path / "elsewhere", "abc")):
        assert other.get(one, 1) is None
    assert store.get(one, 2) is None
    found = store.get(one, 1)
    assert found is not None
    assert found.rows[0]["y"] == 2


def test_a_damaged_file_is_measured_again(tmp_path: Path) -> None:
    (point,) = points({"x": 5})
    store = Store(tmp_path, "abc")
    run([made_up("squares", point)], "quick", 1, store, bench())
    (file,) = (tmp_path / "points").iterdir()
    file.write_text(file.read_text()[:-20])
    assert store.get(point, 1) is None
    (outcome,) = run([made_up("squares", point)], "quick", 1, store, bench())
    assert outcome.rows[0]["y"] == 26


def test_failures_of_processes_are_told_and_the_others_go_on(tmp_path: Path) -> None:
    work = [
        *points({"x": 1}, measure=measure_broken),
        *points({"x": 3}, measure=measure_large),
        *points({"x": 4}, measure=measure_process),
    ]
    experiment = made_up("mixed", *work)
    store = Store(tmp_path, "abc")
    told: list[Progress] = []
    processes = bench(in_a_process)
    (outcome,) = run([experiment], "quick", 1, store, processes, told.append, Bounds(300.0, 3000))
    assert outcome.failures == {
        "x = 1": "ValueError: it broke",
        "x = 3": "MemoryError",
    }
    (row,) = outcome.rows
    assert row["x"] != os.getpid()
    assert [each.state for each in told if each.state != "running"] == ["failed", "failed", "done"]
    assert "x = 3 is missing: MemoryError." in report([outcome], None, "…")
    assert collect(experiment, "quick", 1, store).failures["x = 1"] == "not measured yet"


def test_a_point_that_takes_too_long_is_stopped() -> None:
    (point,) = points({"x": 1}, measure=measure_slow)
    assert in_a_process(point, 1, Bounds(0.5)) == (None, "stopped after 0.5 s")


def test_an_experiment_that_was_not_run_is_named(tmp_path: Path) -> None:
    experiment = made_up("absent", *points({"x": 1}))
    page = report([collect(experiment, "quick", 1, Store(tmp_path, "abc"))], None, "…")
    assert "Nothing has been measured yet." in page
    assert "Not run: Paper Figure 1 (`absent`)." in page
    assert experiment.judge([]).standing == "not measured"


def test_long_tables_are_cut_and_say_so() -> None:
    experiment = made_up("long")
    rows: list[Row] = [{"x": i, "y": i, "line": "a"} for i in range(100)]
    measured = Measured("f", {}, 1, "abc", "2031-01-01", 1.0, this_machine(), rows)
    page = report([Outcome(experiment, "quick", 1, (measured,))], None, "…")
    assert "… and 40 rows more in the data file." in page


def test_tables_of_the_page() -> None:
    assert markdown_table([{"a": 1234567, "b": None}, {"a": 2.0, "c": True, "d|": "x|y"}]) == [
        "| a | b | c | d\\| |",
        "| ---: | ---: | ---: | --- |",
        "| 1,234,567 | – | – | – |",
        "| 2 | – | yes | x\\|y |",
    ]
    assert markdown_table([{"a": float("nan"), "b": 12345.6}])[-1] == "| – | 12,346 |"
    assert relative_to_page(Path("docs/images/r"), Path("docs/page.md")) == Path("images/r")


def test_the_version_of_the_code_is_of_what_is_measured(tmp_path: Path) -> None:
    source = Path(penstock.__file__).parents[1]
    packages = [tmp_path / "penstock", tmp_path / "penstock_studies"]
    for package in packages:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source / package.name, package, ignore=ignored)
    before = version_of(*packages)
    for file in ("penstock/cli/main.py", "penstock_studies/lab/report.py"):
        with (tmp_path / file).open("a") as out:
            out.write("# shown differently\n")
        assert version_of(*packages) == before
    for file in ("penstock/engine/engine.py", "penstock_studies/jisc_point.py"):
        with (tmp_path / file).open("a") as out:
            out.write("# measured differently\n")
        now = version_of(*packages)
        assert now != before
        before = now


def test_series_are_sorted_and_gaps_are_kept() -> None:
    rows: list[Row] = [
        {"x": 3, "y": 1, "g": "b"},
        {"x": 1, "y": None, "g": "b"},
        {"x": 2, "y": 5, "g": "a"},
    ]
    found = series(rows, "all", "x", "y")
    assert list(found.x) == [1, 2, 3]
    assert math.isnan(found.y[0])
    assert [each.label for each in series_by(rows, "g", "x", "y")] == ["b", "a"]


def test_a_series_has_as_many_x_as_y() -> None:
    with pytest.raises(ValueError, match="2 x, 1 y"):
        Series("s", (1, 2), (1,))


def test_charts_are_drawn_alike_twice(tmp_path: Path) -> None:
    line = Series("one", (1, 2, 3), (1, 4, float("nan")))
    cloud = Series("two", (1, 2), (3, 4))
    everything = Chart(
        (
            (
                Panel("(a)", "x", "y", (line, cloud), marks={"now": 2.0}, limits={"limit": 3.0}),
                Panel("(b)", "x", "y", (cloud,), kind="scatter", log_x=True, log_y=True),
            ),
            (Panel("(c)", "x", "y", (line,), kind="bars", categories=("p", "q", "r")),),
            (Panel("(d) nothing", "x", "y", ()),),
        )
    )
    assert everything.labels == ["one", "two"]
    first, second = tmp_path / "a" / "one.svg", tmp_path / "two.svg"
    drawing.draw(everything, first)
    drawing.draw(everything, second)
    assert first.read_bytes() == second.read_bytes()
    assert first.read_text().rstrip().endswith("</svg>")


def test_without_matplotlib_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PenstockError, match=r"pip install 'penstock\[experiments\]'"):
        drawing.draw(Chart(((Panel("", "", "", ()),),)), tmp_path / "file.svg")
