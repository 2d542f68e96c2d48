"""The exact knapsack for whole tuples, by dynamic programming (Problem 1 of JAQPOT).

In the discrete model every second stands alone: a path is given its resources in whole multiples of
a unit, and there greedy is not optimal. The program over budgets 0 … µ takes O(k µ log) time, so it
serves as the reference for GrePP, not for use at run time. A unit is a number of tuples of the
stream per second, with the probes that these cause rounded up to whole ones; no more units are
taken than tuples arrive.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from penstock.overload.allocation import Allocation, allocation
from penstock.overload.flow import matched
from penstock.overload.path_model import PathModel
from penstock.overload.workload import check_number

_SLIGHT = 1e-9
_STEPS, _PARTS = 1000, 256
"""Steps of the budget, and parts of the rows of a stream, of the coarse one."""


@dataclass(frozen=True, slots=True)
class Item:
    """Weighs a whole ``cost``, is worth ``value`` and may be taken ``most`` times."""

    cost: int
    value: float
    most: int


def knapsack(
    model: PathModel, budget: float, units: Mapping[str, float] | None = None
) -> Allocation:
    """The best allocation in whole units; one tuple per second where ``units`` has no other."""
    check_number("the budget", budget)
    units = units or {}
    sizes = [units.get(path.stream, 1.0) for path in model.paths]
    items = [
        Item(
            math.ceil(path.cost * unit - _SLIGHT),
            path.output * unit,
            math.floor(path.rate / unit + _SLIGHT),
        )
        for path, unit in zip(model.paths, sizes, strict=True)
    ]
    times = fill_knapsack(items, math.floor(budget))
    probing = {
        path.stream: unit * count
        for path, unit, count in zip(model.paths, sizes, times, strict=True)
    }
    return allocation("knapsack", model, budget, matched(model, probing))


def coarse_knapsack(model: PathModel, budget: float) -> Allocation:
    """The same with weights in steps of a part of ``budget``, and streams in parts of theirs: its
    time does not depend on how many probes there are."""
    check_number("the budget", budget)
    if budget >= model.saturation_resources:
        everything = {path.stream: path.rate for path in model.paths}
        return allocation("knapsack", model, budget, matched(model, everything))
    if not budget:
        return allocation("knapsack", model, budget, matched(model, {}))
    step = budget / _STEPS
    sizes = [path.rate / _PARTS or 1.0 for path in model.paths]
    items = [
        Item(
            max(1, math.ceil(path.cost * unit / step - _SLIGHT)),
            path.output * unit,
            math.floor(path.rate / unit + _SLIGHT),
        )
        for path, unit in zip(model.paths, sizes, strict=True)
    ]
    times = fill_knapsack(items, _STEPS)
    probing = {
        path.stream: unit * count
        for path, unit, count in zip(model.paths, sizes, times, strict=True)
    }
    return allocation("knapsack", model, budget, matched(model, probing))


def fill_knapsack(items: list[Item], budget: int) -> list[int]:
    """How many times each item is taken for the greatest value within ``budget``."""
    best = np.zeros(budget + 1)
    taken: list[tuple[int, int, np.ndarray[tuple[int], np.dtype[np.bool_]]]] = []
    for position, item in enumerate(items):
        for bundle in _bundles(min(item.most, budget // item.cost)):
            cost = bundle * item.cost
            better = np.zeros(budget + 1, np.bool_)
            candidate = best[: budget + 1 - cost] + bundle * item.value
            better[cost:] = candidate > best[cost:]
            best[cost:] = np.maximum(best[cost:], candidate)
            taken.append((position, bundle, better))
    times = [0] * len(items)
    left = budget
    for position, bundle, better in reversed(taken):
        if better[left]:
            times[position] += bundle
            left -= bundle * items[position].cost
    return times


def _bundles(most: int) -> Iterator[int]:
    """1, 2, 4, … and a rest: every number up to ``most`` is a sum of some of them."""
    bundle = 1
    while most > 0:
        yield min(bundle, most)
        most -= bundle
        bundle *= 2
