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

*CPU, and the door.* A probe that finds nothing is cheap beside a result, so the budget may be in
work: with :class:`~penstock.overload.prices.Prices` a match, a stored combination and a result
count as so many probes, and so does a row that is taken in. That a row costs something before it
probes is what makes it worth while to leave some at the door: its share d of a stream is one more
share, of a direction without steps whose result is the window, and what it loses and saves is told
by the same derivatives. Shedding of load is the case in which only these go down.

The problem is not convex and this is a heuristic; tests hold it against exhaustive search. A
single join, binary or mjoin, stores nothing that could be thin, and there GrePP is exact, if the
budget counts probes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from penstock.overload.allocation import Allocation, allocation
from penstock.overload.flow import flow, matched, saturated
from penstock.overload.grepp import fill_paths
from penstock.overload.half_way_join import HalfWayJoin
from penstock.overload.path_model import PathModel, thinned
from penstock.overload.prices import PROBES, Prices
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


def lifespan_greedy(
    model: PathModel,
    budget: float,
    freshness: Freshness,
    prices: Prices = PROBES,
    doors: Collection[str] = (),
    only_doors: bool = False,
) -> Allocation:
    """The allocation of ``budget`` probes per second where states live by lifespans.

    With ``prices`` the budget is in work. Rows of the streams in ``doors`` need not be taken in;
    with ``only_doors`` whoever is taken in probes.
    Only a freshness below the window of its stream is missed.
    """
    check_number("the budget", budget)
    check_freshness(model, freshness)
    admitted: dict[str, float] = {}
    if model.susceptible or prices != PROBES:
        tree = _ThinTree(model, prices, doors)
        allowances, admitted = _lower(tree, budget, tree.doors if only_doors else tree.shares)
    else:
        allowances = dict(matched(model, fill_paths(model, budget, {})).probes)
    found = flow(thinned(model, admitted), allowances, thin=True)
    late = [s for s, seconds in freshness.items() if seconds < model.windows[s]]
    return replace(
        allocation("lifespan-greedy", model, budget, found),
        staleness=tuple((path.stream, model.windows[path.stream]) for path in model.paths),
        shortfall=_too_strict(model, budget, {s: freshness[s] for s in sorted(late)}),
        admitted=tuple(admitted.items()),
    )


def work_of(model: PathModel, prices: Prices) -> float:
    """What everything takes per second, in probes, at ``prices``."""
    return sum(work_by_streams(model, prices).values())


def work_by_streams(model: PathModel, prices: Prices) -> dict[StreamSet, float]:
    """What everything takes per second, by the streams whose rows have met by then."""
    bill = {StreamSet.of(stream): prices.row * rate for stream, rate in model.rates.items()}
    found = saturated(model)
    for direction in model.directions:
        each = 1.0
        for step in direction.steps:
            bill[step.probing] = bill.get(step.probing, 0.0) + each * found.probes[step]
            each = 1.0 + prices.match
    for join, made in found.made.items():
        last = prices.result if join == model.plan.root.streams else prices.stored
        bill[join] = bill.get(join, 0.0) + made * (prices.match + last)
    return bill


def _too_strict(model: PathModel, budget: float, late: Freshness) -> Shortfall | None:
    if not late:
        return None
    streams = (StaleStream(s, f, model.windows[s], model.windows[s]) for s, f in late.items())
    return Shortfall(float("inf"), budget, tuple(streams))


def _lower(
    tree: _ThinTree, budget: float, free: int
) -> tuple[dict[HalfWayJoin, float], dict[str, float]]:
    """Lower the first ``free`` shares from 1 until they fit the budget: probes per second of each
    half-way join, and the share of rows of each stream that has a door."""
    shares = [1.0] * tree.shares
    most = max(_STEP, len(shares) / _STEPS)
    while True:
        pace = tree.pace(shares)
        if pace.cost <= budget * (1 + _SLIGHT):
            break
        open_shares = [i for i in range(free) if shares[i] > 0 and pace.costs[i] > 0]
        if not open_shares:
            break
        least = min(open_shares, key=lambda i: (pace.results[i] / pace.costs[i], i))
        excess = (pace.cost - budget) / pace.costs[least]
        shares[least] = max(0.0, shares[least] - min(most, excess))
    shares = _exchange(tree, shares, budget, free)
    return tree.allowances(shares), tree.admitted(shares)


