"""Charts as files, by matplotlib: the one module that imports it, when it draws.

The figure is drawn on a canvas of its own, with no pyplot and no global state. The same chart gives
the same bytes: no date, and ids from a fixed salt.
"""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock_studies.lab.chart import Chart, Panel, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

COLOURS = (
    "#000000",
    "#d55e00",
    "#0072b2",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#7f7f7f",
)
"""Of Okabe and Ito: told apart also by those who do not see all colours."""
MARKERS = "osD^vPX*"
WIDTH, HEIGHT, LEGEND = 3.6, 2.7, 0.22
"""Inches of a panel, and of a line of the legend."""
MARKED_VALUES = 6
"""Values of x that are marked one by one."""
SPREAD_WITH_TICKS = 300.0
"""Times the smallest: up to there a logarithmic axis has ticks between the powers of ten."""

_STYLE: Any = {
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "penstock",
}


def require() -> None:
    """Say now, not after an hour of measuring, that plots cannot be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        raise PenstockError(
            "plots need matplotlib, and it cannot be found: pip install 'penstock[experiments]', "
            "or run with --no-plots"
        )


def draw(chart: Chart, file: Path) -> None:
    """Write ``chart`` to ``file``: SVG or PNG, by its suffix."""
    require()
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        legends = [_lines_of_legend(row) for row in chart.panels]
        heights = [HEIGHT + LEGEND * lines for lines in legends]
        columns = max(len(row) for row in chart.panels)
        figure = Figure(figsize=(WIDTH * columns, sum(heights)), layout="constrained")
        looks = {
            label: (COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)])
            for i, label in enumerate(chart.labels)
        }
        parts = figure.subfigures(len(chart.panels), 1, squeeze=False, height_ratios=heights)
        for part, row in zip(parts[:, 0], chart.panels, strict=True):
            axes = part.subplots(1, columns, squeeze=False)[0]
            handles: dict[str, Any] = {}
            for place, panel in zip(axes, row, strict=False):
                handles |= _panel(place, panel, looks)
            for place in axes[len(row) :]:
                place.set_axis_off()
            if handles:
                part.legend(
                    handles.values(),
                    handles.keys(),
                    loc="outside lower center",
                    ncols=_per_line(list(handles), len(row)),
                )
        file.parent.mkdir(parents=True, exist_ok=True)
        metadata = {"Date": None} if file.suffix == ".svg" else None
        figure.savefig(file, metadata=metadata, dpi=120)


def _panel(axes: Axes, panel: Panel, looks: dict[str, tuple[str, str]]) -> dict[str, Any]:
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    handles = {}
    for number, each in enumerate(panel.series):
        colour, marker = looks[each.label]
        handles[each.label] = _draw(axes, panel, each, number, colour, marker)
    ticks = sorted({x for each in panel.series for x in each.x})
    if panel.kind == "lines" and len(ticks) <= MARKED_VALUES and not panel.log_x:
        axes.set_xticks(ticks)
    if panel.categories:
        axes.set_xticks(range(len(panel.categories)), panel.categories)
        axes.grid(visible=False, axis="x")
    if panel.log_x:
        axes.set_xscale("log")
        _few_ticks(axes.xaxis, [x for each in panel.series for x in each.x])
    if panel.log_y:
        axes.set_yscale("log")
        _few_ticks(axes.yaxis, [y for each in panel.series for y in each.y])
    else:
        axes.set_ylim(bottom=0)
    for text, x in (panel.marks or {}).items():
        axes.axvline(x, color="#999999", linewidth=0.8, linestyle=":")
        axes.annotate(
            text, (x, 1), xycoords=("data", "axes fraction"), fontsize=7, color="#666666",
            ha="left", va="top", xytext=(2, 0), textcoords="offset points",
        )  # fmt: skip
    for text, y in (panel.limits or {}).items():
        axes.axhline(y, color="#b00000", linewidth=0.9, linestyle="--")
        axes.annotate(
            text, (1, y), xycoords=("axes fraction", "data"), fontsize=7, color="#b00000",
            ha="right", va="bottom", xytext=(0, 1), textcoords="offset points",
        )  # fmt: skip
    return handles


def _few_ticks(axis: Axis, values: list[float]) -> None:
    """1, 2 and 5 of each power of ten as plain numbers, or the powers if there are many."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    known = [value for value in values if value > 0 and math.isfinite(value)]
    if known and max(known) / min(known) < SPREAD_WITH_TICKS:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def _draw(axes: Axes, panel: Panel, each: Series, number: int, colour: str, marker: str) -> Any:
    if panel.kind == "bars":
        width = 0.8 / len(panel.series)
        shift = (number - (len(panel.series) - 1) / 2) * width
        return axes.bar([x + shift for x in each.x], each.y, width, color=colour)
    if panel.kind == "scatter":
        return axes.scatter(
            each.x, each.y, s=14, marker=marker, facecolors="none", edgecolors=colour,
            linewidths=0.9,
        )  # fmt: skip
    y = [math.nan if panel.log_y and value <= 0 else value for value in each.y]
    (line,) = axes.plot(each.x, y, color=colour, marker="" if each.is_plain else marker)
    return line


def _per_line(labels: list[str], panels: int) -> int:
    """How many entries a line of the legend has: what fits below so many panels, in equal lines."""
    widest = max(map(len, labels)) * 0.068 + 0.5
    fitting = max(1, int(WIDTH * panels / widest))
    lines = math.ceil(len(labels) / fitting)
    return math.ceil(len(labels) / lines)


def _lines_of_legend(row: tuple[Panel, ...]) -> int:
    labels = list(dict.fromkeys(each.label for panel in row for each in panel.series))
    return math.ceil(len(labels) / _per_line(labels, len(row))) if labels else 0
