"""The exact optimum of throughput under refresh rates, in quadratic time.

JAQPOT covers the states by a heuristic for a problem that is NP-hard for sets in general, and then
adds GrePP. But the states of a plan are no general sets: they form a tree, and with fractional
tuples (which GrePP assumes anyway) a greedy pass up the tree solves the whole problem exactly.

*The problem.* Let p_v be the tuples per second of input v (a stream or a stored join) that probe in
its direction. Join u makes r_u = Σ p_v · output_v over its inputs v, and p_v ≤ r_v (p_v ≤ λ_v for a
stream). Maximise r at the root, subject to Σ p_v · cost_v ≤ µ and r_v ≥ R_v for every state.

*The argument.* Let C_v(p) be the least cost of everything below v such that v can send p upwards
and all states in its subtree, v included, are refreshed.

- For a stream, C is 0 up to λ_v.
- For a join u, the cost of making r is the least of Σ C_v(p_v) + p_v · cost_v over all p with
  Σ p_v · output_v = r. If the C_v are convex and piecewise linear, so is this: its pieces are the
  pieces of the inputs, sorted by slope.
- As u must make R_u anyway, C_u(p) is the cost of making max(p, R_u): the cheapest pieces up to R_u
  become one piece of slope 0 that is paid for already, and the others follow. Still convex.

So pieces are merged by cost per tuple bottom-up, each state takes its refresh rate from the
cheapest, and the root takes from the cheapest until the budget is gone. The cost of what was taken
for the states is the least budget for which freshness is feasible.

A piece starts at a stream, or at a state whose refreshing is paid for; in the second case it is the
rest of a path from that state to the root. That is where this gains on whole paths even if their
cover were exact: tuples that are needed to refresh a state need not probe any further.

Moving a piece up one join is an affine change of its cost that is the same for all pieces from one
input, so their order stays and sorting is merging. Each of the k + m pieces moves up at most k
joins: O(k²).

If the budget is below the cost of freshness, it cannot be had, and the allocation says what is
missing. Spending everything on states that stay stale would leave no results at all, so then whole
paths are scaled down as in :mod:`~penstock.overload.jaqpot`: they refresh and give results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from penstock.overload.allocation import Allocation, allocation
from penstock.overload.flow import flow
from penstock.overload.half_way_join import HalfWayJoin
from penstock.overload.jaqpot import jaqpot
from penstock.overload.path_model import PathModel
from penstock.overload.refresh_rates import reachable_rates
from penstock.overload.shortfall import shortfall
from penstock.overload.staleness import Freshness, check_freshness
from penstock.overload.workload import check_number
from penstock.plan.stream_set import StreamSet

_SLIGHT = 1e-12

NAME = "tree-greedy"


def tree_greedy(model: PathModel, budget: float, freshness: Freshness) -> Allocation:
    """The most results for ``budget`` probes per second under ``freshness``."""
    check_number("the budget", budget)
    check_freshness(model, freshness)
    rates, enough = reachable_rates(model, freshness)
    spent = _climb(model, rates)
    needed = spent.cost if enough else float("inf")
    if spent.cost > budget:
        short = jaqpot(model, budget, freshness)
        missing = short.shortfall and replace(short.shortfall, needed=needed)
        return replace(short, allocator=NAME, shortfall=missing)
    freshness_probes = spent.cost
    for piece in spent.pieces:
        left = budget - spent.cost
        if piece.made == 0 or left <= 0:
            break
        spent.take(piece, min(piece.capacity, left / piece.cost), model.plan.root.streams)
    found = flow(model, _allowances(model, spent))
    return allocation(
        NAME,
        model,
        budget,
        found,
        freshness_probes=freshness_probes,
        shortfall=shortfall(model, freshness, found.made, budget, needed),
    )


@dataclass(slots=True)
class _Piece:
    """Up to ``capacity`` tuples per second that start at ``start``.

    Each has become ``made`` tuples by now, for ``cost`` probes.
    """

    start: StreamSet
    capacity: float
    made: float = 1.0
    cost: float = 0.0

    @property
    def slope(self) -> float:
        return self.cost / self.made if self.made else float("inf")


class _Spending:
    """What has been taken: tuples per second that go from one place of the tree to another."""

    def __init__(self) -> None:
        self.cost = 0.0
        self.taken: list[tuple[StreamSet, StreamSet, float]] = []
        self.pieces: list[_Piece] = []

    def take(self, piece: _Piece, amount: float, end: StreamSet) -> None:
        self.cost += amount * piece.cost
        self.taken.append((piece.start, end, amount))


def _climb(model: PathModel, rates: Mapping[StreamSet, float]) -> _Spending:
    """Refresh every state from its cheapest pieces; what is left at the root is for results."""
    spending = _Spending()
    waiting: dict[StreamSet, list[_Piece]] = {
        StreamSet.of(stream): [_Piece(StreamSet.of(stream), rate)]
        for stream, rate in model.rates.items()
    }
    for result, directions in model.joins.items():
        pieces: list[_Piece] = []
        for direction in directions:
            cost, output = direction.cost, direction.output
            for piece in waiting.pop(direction.origin):
                piece.cost += piece.made * cost
                piece.made *= output
                pieces.append(piece)
        pieces.sort(key=lambda piece: piece.slope)
        lacking = rates.get(result, 0.0)
        if lacking > 0:
            pieces = _refresh(spending, result, pieces, lacking)
        waiting[result] = pieces
    spending.pieces = waiting[model.plan.root.streams]
    return spending


def _refresh(
    spending: _Spending, state: StreamSet, pieces: list[_Piece], rate: float
) -> list[_Piece]:
    """Take ``rate`` tuples for ``state``; what can be had from there on, the cheapest first."""
    lacking = rate
    used = 0
    for piece in pieces:
        if lacking <= _SLIGHT * rate or piece.made == 0:
            break
        amount = min(piece.capacity, lacking / piece.made)
        spending.take(piece, amount, state)
        piece.capacity -= amount
        lacking -= amount * piece.made
        if piece.capacity <= 0:
            used += 1
    return [_Piece(state, rate - max(lacking, 0.0)), *pieces[used:]]


def _allowances(model: PathModel, spending: _Spending) -> dict[HalfWayJoin, float]:
    """Probes of each half-way join when everything that was taken goes its way."""
    above = {direction.origin: direction for direction in model.directions}
    allowances = dict.fromkeys(model.half_way_joins, 0.0)
    for start, end, amount in spending.taken:
        place, going = start, amount
        while place != end:
            direction = above[place]
            for step, productivity in zip(direction.steps, direction.productivities, strict=True):
                allowances[step] += going
                going *= productivity
            place = direction.result
    return allowances
