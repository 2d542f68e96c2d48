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
ROUNDS = 5
"""Rounds of full figures: of fewer, noise is larger than what is to be seen."""
OTHER_SETTINGS = ((1.5, BATCH), (10.0, BATCH), (1.0, 100))
"""Values per tuple of a window, and tuples of a push, beside those of the charts, in full."""


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
                "rounds": 1 if quick else ROUNDS,
            },
            f"{joins} joins, {case} case",
            (1.0 + joins / 3) * (1 if quick else ROUNDS),
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


def settings(scale: Scale) -> list[tuple[float, int]]:
    """Values per tuple of a window, and tuples of a push."""
    return [(1.0, BATCH), *(OTHER_SETTINGS if scale == "full" else ())]


def _charted(rows: Rows) -> Rows:
    """Those of the first setting: the others are in the table."""
    first = rows[0]
    return [row for row in rows if all(row[name] == first[name] for name in ("domain", "batch"))]


def normal_points(scale: Scale) -> list[Point]:
    rounds = 3 if scale == "quick" else ROUNDS
    return [
        Point(
            measure_normal,
            {"joins": JOINS, "window": WINDOW, "batch": batch, "domain": domain, "rounds": rounds},
            f"{JOINS} joins, {domain:g} values per tuple, pushes of {batch:,}",
            8.0 * rounds,
        )
        for domain, batch in settings(scale)
    ]


def normal_chart(rows: Rows) -> Chart:
    rows = _charted(rows)
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
    plain, eddies = (
        [as_float(row["of jisc"]) for row in rows if row["strategy"] == name]
        for name in ("symmetric hash join", "cacq")
    )
    overheads = [1 / each - 1 for each in plain]
    return judge(
        [max(overheads) < 0.05, min(eddies) > 1.5],
        f"JISC takes {_span(overheads, '{:+.0%}')} against symmetric hash joins; "
        f"CACQ {_span(eddies, '{:.2g}×')} as long",
    )


def _span(values: Sequence[float], form: str) -> str:
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low} to {high}"


LATENCY_SIZES: dict[Scale, dict[str, tuple[int, ...]]] = {
    "quick": {
        "hash": (1_000, 10_000, 100_000),
        "nested-loops": (300, 1_000, 3_000),
        "theta": (1_000, 3_000, 10_000),
    },
    "full": {
        "hash": (10_000, 100_000, 1_000_000),
        "nested-loops": (1_000, 3_000, 10_000, 30_000),
        "theta": (1_000, 3_000, 10_000, 30_000),
    },
}
"""Tuples of a window, by how streams are joined."""
LATENCY_JOINS = {"hash": "hash joins", "nested-loops": "nested loops", "theta": "bands"}


def latency_points(scale: Scale) -> list[Point]:
    """Pushes are of a thousandth of a window, and of ten tuples at least; in full there are other
    numbers of values and joins, over windows of the second size."""
    points = [
        (join, 3, 1.0, window)
        for join, windows in LATENCY_SIZES[scale].items()
        for window in windows
    ]
    if scale == "full":
        for join, windows in LATENCY_SIZES[scale].items():
            points += [(join, joins, domain, windows[1]) for joins, domain in ((3, 1.5), (6, 1.0))]
    rounds = 3 if scale == "quick" else ROUNDS
    return [
        Point(
            measure_latency,
            {
                "join": join,
                "joins": joins,
                "window": window,
                "batch": max(10, window // 1_000),
                "domain": domain,
                "rounds": rounds,
            },
            f"{join}, {joins} joins, windows of {window:,}, {domain:g} values per tuple",
            2.0 * rounds,
        )
        for join, joins, domain, window in points
    ]


def _latencies(rows: Rows, join: str) -> Rows:
    """Those of the chart, by window."""
    return [r for r in rows if (r["join"], r["joins"], r["domain"]) == (join, 3, 1.0)]


def latency_chart(rows: Rows) -> Chart:
    return Chart(
        (
            tuple(
                Panel(
                    f"({letter}) {words}",
                    "window size (tuples)",
                    "latency (s)",
                    tuple(
                        series(_latencies(rows, join), label, "window", f"{name} s")
                        for name, label in (("jisc", "JISC"), ("moving-state", "Moving State"))
                    ),
                    log_x=True,
                    log_y=True,
                )
                for letter, (join, words) in zip("abc", LATENCY_JOINS.items(), strict=True)
            ),
        )
    )


def latency_verdict(rows: Rows) -> Verdict:
    checks, words = [], []
    for join in LATENCY_JOINS:
        own = _latencies(rows, join)
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
                "batch": batch,
                "domain": domain,
                "case": case,
                "every": every,
                "windows": 2.0 if quick else 8.0,
                "rounds": 1 if quick else ROUNDS,
            },
            f"a transition every {every:g} windows, {case} case, {domain:g} values per tuple, "
            f"pushes of {batch:,}",
            4.0 if quick else 20.0 * ROUNDS,
        )
        for domain, batch in settings(scale)
        for every in ((0.2, 0.5, 1.0, 2.0) if quick else (0.2, 0.5, 1.0, 2.0, 4.0))
    ]


def frequency_chart(rows: Rows) -> Chart:
    rows = _charted(rows)
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
        "transition. In full also with other numbers of values, and pushes of 100.",
        points=normal_points,
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
        setting="Left-deep plans of 3 joins, all states incomplete: by hash and by nested loops on "
        "one column, and by bands (x near to y) from each stream to the next, where no index of "
        "equal values helps. In full also with 6 joins, and 1.5 values per tuple.",
        points=latency_points,
        chart=latency_chart,
        verdict=latency_verdict,
    ),
    _frequency(11, "worst"),
    _frequency(12, "best"),
)  # fmt: skip
