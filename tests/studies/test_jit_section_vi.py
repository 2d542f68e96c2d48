"""Section VI on a small scale: every system gives the same answer, and the tables say so."""

from __future__ import annotations

import pytest

from penstock.cli.main import main
from penstock_studies.jit.clique import in_batches
from penstock_studies.jit.measured_run import run_engine, run_literal
from penstock_studies.jit.section_vi import Row, rows_of, verdict
from penstock_studies.jit.setting import (
    BUSHY,
    FIGURES,
    LEFT_DEEP,
    PLANS,
    Setting,
    Shape,
    points_of,
)

SMALL = Setting("left-deep", 3, 0.5, 1, 6)
SMALL_BUSHY = Setting("bushy", 4, 0.5, 1, 8)


def ticking() -> float:
    """A clock that always shows the same time."""
    return 0.0


def test_defaults_are_those_of_table_iii() -> None:
    assert str(BUSHY) == "bushy (((A B)(C D))(E F)), w = 20 min, λ = 1/s, d_max = 200"
    assert str(LEFT_DEEP) == "left-deep (((A B) C) D), w = 10 min, λ = 1/s, d_max = 50"
    for figure, (default, _, values) in FIGURES.items():
        points = points_of(figure)
        assert len(points) == len(values)
        assert default in points


@pytest.mark.parametrize("shape", ["bushy", "left-deep"])
def test_every_plan_runs(shape: Shape) -> None:
    for streams in PLANS[shape]:
        setting = Setting(shape, streams, 1, 0.2, 3)
        tuples = setting.tuples(0.02, 1)
        found = {run_literal(setting, tuples, each, 60).results for each in ("off", "jit")}
        found.add(run_engine(setting, tuples, "jit", "hash", 10, 60).results)
        assert len(found) == 1


def test_one_stream_of_a_left_deep_plan_is_selective() -> None:
    tuples = LEFT_DEEP.tuples(0.1, 1)
    most = {s: max(max(t.row.values()) for t in tuples if t.stream == s) for s in "ABCD"}
    assert max(most["A"], most["B"], most["C"]) <= 50
    assert most["D"] > 4000
    assert abs(len(tuples) - 4 * 360) < 200


def test_batches_hold_all_tuples_in_order() -> None:
    tuples = SMALL.tuples(0.05, 1)
    batches = list(in_batches(SMALL.query, tuples, 10_000))
    assert sum(table.num_rows for each in batches for table in each.values()) == len(tuples)
    ends = [max(max(t["ts"].to_pylist()) for t in each.values()) for each in batches]
    assert ends == sorted(ends)


def test_all_systems_agree_and_feedback_makes_less() -> None:
    rows = list(rows_of(SMALL_BUSHY, 0.1, seed=1))
    assert len(rows) == 17
    exact = {row.run.results for row in rows if row.run.feedback != "as published"}
    assert len(exact) == 1
    assert exact.pop() > 0
    made = {(row.run.system, row.run.feedback): row.run.partial_results for row in rows}
    assert made["literal, nested loops", "jit"] < made["literal, nested loops", "off"]
    assert made["engine, hash", "jit"] < made["engine, hash", "off"]
    assert "results lost" in verdict(rows)


def test_a_run_that_takes_too_long_is_stopped_and_not_compared() -> None:
    tuples = SMALL.tuples(0.3, 1)
    whole = run_literal(SMALL, tuples, "off", 60, ticking)
    stopped = run_literal(SMALL, tuples, "jit", -1)
    assert whole.is_complete
    assert not stopped.is_complete
    row = Row(SMALL, stopped, whole)
    assert row.cpu_ratio is None
    assert row.memory_saved is None
    assert "jit (stopped)" in row.cells()
    assert not run_engine(SMALL, tuples, "off", "hash", 10, -1).is_complete


def test_the_command_prints_a_table_and_a_verdict(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock_studies.jit.section_vi.BUSHY", SMALL_BUSHY)
    monkeypatch.setattr("penstock_studies.jit.section_vi.LEFT_DEEP", SMALL)
    assert main(["experiment", "jit", "--quick"]) == 0
    printed = capsys.readouterr().out
    assert "REF/CPU" in printed
    assert printed.count("Paper: ") == 2
