"""How state, network and CPU grow; see :mod:`penstock_studies.scale`. No paper has this."""

from __future__ import annotations

from collections.abc import Sequence

from penstock_studies.figures.judgement import as_float, judge, times
from penstock_studies.lab.chart import Chart, Panel, series_by
from penstock_studies.lab.experiment import Experiment, Point, Rows, Scale, Verdict
from penstock_studies.scale.cell_query import QUERIES
from penstock_studies.scale.cells_point import measure_cells
from penstock_studies.scale.power_law import exponent
from penstock_studies.scale.streams_point import FORMS, measure_streams
from penstock_studies.scale.window_point import JOINS, measure_window

WINDOWS = {
    "quick": (10_000, 100_000, 1_000_000, 10_000_000),
    "full": (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000),
}
STREAMS = {"quick": (2, 5, 10, 20), "full": (2, 3, 4, 5, 6, 8, 10, 12, 15, 20)}
CELLS = {
    "quick": "1 2 4 8 16 64 256 800 1000",
    "full": "1 2 4 8 16 32 64 128 256 512 800 1000",
}
BATCH, PACKED = 10_000, 100_000
"""Tuples over all streams in a push; rows that Spark hands to Python at a time."""
FLAT = 0.15
"""An exponent up to which a cost is said not to grow: three decades are then a factor of 2.8."""


def window_points(scale: Scale) -> list[Point]:
    return [
        Point(
            measure_window,
            {
                "join": join,
                "window": window,
                "batch": BATCH,
                "tuples": 1_000_000 if scale == "quick" else 5_000_000,
            },
            f"{join}, window of {window:,}",
            2.0 + window / 1e6,
        )
        for join in JOINS
        for window in WINDOWS[scale]
    ]


def window_chart(rows: Rows) -> Chart:
    own = [{**row, "MB": as_float(row["bytes"]) / 1e6} for row in rows]
    first = rows[0] if rows else {}
    caches = {name: as_float(first[name]) / 1e6 for name in ("L2", "L3") if name in first}
    cost = "CPU (ns per tuple)"
    return Chart(
        (
            (
                Panel(
                    "(a) by window", "rows of a window", cost,
                    series_by(own, "join", "window", "ns"), log_x=True,
                ),
                Panel(
                    "(b) by what is held", "state (MB)", cost, series_by(own, "join", "MB", "ns"),
                    log_x=True, marks=caches or None,
                ),
                Panel(
                    "(c) state", "rows of a window", "bytes per row",
                    series_by(own, "join", "window", "bytes_per_row"), log_x=True,
                ),
            ),
        )
    )  # fmt: skip


def window_verdict(rows: Rows) -> Verdict:
    checks, words = [], []
    for join in JOINS:
        own = sorted(
            (as_float(row["window"]), as_float(row["ns"]), as_float(row["bytes_per_row"]))
            for row in rows
            if row["join"] == join
        )
        if len(own) < 2:
            return Verdict("not measured", "windows are missing")
        grown = exponent([each[0] for each in own], [each[1] for each in own])
        checks += [grown <= FLAT, max(e[2] for e in own) <= 2 * min(e[2] for e in own)]
        words.append(
            f"{join}: {own[0][1]:.0f} ns at {own[0][0]:,.0f} rows, {own[-1][1]:.0f} ns at "
            f"{own[-1][0]:,.0f} ({times(own[-1][1] / own[0][1])}), "
            f"{min(e[2] for e in own):.0f} to {max(e[2] for e in own):.0f} bytes a row"
        )
    return judge(checks, "; ".join(words))


def stream_points(scale: Scale) -> list[Point]:
    quick = scale == "quick"
    return [
        Point(
            measure_streams,
            {
                "shape": shape,
                "streams": count,
                "window": 10_000 if quick else 100_000,
                "batch": BATCH,
                "tuples": 150_000 if quick else 1_000_000,
            },
            f"{shape} of {count}",
            (1.5 + count / 6) * (1 if quick else 10),
        )
        for shape in ("chain", "star")
        for count in STREAMS[scale]
    ]


def stream_chart(rows: Rows) -> Chart:
    def panel(title: str, shape: str, label: str, y: str) -> Panel:
        own = [row for row in rows if row["shape"] == shape]
        return Panel(title, "streams", label, series_by(own, "form", "streams", y))

    cost, state = "CPU (ns per tuple)", "state (bytes per row)"
    return Chart(
        (
            (
                panel("(a) chain", "chain", cost, "ns"),
                panel("(b) star", "star", cost, "ns"),
            ),
            (
                panel("(c) chain", "chain", state, "bytes_per_row"),
                panel("(d) star", "star", state, "bytes_per_row"),
            ),
        )
    )


