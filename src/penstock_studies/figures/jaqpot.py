"""Figures 11 to 13 of JAQPOT (Mukherji and others): throughput and freshness with too little CPU.

All by simulation of half-way joins, as in :mod:`penstock_studies.overload_figures`, which says
what the paper leaves open. What plots call ``tree-greedy`` and ``lifespan-greedy`` is ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from penstock_studies.figures.judgement import as_float, judge, times
from penstock_studies.jaqpot_point import (
    measure_as_written,
    measure_fluctuation,
    measure_freshness,
    measure_resources,
    measure_staleness,
)
from penstock_studies.lab.chart import Chart, Panel, series_by
from penstock_studies.lab.experiment import Experiment, Point, Row, Rows, Scale, Verdict

SHAPES = ("linear", "bushy")
FAMILIES = {"figure-10": "parameters of Figure 10", "selective": "selective"}
AS_WRITTEN = ("figure-10", "tenth")
"""Families for which the paper's formulas are computed as they stand."""
RUNS = {"quick": 2, "full": 5}
"""Random scenarios per point."""


def points_11(scale: Scale) -> list[Point]:
    slower = 4.0 if scale == "quick" else 1.0
    return [
        Point(measure_fluctuation, {"shape": shape, "slower": slower}, shape, 12 / slower + 1)
        for shape in SHAPES
    ]


def points_12(scale: Scale) -> list[Point]:
    runs = RUNS[scale]
    return [
        Point(
            measure_resources,
            {"shape": shape, "family": family, "runs": runs},
            f"{shape}, {family}",
            6.0 * runs,
        )
        for family in (*FAMILIES, "lifespans")
        for shape in SHAPES
    ] + [
        Point(
            measure_as_written,
            {"shape": shape, "family": family, "runs": 60 * runs},
            f"{shape}, {family}, as written",
            1.0 * runs,
        )
        for family in AS_WRITTEN
        for shape in SHAPES
    ]


def points_13(scale: Scale) -> list[Point]:
    runs = RUNS[scale]
    return [
        point
        for family in FAMILIES
        for shape in SHAPES
        for point in (
            Point(
                measure_staleness,
                {"shape": shape, "family": family, "runs": runs},
                f"{shape}, {family}, stale results",
                5.0 * runs,
            ),
            Point(
                measure_freshness,
                {"shape": shape, "family": family, "runs": 10 * runs},
                f"{shape}, {family}, resources",
                1.0 + runs / 5,
            ),
        )
    ]


def chart_11(rows: Rows) -> Chart:
    scaled = [{**row, "millions": as_float(row["results"]) / 1e6} for row in rows]
    return Chart(
        (
            tuple(
                Panel(
                    f"({letter}) {shape} plan",
                    "time (min)",
                    "cumulative throughput (10⁶ tuples)",
                    series_by(
                        [row for row in scaled if row["shape"] == shape],
                        "allocator",
                        "minute",
                        "millions",
                    ),
                    marks={"SEL2": 3.0, "SEL3": 7.0},
                )
                for letter, shape in zip("ab", SHAPES, strict=True)
            ),
        )
    )


def verdict_11(rows: Rows) -> Verdict:
    ratios = {}
    for shape in SHAPES:
        last = {
            str(row["allocator"]): as_float(row["results"])
            for row in rows
            if row["shape"] == shape and row["minute"] == 10
        }
        if last.get("jdam"):
            ratios[shape] = last["jaqpot"] / last["jdam"]
    words = ", ".join(f"{shape} {times(ratio)}" for shape, ratio in ratios.items())
    return judge(
        [ratio > 2 for ratio in ratios.values()],
        f"JAQPOT / JDAM after ten minutes at 30 % of the resources: {words}",
    )


def chart_12(rows: Rows) -> Chart:
    titles = {
        **FAMILIES,
        "lifespans": "lifespans, as in the engine",
        "figure-10, as written": "the paper's formulas",
    }
    letters = iter("abcdefgh")
    return Chart(
        tuple(
            tuple(
                Panel(
                    f"({next(letters)}) {shape}, {titles[family]}",
                    "available resources (% of saturation)",
                    "throughput (% of saturation)",
                    series_by(_own(rows, shape, family), "allocator", "resources", "throughput"),
                )
                for family in titles
            )
            for shape in SHAPES
        )
    )


