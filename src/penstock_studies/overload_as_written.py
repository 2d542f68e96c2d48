"""Figure 12 of JAQPOT by the paper's formulas alone: what its numbers need to come about.

The paper has more than 80 % of the saturation throughput at 60 % of the resources, and 6.5 times
JDAM at 40 %. Two things in its text decide about that, and both can be computed without running
anything, as means over plans drawn from the ranges of its Figure 10:

- **GrePP without a cap.** The paper's GrePP gives all of µ to the most productive path, also more
  than the tuples of its stream can use (in its example with µ = 30, stream B, with 11 tuples in
  the path table, is given 20.62). Equation 2 forbids that: λ′ ≤ λ. With the cap, the paths in the
  order of their productivity are an optimum, so no allocator whatever gets more than that.
- **JDAM one way.** The paper's JDAM gives all of a join's share to one half-way join.

``tenth`` has selectivities a tenth of Figure 10's, which is where those of the paper's own examples
are (0.001 and 0.005 in its Figure 4); ``selective`` a hundredth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from penstock.overload import PathModel
from penstock.overload.grepp import grepp
from penstock.overload.jdam import jdam
from penstock_studies.overload_figures import SHARES, Family, Row, scenario

Share = Callable[[PathModel, float], float]


def uncapped(model: PathModel, budget: float) -> float:
    """The throughput of GrePP as written: the best path takes all, up to all results there are."""
    best = max(path.productivity for path in model.paths)
    return min(model.saturation_throughput, budget * best)


THROUGHPUTS: Mapping[str, Share] = {
    "grepp, no cap": uncapped,
    "grepp": lambda model, budget: grepp(model, budget).throughput,
    "jdam": lambda model, budget: jdam(model, budget).throughput,
    "jdam, one way": lambda model, budget: jdam(model, budget, one_way=True).throughput,
}


def throughput_as_written(shape: str, seed: int, runs: int, family: Family) -> list[Row]:
    """Throughput in per cent of saturation, by resources in per cent of saturation."""
    chance = np.random.default_rng(seed)
    models = [scenario(shape, chance, family) for _ in range(runs)]
    rows: list[Row] = []
    for share in SHARES:
        row: Row = {"resources": 100 * share}
        for name, throughput in THROUGHPUTS.items():
            reached = [
                throughput(model, share * model.saturation_resources) / model.saturation_throughput
                for model in models
            ]
            row[name] = 100 * float(np.mean(reached))
        rows.append(row)
    return rows