def _exchange(tree: _ThinTree, shares: list[float], budget: float, free: int) -> list[float]:
    """Lower the share that yields least and raise the one that yields most, while that helps."""
    step = _STEP
    pace = tree.pace(shares)
    for _ in range(_EXCHANGES):
        yields = [r / c if c > 0 else 0.0 for r, c in zip(pace.results, pace.costs, strict=True)]
        lower = [i for i in range(free) if shares[i] > 0 and pace.costs[i] > 0]
        higher = [i for i in range(free) if shares[i] < 1 and pace.costs[i] > 0]
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

    States are numbered: first the streams with a door, then the joins; other streams have no
    number. A door is a direction without steps.
    """

    def __init__(self, model: PathModel, prices: Prices, doors: Collection[str]) -> None:
        open_doors = [s for s in sorted(doors) if model.rates[s] > 0]
        full = {StreamSet.of(s): model.rates[s] for s in open_doors} | dict(saturated(model).made)
        number = {state: i for i, state in enumerate(full)}
        self._model = model
        self._doors = open_doors
        self._root = number[model.plan.root.streams]
        self._full = list(full.values())
        streams = [StreamSet.of(s) for s in open_doors]
        origins = [*streams, *(d.origin for d in model.directions)]
        self._origins: list[int | None] = [None] * len(streams)
        self._origins += [number.get(d.origin) for d in model.directions]
        self._rates = [
            model.rates[min(o)] if i < len(streams) or o not in number else 0.0
            for i, o in enumerate(origins)
        ]
        self._results = [number[s] for s in streams]
        self._results += [number[d.result] for d in model.directions]
        self._steps: list[list[tuple[float, int | None]]] = [[] for _ in streams]
        self._steps += [
            [
                (productivity, self._target(number, step))
                for productivity, step in zip(d.productivities, d.steps, strict=True)
            ]
            for d in model.directions
        ]
        # What one more tuple made in a state costs by itself, and a match on the way.
        last = [prices.match + prices.stored] * len(self._full)
        last[self._root] = prices.match + prices.result
        last[: len(streams)] = [prices.row] * len(streams)
        self._last, self._match = last, prices.match
        self._fixed = prices.row * sum(r for s, r in model.rates.items() if s not in open_doors)

    @property
    def doors(self) -> int:
        """How many of the shares are those of doors: the first."""
        return len(self._doors)

    @property
    def shares(self) -> int:
        """How many shares there are."""
        return len(self._results)

    def _target(self, number: dict[StreamSet, int], step: HalfWayJoin) -> int | None:
        """The state that is probed, if it can be thin."""
        found = number.get(step.target)
        return found if found is not None and self._full[found] > 0 else None

    def pace(self, shares: list[float]) -> _Pace:
        made = [0.0] * len(self._full)
        coming: list[float] = []
        probes: list[list[float]] = []
        cost = self._fixed
        for direction, share in enumerate(shares):
            origin = self._origins[direction]
            coming.append(self._rates[direction] if origin is None else made[origin])
            now = share * coming[-1]
            probes.append([])
            for productivity, target in self._steps[direction]:
                cost += now if not probes[-1] else now * (1.0 + self._match)
                probes[-1].append(now)
                now *= productivity
                if target is not None:
                    now *= made[target] / self._full[target]
            made[self._results[direction]] += now
            cost += now * self._last[self._results[direction]]
        return _Pace(
            made[self._root],
            cost,
            self._slopes(shares, made, coming, probes, is_cost=False),
            self._slopes(shares, made, coming, probes, is_cost=True),
        )

    def _slopes(
        self,
        shares: list[float],
        made: list[float],
        coming: list[float],
        probes: list[list[float]],
        *,
        is_cost: bool,
    ) -> list[float]:
        """The derivative of the results, or of the cost, by each share."""
        by_made = list(self._last) if is_cost else [0.0] * len(made)
        if not is_cost:
            by_made[self._root] = 1.0
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
                slope *= productivity
                if is_cost:
                    slope += 1.0 if position == 0 else 1.0 + self._match
            slopes[direction] = slope * coming[direction]
            origin = self._origins[direction]
            if origin is not None:
                by_made[origin] += slope * shares[direction]
        return slopes

    def admitted(self, shares: list[float]) -> dict[str, float]:
        """The share of rows that are taken in, of streams with a door."""
        return dict(zip(self._doors, shares, strict=False))

    def allowances(self, shares: list[float]) -> dict[HalfWayJoin, float]:
        """Probes per second at ``shares``."""
        pace: dict[HalfWayJoin, float] = {}
        made = [0.0] * len(self._full)
        made[: len(self._doors)] = [
            share * self._full[i] for i, share in enumerate(shares[: len(self._doors)])
        ]
        for place, each in enumerate(self._model.directions, len(self._doors)):
            origin = self._origins[place]
            now = shares[place] * (self._rates[place] if origin is None else made[origin])
            for step, (productivity, target) in zip(each.steps, self._steps[place], strict=True):
                pace[step] = now
                now *= productivity
                if target is not None:
                    now *= made[target] / self._full[target]
            made[self._results[place]] += now
        return pace