def verdict_12(rows: Rows) -> Verdict:
    linear = _own(rows, "linear", "figure-10")
    if not linear:
        return judge([], "")
    at = {
        (str(row["allocator"]), round(as_float(row["resources"]))): as_float(row["throughput"])
        for row in linear
    }
    ratios = {
        share: at["jaqpot", share] / at["jdam", share]
        for share in range(10, 100, 10)
        if at.get(("jdam", share))
    }
    mean = sum(ratios.values()) / len(ratios)
    written = {
        family: {
            (str(row["allocator"]), round(as_float(row["resources"]))): as_float(row["throughput"])
            for row in _own(rows, "linear", f"{family}, as written")
        }
        for family in AS_WRITTEN
    }
    selective = {
        round(as_float(row["resources"])): as_float(row["throughput"])
        for row in _own(rows, "linear", "selective")
        if row["allocator"] == "grepp"
    }

    def by_the_letter(family: str) -> str:
        at = written[family]
        one_way = {s: at["grepp", s] / at["jdam, one way", s] for s in range(10, 100, 10)}
        return (
            f"{at['grepp, no cap', 60]:.0f} % at 60 %, and with the cap and a JDAM that uses one "
            f"half-way join of each {times(one_way[40])} at 40 %"
        )

    tail = ""
    if all(written.values()):
        tail = (
            ". 80 % cannot be had where a path is held to the rate of its stream, as equation 2 "
            f"wants: the optimum is {written['figure-10']['grepp', 60]:.0f} %. By the paper's "
            f"formulas without this cap: {by_the_letter('figure-10')}; with selectivities as in "
            f"its examples {by_the_letter('tenth')}"
        )
    return judge(
        [at["jaqpot", 60] > 80, mean >= 2.5, ratios.get(40, 0.0) > 5],
        f"linear: {at['jaqpot', 60]:.0f} % of the throughput at 60 % of the resources (selective "
        f"parameters: at most {selective.get(60, math.nan):.0f} %), {times(mean)} JDAM on average, "
        f"{times(ratios.get(40))} at 40 %{tail}",
    )


def chart_13(rows: Rows) -> Chart:
    letters = iter("abcdef")
    stale = [row for row in rows if "stale" in row]
    spent = [
        {**row, "line": f"{row['allocator']}, {row['shape']}"} for row in rows if "resources" in row
    ]
    axis = "freshness predicate (× window)"
    return Chart(
        tuple(
            (
                *(
                    Panel(
                        f"({next(letters)}) {shape}, {words}",
                        axis,
                        "stale tuples (%)",
                        series_by(_own(stale, shape, family), "allocator", "freshness", "stale"),
                    )
                    for shape in SHAPES
                ),
                Panel(
                    f"({next(letters)}) resources, {words}",
                    axis,
                    "resources for freshness (%)",
                    series_by(
                        [row for row in spent if row["family"] == family],
                        "line",
                        "freshness",
                        "resources",
                    ),
                ),
            )
            for family, words in FAMILIES.items()
        )
    )


def verdict_13(rows: Rows) -> Verdict:
    stale = [row for row in rows if "stale" in row]
    spent = [row for row in rows if "resources" in row and row["allocator"] == "jaqpot"]
    if not stale or not spent:
        return judge([], "")

    def worst(allocator: str, freshness: float, shape: str) -> float:
        found = [
            as_float(row["stale"])
            for row in stale
            if (row["allocator"], row["freshness"], row["shape"]) == (allocator, freshness, shape)
        ]
        return max((each for each in found if each == each), default=math.nan)

    def cost(freshness: float, shape: str) -> float:
        return next(
            as_float(row["resources"])
            for row in spent
            if (row["family"], row["freshness"], row["shape"]) == ("figure-10", freshness, shape)
        )

    covered = max(
        (
            as_float(row["stale"])
            for row in stale
            if row["allocator"] == "tree-greedy" and row["stale"] == row["stale"]
        ),
        default=math.nan,
    )
    infeasible = [as_float(row["infeasible"]) for row in spent if row["family"] == "figure-10"]
    return judge(
        [
            worst("grepp", 1.5, "linear") > 10,
            worst("jdam", 5.0, "linear") < worst("jdam", 1.5, "linear"),
            cost(5.0, "linear") < cost(1.5, "linear"),
            cost(5.0, "linear") < 6,
            cost(1.5, "bushy") > 20,
        ],
        f"stale results of GrePP at 1.5 windows: up to {worst('grepp', 1.5, 'linear'):.0f} % "
        f"linear, {worst('grepp', 1.5, 'bushy'):.0f} % bushy; of JDAM "
        f"{worst('jdam', 1.5, 'linear'):.0f} % at 1.5 windows, "
        f"{worst('jdam', 5.0, 'linear'):.0f} % at 5; with a cover {covered:.1f} %. Freshness "
        f"takes {cost(1.5, 'linear'):.1f} to {cost(5.0, 'linear'):.1f} % of the resources in "
        "linear plans, "
        f"{cost(1.5, 'bushy'):.1f} to {cost(5.0, 'bushy'):.1f} % in bushy ones; "
        f"{sum(infeasible) / len(infeasible):.1f} % are infeasible",
    )


