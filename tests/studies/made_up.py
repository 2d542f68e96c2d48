"""Experiments that measure nothing, for tests of the machinery around them."""

from __future__ import annotations

import os
import time
from pathlib import Path

from penstock_studies.lab.chart import Chart, Panel, series_by
from penstock_studies.lab.experiment import (
    Experiment,
    Measure,
    Parameters,
    Point,
    Row,
    Rows,
    Verdict,
)


def measure_square(parameters: Parameters, seed: int) -> list[Row]:
    """x² + seed; every call leaves a line in a file, if one is named."""
    x, counted = parameters["x"], parameters.get("counted")
    assert isinstance(x, int)
    print("what a measurement prints is not data")
    if isinstance(counted, str):
        with Path(counted).open("a") as out:
            out.write(f"{x}\n")
    return [{"x": x, "y": x * x + seed, "line": "square"}]


def measure_broken(parameters: Parameters, seed: int) -> list[Row]:
    raise ValueError("it broke")


def measure_slow(parameters: Parameters, seed: int) -> list[Row]:
    time.sleep(600)
    return []


def measure_large(parameters: Parameters, seed: int) -> list[Row]:
    return [{"bytes": len(bytearray(4 << 30))}]


def measure_process(parameters: Parameters, seed: int) -> list[Row]:
    return [{"x": os.getpid(), "y": 1, "line": "process"}]


def points(*parameters: Parameters, measure: Measure = measure_square) -> list[Point]:
    return [Point(measure, each, f"x = {each.get('x')}", 1.0) for each in parameters]


def made_up(name: str, *work: Point) -> Experiment:
    """Holds when y grows."""
    return Experiment(
        name=name,
        paper="Paper",
        figure="Figure 1",
        title="squares",
        claim="Squares grow | always.",
        setting="Made up.",
        points=lambda scale: list(work) if scale == "quick" else list(work) * 2,
        chart=chart,
        verdict=verdict,
    )


def chart(rows: Rows) -> Chart:
    return Chart(((Panel("(a) squares", "x", "y", series_by(rows, "line", "x", "y")),),))


def verdict(rows: Rows) -> Verdict:
    values = [float(str(row["y"])) for row in rows]
    return Verdict("holds" if values == sorted(values) else "does not hold", f"y = {values}")
