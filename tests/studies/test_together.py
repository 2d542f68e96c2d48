"""Each alone and all together: the workload drifts and bursts, and verdicts go both ways."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

import penstock
from penstock_studies.figures import together as figure
from penstock_studies.lab.drawing import draw
from penstock_studies.lab.experiment import Row
from penstock_studies.together import (
    Drifting,
    Trace,
    capacity_of,
    configurations,
    measure_together,
    slowed_down,
)

SMALL = Drifting(rate=400, phase=4, phases=2, window=1)


def test_rates_burst_and_selectivities_drift() -> None:
    batches = list(SMALL.batches(1))
    assert len(batches) == SMALL.seconds * SMALL.slices
    rows = [batch["A"].num_rows for batch in batches]
    assert rows[:8] == [100] * 8
    assert rows[8:12] == [200] * 4
    for second, batch in zip(range(SMALL.seconds), batches[::4], strict=True):
        assert batch["B"]["ts"][0].as_py() == 1000 * second
        first, other = (max(batch["A"][name].to_pylist()) for name in ("a_b", "a_c"))
        assert (first < other) == (second < SMALL.phase)
    times = [time for batch in batches for time in batch["C"]["ts"].to_pylist()]
    assert times == sorted(times)


def test_plans_and_probes() -> None:
    assert Drifting(others=3).as_written == "(((A B) C) D)"
    # 2 + 2 · 12 + 1 probes for a tuple of each stream as written, 2 + 2 · 0.1 + 1 in the better
    # order; the last probe of a tree is that of its own stream.
    assert Drifting(rate=1).probes() == pytest.approx(((3 + 24) * (3 + 0.2)) ** 0.5)


def test_all_configurations_that_are_exact_agree() -> None:
    found: dict[str, int] = {}
    for name in ("as written", "JTree alone", "JIT alone"):
        engine = configurations(SMALL)[name]()
        found[name] = sum(engine.push(batch).num_rows for batch in SMALL.batches(1))
    assert len(set(found.values())) == 1
    assert found["as written"] > 100


def test_delay_and_results_in_time() -> None:
    workload = Drifting(slices=1, phase=2, phases=2)
    # One second each, half a core: done at 1.2, 3.8 (0.6 + 2 late by 1.8), 5.4, 5.6.
    trace = Trace([0.1, 0.9, 0.8, 0.1], [5, 7, 11, 13], ["p"] * 4)
    rows = slowed_down(trace, workload, 0.5)
    assert [row["delay"] for row in rows] == pytest.approx([0.2, 1.8, 2.4, 1.6])
    assert [row["in_time"] for row in rows] == [5, 5, 5, 5]
    rows = slowed_down(trace, workload, 1.0)
    assert [row["in_time"] for row in rows] == [5, 12, 23, 36]


def test_capacity_is_between_two_plans() -> None:
    workload = Drifting(slices=1, phase=8, window=2)
    found = {
        "as written": Trace([0.4] * 32, [1] * 32, []),
        "JTree alone": Trace([0.1] * 32, [1] * 32, []),
    }
    assert capacity_of(workload, found) == pytest.approx(0.2)


def test_a_tiny_run(tmp_path: Path) -> None:
    rows = measure_together({**asdict(SMALL), "rounds": 1}, 1)
    lines = figure.summary(rows)
    assert [line["configuration"] for line in lines if line["left out"] is None][:3] == [
        "as written",
        "JTree alone",
        "JIT alone",
    ]
    assert len(lines) == len(configurations(SMALL))
    file = tmp_path / "together.svg"
    draw(figure.chart(rows), file)
    assert file.exists()
    assert "results in time: as written" in figure.verdict(rows).measured


def test_what_an_engine_cannot_do_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(penstock.Engine, "history", raising=False)
    rows = measure_together({**asdict(SMALL), "rounds": 1}, 1)
    left_out = {row["configuration"] for row in rows if "left_out" in row}
    assert {"JTree + JISC", "all, shed", "all, defer"} <= left_out
    verdict = figure.verdict(rows)
    assert verdict.standing == "not measured"
    assert "not in this version: JTree + JISC" in verdict.measured


def test_verdicts_go_both_ways() -> None:
    def judged(shed: float, defer: float) -> str:
        shares = {"as written": 10.0, "JIT alone": 50.0, "all, shed": shed, "all, defer": defer}
        rows: list[Row] = [
            {
                "configuration": name, "second": 1.0, "cpu": 0.1, "in_time": share, "delay": 0.0,
                "capacity": 1.0, "made": 100, "exact": 100, "plan_changes": 0,
            }
            for name, share in shares.items()
        ]  # fmt: skip
        return figure.verdict(rows).standing

    assert judged(60, 70) == "holds"
    assert judged(40, 70) == "holds in part"
    assert judged(40, 30) == "does not hold"
