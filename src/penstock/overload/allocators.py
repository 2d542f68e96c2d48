"""The allocators by name, with one signature.

JDA is for one join; for a plan of several it is JDAM, which divides the budget among them first.
The knapsack weighs in steps of a thousandth of the budget, so that it can be used at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.errors import OptionError
from penstock.overload.allocation import Allocation
from penstock.overload.grepp import grepp
from penstock.overload.jaqpot import jaqpot
from penstock.overload.jda import jda
from penstock.overload.jdam import jdam
from penstock.overload.knapsack import coarse_knapsack
from penstock.overload.lifespan_greedy import lifespan_greedy
from penstock.overload.path_model import PathModel
from penstock.overload.random_shedding import random_shedding
from penstock.overload.staleness import Freshness
from penstock.overload.tree_greedy import tree_greedy

Allocator = Callable[[PathModel, float, Freshness], Allocation]

ALLOCATORS: Mapping[str, Allocator] = {
    "tree-greedy": tree_greedy,
    "jaqpot": jaqpot,
    "lifespan-greedy": lifespan_greedy,
    "grepp": lambda model, budget, freshness: grepp(model, budget),
    "knapsack": lambda model, budget, freshness: coarse_knapsack(model, budget),
    "jda": lambda model, budget, freshness: (jda if len(model.joins) == 1 else jdam)(model, budget),
    "jdam": lambda model, budget, freshness: jdam(model, budget),
    "random-shedding": lambda model, budget, freshness: random_shedding(model, budget),
}
DEFAULT = "tree-greedy"


def allocate(
    model: PathModel, budget: float, freshness: Freshness | None = None, allocator: str = DEFAULT
) -> Allocation:
    """The allocation of ``budget`` probes per second by the allocator of that name."""
    if allocator not in ALLOCATORS:
        raise OptionError(f"no allocator {allocator!r}; there are {', '.join(ALLOCATORS)}")
    return ALLOCATORS[allocator](model, budget, freshness or {})
