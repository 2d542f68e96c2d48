"""JDA: within one join, the budget goes to the more productive direction first (JAQPOT section 3).

The baseline of Kang et al. for a single join. The other direction gets what the tuples of the
first cannot use. A direction of an mjoin counts by its results per probe over its probe order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.errors import PlanError
from penstock.overload.allocation import Allocation, allocation
from penstock.overload.direction import Direction
from penstock.overload.flow import flow
from penstock.overload.half_way_join import HalfWayJoin
from penstock.overload.path_model import PathModel
from penstock.overload.workload import check_number
from penstock.plan.stream_set import StreamSet


def jda(model: PathModel, budget: float) -> Allocation:
    """The allocation for a plan of one join."""
    check_number("the budget", budget)
    joins = model.joins
    if len(joins) > 1:
        raise PlanError(
            f"JDA is for a single join, and {model.plan} has {len(joins)}\n"
            "hint: JDAM divides the budget among several"
        )
    (directions,) = joins.values()
    coming = {StreamSet.of(stream): rate for stream, rate in model.rates.items()}
    return allocation("jda", model, budget, flow(model, best_first(directions, coming, budget)))


def best_first(
    directions: Sequence[Direction], coming: Mapping[StreamSet, float], budget: float
) -> dict[HalfWayJoin, float]:
    """Allowances of one join when ``coming`` tuples per second come to each input."""
    allowances: dict[HalfWayJoin, float] = {}
    for direction in sorted(directions, key=lambda d: -d.productivity):
        probing = min(coming[direction.origin], budget / direction.cost)
        budget -= probing * direction.cost
        for step, before in zip(direction.steps, (1.0, *direction.made), strict=False):
            allowances[step] = probing * before
    return allowances
