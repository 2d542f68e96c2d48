"""JDAM: the budget is divided equally among the joins, and JDA divides each share (JAQPOT 3).

The paper's baseline for plans of several joins. A join that makes more than the next one may probe
has wasted its share; that is what input paths avoid.
"""

from __future__ import annotations

from penstock.overload.allocation import Allocation, allocation
from penstock.overload.flow import flow
from penstock.overload.half_way_join import HalfWayJoin
from penstock.overload.jda import best_first
from penstock.overload.path_model import PathModel
from penstock.overload.workload import check_number
from penstock.plan.stream_set import StreamSet


def jdam(model: PathModel, budget: float) -> Allocation:
    """The allocation of JDA within each join, bottom-up."""
    check_number("the budget", budget)
    joins = model.joins
    coming = {StreamSet.of(stream): rate for stream, rate in model.rates.items()}
    allowances: dict[HalfWayJoin, float] = {}
    for result, directions in joins.items():
        mine = best_first(directions, coming, budget / len(joins))
        allowances |= mine
        coming[result] = sum(mine[d.steps[0]] * d.output for d in directions)
    return allocation("jdam", model, budget, flow(model, allowances))
