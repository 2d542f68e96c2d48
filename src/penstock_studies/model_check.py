"""The cost model against reality: random queries and plans, predicted and measured.

Chains, stars and cyclic graphs of three to five streams, random windows' worth of data, and random
plans without needless cross products: mjoins, binary trees and mixtures. The model knows the rates,
the number of values of each column and the unit costs of this machine (calibrated at the start); it
predicts the CPU per second, the rows held and the bytes held. The engine runs the plan until its
windows are full, and then for a while. What counts is the rank correlation (Spearman): a planner
needs the order of plans, not their nanoseconds. Rounds go over all cases in turn and the least CPU
of each counts: what disturbs a machine only ever makes a run longer.
"""

from __future__ import annotations

import argparse
import random
import string
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.plan.plan import write
from penstock.planning.jtree_finder import jtree_finder
from penstock.planning.limits import Limits
from penstock.planning.problem import Problem
from penstock.planning.statistics import Statistics
from penstock.planning.storage import TUPLES
from penstock.planning.unit_costs import UnitCosts
from penstock_studies.random_graph import chain_query, random_links
from penstock_studies.stream_data import run_plan, uniform_batches
from penstock_studies.text_table import heading, text_table

ABOUT = "the cost model against runs of the engine: CPU and state of random queries and plans"

PUSHES = 4
"""Per second of event time."""


@dataclass(frozen=True)
class Point:
    """One query with one plan."""

    plan: str
    predicted_cpu: float
    measured_cpu: float
    predicted_rows: float
    measured_rows: float
    predicted_bytes: float
    measured_bytes: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", type=int, default=30, help="queries and plans (default: 30)")
    parser.add_argument("--rounds", type=int, default=3, help="runs; the least CPU counts (3)")
    parser.add_argument("--feedback", default="off", help="off, jit or bloom (default: off)")
    parser.add_argument("--seed", type=int, default=1)


def run(options: argparse.Namespace) -> None:
    from penstock.machine.calibration import calibrate

    costs = calibrate()
    points = [
        check(options.seed, number, costs, options.feedback) for number in range(options.cases)
    ]
    for _ in range(options.rounds - 1):
        for number, point in enumerate(points):
            again = check(options.seed, number, costs, options.feedback)
            if again.measured_cpu < point.measured_cpu:
                points[number] = again
    print(heading("model", options.seed))
    print(
        text_table(
            ["plan", "CPU predicted", "measured", "rows", "measured", "bytes", "measured"],
            [
                [
                    p.plan,
                    p.predicted_cpu,
                    p.measured_cpu,
                    round(p.predicted_rows),
                    round(p.measured_rows),
                    round(p.predicted_bytes),
                    round(p.measured_bytes),
                ]
                for p in points
            ],
        )
    )
    for name, predicted, measured in (
        ("CPU", [p.predicted_cpu for p in points], [p.measured_cpu for p in points]),
        ("rows", [p.predicted_rows for p in points], [p.measured_rows for p in points]),
        ("bytes", [p.predicted_bytes for p in points], [p.measured_bytes for p in points]),
    ):
        ratio = np.median(np.array(measured) / np.array(predicted))
        print(
            f"{name}: rank correlation {rank_correlation(predicted, measured):.3f}, "
            f"measured / predicted {ratio:.2f} (median)"
        )


def check(seed: int, number: int, costs: UnitCosts, feedback: str = "off") -> Point:
    """Predict and measure one random case."""
    chance = random.Random(f"{seed} {number}")
    count = chance.randint(3, 5)
    names = tuple(string.ascii_uppercase[:count])
    rates = {name: float(round(10 ** chance.uniform(2.5, 4.5))) for name in names}
    window = chance.randint(2, 6)
    values = {}
    for a, b in random_links(chance, names, more=0.15):
        # Between 0.1 and 10 matches for a tuple of the slower stream.
        matches = 10 ** chance.uniform(-1, 1)
        values[a, b] = max(2, round(max(rates[a], rates[b]) * window / matches))
    query = chain_query(names, tuple(values), window)
    shares = {pair: 1 / each for pair, each in values.items()}
    statistics = Statistics(rates, shares, pushes=PUSHES)
    problem = Problem(query, statistics, costs)
    candidates = jtree_finder(problem, Limits(), keep="all")
    # Plans that blow up say nothing new and take minutes.
    bounded = [c for c in candidates if c.cost.memory < 2e8 and c.cost.cpu < 1.0]
    chosen = chance.choice(bounded or candidates[:1])
    plan = problem.plan_of(chosen)
    in_rows = Problem(query, statistics, costs, TUPLES).price(plan).memory
    seconds = 3 * window
    measured = run_plan(
        query,
        write(plan),
        uniform_batches(rates, values, seconds, number, PUSHES),
        2 * window,
        PUSHES,
        feedback=feedback,
    )
    return Point(
        problem.outline(chosen),
        chosen.cost.cpu,
        measured.cpu,
        in_rows,
        measured.rows,
        chosen.cost.memory,
        measured.memory,
    )


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's: the correlation of the ranks; equal values share their mean rank."""
    one, other = _ranks(np.asarray(first, float)), _ranks(np.asarray(second, float))
    return float(np.corrcoef(one, other)[0, 1])


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    smaller = (values[None, :] < values[:, None]).sum(axis=1)
    equal = (values[None, :] == values[:, None]).sum(axis=1)
    return np.asarray(smaller + (equal - 1) / 2, np.float64)
