"""Figures 11 to 13 of JAQPOT as points: one plan shape and one family of parameters at a time."""

from __future__ import annotations

from typing import Any

from penstock_studies import overload_figures as figures
from penstock_studies.lab.experiment import Parameters, Row
from penstock_studies.overload_as_written import throughput_as_written


def measure_fluctuation(parameters: Parameters, seed: int) -> list[Row]:
    """Figure 11: cumulative fresh results while selectivities change."""
    given: Any = parameters
    rows = figures.fluctuating_selectivities(given["shape"], seed, slower=given["slower"])
    return _long(rows, "minute", "results", shape=given["shape"])


def measure_resources(parameters: Parameters, seed: int) -> list[Row]:
    """Figure 12: throughput by resources, in per cent of saturation."""
    given: Any = parameters
    shape, family, runs = given["shape"], given["family"], given["runs"]
    if family == "lifespans":
        rows = figures.throughput_under_lifespans(shape, seed, runs)
    else:
        rows = figures.throughput_by_resources(shape, seed, runs, family)
    return _long(rows, "resources", "throughput", shape=shape, family=family)


def measure_as_written(parameters: Parameters, seed: int) -> list[Row]:
    """Figure 12 by the paper's formulas, with and without what it leaves out."""
    given: Any = parameters
    shape, family = given["shape"], given["family"]
    rows = throughput_as_written(shape, seed, given["runs"], family)
    return _long(rows, "resources", "throughput", shape=shape, family=f"{family}, as written")


def measure_staleness(parameters: Parameters, seed: int) -> list[Row]:
    """Figure 13 a and b: stale results without and with a cover."""
    given: Any = parameters
    shape, family = given["shape"], given["family"]
    rows = figures.stale_results(shape, seed, given["runs"], family)
    return _long(rows, "freshness", "stale", shape=shape, family=family)


def measure_freshness(parameters: Parameters, seed: int) -> list[Row]:
    """Figure 13 c: what freshness costs, and how often it cannot be had."""
    given: Any = parameters
    shape, family = given["shape"], given["family"]
    rows = figures.resources_for_freshness(shape, seed, given["runs"], family)
    return [
        {
            "shape": shape,
            "family": family,
            "allocator": allocator,
            "freshness": row["freshness"],
            "resources": row[f"{allocator} resources"],
            "infeasible": row[f"{allocator} infeasible"],
        }
        for row in rows
        for allocator in ("jaqpot", "tree-greedy")
    ]


def _long(rows: list[figures.Row], x: str, y: str, **more: str) -> list[Row]:
    """A row for each allocator instead of a column."""
    return [
        {**more, "allocator": name, x: row[x], y: value}
        for row in rows
        for name, value in row.items()
        if name != x
    ]
