"""Random graphs of JTree section 6 in limited processes: who keeps both bounds, measured.

The graphs are those of Figure 13, stretched: the window is :data:`WINDOW` seconds, and rates and
numbers of values are multiplied so that the best binary tree holds about :data:`STATE` bytes, which
a limit on the memory of a process can tell from what a plan with fewer states holds. A row finds as
many partners as before (of a graph with cycles the values of a spanning tree alone are multiplied;
all are whole numbers, and what the model is told). Both resources are short: bounds are drawn over
the whole range of what plans need.
"""

from __future__ import annotations

import random
from typing import Any

from penstock.planning.bjtree_ordering import bjtree_ordering
from penstock.planning.unit_costs import UnitCosts
from penstock_studies.lab.experiment import Parameters, Row
from penstock_studies.limited.contest import contest
from penstock_studies.limited.workload import Workload
from penstock_studies.random_graph import RandomGraph, random_graph

WINDOW = 10
"""Seconds."""
SECONDS = 60
"""Of a run: six windows."""
RESULTS = 30.0
"""Results for each row that arrives: with few, plans have little to differ in."""
STATE = 40e6
"""Bytes that the best binary tree holds, about."""
MOST_ROWS = 40_000
"""Rows per second of all streams, at most."""
SLICES = 10
"""Pushes per second."""


def workload_of(graph: RandomGraph) -> Workload:
    """``graph``, large enough."""
    once = _multiplied(graph, 1000.0)
    tree = bjtree_ordering(once.problem(UnitCosts()))
    factor = 1000.0 * STATE / tree.cost.memory
    most = 1000.0 * MOST_ROWS / sum(once.rates.values())
    return _multiplied(graph, min(factor, most))


def _multiplied(graph: RandomGraph, factor: float) -> Workload:
    rows = factor * graph.window / WINDOW
    return Workload(
        {name: max(1.0, float(round(rate * rows))) for name, rate in graph.rates.items()},
        {
            pair: max(1, round((factor if number < len(graph.rates) - 1 else 1.0) / share))
            for number, (pair, share) in enumerate(graph.shares.items())
        },
        WINDOW,
        SECONDS,
        SLICES,
    )


def measure_graph(parameters: Parameters, seed: int) -> list[Row]:
    """One graph: a row for each plan."""
    given: Any = parameters
    streams, number = given["streams"], given["graph"]
    graph = random_graph(random.Random(f"{seed} {streams} {number}"), streams, RESULTS)
    chance = random.Random(f"{seed} bounds {streams} {number}")
    entries = contest(workload_of(graph), ("cpu", "memory"), chance, 0, 1, seed)
    return [{"streams": streams, "graph": number, **entry.summary()} for entry in entries]
