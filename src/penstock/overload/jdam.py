"""JDAM: the budget is divided equally among the joins, and JDA divides each share (JAQPOT 3).

The paper's baseline for plans of several joins. A join that makes more than the next one may probe
has wasted its share; that is what input paths avoid.

The paper defines it as giving *all* of a join's share to its most productive half-way join. Taken
by the letter (``one_way``), what that one cannot use for lack of tuples is lost: a root whose most
productive probes are those of a slow stream then gives next to nothing, however large the budget.
JDA, which JDAM is to generalise, goes on to the other half-way join, and so do we.
"""

from __future__ import annotations

from penstock.overload.allocation import Allocation, allocation
from penstock.overload.flow import flow
from penstock.overload.half_way_join import HalfWayJoin
from penstock.overload.jda import best_first
from penstock.overload.path_model import PathModel
from penstock.overload.workload import check_number
from penstock.plan.stream_set import StreamSet


def jdam(model: PathModel, budget: float, one_way: bool = False) -> Allocation:
    """The allocation of JDA within each join, bottom-up; ``one_way`` leaves the second best out."""
    check_number("the budget", budget)
    joins = model.joins
    coming = {StreamSet.of(stream): rate for stream, rate in model.rates.items()}
    allowances: dict[HalfWayJoin, float] = {}
    for result, directions in joins.items():
        mine = best_first(directions, coming, budget / len(joins))
        if one_way:
            best = max(directions, key=lambda direction: direction.productivity).steps
            mine = {step: probes if step in best else 0.0 for step, probes in mine.items()}
        allowances |= mine
        coming[result] = sum(mine[d.steps[0]] * d.output for d in directions)
    return allocation("jdam", model, budget, flow(model, allowances))
