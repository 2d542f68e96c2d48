"""GrePP: the budget goes to the most productive path, then to the next (JAQPOT section 4.2).

With fractional tuples the join adaptation problem is a fractional knapsack, so greedy by
productivity is optimal. One correction to the paper, which lets the best path take the whole
budget: a path can use no more than the tuples that arrive on its stream (equation 2 has λ′ ≤ λ).
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.overload.allocation import Allocation, allocation
from penstock.overload.flow import matched
from penstock.overload.path_model import PathModel
from penstock.overload.workload import check_number


def grepp(model: PathModel, budget: float) -> Allocation:
    """The most results for ``budget`` probes per second, without regard to freshness."""
    check_number("the budget", budget)
    return allocation("grepp", model, budget, matched(model, fill_paths(model, budget, {})))


def fill_paths(model: PathModel, budget: float, probing: Mapping[str, float]) -> dict[str, float]:
    """Tuples per second of each stream that probe when ``budget`` is added to ``probing``."""
    filled = {path.stream: probing.get(path.stream, 0.0) for path in model.paths}
    for path in sorted(model.paths, key=lambda p: -p.productivity):
        if path.productivity == 0 or budget <= 0:
            break
        more = min(path.rate - filled[path.stream], budget / path.cost)
        filled[path.stream] += more
        budget -= more * path.cost
    return filled
