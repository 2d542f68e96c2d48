"""Every figure: a tiny run gives rows that can be drawn and judged, and verdicts go both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.errors import OptionError
from penstock_studies.figures import jaqpot, jisc, jit, jtree
from penstock_studies.figures.registry import EXPERIMENTS, find
from penstock_studies.jaqpot_point import (
    measure_fluctuation,
    measure_freshness,
    measure_resources,
    measure_staleness,
)
from penstock_studies.jisc_point import (
    measure_frequency,
    measure_latency,
    measure_normal,
    measure_propositions,
    measure_stage,
    measure_strategies,
)
from penstock_studies.jit.figure_point import measure_lost, measure_setting
from penstock_studies.jit.setting import Setting
from penstock_studies.lab.drawing import draw
from penstock_studies.lab.experiment import Experiment, Row
from penstock_studies.planners import CLIMBERS, measure_streams

BY_NAME = {each.name: each for each in EXPERIMENTS}


def shown(experiment: Experiment, rows: list[Row], folder: Path) -> str:
    """Draw, tabulate and judge ``rows``: what was measured, in words."""
    file = folder / f"{experiment.name}.svg"
    draw(experiment.chart(rows), file)
    assert file.stat().st_size > 5_000
    assert experiment.table(rows)
    return experiment.judge(rows).measured


def test_names_are_unique_and_points_differ_by_scale() -> None:
    assert len(BY_NAME) == len(EXPERIMENTS)
    for each in EXPERIMENTS:
        quick, full = each.points("quick"), each.points("full")
        assert quick
        assert len(full) >= len(quick)
        assert len({point.label for point in full}) == len(full)
        assert each.claim.endswith(".")
        assert each.judge([]).standing == "not measured"
        for point in (*quick, *full):
            assert point.seconds > 0
            assert point.function.startswith("penstock_studies.")
            assert not point.function.startswith("penstock_studies.figures")


def test_quick_has_the_ends_and_the_default_and_shares_it() -> None:
    for numbers, default in (((10, 11, 12, 13), "bushy"), ((14, 15, 16, 17), "left-deep")):
        shared = {str(point.parameters) for point in BY_NAME[f"jit-{numbers[0]}"].points("quick")}
        for number in numbers:
            points = BY_NAME[f"jit-{number}"].points("quick")
            assert len(points) == {12: 5, 16: 4}.get(number, 3)
            assert all(point.parameters["shape"] == default for point in points)
            shared &= {str(point.parameters) for point in points}
        assert len(shared) == 1
    assert [p.parameters["window"] for p in BY_NAME["jit-10"].points("full")] == [
        10, 15, 20, 25, 30,
    ]  # fmt: skip
    assert all(p.parameters["hours"] == 5 for p in BY_NAME["jit-10"].points("full"))


def test_names_patterns_and_what_is_unknown() -> None:
    assert find("all") == list(EXPERIMENTS)
    assert [each.name for each in find("jit-12, jtree-*")] == [
        "jit-12",
        *(each.name for each in jtree.EXPERIMENTS),
    ]
    with pytest.raises(OptionError, match=r"jtree-table-3.*\n?hint: did you mean jit-10\?"):
        find("jit10")


def test_a_tiny_run_of_jit(tmp_path: Path) -> None:
    setting = Setting("bushy", 4, 0.5, 1.0, 8)
    rows: list[Row] = []
    for rate in (0.6, 1.0):
        small = Setting("bushy", 4, 0.5, rate, 8)
        rows += measure_setting({**jit.parameters(small, "quick"), "hours": 0.05}, 1)
    assert {row["results"] for row in rows if row["rate"] == 1.0 and "publ" not in row["form"]} == {  # type: ignore[operator]
        rows[-1]["results"]
    }
    assert len(rows) == 2 * 14
    assert "λ = 0.6 to 1" in shown(BY_NAME["jit-11"], rows, tmp_path)
    lost = measure_lost({**jit.parameters(setting, "quick"), "hours": 0.1}, 1)
    said = shown(BY_NAME["jit-exactness"], lost, tmp_path)
    assert said.endswith("0 are; in the engine 0")


def _jit(x: float, varied: str, ref: int, ours: int, memory: int = 50) -> list[Row]:
    common: dict[str, Any] = {
        "window": 20, "rate": 1, "streams": 6, "largest": 200, "system": "literal",
        "complete": True, "comparisons": 7, varied: x,
    }  # fmt: skip
    return [
        {**common, "form": "REF", "cpu": ref, "memory": 100},
        {**common, "form": "JIT, exact", "cpu": ours, "memory": memory},
    ]


Values = list[tuple[int, ...]]
"""x, CPU of REF and of JIT and, if they matter, bytes of JIT (REF has 100)."""


@pytest.mark.parametrize(
    ("number", "good", "mixed", "bad"),
    [
        (
            10,
            [(10, 100, 10), (30, 3000, 20)],
            [(10, 100, 90), (30, 3000, 2000)],
            [(10, 100, 120, 110), (30, 300, 400, 110)],
        ),
        (
            12,
            [(4, 100, 10, 60), (8, 900, 20, 40)],
            [(4, 100, 10, 60), (8, 100, 20, 40)],
            [(4, 100, 100, 100), (8, 90, 100, 101)],
        ),
        (
            13,
            [(100, 90, 20), (200, 60, 9), (300, 40, 8)],
            [(100, 90, 20), (200, 60, 9), (300, 40, 1)],
            [(100, 9, 2), (200, 9, 4), (300, 9, 9)],
        ),
        (
            14,
            [(5, 100, 50), (15, 900, 50)],
            [(5, 100, 50), (15, 100, 60)],
            [(5, 100, 90, 90), (15, 100, 99, 90)],
        ),
        (
            17,
            [(30, 900, 20), (50, 300, 15), (70, 100, 9)],
            [(30, 900, 50), (50, 300, 30), (70, 100, 1)],
            [(30, 100, 99), (70, 99, 90)],
        ),
    ],
)
def test_verdicts_on_jit(number: int, good: Values, mixed: Values, bad: Values) -> None:
    varied = {10: "window", 12: "streams", 13: "largest", 14: "window", 17: "largest"}[number]

    def judged(values: Values) -> str:
        rows = [
            row for x, ref, ours, *memory in values for row in _jit(x, varied, ref, ours, *memory)
        ]
        return BY_NAME[f"jit-{number}"].judge(rows).standing

    assert judged(good) == "holds"
    assert judged(mixed) == "holds in part"
    assert judged(bad) == "does not hold"


def test_runs_that_were_stopped_are_not_compared() -> None:
    rows = [{**row, "complete": False} for row in _jit(10, "window", 100, 1)]
    assert BY_NAME["jit-10"].judge(rows).standing == "not measured"
    assert jit.ratios(rows, "window", "literal", "JIT, exact", "comparisons") == []


def test_exactness_goes_both_ways() -> None:
    def judged(published: int) -> str:
        found = {
            "REF": 10,
            "JIT as published": published,
            "JIT, exact": 10,
            "engine, asked first": 10,
        }
        return jit.lost_verdict(
            [{"largest": 4, "form": form, "results": count} for form, count in found.items()]
        ).standing

    assert judged(10) == "holds"
    assert judged(7) == "does not hold"


def _bounded(name: str, draw: int, join: str = "hash", **kept: tuple[bool, bool]) -> list[Row]:
    """A set under bounds: for each plan, whether it is qualified and whether it kept them."""
    return [
        {
            "set": name, "join": join, "draw": draw, "plan": plan, "runs": "(A B C)",
            "second": second, "results": 50 * second, "queue": 0, "memory": 3,
            "model_cpu": 0.1, "model_memory": 5e6,
            "says": says, "keeps": keeps, "cpu": 0.1, "peak": 2e6 if plan == "mjoin" else 5e6,
            "capacity": 0.1, "limit": 4e6, "over": 0, "untold": 0, "changes": 0,
            "ended": None if keeps else "memory", "end": 2, "total": 100, "waiting": 0,
        }
        for plan, (says, keeps) in kept.items()
        for second in (1, 2)
    ]  # fmt: skip


YES, NO = (True, True), (False, False)


def test_verdicts_on_the_sets(tmp_path: Path) -> None:
    one = [
        *_bounded("1", 0, mjoin=YES, bjtree=YES, auto=YES),
        *_bounded("1", 0, "nested-loops", mjoin=YES, bjtree=YES, auto=YES),
    ]
    assert "2.5× its memory" in shown(BY_NAME["jtree-7"], one, tmp_path)
    assert jtree.verdict_7(one).standing == "holds"
    late = _bounded("1", 0, mjoin=YES, bjtree=YES, auto=(True, False))
    assert jtree.verdict_7(late).standing == "holds in part"

    loops = "nested-loops"
    two = _bounded("2", 0, loops, mjoin=NO, bjtree=YES, auto=YES)
    three = _bounded("3", 0, mjoin=YES, bjtree=NO, jtree=NO, auto=YES)
    four = _bounded(jtree.SET_4, 0, mjoin=NO, bjtree=NO, jtree=YES, auto=YES)
    good = jtree.verdict_8([*two, *three, *four])
    assert good.standing == "holds"
    assert "right about 8 of 8 runs" in good.measured
    draw(BY_NAME["jtree-8"].chart([*two, *three, *four]), tmp_path / "eight.svg")
    table = jtree.set_table([*two, *three, *four])
    ended = {(str(row["set"]), str(row["plan"])): row["ended"] for row in table}
    assert ended["3", "bjtree"] == "out of memory after 2 s"
    assert ended["3", "mjoin"] is None
    # The model is wrong about every plan, and auto keeps nothing.
    wrong = [
        *_bounded("2", 0, loops, mjoin=(False, True), bjtree=(True, False), auto=(True, False)),
        *_bounded("3", 0, mjoin=(True, False), bjtree=(False, True), auto=(True, False)),
        *_bounded(jtree.SET_4, 0, mjoin=(False, True), bjtree=(False, True), jtree=(True, False),
                  auto=(True, False)),
    ]  # fmt: skip
    bad = jtree.verdict_8(wrong)
    assert bad.standing == "does not hold"
    assert "right about 0 of 7 runs" in bad.measured
    assert "auto kept 0 of the 3 bounds" in bad.measured


def test_verdicts_on_graphs_that_were_run(tmp_path: Path) -> None:
    def graph(number: int, **kept: tuple[bool, bool]) -> list[Row]:
        return [
            {**row, "streams": 4, "graph": number}
            for row in _bounded("", 0, "hash", **kept)
            if row["second"] == 2
        ]

    rows = [
        *graph(0, mjoin=NO, bjtree=NO, jtree=YES, auto=YES),
        *graph(1, mjoin=NO, bjtree=NO, jtree=NO, auto=NO),
    ]
    assert "in 1 a jtree alone" in shown(BY_NAME["jtree-run"], rows, tmp_path)
    assert jtree.verdict_graphs(rows).standing == "holds"
    wrong = graph(0, mjoin=(False, True), bjtree=(True, False), auto=(True, False))
    assert jtree.verdict_graphs(wrong).standing == "holds in part"
    assert jtree.graph_table(rows)[0]["auto, where one fixed"] == "1 of 1"


def test_a_tiny_run_of_the_planners(tmp_path: Path) -> None:
    rows = [
        row
        for count in (3, 4, 5, 10)
        for row in measure_streams({"streams": count, "graphs": 4, "finder": count < 6}, 1)
    ]
    assert "two-layer plans 10 streams in" in shown(BY_NAME["jtree-13"], rows, tmp_path)
    draw(BY_NAME["jtree-14"].chart(rows), tmp_path / "fourteen.svg")
    summary = jtree.summary_14(rows)
    assert [row["N"] for row in summary] == [3, 5, 10]
    assert all(row["both"] <= min(row["state-selection"], row["state-removal"]) for row in summary)


def _planner(streams: int, planner: str, ms: float, qualified: int) -> Row:
    return {
        "kind": "planner", "streams": streams, "settings": 10, "planner": planner,
        "mean_ms": ms, "most_ms": ms, "qualified": qualified, "exists": 5,
    }  # fmt: skip


def test_verdicts_on_planners() -> None:
    def judged(finder: float, qualified: int) -> str:
        rows = [
            _planner(7, "jtree-finder", 1.0, 5),
            _planner(8, "jtree-finder", finder, 5),
            *(
                _planner(n, planner, 1.0, qualified)
                for n in (7, 8)
                for planner in (*CLIMBERS, "two-layer-paper", "two-layer")
            ),
        ]
        return jtree.verdict_13(rows).standing

    assert judged(10.0, 5) == "holds"
    assert judged(1.0, 4) == "does not hold"

    def tendency(selection: tuple[float, float], removal: tuple[float, float]) -> str:
        return jtree.verdict_14(
            [
                {
                    "kind": "plan",
                    "streams": 10,
                    "graph": 0,
                    "planner": name,
                    "cpu": cpu,
                    "memory": memory,
                }
                for name, (cpu, memory) in (
                    ("state-selection", selection),
                    ("state-removal", removal),
                )
            ]
        ).standing

    assert tendency((2.0, 10.0), (1.0, 20.0)) == "holds"
    assert tendency((1.0, 20.0), (2.0, 10.0)) == "does not hold"


def test_verdict_on_table_3(tmp_path: Path) -> None:
    def rows(join: float) -> list[Row]:
        return [
            {"operation": symbol, "name": symbol, "paper": 200.0, "here": here}
            for symbol, here in (("C_j", join), ("C_i", 10.0), ("C_d", 2.0))
        ]

    assert "20 and 100 times faster" in shown(BY_NAME["jtree-table-3"], rows(100.0), tmp_path)
    assert jtree.verdict_table_3(rows(100.0)).standing == "holds"
    assert jtree.verdict_table_3(rows(20.0)).standing == "holds in part"
    assert jtree.verdict_table_3(rows(5.0)).standing == "does not hold"


def test_a_tiny_run_of_jaqpot(tmp_path: Path) -> None:
    eleven = [
        row
        for shape in jaqpot.SHAPES
        for row in measure_fluctuation({"shape": shape, "slower": 60.0}, 1)
    ]
    assert "linear" in shown(BY_NAME["jaqpot-11"], eleven, tmp_path)
    thirteen: list[Row] = []
    for family in jaqpot.FAMILIES:
        for shape in jaqpot.SHAPES:
            given: dict[str, str | int] = {"shape": shape, "family": family, "runs": 1}
            thirteen += measure_freshness(given, 1)
            thirteen += [
                {**given, "allocator": name, "freshness": f, "stale": 10.0}
                for name in ("jdam", "grepp", "tree-greedy")
                for f in (1.5, 3.0, 5.0)
            ]
    assert "Freshness takes" in shown(BY_NAME["jaqpot-13"], thirteen, tmp_path)


def _resources(slope: float, jdam: float) -> list[Row]:
    return [
        {
            "shape": "linear", "family": "figure-10", "allocator": name,
            "resources": float(share), "throughput": factor * share,
        }
        for share in range(0, 101, 10)
        for name, factor in (("jaqpot", slope), ("jdam", jdam))
    ]  # fmt: skip


def test_verdicts_on_jaqpot(tmp_path: Path) -> None:
    assert jaqpot.verdict_12(_resources(1.5, 0.2)).standing == "holds"
    assert jaqpot.verdict_12(_resources(1.0, 0.33)).standing == "holds in part"
    assert jaqpot.verdict_12(_resources(0.5, 0.5)).standing == "does not hold"
    draw(jaqpot.chart_12(_resources(1.5, 0.2)), tmp_path / "twelve.svg")

    def after_ten_minutes(ours: float) -> str:
        return jaqpot.verdict_11(
            [
                {"shape": "linear", "allocator": name, "minute": 10.0, "results": results}
                for name, results in (("jaqpot", ours), ("jdam", 10.0))
            ]
        ).standing

    assert after_ten_minutes(40.0) == "holds"
    assert after_ten_minutes(11.0) == "does not hold"


def test_points_of_jaqpot_are_those_of_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The long runs are tested with the simulation; here it is what a row looks like."""
    module = "penstock_studies.overload_figures"
    table = [{"resources": 10.0, "jaqpot": 12.0, "jdam": 4.0}]
    for name in ("throughput_by_resources", "throughput_under_lifespans"):
        monkeypatch.setattr(f"{module}.{name}", lambda *_: table)
    for family in ("figure-10", "lifespans"):
        rows = measure_resources({"shape": "linear", "family": family, "runs": 1}, 1)
        assert [(row["allocator"], row["throughput"]) for row in rows] == [
            ("jaqpot", 12.0),
            ("jdam", 4.0),
        ]
        assert all(row["family"] == family for row in rows)
    monkeypatch.setattr(f"{module}.stale_results", lambda *_: [{"freshness": 1.5, "jdam": 4.0}])
    (row,) = measure_staleness({"shape": "bushy", "family": "selective", "runs": 1}, 1)
    assert row["stale"] == 4.0


