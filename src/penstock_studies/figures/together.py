"""All four ideas together against each alone; see :mod:`penstock_studies.together`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict

from penstock_studies.figures.judgement import as_float, judge, per_cent
from penstock_studies.lab.chart import Chart, Panel, series_by
from penstock_studies.lab.experiment import Experiment, Point, Row, Rows, Scale, Verdict
from penstock_studies.together import IN_TIME, Drifting, measure_together

WORKLOAD: dict[Scale, Drifting] = {
    "quick": Drifting(),
    "full": Drifting(others=3, phases=9, rate=40_000),
}
TOGETHER = ("all, shed", "all, defer")


def points(scale: Scale) -> list[Point]:
    workload = WORKLOAD[scale]
    label = f"{1 + workload.others} streams, {workload.seconds} s"
    given = {**asdict(workload), "rounds": 2 if scale == "quick" else 3}
    return [Point(measure_together, given, label, 25.0 if scale == "quick" else 600.0)]


def _run(rows: Rows) -> list[Row]:
    return [row for row in rows if "left_out" not in row]


def chart(rows: Rows) -> Chart:
    own = [
        {**row, "ms": 1000 * as_float(row["cpu"]), "thousands": as_float(row["in_time"]) / 1000}
        for row in _run(rows)
    ]
    capacity = 1000 * as_float(own[0]["capacity"]) if own else math.nan
    axis = "time (s)"

    def panel(title: str, label: str, y: str, log: bool, limit: dict[str, float]) -> Panel:
        lines = series_by(own, "configuration", "second", y, is_plain=True)
        return Panel(title, axis, label, lines, log_y=log, limits=limit or None)

    return Chart(
        (
            (
                panel("(a) CPU", "CPU (ms per s)", "ms", True, {"the machine": capacity}),
                panel("(b) results in time", "so far (10³)", "thousands", False, {}),
                panel("(c) delay", "behind (s)", "delay", False, {"in time": IN_TIME}),
            ),
        )
    )


def summary(rows: Rows) -> list[dict[str, str | float | None]]:
    """One line for each configuration."""
    found: dict[str, list[Row]] = {}
    for row in _run(rows):
        found.setdefault(str(row["configuration"]), []).append(row)
    lines: list[dict[str, str | float | None]] = [
        {
            "configuration": name,
            "CPU s": sum(as_float(row["cpu"]) for row in own),
            "results %": 100 * as_float(own[-1]["made"]) / as_float(own[-1]["exact"]),
            "in time %": 100 * as_float(own[-1]["in_time"]) / as_float(own[-1]["exact"]),
            "most behind s": max(as_float(row["delay"]) for row in own),
            "changes of plan": as_float(own[-1]["plan_changes"]),
            "left out": None,
        }
        for name, own in found.items()
    ]
    lines += [
        {"configuration": str(row["configuration"]), "left out": str(row["left_out"])}
        for row in rows
        if "left_out" in row
    ]
    return lines


def verdict(rows: Rows) -> Verdict:
    lines = summary(rows)
    share = {
        str(line["configuration"]): as_float(line["in time %"]) / 100
        for line in lines
        if line["left out"] is None
    }
    words = ", ".join(f"{name} {per_cent(each)}" for name, each in share.items())
    measured = f"results in time: {words}"
    left_out = [str(line["configuration"]) for line in lines if line["left out"] is not None]
    if left_out:
        measured += f"; not in this version: {', '.join(left_out)}"
    together = [share[name] for name in TOGETHER if name in share]
    if not together:
        return Verdict("not measured", measured)
    alone = max(each for name, each in share.items() if name not in TOGETHER)
    return judge([max(together) >= alone, min(together) >= alone], measured)


EXPERIMENTS: Sequence[Experiment] = (
    Experiment(
        name="together",
        paper="All four",
        figure="together",
        title="each alone and all together on streams that drift and burst",
        claim="No paper has this; what one hopes for is more results in time than from any of them "
        "alone.",
        setting="A star join whose selective stream changes every 8 s, with bursts of twice the "
        "rate, on a machine between what the best and the written plan need.",
        points=points,
        chart=chart,
        verdict=verdict,
        table=summary,
    ),
)
