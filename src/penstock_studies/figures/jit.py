"""Figures 10 to 17 of JIT (Yang and Papadias, section VI), and what they cannot show.

The paper's own algorithm is in the upper row of each figure: CPU time and memory, which are judged
as in the paper, and *comparisons* beside them (the paper's loops compare value by value; here a
column is compared at once, so CPU time understates what is saved). The engine is in the lower row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from penstock_studies.figures.judgement import as_float, judge, per_cent, times
from penstock_studies.jit.figure_point import BEST_PLAN, measure_lost, measure_setting
from penstock_studies.jit.setting import BUSHY, FIGURES, Setting, points_of
from penstock_studies.lab.chart import Chart, Panel, series_by
from penstock_studies.lab.experiment import Experiment, Point, Rows, Scale, Verdict

HOURS = 5.0
"""Of event time, in the paper."""
AXES = {
    "window": "window size w (min)",
    "rate": "stream rate λ (/sec)",
    "streams": "# of sources N",
    "largest": "max data value d_max",
}
SYMBOLS = {"window": "w", "rate": "λ", "streams": "N", "largest": "d_max"}
CLAIMS = {
    10: "JIT needs less than a tenth of the CPU time of REF and up to 62 % less memory; the gain "
    "grows with w",
    11: "as with w: JIT saves more as λ grows",
    12: "JIT is far below REF in CPU time and memory, and its cost grows more slowly with N; the "
    "memory of REF goes up in steps (4 and 5 sources alike, 6 and 7 alike)",
    13: "the cost of both falls as d_max grows; above 200 that of JIT stays about the same",
    14: "the effect is smaller than in bushy plans, but JIT has a clear advantage, most at large w",
    15: "as with w: a clear advantage, most at large λ",
    16: "JIT outperforms REF and scales more gracefully with N",
    17: "REF is expensive for d_max < 50, while JIT handles even that",
}
ORDER_OF_MAGNITUDE = 10.0
CLEAR = 1.2
"""Times less: what a reader of a chart would call a clear advantage."""


def _figure(number: int) -> Experiment:
    default, varied, _ = FIGURES[number]
    return Experiment(
        name=f"jit-{number}",
        paper="JIT",
        figure=f"Figure {number}",
        title=f"CPU time and memory by {AXES[varied]}, {default.shape} plan",
        claim=CLAIMS[number] + ".",
        setting=f"Around {default}. The literal algorithm with nested loops (above), and the "
        "engine in pushes of 10 s (below).",
        points=lambda scale: points(number, scale),
        chart=lambda rows: chart(rows, varied),
        verdict=lambda rows: verdict(rows, number),
        table=lambda rows: table(rows, varied),
    )


def points(number: int, scale: Scale) -> list[Point]:
    """Quick: the ends and the middle (but all N), for one and a half windows of event time."""
    settings = points_of(number)
    if scale == "quick" and FIGURES[number][1] != "streams":
        settings = sorted({settings[0], FIGURES[number][0], settings[-1]}, key=settings.index)
    return [
        Point(measure_setting, parameters(each, scale), str(each), _expected(each, scale))
        for each in settings
    ]


def parameters(setting: Setting, scale: Scale) -> dict[str, Any]:
    quick = scale == "quick"
    return {
        **asdict(setting),
        "window": float(setting.window),
        "rate": float(setting.rate),
        "hours": _hours(setting, scale),
        "batch": 10.0,
        "rounds": 2 if quick else 3,
        "seconds": 40.0 if quick else 900.0,
    }


def _hours(setting: Setting, scale: Scale) -> float:
    return 1.5 * setting.window / 60 if scale == "quick" else HOURS


def _expected(setting: Setting, scale: Scale) -> float:
    """About the seconds of a point: tuples that arrive, times the tuples that each looks at."""
    held = setting.window * setting.rate * setting.streams
    return (
        3.0
        + _hours(setting, scale)
        * setting.rate
        * setting.streams
        * held
        / math.sqrt(setting.largest)
        / 2
    )


def chart(rows: Rows, varied: str) -> Chart:
    axis = AXES[varied]
    done = [
        {
            **row,
            "kB": as_float(row["memory"]) / 1000,
            "millions": as_float(row["comparisons"]) / 1e6,
        }
        for row in rows
        if row["complete"]
    ]

    def panel(title: str, system: str, y: str, label: str, log: bool = False) -> Panel:
        own = [row for row in done if row["system"] == system]
        return Panel(title, axis, label, series_by(own, "form", varied, y), log_y=log)

    return Chart(
        (
            (
                panel("(a) the paper's algorithm", "literal", "cpu", "CPU time (s)"),
                panel("(b) the paper's algorithm", "literal", "kB", "peak memory (kB)"),
                panel(
                    "(c) the paper's algorithm", "literal", "millions", "comparisons (10⁶)", True
                ),
            ),
            (
                panel("(d) engine, nested loops", "engine, nested-loops", "cpu", "CPU time (s)"),
                panel("(e) engine, hash joins", "engine, hash", "cpu", "CPU time (s)"),
                panel("(f) engine, hash joins", "engine, hash", "kB", "peak memory (kB)"),
            ),
        )
    )


def table(rows: Rows, varied: str) -> Rows:
    return [
        {
            SYMBOLS[varied]: row[varied],
            "system": row["system"],
            "form": row["form"] if row["complete"] else f"{row['form']} (stopped)",
            "CPU s": row["cpu"],
            "comparisons": row["comparisons"],
            "partial results": row["partial_results"],
            "kB": round(as_float(row["memory"]) / 1000),
            "results": row["results"],
        }
        for row in rows
    ]


Curve = list[tuple[float, float]]


def ratios(
    rows: Rows, varied: str, system: str, form: str, column: str, reference: str = "REF"
) -> Curve:
    """By what is varied: ``reference`` / ``form``, where both runs are complete."""
    found: dict[float, dict[str, float]] = {}
    for row in rows:
        value = row[column]
        if row["system"] == system and row["complete"] and value is not None:
            found.setdefault(as_float(row[varied]), {})[str(row["form"])] = as_float(value)
    return [
        (x, each[reference] / each[form])
        for x, each in sorted(found.items())
        if each.get(form) and reference in each
    ]


def verdict(rows: Rows, number: int) -> Verdict:
    """Judged is the exact form of the algorithm, by CPU and memory; the rest is told."""
    _, varied, _ = FIGURES[number]
    cpu = ratios(rows, varied, "literal", "JIT, exact", "cpu")
    memory = ratios(rows, varied, "literal", "JIT, exact", "memory")
    if not cpu or not memory:
        return judge([], "")
    exact = _said(rows, varied, "JIT, exact", "REF")
    published = _said(rows, varied, "JIT as published", "REF as published")
    loops, hashed = (
        " and ".join(_span(ratios(rows, varied, f"engine, {join}", form, "cpu")) for form in FORMS)
        for join in ("nested-loops", "hash")
    )
    best = ratios(rows, varied, "engine, hash", BEST_PLAN, "cpu")
    parts = [
        f"{SYMBOLS[varied]} = {cpu[0][0]:g} to {cpu[-1][0]:g}: REF needs {exact} of JIT with the "
        f"rule that keeps it exact, and {published} of JIT as published",
        f"in the engine REF needs {loops} the CPU of JIT always on and by default with nested "
        f"loops, {hashed} with hash joins, and {_span(best)} that of the planner's plan",
    ]
    return judge(CHECKS[number](rows, cpu, memory), "; ".join(parts))


FORMS = ("JIT, asked first", "JIT, adaptive (default)")
"""Of the engine: always on, and by default."""


def _said(rows: Rows, varied: str, form: str, reference: str) -> str:
    """What ``reference`` needs against a literal ``form``."""
    cpu, compared, memory = (
        _span(ratios(rows, varied, "literal", form, column, reference))
        for column in ("cpu", "comparisons", "memory")
    )
    return f"{cpu} the CPU ({compared} the comparisons) and {memory} the memory"


def _is_growing(curve: Curve) -> bool:
    return curve[-1][1] > curve[0][1]


def _costs(rows: Rows, varied: str, form: str, column: str) -> Curve:
    """Of the literal algorithm."""
    return sorted(
        (as_float(row[varied]), as_float(row[column]))
        for row in rows
        if row["system"] == "literal" and row["form"] == form and row["complete"]
    )


def _order_of_magnitude_growing(rows: Rows, cpu: Curve, memory: Curve) -> list[bool]:
    return [
        max(ratio for _, ratio in cpu) > ORDER_OF_MAGNITUDE,
        all(ratio > 1 for _, ratio in memory),
        _is_growing(cpu),
    ]


def _clear_growing(rows: Rows, cpu: Curve, memory: Curve) -> list[bool]:
    return [
        all(ratio > CLEAR for _, ratio in cpu),
        all(ratio > CLEAR for _, ratio in memory),
        _is_growing(cpu),
    ]


def _slower_growth_in_steps(rows: Rows, cpu: Curve, memory: Curve) -> list[bool]:
    """Steps: the fifth and the seventh source cost REF less than a third of what the next does."""
    held = dict(_costs(rows, "streams", "REF", "memory"))
    steps = [
        held[n + 1] - held[n] < (held[n + 2] - held[n + 1]) / 3
        for n in (4, 6)
        if {n, n + 1, n + 2} <= set(held)
    ]
    return [*_slower_growth(rows, cpu, memory), *([all(steps)] if steps else [])]


def _slower_growth(rows: Rows, cpu: Curve, memory: Curve) -> list[bool]:
    return [
        all(ratio > CLEAR for _, ratio in cpu),
        all(ratio > CLEAR for _, ratio in memory),
        _is_growing(cpu),
        _is_growing(memory),
    ]


def _falling(rows: Rows, cpu: Curve, memory: Curve) -> list[bool]:
    """Both fall; with more than 200 values, JIT by less than a third."""
    reference = _costs(rows, "largest", "REF", "cpu")
    ours = _costs(rows, "largest", "JIT, exact", "cpu")
    stable = [cost for x, cost in ours if x >= BUSHY.largest]
    return [
        reference[-1][1] < reference[0][1],
        ours[-1][1] < ours[0][1],
        min(stable) > 2 / 3 * max(stable),
    ]


def _handles_low_selectivity(rows: Rows, cpu: Curve, memory: Curve) -> list[bool]:
    """Below d_max = 50 REF becomes dearer by a third and more, JIT by less."""

    def rise(form: str) -> float:
        costs = dict(_costs(rows, "largest", form, "cpu"))
        return costs[min(costs)] / costs[max(costs)]

    return [rise("REF") > 4 / 3, rise("JIT, exact") < rise("REF"), all(r > CLEAR for _, r in cpu)]


CHECKS: dict[int, Callable[[Rows, Curve, Curve], list[bool]]] = {
    10: _order_of_magnitude_growing,
    11: _order_of_magnitude_growing,
    12: _slower_growth_in_steps,
    13: _falling,
    14: _clear_growing,
    15: _clear_growing,
    16: _slower_growth,
    17: _handles_low_selectivity,
}


def _span(curve: Curve) -> str:
    if not curve:
        return "–"
    first, last = times(curve[0][1]), times(curve[-1][1])
    return first if first == last else f"{first} to {last}"


LOST = Setting("bushy", 4, 0.5, 1, 8)
"""A bushy plan whose query has results: with the paper's own parameters there are none."""


