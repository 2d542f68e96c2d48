"""The most results for a budget when states hold what was made, and no more.

The path model of JAQPOT takes the size of every state as given. That suits count windows, where a
state that gets nothing new is full of stale tuples. Under lifespans it is empty soon, and then the
paths that probe it find nothing: GrePP on ``((A B) (C D))`` may put everything on the root and get
no result at all. Freshness on the other hand is no issue, since what is dead is gone.

*The model.* Let s_v be the share of the tuples coming to direction v that probe. The part of a
state that is there is f_u = Π f_v · Σ s_v a_v over the inputs v of join u, where a_v is the share
of its tuples that direction v makes at saturation: a combination is missing if one of its parts
is, or if the input that came last did not probe. (Exact for equal windows; with others,
combinations that one direction makes live longer than those of the other, which is neglected.) So
the share of all results is the product, over all joins, of Σ s_v a_v: no join may be starved.
Throughput and cost are those of :func:`~penstock.overload.flow.flow` with ``thin``.

*The algorithm.* Both are affine in each single s_v. Start with all shares at 1 and lower, by a
little at a time, the one that loses the fewest results per probe saved, until the rest fits the
budget; then exchange a little of one share for another while that gives more. Going down from full
states avoids the trap of going up, where the first probe into a chain of empty states is worth
nothing. All derivatives come from one pass down the tree per quantity (the chain rule, reverse
mode), so a step is linear in the number of half-way joins.

The problem is not convex and this is a heuristic; tests hold it against exhaustive search. A
single join, binary or mjoin, stores nothing that could be thin, and there GrePP is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.overload.allocation import Allocation, allocation
from penstock.overload.flow import flow, matched, saturated
from penstock.overload.grepp import fill_paths
from penstock.overload.half_way_join import HalfWayJoin
from penstock.overload.path_model import PathModel
from penstock.overload.shortfall import Shortfall, StaleStream
from penstock.overload.staleness import Freshness, check_freshness
from penstock.overload.workload import check_number
from penstock.plan.stream_set import StreamSet

_SLIGHT = 1e-9
_STEP = 0.03
"""How far a share is lowered at once. In one go, the last direction of a join may go to zero."""
_STEPS = 1000
"""About the most steps for a large plan, where they are longer."""
_EXCHANGES = 100


def lifespan_greedy(model: PathModel, budget: float, freshness: Freshness) -> Allocation:
    """The allocation of ``budget`` probes per second where states live by lifespans.

    Only a freshness below the window of its stream is missed.
    """
    check_number("the budget", budget)
    check_freshness(model, freshness)
    if model.susceptible:
        allowances = _lower(model, budget)
    else:
        allowances = dict(matched(model, fill_paths(model, budget, {})).probes)
    found = flow(model, allowances, thin=True)
    late = [s for s, seconds in freshness.items() if seconds < model.windows[s]]
    return replace(
        allocation("lifespan-greedy", model, budget, found),
        staleness=tuple((path.stream, model.windows[path.stream]) for path in model.paths),
        shortfall=_too_strict(model, budget, {s: freshness[s] for s in sorted(late)}),
    )


def _too_strict(model: PathModel, budget: float, late: Freshness) -> Shortfall | None:
    if not late:
        return None
    streams = (StaleStream(s, f, model.windows[s], model.windows[s]) for s, f in late.items())
    return Shortfall(float("inf"), budget, tuple(streams))


def _lower(model: PathModel, budget: float) -> dict[HalfWayJoin, float]:
    """Lower the shares from 1 until they fit the budget."""
    tree = _ThinTree(model)
    shares = [1.0] * len(model.directions)
    most = max(_STEP, len(shares) / _STEPS)
    while True:
        pace = tree.pace(shares)
        if pace.cost <= budget * (1 + _SLIGHT):
            break
        open_shares = [i for i, share in enumerate(shares) if share > 0 and pace.costs[i] > 0]
        if not open_shares:
            break
        least = min(open_shares, key=lambda i: (pace.results[i] / pace.costs[i], i))
        excess = (pace.cost - budget) / pace.costs[least]
        shares[least] = max(0.0, shares[least] - min(most, excess))
    return tree.allowances(_exchange(tree, shares, budget))


def _exchange(tree: _ThinTree, shares: list[float], budget: float) -> list[float]:
    """Lower the share that yields least and raise the one that yields most, while that helps."""
    step = _STEP
    pace = tree.pace(shares)
    for _ in range(_EXCHANGES):
        yields = [r / c if c > 0 else 0.0 for r, c in zip(pace.results, pace.costs, strict=True)]
        lower = [i for i, share in enumerate(shares) if share > 0 and pace.costs[i] > 0]
        higher = [i for i, share in enumerate(shares) if share < 1 and pace.costs[i] > 0]
        if not lower or not higher or step < _SLIGHT:
            break
        worst, best = min(lower, key=yields.__getitem__), max(higher, key=yields.__getitem__)
        if yields[best] <= yields[worst] * (1 + _SLIGHT):
            break
        tried = shares.copy()
        tried[worst] = max(0.0, tried[worst] - step)
        between = tree.pace(tried)
        saved = max(0.0, budget - between.cost)
        if between.costs[best] > 0:
            tried[best] = min(1.0, tried[best] + saved / between.costs[best])
        after = tree.pace(tried)
        if after.throughput > pace.throughput:
            shares, pace = tried, after
        else:
            step /= 2
    return shares


@dataclass(frozen=True, slots=True)
class _Pace:
    """Results and cost at some shares, and how both change with each share."""

    throughput: float
    cost: float
    results: list[float]
    costs: list[float]


class _ThinTree:
    """The flow through thin states as plain numbers, with derivatives.

    States are numbered as the joins that make them; a stream has no number.
    """

    def __init__(self, model: PathModel) -> None:
        full = saturated(model).made
        number = {state: i for i, state in enumerate(full)}
        self._model = model
        self._root = number[model.plan.root.streams]
        self._full = list(full.values())
        self._origins = [number.get(d.origin) for d in model.directions]
        self._rates = [
            0.0 if d.origin in number else model.rates[min(d.origin)] for d in model.directions
        ]
        self._results = [number[d.result] for d in model.directions]
        self._steps = [
            [
                (productivity, self._target(number, step))
                for productivity, step in zip(d.productivities, d.steps, strict=True)
            ]
            for d in model.directions
        ]

    def _target(self, number: dict[StreamSet, int], step: HalfWayJoin) -> int | None:
        """The state that is probed, if it can be thin."""
        found = number.get(step.target)
        return found if found is not None and self._full[found] > 0 else None

    def pace(self, shares: list[float]) -> _Pace:
        made = [0.0] * len(self._full)
        coming: list[float] = []
        probes: list[list[float]] = []
        for direction, share in enumerate(shares):
            origin = self._origins[direction]
            coming.append(self._rates[direction] if origin is None else made[origin])
            now = share * coming[-1]
            probes.append([])
            for productivity, target in self._steps[direction]:
                probes[-1].append(now)
                now *= productivity
                if target is not None:
                    now *= made[target] / self._full[target]
            made[self._results[direction]] += now
        return _Pace(
            made[self._root],
            sum(map(sum, probes)),
            self._slopes(shares, made, coming, probes, per_result=1.0, per_probe=0.0),
            self._slopes(shares, made, coming, probes, per_result=0.0, per_probe=1.0),
        )

    def _slopes(
        self,
        shares: list[float],
        made: list[float],
        coming: list[float],
        probes: list[list[float]],
        *,
        per_result: float,
        per_probe: float,
    ) -> list[float]:
        """The derivative by each share of ``per_result`` · results + ``per_probe`` · probes."""
        by_made = [0.0] * len(made)
        by_made[self._root] = per_result
        slopes = [0.0] * len(shares)
        for direction in reversed(range(len(shares))):
            slope = by_made[self._results[direction]]
            steps = self._steps[direction]
            for position in reversed(range(len(steps))):
                productivity, target = steps[position]
                if target is not None:
                    gained = slope * probes[direction][position] * productivity
                    by_made[target] += gained / self._full[target]
                    slope *= made[target] / self._full[target]
                slope = slope * productivity + per_probe
            slopes[direction] = slope * coming[direction]
            origin = self._origins[direction]
            if origin is not None:
                by_made[origin] += slope * shares[direction]
        return slopes

    def allowances(self, shares: list[float]) -> dict[HalfWayJoin, float]:
        """Probes per second at ``shares``."""
        allowances: dict[HalfWayJoin, float] = {}
        made = [0.0] * len(self._full)
        for direction, each in enumerate(self._model.directions):
            origin = self._origins[direction]
            now = shares[direction] * (self._rates[direction] if origin is None else made[origin])
            for step, (productivity, target) in zip(
                each.steps, self._steps[direction], strict=True
            ):
                allowances[step] = now
                now *= productivity
                if target is not None:
                    now *= made[target] / self._full[target]
            made[self._results[direction]] += now
        return allowances
