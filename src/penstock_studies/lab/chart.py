"""A chart as data: what is drawn, and not with what.

A chart is rows of panels. Series with the same label have the same colour and marker in all panels
of a chart, and each row has one legend.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["lines", "scatter", "bars"]


@dataclass(frozen=True)
class Series:
    """One line, cloud or set of bars. A value that is not there is NaN."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    is_plain: bool = False
    """A line with no markers, for many points."""

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(f"{self.label}: {len(self.x)} x, {len(self.y)} y")


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    kind: Kind = "lines"
    log_x: bool = False
    log_y: bool = False
    categories: tuple[str, ...] = ()
    """Of bars: the names of x = 0, 1, …"""
    marks: Mapping[str, float] | None = None
    """Vertical lines: where something happens, and what."""
    limits: Mapping[str, float] | None = None
    """Horizontal lines: what must not be exceeded."""


@dataclass(frozen=True)
class Chart:
    """Rows of panels."""

    panels: tuple[tuple[Panel, ...], ...]

    @property
    def labels(self) -> list[str]:
        """Of all series, in the order in which they appear."""
        return list(
            dict.fromkeys(
                each.label for row in self.panels for panel in row for each in panel.series
            )
        )


def series(
    rows: Iterable[Mapping[str, object]], label: str, x: str, y: str, is_plain: bool = False
) -> Series:
    """Columns ``x`` and ``y`` of ``rows``, in the order of ``x``; None becomes NaN."""
    pairs = sorted((_number(row[x]), _number(row.get(y))) for row in rows)
    return Series(label, tuple(a for a, _ in pairs), tuple(b for _, b in pairs), is_plain)


def series_by(
    rows: Sequence[Mapping[str, object]], group: str, x: str, y: str, is_plain: bool = False
) -> tuple[Series, ...]:
    """One series for each value of the column ``group``, in the order of first appearance."""
    names = dict.fromkeys(str(row[group]) for row in rows)
    return tuple(
        series([row for row in rows if str(row[group]) == name], name, x, y, is_plain)
        for name in names
    )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan
