"""What the figures of JISC leave open: every strategy over domains and pushes, and propositions.

Figures 7 and 8 have one value per tuple of a window and batches of one size, and do not count the
call that changes the plan. Here the number of values, the size of pushes and the number of joins
vary, moving state, STAIRs and parallel track with the paper's purge checks stand beside the others,
and it is checked that the plan which is timed is the plan that runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock_studies.figures.judgement import as_float, judge, times
from penstock_studies.jisc.strategies import HOW
from penstock_studies.jisc_point import measure_propositions, measure_strategies
from penstock_studies.lab.chart import Chart, Panel, series
from penstock_studies.lab.experiment import Experiment, Point, Row, Rows, Scale, Verdict

LABELS = {
    "unchanged": "old plan",
    "jisc": "JISC",
    "auto": "auto",
    "moving-state": "Moving State",
    "parallel-track": "Parallel Track",
    "purge-checks": "with purge checks",
    "cacq": "CACQ",
    "stairs": "STAIRs",
    "stairs-lazy": "lazy STAIRs",
}
WINDOWS = {1: 1_000, 100: 10_000, 1_000: 10_000}
"""Tuples of a window by tuples of a push: a window of 10,000 is 10,000 pushes of one tuple."""
LARGEST_WITH_MANY_PARTNERS = 4
"""Joins with half a value per tuple, at most: with two partners in each stream, 20 joins make a
million results of every tuple."""


def strategy_points(scale: Scale) -> list[Point]:
    """By the number of values, the tuples of a push, and the joins."""
    settings: list[tuple[int, float, int]] = [(20, domain, 100) for domain in (1.5, 10.0)]
    if scale == "full":
        settings = [
            *((LARGEST_WITH_MANY_PARTNERS, 0.5, push) for push in WINDOWS),
            *((20, domain, push) for domain in (1.0, 1.5, 10.0) for push in WINDOWS),
            *((joins, domain, 100) for joins in (50, 100) for domain in (1.5, 10.0)),
        ]
    rounds = 3 if scale == "quick" else 5
    return [
        Point(
            measure_strategies,
            {
                "joins": joins,
                "window": WINDOWS[push],
                "batch": push,
                "domain": domain,
                "case": case,
                "rounds": rounds,
            },
            f"{case} case, {joins} joins, {domain:g} values per tuple, pushes of {push:,}",
            0.5 * joins * rounds,
        )
        for case in ("best", "worst")
        for joins, domain, push in settings
    ]


def strategy_table(rows: Rows) -> Rows:
    """Milliseconds by strategy, and megabytes of the three that differ."""
    return [
        {
            "case": row["case"],
            "joins": row["joins"],
            "values per tuple": row["domain"],
            "push": row["batch"],
            **{f"{LABELS[name]} ms": 1000 * as_float(row[f"{name} s"]) for name in HOW},
            **{
                f"{LABELS[name]} MB": row[f"{name} MB"]
                for name in ("unchanged", "jisc", "parallel-track")
            },
        }
        for row in rows
    ]


def strategy_chart(rows: Rows) -> Chart:
    """Over the old plan with no change, by values per tuple, where most was measured."""
    panels = []
    for letter, case in zip("ab", ("best", "worst"), strict=True):
        own = [_ratios(row) for row in rows if row["case"] == case and row["batch"] == 100]
        own = [row for row in own if row["joins"] == 20]
        panels.append(
            Panel(
                f"({letter}) {case} case, 20 joins",
                "values per tuple of a window",
                "times the old plan",
                tuple(
                    series(own, label, "domain", name)
                    for name, label in LABELS.items()
                    if name != "unchanged"
                ),
                log_x=True,
                limits={"old plan": 1.0},
            )
        )
    return Chart((tuple(panels),))


def _ratios(row: Row) -> dict[str, object]:
    alone = as_float(row["unchanged s"])
    return {**row, **{name: as_float(row[f"{name} s"]) / alone for name in HOW}}


def strategy_verdict(rows: Rows) -> Verdict:
    """In the worst case JISC within 1.3 times moving state, which halts; in the best ahead of
    parallel track with purge checks by half."""
    words, checks = [], []
    for case, other, most in (("worst", "moving-state", 1.3), ("best", "purge-checks", 1.5)):
        own = [row for row in rows if row["case"] == case and as_float(row["joins"]) >= 20]
        if not own:
            continue
        if case == "worst":
            found = [as_float(row["jisc s"]) / as_float(row[f"{other} s"]) for row in own]
            checks.append(max(found) <= most)
            words.append(f"worst case: JISC takes {_span(found)} as long as moving state")
        else:
            found = [as_float(row[f"{other} s"]) / as_float(row["jisc s"]) for row in own]
            checks.append(min(found) >= most)
            words.append(
                f"best case: parallel track with purge checks takes {_span(found)} as long as JISC"
            )
    return judge(checks, "; ".join(words))


def _span(ratios: Sequence[float]) -> str:
    low, high = times(min(ratios)), times(max(ratios))
    return low if low == high else f"{low} to {high}"


def proposition_points(scale: Scale) -> list[Point]:
    return [
        Point(measure_propositions, {"joins": joins, "draws": 4_000}, f"{joins} joins", 1.0)
        for joins in ((5, 20, 100) if scale == "quick" else (5, 10, 20, 50, 100, 200))
    ]


def proposition_chart(rows: Rows) -> Chart:
    shares: list[Mapping[str, object]] = [
        {
            "joins": row["joins"],
            "simulated": as_float(row["simulated"]) / as_float(row["joins"]),
            "formula": row["expected share"],
            "spread": as_float(row["simulated variance"]) ** 0.5 / as_float(row["joins"]),
            "its formula": as_float(row["variance"]) ** 0.5 / as_float(row["joins"]),
        }
        for row in rows
    ]
    panels = (
        ("(a) complete states", "share of all", {"simulated": "simulated", "formula": "formula"}),
        ("(b) spread", "standard deviation", {"spread": "simulated", "its formula": "formula"}),
    )
    return Chart(
        (
            tuple(
                Panel(
                    title,
                    "number of joins",
                    y_label,
                    tuple(series(shares, label, "joins", key) for key, label in lines.items()),
                    log_x=True,
                )
                for title, y_label, lines in panels
            ),
        )
    )


def proposition_verdict(rows: Rows) -> Verdict:
    errors = [
        abs(as_float(row["expected"]) - as_float(row["simulated"])) / as_float(row["error"])
        for row in rows
    ]
    spreads = [as_float(row["simulated variance"]) / as_float(row["variance"]) for row in rows]
    shares = [as_float(row["expected share"]) for row in rows]
    return judge(
        [max(errors) <= 4, 0.8 <= min(spreads) <= max(spreads) <= 1.25, shares == sorted(shares)],
        f"simulated means are at most {max(errors):.1f} standard errors from the formula, "
        f"variances {_span(spreads)} the formula's; "
        f"{shares[0]:.0%} to {shares[-1]:.0%} are complete",
    )


EXPERIMENTS: Sequence[Experiment] = (
    Experiment(
        name="jisc-strategies",
        paper="JISC",
        figure="Figures 7 and 8, every strategy",
        title="a change of plan by domain, pushes and joins",
        claim="JISC and moving state take about as long in all, and JISC does not halt; parallel "
        "track takes up to ten times as long in the best case.",
        setting="Left-deep plans over windows of 10,000 tuples (1,000 where a push is one tuple), "
        "from the call that changes the plan for 1.1 windows; the least of each push in several "
        "rounds, and it is checked that the plan which is timed is the plan that runs.",
        points=strategy_points,
        chart=strategy_chart,
        verdict=strategy_verdict,
        table=strategy_table,
    ),
    Experiment(
        name="jisc-propositions",
        paper="JISC",
        figure="Propositions 1 to 3",
        title="complete states after two streams have changed places",
        claim="About n - n / (2 ln n) of n states are complete, with a variance of n² / (6 ln n); "
        "the share tends to 1.",
        setting="4,000 random exchanges for each number of joins, states counted by Definition 1.",
        points=proposition_points,
        chart=proposition_chart,
        verdict=proposition_verdict,
    ),
)