def lost_points(scale: Scale) -> list[Point]:
    values = (4, 5, 6, 8, 10) if scale == "quick" else (4, 5, 6, 7, 8, 9, 10, 12)
    hours = 0.2 if scale == "quick" else 1.0
    return [
        Point(
            measure_lost,
            {**parameters(replace(LOST, largest=value), scale), "hours": hours},
            f"d_max = {value}",
            4.0 if scale == "quick" else 30.0,
        )
        for value in values
    ]


def lost_chart(rows: Rows) -> Chart:
    total = {
        as_float(row["largest"]): as_float(row["results"]) for row in rows if row["form"] == "REF"
    }
    shares = [
        {**row, "share": 100 * as_float(row["results"]) / total[as_float(row["largest"])]}
        for row in rows
        if total.get(as_float(row["largest"]))
    ]
    axis = AXES["largest"]
    return Chart(
        (
            (
                Panel(
                    "(a) results", axis, "results", series_by(rows, "form", "largest", "results"),
                    log_y=True,
                ),
                Panel(
                    "(b) share of all results", axis, "found (%)",
                    series_by(shares, "form", "largest", "share"),
                ),
            ),
        )
    )  # fmt: skip


def lost_verdict(rows: Rows) -> Verdict:
    total = _sum(rows, "REF")
    published, exact, engine = (
        _sum(rows, form) for form in ("JIT as published", "JIT, exact", "engine, asked first")
    )
    lost = per_cent((total - published) / total if total else None)
    return judge(
        [published == total],
        f"as published, {total - published:,} of {total:,} results ({lost}) are lost; with the "
        f"rule that two sub-tuples which agree may not both sleep, {total - exact:,} are; in the "
        f"engine {total - engine:,}",
    )


def _sum(rows: Rows, form: str) -> int:
    return sum(int(as_float(row["results"])) for row in rows if row["form"] == form)


EXPERIMENTS: Sequence[Experiment] = (
    *(_figure(number) for number in FIGURES),
    Experiment(
        name="jit-exactness",
        paper="JIT",
        figure="exactness",
        title="results found by a bushy plan, by max data value",
        claim="JIT gives exact results (section VII).",
        setting=f"{LOST.plan}, w = 30 s, λ = 1/s, for twelve minutes (full: an hour). The paper's "
        "own settings have no results at all, so nothing could be lost there.",
        points=lost_points,
        chart=lost_chart,
        verdict=lost_verdict,
    ),
)
