"""The most results under refresh rates, as a linear program: what allocators are measured by.

Two programs: over the probes of every direction, and over whole input paths as in the paper.
Variables are shares of saturation and every row is scaled, so that one tolerance fits all.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from linear_program import maximise

from penstock.overload import PathModel
from penstock.overload.flow import saturated
from penstock.plan import StreamSet

Refresh = Mapping[StreamSet, float]


def best_by_direction(model: PathModel, budget: float, refresh: Refresh) -> float | None:
    """The greatest throughput when each half-way join may stop where it likes; None: infeasible."""
    directions = model.directions
    full = saturated(model)
    most = [full.probes[d.steps[0]] for d in directions]
    root = model.plan.root.streams

    def made(state: StreamSet) -> list[float]:
        return [
            m * d.output if d.result == state else 0.0
            for d, m in zip(directions, most, strict=True)
        ]

    rows = [[m * d.cost for d, m in zip(directions, most, strict=True)]]
    limits = [budget]
    for position, direction in enumerate(directions):
        one = [0.0] * len(directions)
        one[position] = 1.0
        rows.append(one)
        limits.append(1.0)
        if len(direction.origin) > 1:
            coming = made(direction.origin)
            rows.append([most[position] * o - c for o, c in zip(one, coming, strict=True)])
            limits.append(0.0)
    return _solve(made(root), rows, limits, {state: made(state) for state in refresh}, refresh)


def best_by_path(model: PathModel, budget: float, refresh: Refresh) -> float | None:
    """The greatest throughput of whole input paths (Problems 1 and 2 in one)."""
    paths = model.paths
    rows = [[path.resources for path in paths]]
    limits = [budget]
    for position in range(len(paths)):
        rows.append([float(position == other) for other in range(len(paths))])
        limits.append(1.0)
    fed = {
        state: [path.rate * dict(path.refreshed).get(state, 0.0) for path in paths]
        for state in refresh
    }
    return _solve([path.throughput for path in paths], rows, limits, fed, refresh)


def _solve(
    gain: list[float],
    rows: list[list[float]],
    limits: list[float],
    fed: Mapping[StreamSet, list[float]],
    refresh: Refresh,
) -> float | None:
    for state, rate in refresh.items():
        rows.append([-each for each in fed[state]])
        limits.append(-rate * (1 - 1e-9))
    table, bounds = np.array(rows), np.array(limits)
    scale = np.abs(table).max(axis=1)
    scale[scale == 0] = 1.0
    whole = max(gain)
    if whole == 0:
        return 0.0
    found = maximise(np.array(gain) / whole, table / scale[:, None], bounds / scale)
    return None if found is None else found[0] * whole