def stream_verdict(rows: Rows) -> Verdict:
    checks, words = [], []
    for shape in ("chain", "star"):
        said = []
        for form in FORMS:
            own = sorted(
                (as_float(row["streams"]), as_float(row["ns"]), as_float(row["bytes_per_row"]))
                for row in rows
                if row["shape"] == shape and row["form"] == form
            )
            if len(own) < 2:
                return Verdict("not measured", "streams are missing")
            grown = exponent([each[0] for each in own], [each[1] for each in own])
            checks += [grown <= 1.1, grown <= 2.0]
            said.append(
                f"{form} {own[0][1]:.0f} to {own[-1][1]:.0f} ns (as N^{grown:.2f}) and "
                f"{own[-1][2]:.0f} bytes"
            )
        words.append(f"{shape}: {', '.join(said)}")
    return judge(checks, "; ".join(words))


def cell_points(scale: Scale) -> list[Point]:
    quick = scale == "quick"
    return [
        Point(
            measure_cells,
            {
                "query": name,
                "cells": CELLS[scale],
                "rows": 200_000 if quick else 2_000_000,
                "batch": PACKED,
            },
            f"{name}, cells",
            4.0 if quick else 30.0,
        )
        for name in QUERIES
    ]


def cell_chart(rows: Rows) -> Chart:
    def panel(title: str, label: str, y: str, log: bool = True) -> Panel:
        lines = series_by(rows, "query", "cells", y)
        return Panel(title, "cells", label, lines, log_x=True, log_y=log)

    return Chart(
        (
            (
                panel("(a) network", "copies of a tuple", "copies"),
                panel("(b) skew", "fullest worker / mean", "skew"),
                panel("(c) load", "of all tuples, in the fullest", "share"),
            ),
            (
                panel("(d) routing and packing", "CPU (ns per tuple)", "pack_ns"),
                panel("(e) unpacking", "CPU (ns per copy)", "unpack_ns"),
                panel("(f) cells, with those of hot values", "cells", "placed"),
            ),
        )
    )


def cell_verdict(rows: Rows) -> Verdict:
    checks, words = [], []
    for name, query in QUERIES.items():
        own = sorted(
            (as_float(row["cells"]), as_float(row["copies"]), as_float(row["skew"]))
            for row in rows
            if row["query"] == name
        )
        if len(own) < 2:
            return Verdict("not measured", "queries are missing")
        cells, copies, skew = own[-1]
        if query.zipf is None:
            expected = cells ** (1 - 1 / query.packing)
            checks += [copies <= 1.05 * expected, skew < 2]
            words.append(f"{name} {copies:.3g} copies (p^(1 - 1/τ) = {expected:.3g})")
        else:
            if query.hot is not None:
                checks.append(skew < 2)
            words.append(f"{name} {copies:.3g} copies, fullest {times(skew)} the mean")
    even = max(as_float(r["skew"]) for r in rows if QUERIES[str(r["query"])].zipf is None)
    return judge(
        checks, f"{', '.join(words)}; without Zipf the fullest has at most {times(even)} the mean"
    )


EXPERIMENTS: Sequence[Experiment] = (
    Experiment(
        name="scale-window",
        paper="Scale",
        figure="windows",
        title="cost of a tuple as windows grow",
        claim="No paper has this; what one expects is a cost that does not grow with the window, "
        "but for the step where the state no longer fits the cache.",
        setting="Embedded engine, windows full, pushes of 10,000 tuples; domains grow with the "
        "windows, so that a tuple always finds as many partners. In the smallest a push is a third "
        "of a window and more.",
        points=window_points,
        chart=window_chart,
        verdict=window_verdict,
    ),
    Experiment(
        name="scale-streams",
        paper="Scale",
        figure="streams",
        title="cost of a tuple as streams are added",
        claim="No paper has this; what one hopes for is a cost in proportion to the number N of "
        "streams. What one must expect is up to N²: a tuple meets N - 1 others, and each time "
        "the parts that it has met so far are copied.",
        setting="Embedded engine, windows full, pushes of 10,000 tuples over all streams; each "
        "tuple has one partner in every stream that it is joined with, and is in one result.",
        points=stream_points,
        chart=stream_chart,
        verdict=stream_verdict,
        table=lambda rows: [{k: v for k, v in row.items() if k != "plan"} for row in rows],
    ),
    Experiment(
        name="scale-cells",
        paper="Scale",
        figure="cells",
        title="copies, skew and the cost of sending as cells are added",
        claim="Beame, Koutris and Suciu: on p cells a tuple is sent about p^(1 - 1/τ) times, τ the "
        "fractional packing of the query. Where hot values have cells of their own, one hopes that "
        "no worker has twice the mean.",
        setting="A simulation with the real code for placement, routing and packing: all streams "
        "are equally fast and uniform, but in the last three queries one is by Zipf; there "
        "are as many workers as cells were asked for. It is a sample that is spread: the fewer "
        "tuples a cell has, the more chance makes one fuller than others.",
        points=cell_points,
        chart=cell_chart,
        verdict=cell_verdict,
    ),
)
