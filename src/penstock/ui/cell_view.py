"""Cells side by side: each one while they are few, and otherwise how they are spread.

A thousand cells are not drawn one by one. The page gets the busiest, the quantiles, and a curve of
load over the cells in the order of their load, in a fixed number of steps; and how many cells run
which plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.ui.number import number

ALL_SHOWN = 16
"""Up to so many cells are listed each."""
BUSIEST = 8
STEPS = 48
_SMOOTHING = 0.3
_FIELDS = ("rows", "results", "late", "state_bytes", "engine_seconds")
_MOST_CELLS = 100_000
"""Cells of a micro-batch that are shown: the page stays bounded whatever comes."""


class CellView:
    """The cells of the latest micro-batch, with smoothed loads."""

    def __init__(self) -> None:
        self._load: dict[int, float] = {}
        self._latest: Sequence[Mapping[str, Any]] = ()

    def clear(self) -> None:
        """Another run begins."""
        self._load.clear()
        self._latest = ()

    def note(self, cells: Sequence[Mapping[str, Any]]) -> None:
        """The cells of one more micro-batch."""
        self._latest = cells[:_MOST_CELLS]
        before, self._load = self._load, {}
        for cell in self._latest:
            name, rows = _name(cell), _total(cell, "rows")
            then = before.get(name, rows)
            self._load[name] = then + _SMOOTHING * (rows - then)

    @property
    def plans(self) -> list[tuple[str, int]]:
        """The plans with the number of cells that run them, the most frequent first."""
        return Counter(plan for each in self._latest if (plan := _plan(each))).most_common(8)

    def view(self) -> dict[str, Any]:
        """What the page shows."""
        count = len(self._latest)
        if not count:
            return {"count": 0, "shown": [], "plans": []}
        by_load = sorted(self._latest, key=lambda each: -self._load[_name(each)])
        loads = [self._load[_name(each)] for each in by_load]
        mean = sum(loads) / count
        shown = sorted(self._latest, key=_name) if count <= ALL_SHOWN else by_load[:BUSIEST]
        return {
            "count": count,
            "shown": [_numbers(each) for each in shown],
            "skew": loads[0] / mean if mean > 0 else 1.0,
            "quantiles": {
                name: _quantiles(sorted(_total(each, name) for each in self._latest))
                for name in ("rows", "state_bytes", "engine_seconds")
            },
            "load": _steps(loads),
            "plans": [{"plan": plan, "cells": cells} for plan, cells in self.plans],
        }


def _numbers(cell: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "cell": _name(cell),
        **{name: _total(cell, name) for name in _FIELDS},
        "plan": _plan(cell),
        "origin": str(cell.get("origin", ""))[:40],
    }


def _name(cell: Mapping[str, Any]) -> int:
    return int(number(cell.get("cell")))


def _plan(cell: Mapping[str, Any]) -> str:
    return str(cell.get("plan", ""))[:500]


def _total(cell: Mapping[str, Any], name: str) -> float:
    """A number, or the sum of one number for each source."""
    value = cell.get(name)
    return sum(map(number, value.values())) if isinstance(value, Mapping) else number(value)


def _quantiles(values: Sequence[float]) -> list[float]:
    """Least, quartiles, most."""
    last = len(values) - 1
    return [values[round(last * share)] for share in (0.0, 0.25, 0.5, 0.75, 1.0)]


def _steps(values: Sequence[float]) -> list[float]:
    """``values`` in at most STEPS steps, each the mean of its share of them."""
    if len(values) <= STEPS:
        return [float(f"{each:.4g}") for each in values]
    found = []
    for step in range(STEPS):
        first, end = step * len(values) // STEPS, (step + 1) * len(values) // STEPS
        found.append(float(f"{sum(values[first:end]) / (end - first):.4g}"))
    return found