def test_a_tiny_run_of_jisc(tmp_path: Path) -> None:
    small: dict[str, int | float | str]
    small = {"window": 200, "batch": 50, "case": "worst", "rounds": 2, "domain": 1.0}
    stages = [row for n in (3, 4) for row in measure_stage({**small, "joins": n}, 1)]
    assert "with 4 joins" in shown(BY_NAME["jisc-8"], stages, tmp_path)
    often = [
        row
        for every in (0.5, 1.0)
        for row in measure_frequency({**small, "joins": 3, "every": every, "windows": 1.0}, 1)
    ]
    assert "over that of JISC" in shown(BY_NAME["jisc-11"], often, tmp_path)
    assert "symmetric" in shown(
        BY_NAME["jisc-9"], measure_normal({**small, "joins": 3}, 1), tmp_path
    )
    latencies = [
        row
        for join, window in (("hash", 500), ("nested-loops", 200), ("theta", 1_000))
        for row in measure_latency(
            {**small, "joins": 3, "join": join, "window": window, "batch": 20}, 1
        )
    ]
    text = shown(BY_NAME["jisc-10"], latencies, tmp_path)
    assert "hash, windows of 500: JISC" in text
    assert "theta, windows of 1,000: JISC" in text


@pytest.mark.parametrize("number", range(7, 13))
def test_full_figures_of_jisc_take_five_rounds_and_other_settings(number: int) -> None:
    points = BY_NAME[f"jisc-{number}"].points("full")
    assert {point.parameters["rounds"] for point in points} == {5}
    varied = {"joins"} if number < 9 else {"domain"}
    for name in varied:
        assert len({point.parameters[name] for point in points}) > 1


