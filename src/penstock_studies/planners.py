"""JTree section 6: how long planners take, how often they find a qualified plan, and what it costs.

For each number of streams, random graphs (:mod:`penstock_studies.random_graph`) and limits in
the region where the choice of plan matters (Figure 5.d): memory drawn between what one mjoin and
what the best binary tree needs, and a machine just so fast that one second of CPU per second lies
between the two. Costs are those of Table 3, scaled by the speed.

- *Figure 13*: CPU time per planner, and how many settings each qualifies. ``paper`` is Algorithm 2
  as printed; ``exists`` is what JTree-Finder says, up to the number of streams that it can do.
- *Figure 14*: what plans of state-selection need against those of state-removal, where both found
  one: geometric means of the ratios. Less memory, more CPU is what the paper shows.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.planning.bjtree_ordering import bjtree_ordering
from penstock.planning.block import Cost
from penstock.planning.limits import Limits
from penstock.planning.mjoin_ordering import mjoin_ordering
from penstock.planning.planner import decide
from penstock.planning.problem import Candidate, Problem
from penstock.planning.storage import TUPLES
from penstock.planning.unit_costs import PAPER, UnitCosts
from penstock.planning.verdict import Choice, is_qualified
from penstock_studies.lab.experiment import Parameters, Row
from penstock_studies.random_graph import random_graph
from penstock_studies.text_table import heading, text_table

ABOUT = "JTree section 6: time, qualified plans and their costs for 3 to 20 streams"
PLANNERS = ("two-layer", "two-layer-paper", "state-selection", "state-removal")
CLIMBERS = ("state-selection", "state-removal")


@dataclass
class Findings:
    """What was found for one number of streams."""

    streams: int
    settings: int = 0
    seconds: dict[str, list[float]] = field(default_factory=dict)
    qualified: dict[str, int] = field(default_factory=dict)
    costs: dict[str, dict[int, Cost]] = field(default_factory=dict)
    """Of the qualified plans that a planner found, by the number of the graph."""
    cpu_ratios: list[float] = field(default_factory=list)
    memory_ratios: list[float] = field(default_factory=list)

    def count(self, name: str, found: bool) -> None:
        self.qualified[name] = self.qualified.get(name, 0) + found

    def mean_ms(self, name: str) -> float | None:
        times = self.seconds.get(name)
        return None if not times else 1000 * sum(times) / len(times)

    def most_ms(self, name: str) -> float | None:
        times = self.seconds.get(name)
        return None if not times else 1000 * max(times)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--streams", default="3-20", metavar="FROM-TO", help="default: 3-20")
    parser.add_argument("--graphs", type=int, default=100, help="graphs for each (default: 100)")
    parser.add_argument(
        "--finder", type=int, default=7, metavar="N", help="JTree-Finder up to N streams (7)"
    )
    parser.add_argument("--seed", type=int, default=1)


def run(options: argparse.Namespace) -> None:
    first, _, last = options.streams.partition("-")
    rows = [
        measure(count, options.graphs, options.seed, count <= options.finder)
        for count in range(int(first), int(last or first) + 1)
    ]
    print(heading("planners", options.seed))
    print(f"\nFigure 13: CPU time in ms, and qualified settings of {options.graphs}")
    print(
        text_table(
            [
                "streams",
                "finder ms",
                "two-layer ms",
                "most",
                "selection ms",
                "removal ms",
                "exists",
                "mjoin",
                "bjtree",
                "selection",
                "removal",
                "paper",
                "two-layer",
            ],
            [
                [
                    row.streams,
                    row.mean_ms("jtree-finder"),
                    row.mean_ms("two-layer"),
                    row.most_ms("two-layer"),
                    row.mean_ms("state-selection"),
                    row.mean_ms("state-removal"),
                    row.qualified.get("exists"),
                    *(row.qualified[name] for name in ("mjoin", "bjtree", *CLIMBERS)),
                    row.qualified["two-layer-paper"],
                    row.qualified["two-layer"],
                ]
                for row in rows
            ],
        )
    )
    print("\nFigure 14: plans of state-selection / those of state-removal (geometric means)")
    print(
        text_table(
            ["streams", "both found", "CPU", "memory"],
            [
                [row.streams, len(row.cpu_ratios), _mean(row.cpu_ratios), _mean(row.memory_ratios)]
                for row in rows
            ],
        )
    )


def measure(
    count: int,
    graphs: int,
    seed: int,
    with_finder: bool,
    clock: Callable[[], float] = time.process_time,
) -> Findings:
    """All planners on ``graphs`` random graphs with ``count`` streams."""
    row = Findings(count, graphs)
    for number in range(graphs):
        chance = random.Random(f"{seed} {count} {number}")
        graph = random_graph(chance, count)
        query, statistics = graph.query, graph.statistics
        problem = Problem(query, statistics, PAPER, TUPLES)
        mjoin, bjtree = mjoin_ordering(problem), bjtree_ordering(problem)
        middle = _between(chance, mjoin.cost.cpu, bjtree.cost.cpu)
        costs = scaled(PAPER, 1 / middle)
        limits = Limits(
            cpu=1.0, memory=max(1, int(_between(chance, mjoin.cost.memory, bjtree.cost.memory)))
        )
        found: dict[str, Candidate | None] = {}
        for planner in PLANNERS:
            fresh = Problem(query, statistics, costs, TUPLES)
            start = clock()
            verdict = decide(fresh, limits, planner)
            row.seconds.setdefault(planner, []).append(clock() - start)
            found[planner] = verdict.candidate if isinstance(verdict, Choice) else None
        fresh = Problem(query, statistics, costs, TUPLES)
        for name, candidate in (
            ("mjoin", mjoin_ordering(fresh)),
            ("bjtree", bjtree_ordering(fresh)),
        ):
            found[name] = candidate if is_qualified(candidate.cost, limits) else None
        for name, each in found.items():
            row.count(name, each is not None)
            if each is not None:
                row.costs.setdefault(name, {})[number] = each.cost
        if with_finder:
            fresh = Problem(query, statistics, costs, TUPLES)
            start = clock()
            exists = isinstance(decide(fresh, limits, "jtree-finder"), Choice)
            row.seconds.setdefault("jtree-finder", []).append(clock() - start)
            row.count("exists", exists)
        selected, removed = found["state-selection"], found["state-removal"]
        if selected is not None and removed is not None:
            row.cpu_ratios.append(selected.cost.cpu / removed.cost.cpu)
            row.memory_ratios.append(selected.cost.memory / removed.cost.memory)
    return row


def measure_streams(parameters: Parameters, seed: int) -> list[Row]:
    """A point of Figures 13 and 14: a row for each planner, and one for each qualified plan."""
    given: Any = parameters
    row = measure(given["streams"], given["graphs"], seed, given["finder"])
    names = (*PLANNERS, *(("jtree-finder",) if given["finder"] else ()))
    found = {**row.qualified, "jtree-finder": row.qualified.get("exists", 0)}
    rows: list[Row] = [
        {
            "kind": "planner",
            "streams": row.streams,
            "settings": row.settings,
            "planner": name,
            "mean_ms": row.mean_ms(name),
            "most_ms": row.most_ms(name),
            "qualified": found[name],
            "exists": row.qualified.get("exists"),
        }
        for name in names
    ]
    rows += [
        {
            "kind": "plan",
            "streams": row.streams,
            "graph": number,
            "planner": name,
            "cpu": cost.cpu,
            "memory": cost.memory,
        }
        for name in CLIMBERS
        for number, cost in row.costs.get(name, {}).items()
    ]
    return rows


def scaled(costs: UnitCosts, factor: float) -> UnitCosts:
    """The costs on a machine that is ``factor`` times as slow."""
    return replace(costs, **{name: value * factor for name, value in costs.to_json().items()})


def _between(chance: random.Random, one: float, other: float) -> float:
    """A value between the two, uniform in its logarithm."""
    return math.exp(chance.uniform(math.log(one), math.log(other)))


def _mean(ratios: list[float]) -> float | None:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None