def _own(rows: Rows, shape: str, family: str) -> list[Row]:
    return [row for row in rows if row["shape"] == shape and row["family"] == family]


def _wide(x: str, y: str, *more: str) -> Callable[[Rows], Rows]:
    """A column for each allocator."""

    def table(rows: Rows) -> Rows:
        found: dict[tuple[object, ...], dict[str, str | float | int | bool | None]] = {}
        for row in rows:
            if y in row:
                key = tuple(row[name] for name in (*more, x))
                line = found.setdefault(key, {name: row[name] for name in (*more, x)})
                line[str(row["allocator"])] = row[y]
        return list(found.values())

    return table


def table_13(rows: Rows) -> Rows:
    stale = _wide("freshness", "stale", "family", "shape")(rows)
    spent = {
        (row["family"], row["shape"], row["freshness"]): row
        for row in rows
        if "resources" in row and row["allocator"] == "jaqpot"
    }
    return [
        {
            "family": row["family"],
            "shape": row["shape"],
            "F / W": row["freshness"],
            **{f"stale %, {name}": row.get(name) for name in ("jdam", "grepp", "tree-greedy")},
            **{
                f"{name} %": each[name]
                for each in [spent.get((row["family"], row["shape"], row["freshness"]))]
                if each is not None
                for name in ("resources", "infeasible")
            },
        }
        for row in stale
    ]


_SIMULATED = "Simulation of half-way joins over 4 streams, parameters drawn from Figure 10."

EXPERIMENTS: Sequence[Experiment] = (
    Experiment(
        name="jaqpot-11",
        paper="JAQPOT",
        figure="Figure 11",
        title="cumulative throughput while selectivities change",
        claim="With 30 % of the resources JAQPOT gives far more results than JDAM, in linear and "
        "bushy plans.",
        setting="Simulation of half-way joins; selectivities change after 3 and 7 minutes, "
        "freshness is 1.5 windows. Quick: time is four times as fast.",
        points=points_11,
        chart=chart_11,
        verdict=verdict_11,
        table=_wide("minute", "results", "shape"),
    ),
    Experiment(
        name="jaqpot-12",
        paper="JAQPOT",
        figure="Figure 12",
        title="throughput by available resources",
        claim="In linear plans, more than 80 % of the throughput at 60 % of the resources, three "
        "times JDAM on average and 6.5 times at 40 %; bushy plans are similar.",
        setting=f"{_SIMULATED} *Selective* has selectivities a hundred times smaller; under "
        "*lifespans* states live as in the engine. Results of GrePP count also when stale.",
        points=points_12,
        chart=chart_12,
        verdict=verdict_12,
        table=_wide("resources", "throughput", "family", "shape"),
    ),
    Experiment(
        name="jaqpot-13",
        paper="JAQPOT",
        figure="Figure 13",
        title="stale results, and what freshness costs",
        claim="Without a cover JDAM and GrePP give many stale results, fewer as freshness is "
        "relaxed, more in bushy plans; JAQPOT spends 3 to 5 % of the resources at 5 windows, 35 % "
        "in bushy plans at 1.5; 8 % of the plans are infeasible.",
        setting=f"{_SIMULATED} µ = 300 probes/s for stale results, 10 to 100 % of saturation for "
        "resources.",
        points=points_13,
        chart=chart_13,
        verdict=verdict_13,
        table=table_13,
    ),
)