def test_a_tiny_run_of_every_strategy(tmp_path: Path) -> None:
    rows = [
        row
        for case in ("best", "worst")
        for row in measure_strategies(
            {"joins": 3, "window": 60, "batch": 20, "domain": 1.5, "case": case, "rounds": 1}, 1
        )
    ]
    rows = [{**row, "joins": 20, "batch": 100} for row in rows]
    assert "as moving state" in shown(BY_NAME["jisc-strategies"], rows, tmp_path)
    counts = [row for n in (5, 20) for row in measure_propositions({"joins": n, "draws": 400}, 1)]
    assert "standard errors" in shown(BY_NAME["jisc-propositions"], counts, tmp_path)


def test_verdicts_on_all_strategies() -> None:
    judged = BY_NAME["jisc-strategies"].judge

    def row(case: str, **seconds: float) -> Row:
        return {"case": case, "joins": 20, **{f"{k} s": v for k, v in seconds.items()}}

    worst = row("worst", **{"jisc": 1.2, "moving-state": 1.0})
    best = row("best", **{"jisc": 1.0, "purge-checks": 1.6})
    assert judged([worst, best]).standing == "holds"
    assert judged([{**worst, "jisc s": 1.4}, best]).standing == "holds in part"
    assert judged([{**worst, "jisc s": 1.4}, {**best, "purge-checks s": 1.4}]).standing == (
        "does not hold"
    )


