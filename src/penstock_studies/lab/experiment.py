"""What an experiment is: points to measure, and what is made of their rows.

Measuring and showing are apart. A point is a function of a module with its parameters, which gives
rows; it is run in a process of its own, kept on disk, and shared by all experiments that ask for it
(the default setting of a paper is a point of all its figures). Chart, table and verdict are pure
functions of the rows: they can be changed without measuring again, and tested on made-up rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock_studies.lab.chart import Chart

Scale = Literal["quick", "full"]
Cell = str | float | int | bool | None
Row = Mapping[str, Cell]
Rows = Sequence[Row]
Parameters = Mapping[str, Cell]
Measure = Callable[[Parameters, int], Rows]
"""From parameters and a seed to rows; a function of a module, so that another process finds it."""
Standing = Literal["holds", "holds in part", "does not hold", "not measured"]


@dataclass(frozen=True)
class Point:
    """One piece of an experiment: measured on its own, kept when done."""

    measure: Measure
    parameters: Parameters
    label: str
    """What a person reads while it runs."""
    seconds: float = 10.0
    """About how long it takes: weighs the time left, and nothing else."""

    @property
    def function(self) -> str:
        """The name under which another process finds ``measure``."""
        return f"{self.measure.__module__}:{self.measure.__qualname__}"


@dataclass(frozen=True)
class Verdict:
    """What was measured, and whether the shape that the paper shows is there."""

    standing: Standing
    measured: str


NOT_MEASURED = Verdict("not measured", "no data")


@dataclass(frozen=True)
class Experiment:
    """One figure or table of a paper."""

    name: str
    """On the command line and in file names."""
    paper: str
    figure: str
    title: str
    claim: str
    """What the paper says that the figure shows."""
    setting: str
    """What is run, and where it is not what the paper ran."""
    points: Callable[[Scale], Sequence[Point]]
    chart: Callable[[Rows], Chart]
    verdict: Callable[[Rows], Verdict]
    table: Callable[[Rows], Rows] = lambda rows: rows
    """The rows that a reader wants to see, under the headings that he wants to see."""

    def judge(self, rows: Rows) -> Verdict:
        """The verdict, also on no rows at all."""
        return self.verdict(rows) if rows else NOT_MEASURED
