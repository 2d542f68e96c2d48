"""Statistics over time: a new snapshot, damped by the ones before.

Every number moves from its old value towards the new one by ``weight``. Shares move along the
logarithm: one in a thousand and one in ten average to one in a hundred, which is how costs feel it.
What only one snapshot has is taken as it is, if it is the new one, and forgotten otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

from penstock.planning.statistics import Statistics

Key = TypeVar("Key")

SMALLEST = 1e-290
"""A share below this counts as zero: nothing was seen. Shares of states of twenty streams are not
far above."""


def smoothed(before: Statistics | None, now: Statistics, weight: float) -> Statistics:
    """``now``, as far as ``weight`` (between 0 and 1) goes."""
    if before is None or weight >= 1:
        return now
    return Statistics(
        _between(before.rates, now.rates, weight, _straight),
        _between(before.selectivities, now.selectivities, weight, _by_ratio),
        _between(before.observed, now.observed, weight, _by_ratio),
        now.sizes,
        now.distinct,
        now.widths,
        _between(before.demand, now.demand, weight, _straight),
        now.costs,
        now.pushes,
        now.horizon,
    )


def _between(
    before: Mapping[Key, float],
    now: Mapping[Key, float],
    weight: float,
    mean: Callable[[float, float, float], float],
) -> dict[Key, float]:
    return {
        key: mean(before[key], value, weight) if key in before else value
        for key, value in now.items()
    }


def _straight(before: float, now: float, weight: float) -> float:
    return before + weight * (now - before)


def _by_ratio(before: float, now: float, weight: float) -> float:
    if before == now or min(before, now) < SMALLEST:
        return now
    old, new = math.log(before), math.log(now)
    return min(1.0, math.exp(old + weight * (new - old)))
