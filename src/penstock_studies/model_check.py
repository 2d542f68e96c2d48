"""The cost model against reality: random queries and plans, predicted and measured.

For each kind of work (:mod:`penstock_studies.model_kinds`) random queries, random windows' worth
of data, and random plans without needless cross products: mjoins, binary trees and mixtures. The
model knows the rates, the selectivities, the number of values of each column and the unit costs of
this machine (calibrated at the start); it predicts the CPU per second, the rows held and the bytes
held. The engine runs the plan until its windows are full, and then for a while. What counts is the
rank correlation (Spearman), as a planner needs the order of plans, and how far measured and
predicted lie apart: the median of their ratio, and of its distance from 1 either way. Rounds go
over all cases in turn and the least CPU of each counts: what disturbs a machine only ever makes a
run longer.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.plan.plan import write
from penstock.planning.jtree_finder import jtree_finder
from penstock.planning.limits import Limits
from penstock.planning.problem import Problem
from penstock.planning.storage import TUPLES
from penstock.planning.unit_costs import UnitCosts
from penstock_studies.model_kinds import KINDS, Kind, random_case
from penstock_studies.stream_data import run_plan
from penstock_studies.text_table import Cell, heading, text_table

ABOUT = "the cost model against runs of the engine: CPU and state for each kind of work"


@dataclass(frozen=True)
class Point:
    """One query with one plan."""

    kind: str
    plan: str
    predicted_cpu: float
    measured_cpu: float
    predicted_rows: float
    measured_rows: float
    predicted_bytes: float
    measured_bytes: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", type=int, default=12, help="plans of each kind (default: 12)")
    parser.add_argument("--rounds", type=int, default=3, help="runs; the least CPU counts (3)")
    parser.add_argument("--kind", help="one kind of work alone (default: all)")
    parser.add_argument("--plans", action="store_true", help="print every plan")
    parser.add_argument("--seed", type=int, default=1)


def run(options: argparse.Namespace) -> None:
    from penstock.machine.calibration import calibrate

    names = [kind.name for kind in KINDS]
    if options.kind is not None and options.kind not in names:
        raise OptionError(f"no kind {options.kind!r}; choose from: {', '.join(names)}")
    kinds = [kind for kind in KINDS if options.kind in (None, kind.name)]
    costs = calibrate().costs
    found: dict[tuple[str, int], Point] = {}
    for _ in range(options.rounds):
        for kind in kinds:
            for number in range(options.cases):
                point = check(options.seed, number, costs, kind)
                before = found.get((kind.name, number))
                if before is None or point.measured_cpu < before.measured_cpu:
                    found[kind.name, number] = point
    points = list(found.values())
    print(heading("model", options.seed))
    if options.plans:
        print(text_table(*plan_table(points)))
    print(text_table(*kind_table(points)))


def plan_table(points: Sequence[Point]) -> tuple[list[str], list[list[Cell]]]:
    """Every plan, predicted and measured."""
    rows: list[list[Cell]] = [
        [
            p.kind, p.plan, p.predicted_cpu, p.measured_cpu, round(p.predicted_rows),
            round(p.measured_rows), round(p.predicted_bytes), round(p.measured_bytes),
        ]
        for p in points
    ]  # fmt: skip
    names = ["kind", "plan", "CPU predicted", "measured", "rows", "measured", "bytes", "measured"]
    return names, rows


def kind_table(points: Sequence[Point]) -> tuple[list[str], list[list[Cell]]]:
    """For each kind of work, and for all: rank correlation and error."""
    rows: list[list[Cell]] = []
    for name in [*dict.fromkeys(point.kind for point in points), "all"]:
        own = [point for point in points if name in (point.kind, "all")]
        row: list[Cell] = [name, len(own)]
        for predicted, measured in (
            ([p.predicted_cpu for p in own], [p.measured_cpu for p in own]),
            ([p.predicted_bytes for p in own], [p.measured_bytes for p in own]),
        ):
            row += [rank_correlation(predicted, measured), *errors(predicted, measured)]
        rows.append(row)
    names = ["kind", "plans"]
    for what in ("CPU", "bytes"):
        names += [f"{what}: rank", "ratio", "off by", "at most"]
    return names, rows


def errors(predicted: Sequence[float], measured: Sequence[float]) -> tuple[float, float, float]:
    """The median of measured / predicted, and by which factor, either way, the two lie apart: the
    median and the largest."""
    logs = [math.log(m / p) for p, m in zip(predicted, measured, strict=True)]
    apart = [abs(each) for each in logs]
    median = math.exp(float(np.median(logs)))
    return median, math.exp(float(np.median(apart))), math.exp(max(apart))


def check(seed: int, number: int, costs: UnitCosts, kind: Kind = KINDS[0]) -> Point:
    """Predict and measure one random case."""
    case = random_case(kind, seed, number)
    problem = Problem(case.query, case.statistics, costs)
    candidates = jtree_finder(problem, Limits(), keep="all")
    # Plans that blow up say nothing new and take minutes.
    bounded = [c for c in candidates if c.cost.memory < 2e8 and c.cost.cpu < 1.0]
    chosen = random.Random(f"{seed} {number}").choice(bounded or candidates[:1])
    plan = problem.plan_of(chosen)
    in_rows = Problem(case.query, case.statistics, costs, TUPLES).price(plan).memory
    measured = run_plan(
        case.query,
        write(plan),
        case.batches(3 * case.window),
        2 * case.window,
        kind.pushes,
        feedback=kind.feedback,
    )
    return Point(
        kind.name,
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
