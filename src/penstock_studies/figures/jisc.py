"""Figures 7 to 12 of JISC (Aly, Aref and others, section 6): what changing a plan costs.

Execution times are CPU seconds of this engine, columnar and in batches; the paper's are of Java,
tuple at a time. Parallel track shares its windows with the old plan here, and CACQ routes whole
batches: both are much cheaper than what the paper compares with.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock_studies.figures.judgement import as_float, judge, times
from penstock_studies.jisc_point import (
    measure_frequency,
    measure_latency,
    measure_normal,
    measure_stage,
)
from penstock_studies.lab.chart import Chart, Panel, Series, series
from penstock_studies.lab.experiment import Experiment, Point, Rows, Scale, Verdict

STRATEGIES = {"jisc": "JISC", "parallel-track": "Parallel Track", "cacq": "CACQ"}
WINDOW, BATCH, JOINS = 10_000, 1_000, 20
"""Of the paper: tuples per window, and joins in Figures 9, 11 and 12; the batch is ours."""


def stage_points(case: str, scale: Scale) -> list[Point]:
    """The paper has up to 100 joins in batches of ten; here it is up to 20."""
    quick = scale == "quick"
    return [
        Point(
            measure_stage,
            {
                "joins": joins,
                "window": WINDOW,
                "batch": BATCH,
                "case": case,
                "rounds": 1 if quick else 5,
            },
            f"{joins} joins, {case} case",
            (1.0 + joins / 3) * (1 if quick else 5),
        )
        for joins in ((4, 8, 12, 16, 20) if quick else tuple(range(2, 21, 2)))
    ]


def stage_chart(rows: Rows) -> Chart:
    speedups = [
        {**row, name: as_float(row[f"{name} s"]) / as_float(row["jisc s"])}
        for row in rows
        for name in STRATEGIES
    ]
    axis = "number of joins"
    return Chart(
        (
            (
                Panel(
                    "(a) running time",
                    axis,
                    "execution time (s)",
                    tuple(
                        series(rows, label, "joins", f"{name} s")
                        for name, label in STRATEGIES.items()
                    ),
                ),
                Panel(
                    "(b) speedup of JISC",
                    axis,
                    "times as fast",
                    tuple(
                        series([r for r in speedups if name in r], label, "joins", name)
                        for name, label in STRATEGIES.items()
                        if name != "jisc"
                    ),
                    limits={"as fast": 1.0},
                ),
            ),
        )
    )


def best_case_verdict(rows: Rows) -> Verdict:
    """The paper has a factor of up to ten here: to be ahead is a part of it."""
    return stage_verdict(rows, _FAR_AHEAD)


_FAR_AHEAD = 3.0


def stage_verdict(rows: Rows, ahead: float = 1.0) -> Verdict:
    last = max(rows, key=lambda row: as_float(row["joins"]))
    track, eddy = (as_float(last[f"{name} s"]) / as_float(last["jisc s"]) for name in OTHERS)
    measured = (
        f"with {last['joins']} joins parallel track takes {times(track)} as long as JISC, CACQ "
        f"{times(eddy)}"
    )
    if "unchanged s" in last:
        alone = as_float(last["unchanged s"]) / as_float(last["jisc s"])
        measured += f"; the old plan with no transition, {times(alone)}"
    return judge([track > 1, eddy > 1, track > ahead], measured)


OTHERS = ("parallel-track", "cacq")


def normal_chart(rows: Rows) -> Chart:
    names = [str(row["strategy"]) for row in rows]
    return Chart(
        (
            (
                Panel(
                    "normal operation",
                    "",
                    "execution time (s)",
                    (
                        Series(
                            "three windows, 20 joins",
                            tuple(float(i) for i in range(len(rows))),
                            tuple(as_float(row["s"]) for row in rows),
                        ),
                    ),
                    kind="bars",
                    categories=tuple(names),
                ),
            ),
        )
    )


def normal_verdict(rows: Rows) -> Verdict:
    of = {str(row["strategy"]): as_float(row["s"]) for row in rows}
    overhead = of["jisc"] / of["symmetric hash join"] - 1
    eddy = of["cacq"] / of["jisc"]
    return judge(
        [overhead < 0.05, eddy > 1.5],
        f"JISC takes {overhead:+.0%} against symmetric hash joins; CACQ {times(eddy)} as long",
    )


def latency_points(scale: Scale) -> list[Point]:
    sizes = {"hash": [1_000, 10_000, 100_000], "nested-loops": [300, 1_000, 3_000]}
    if scale == "full":
        sizes = {
            "hash": [10_000, 100_000, 1_000_000],
            "nested-loops": [1_000, 3_000, 10_000, 30_000],
        }
    return [
        Point(
            measure_latency, {"join": join, "window": window}, f"{join}, windows of {window:,}", 6.0
        )
        for join, windows in sizes.items()
        for window in windows
    ]


def latency_chart(rows: Rows) -> Chart:
    return Chart(
        (
            tuple(
                Panel(
                    f"({letter}) {words}",
                    "window size (tuples)",
                    "latency (s)",
                    tuple(
                        series([r for r in rows if r["join"] == join], label, "window", f"{name} s")
                        for name, label in (("jisc", "JISC"), ("moving-state", "Moving State"))
                    ),
                    log_x=True,
                    log_y=True,
                )
                for letter, join, words in (
                    ("a", "hash", "hash joins"),
                    ("b", "nested-loops", "nested loops"),
                )
            ),
        )
    )


def latency_verdict(rows: Rows) -> Verdict:
    checks, words = [], []
    for join in ("hash", "nested-loops"):
        own = [row for row in rows if row["join"] == join]
        if own:
            last = max(own, key=lambda row: as_float(row["window"]))
            ours, moving = as_float(last["jisc s"]), as_float(last["moving-state s"])
            checks.append(moving > 2 * ours)
            words.append(
                f"{join}, windows of {last['window']:,}: JISC {1000 * ours:.1f} ms, moving state "
                f"{1000 * moving:.1f} ms"
            )
    return judge(checks, "; ".join(words))


def frequency_points(case: str, scale: Scale) -> list[Point]:
    """The paper: every 1 to 10 million of 20 million tuples, 5 to 50 windows of 20 streams."""
    quick = scale == "quick"
    return [
        Point(
            measure_frequency,
            {
                "joins": 10 if quick else JOINS,
                "window": WINDOW,
                "batch": BATCH,
                "case": case,
                "every": every,
                "windows": 2.0 if quick else 8.0,
                "rounds": 1 if quick else 3,
            },
            f"a transition every {every:g} windows, {case} case",
            4.0 if quick else 60.0,
        )
        for every in ((0.2, 0.5, 1.0, 2.0) if quick else (0.2, 0.5, 1.0, 2.0, 4.0))
    ]


def frequency_chart(rows: Rows) -> Chart:
    return Chart(
        (
            (
                Panel(
                    "plan transitions",
                    "windows between transitions",
                    "execution time (s)",
                    tuple(
                        series(rows, label, "every", f"{name} s")
                        for name, label in STRATEGIES.items()
                    ),
                ),
            ),
        )
    )


def frequency_verdict(rows: Rows) -> Verdict:
    spans, checks = [], []
    for name in OTHERS:
        ratios = [as_float(row[f"{name} s"]) / as_float(row["jisc s"]) for row in rows]
        checks.append(min(ratios) > 1)
        spans.append(f"{STRATEGIES[name]} {times(min(ratios))} to {times(max(ratios))}")
    return judge(checks, f"execution time over that of JISC: {', '.join(spans)}")


def _stage(number: int, case: str, claim: str) -> Experiment:
    return Experiment(
        name=f"jisc-{number}",
        paper="JISC",
        figure=f"Figure {number}",
        title=f"the migration stage by number of joins, {case} case",
        claim=claim,
        setting="Left-deep plans over windows of 10,000 tuples, from the transition until parallel "
        "track discards the old plan.",
        points=lambda scale: stage_points(case, scale),
        chart=stage_chart,
        verdict=best_case_verdict if case == "best" else stage_verdict,
    )


def _frequency(number: int, case: str) -> Experiment:
    return Experiment(
        name=f"jisc-{number}",
        paper="JISC",
        figure=f"Figure {number}",
        title=f"execution time by frequency of transitions, {case} case",
        claim="JISC has a higher throughput than CACQ and parallel track at any frequency.",
        setting="Left-deep plans (10 joins, full: 20) over windows of 10,000 tuples; after each "
        f"transition {'all states are' if case == 'worst' else 'one state is'} incomplete.",
        points=lambda scale: frequency_points(case, scale),
        chart=frequency_chart,
        verdict=frequency_verdict,
    )


EXPERIMENTS: Sequence[Experiment] = (
    _stage(
        7, "best", "With many joins JISC is up to ten times faster than parallel track; CACQ is "
        "in between."
    ),
    _stage(8, "worst", "Also with no complete state JISC beats parallel track and CACQ."),
    Experiment(
        name="jisc-9",
        paper="JISC",
        figure="Figure 9",
        title="normal operation, all states complete",
        claim="JISC adds next to nothing to symmetric hash joins, and is nearly twice as fast as "
        "CACQ.",
        setting="A left-deep plan of 20 joins over windows of 10,000 tuples, some time after a "
        "transition.",
        points=lambda scale: [Point(measure_normal, {"small": False}, "20 joins", 20.0)],
        chart=normal_chart,
        verdict=normal_verdict,
    ),
    Experiment(
        name="jisc-10",
        paper="JISC",
        figure="Figure 10",
        title="latency of the first result after a transition, by window size",
        claim="The latency of JISC is negligible; that of moving state grows with the window and "
        "is very high for nested loops.",
        setting="Left-deep plans of 3 joins, all states incomplete.",
        points=latency_points,
        chart=latency_chart,
        verdict=latency_verdict,
    ),
    _frequency(11, "worst"),
    _frequency(12, "best"),
)  # fmt: skip
