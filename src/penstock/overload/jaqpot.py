"""JAQPOT as in the paper: GH-WMSCP buys freshness, GrePP spends the rest (Algorithm 1).

The paper does not say what to do when freshness costs more than there is. Then all refresh rates
are lowered by one factor, so that the cover fits the budget and every state waits longer by the
same factor; the allocation says what is missing. (A cover of a share s of the rates costs at most
s times as much: scaling a cover down gives one.)
"""

from __future__ import annotations

from penstock.overload.allocation import Allocation, allocation
from penstock.overload.flow import matched
from penstock.overload.gh_wmscp import gh_wmscp
from penstock.overload.grepp import fill_paths
from penstock.overload.path_model import PathModel
from penstock.overload.refresh_rates import reachable_rates
from penstock.overload.shortfall import shortfall
from penstock.overload.staleness import Freshness, check_freshness
from penstock.overload.workload import check_number


def jaqpot(model: PathModel, budget: float, freshness: Freshness) -> Allocation:
    """The allocation of ``budget`` probes per second under ``freshness``."""
    check_number("the budget", budget)
    check_freshness(model, freshness)
    rates, enough = reachable_rates(model, freshness)
    cover = gh_wmscp(model, rates)
    needed = cover.cost if enough else float("inf")
    share = min(1.0, budget / cover.cost) if cover.cost else 1.0
    probing = {stream: share * each for stream, each in cover.probing.items()}
    found = matched(model, fill_paths(model, budget - share * cover.cost, probing))
    return allocation(
        "jaqpot",
        model,
        budget,
        found,
        freshness_probes=share * cover.cost,
        shortfall=shortfall(model, freshness, found.made, budget, needed),
    )