def test_verdicts_on_jisc() -> None:
    def stage(track: float, eddy: float) -> str:
        row: Row = {"joins": 9, "jisc s": 1.0, "parallel-track s": track, "cacq s": eddy}
        worse: Row = {"joins": 2, "jisc s": 1.0, "parallel-track s": 0.1, "cacq s": 0.1}
        assert jisc.frequency_verdict([row]).standing == jisc.stage_verdict([worse, row]).standing
        return jisc.stage_verdict([worse, row]).standing

    alone: Row = {"joins": 9, "jisc s": 2.0, "parallel-track s": 1, "cacq s": 1, "unchanged s": 1.5}
    assert "no transition, 0.75×" in jisc.stage_verdict([alone]).measured
    assert stage(2.0, 2.0) == "holds"
    assert stage(2.0, 0.5) == "holds in part"
    assert stage(0.5, 0.5) == "does not hold"
    far: Row = {"joins": 9, "jisc s": 1.0, "parallel-track s": 8, "cacq s": 2}
    assert jisc.best_case_verdict([far]).standing == "holds"
    assert jisc.best_case_verdict([{**far, "parallel-track s": 1.1}]).standing == "holds in part"

    def normal(plain: float, eddy: float) -> str:
        seconds = {"jisc": 1.0, "symmetric hash join": plain, "cacq": eddy}
        return jisc.normal_verdict(
            [{"strategy": n, "s": s, "of jisc": s} for n, s in seconds.items()]
        ).standing

    assert normal(1.01, 2.0) == "holds"
    assert normal(0.5, 2.0) == "holds in part"
    assert normal(0.5, 0.5) == "does not hold"

    def latency(moving: float) -> str:
        return jisc.latency_verdict(
            [
                {
                    "join": "hash",
                    "joins": 3,
                    "domain": 1.0,
                    "window": 10,
                    "jisc s": 1.0,
                    "moving-state s": moving,
                }
            ]
        ).standing

    assert latency(3.0) == "holds"
    assert latency(1.0) == "does not hold"
