"""Shares: which part of the rows of each input may probe, if not all may.

An allocator of :mod:`penstock.overload` divides the probes that are allowed among the half-way
joins of the running tree; the share of an input is what it gets of what comes. The allocation is
used again while need, budget and what rows cost are about the same.

Where the budget is time, the allocation is in work, and under ``shed`` it may also leave rows at
the door (:mod:`penstock.engine.overload.door`). These shares hold from the next push on. What
probes in this one is then allocated once more, for the rows that are in.

At least one row in a hundred probes at every input: what is never tried cannot be estimated, and
nobody would see that it has become worth while. Only under ``defer`` nothing is tried where no
probe at all is allowed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from penstock.engine.overload.door import Door
from penstock.engine.overload.freshness import Freshness
from penstock.engine.overload.half_way_counts import HalfWayCounts
from penstock.engine.overload.key_arcs import length_for
from penstock.engine.overload.overload import AT_RANDOM, Overload
from penstock.engine.overload.probe_budget import ProbeBudget
from penstock.engine.tree.join_tree import JoinTree
from penstock.overload.allocation import Allocation
from penstock.overload.allocators import allocate
from penstock.overload.flow import flow, saturated
from penstock.overload.lifespan_greedy import lifespan_greedy, work_by_streams, work_of
from penstock.overload.path_model import PathModel, thinned
from penstock.overload.random_shedding import random_shedding
from penstock.plan.stream_set import StreamSet

LEAST_SHARE_PROBING = 0.01
"""The share of rows that probe at every input under ``shed``."""
_ALIKE, _ALIKE_IN_A_PUSH = 0.05, 0.25
"""Budgets that differ by less share an allocation, and so do costs of a row."""
_MOST_SPENT = 0.02
"""The part of a budget of time that allocating may take: until then shares are only scaled."""
_CLEARLY = 1.05
"""How many times the results a mixture must promise to be preferred to doors alone: to draw who
probes, and to count what they find, costs about a tenth of the probes."""
_OVERDRAFT = 1.5
"""A push whose rows are in may do so many times what fits, before some of them do not probe: in the
long run the door makes that good."""

_ELASTICITY = 2.0
"""By which power of the share of rows work grows, about: it is one for rows, and for what several
streams make together as many as they are."""

ShareThere = Callable[[StreamSet], float]

Costs = Mapping[StreamSet, tuple[float, float]]
"""Work and results that a row of each input leads to."""


class ProbeShares:
    """Divides probes among the inputs of one tree."""

    def __init__(
        self,
        option: Overload,
        tree: JoinTree,
        counts: HalfWayCounts,
        freshness: Freshness,
        second: float,
    ) -> None:
        """``second`` is its number of ticks."""
        self._option = option
        self._tree = tree
        self._counts = counts
        self._freshness = freshness
        self._second = second
        self._by_rows = any(leaf.by_rows for leaf in tree.leaves.values())
        self.shares: dict[StreamSet, float] = {}
        """The share of each input as allocated; empty if it has to be allocated anew."""
        self.allocation: Allocation | None = None
        self._is_stale = False
        """Whether rows cost something else than when that was allocated."""
        self._spent = self._worked = 0.0
        """CPU seconds of the last allocation, and those that there were for pushes since."""
        self._fits = 0.0
        """The part of the need that the shares were made for."""
        self._is_mixed = False
        """Whether probes are limited beside doors."""
        self._bill: Mapping[int, float] = {}
        """Work by how many choices of keys have to favour it, as it was when that was allocated."""
        self._is_by_key = False
        """Whether rows are chosen by key at the door."""
        self._admitted: Mapping[str, float] = {}
        """The share of rows of each stream that has a door, as allocated."""
        self._priced: Costs = {}
        """The prices that they were made for."""

    def forget(self) -> None:
        """Allocate anew next time."""
        self.shares = {}

    def look(self, prices: Costs) -> None:
        """Allocate anew if rows do not cost about what they did."""
        if not all(
            abs(cost - self._priced[origin][0]) <= _ALIKE * self._priced[origin][0]
            and abs(output - self._priced[origin][1]) <= _ALIKE * self._priced[origin][1]
            for origin, (cost, output) in prices.items()
            if origin in self._priced
        ):
            self._is_stale = True

    def divide(
        self,
        rows: Mapping[str, int],
        need: float,
        allowed: float,
        *,
        prices: Costs,
        seconds: float,
        budget: ProbeBudget,
        results: float,
        share_there: ShareThere,
        in_a_push: bool,
    ) -> Mapping[StreamSet, float]:
        """The share of rows of each input that may probe, of ``need`` probes the ``allowed``.

        ``rows`` came in ``seconds`` of event time, those at the door included; a unit of work leads
        to so many ``results``. With ``in_a_push``, this is a slice of a push.
        """
        shares = dict.fromkeys(self._inputs, 0.0)
        if allowed > 0:
            fits = allowed / need
            alike = _ALIKE_IN_A_PUSH if in_a_push else _ALIKE
            if self._is_to_allocate(fits, alike, prices, budget):
                began = time.thread_time()
                model, freshness = self._model(rows, seconds, share_there)
                # What results take afterwards counts by what is made, not by an average.
                allowed *= 1.0 + results * budget.later_price
                self.allocation = found = self._found(model, allowed / seconds, freshness, budget)
                self.shares = _shares(model, found)
                self._spent = time.thread_time() - began
            more = fits / self._fits
            shares = {origin: min(1.0, more * each) for origin, each in self.shares.items()}
        return self._at_least(shares)

    def through_the_door(
        self,
        rows: Mapping[str, int],
        fits: float,
        *,
        prices: Costs,
        seconds: float,
        budget: ProbeBudget,
        share_there: ShareThere,
        door: Door,
    ) -> Mapping[StreamSet, float] | None:
        """The same where a share ``fits`` of all that there is to do, with ``door`` left open so
        far that in the long run it does; None if all may probe, since that alone will do."""
        if self._option.allocator == AT_RANDOM:
            if self._is_to_allocate(fits, _ALIKE, prices, budget):
                model, _ = self._model(rows, seconds, share_there)
                self.allocation = random_shedding(model, fits * model.saturation_resources)
                self.shares = dict.fromkeys(self._inputs, 1.0)
            share = fits ** (1.0 / len(self._tree.leaves))
            door.open(dict.fromkeys(door.streams, share))
            return None
        if self._is_to_allocate(fits, _ALIKE, prices, budget):
            began = time.thread_time()
            model, freshness = self._model(rows, seconds, share_there)
            work = replace(budget.prices, result=budget.prices.result + budget.later_price)
            self._bill = door.keys.bill(work_by_streams(model, work))
            whole = sum(self._bill.values())
            alone = lifespan_greedy(
                model, fits * whole, freshness, work, door.streams, only_doors=True
            )
            mixed = lifespan_greedy(model, fits * whole, freshness, work, door.streams)
            is_mixed = mixed.throughput > _CLEARLY * alone.throughput
            self.allocation = mixed if is_mixed else alone
            length = length_for(fits, self._bill)
            by_key = length ** door.keys.choices(self._tree.leaves) * saturated(model).throughput
            self._is_by_key = bool(door.keys.classes) and by_key > self.allocation.throughput
            self._is_mixed = is_mixed and not self._is_by_key
            self._admitted = dict.fromkeys(door.streams, 1.0) | dict(self.allocation.admitted)
            if self._is_by_key:
                door.open_by_key(length)
                self.allocation = None
                if (
                    door.arcs
                ):  # Else rows are in that were not chosen, and some of them are too many.
                    self.shares = dict.fromkeys(self._inputs, 1.0)
                    self._spent = time.thread_time() - began
                    return None
            else:
                door.open(self._admitted)
            thin = thinned(model, {s: share_there(StreamSet.of(s)) for s in door.streams})
            probing = replace(work, row=0.0)
            now = work_of(thin, probing)
            rows_now = work.row * sum(thin.rates.values())
            if is_mixed or now + rows_now > _OVERDRAFT * fits * whole:
                # Rows are in: no fewer probes than their part would be can make that good.
                now = min(now, max(fits * whole - rows_now, fits * now))
            self.shares = _shares(thin, lifespan_greedy(thin, now, freshness, probing))
            self._spent = time.thread_time() - began
            return self._at_least(self.shares)
        if self._is_by_key:
            door.open_by_key(length_for(fits, self._bill))
        else:
            door.open({s: self._scaled(each, fits) for s, each in self._admitted.items()})
        if not self._is_mixed:
            return None
        if fits <= self._fits:
            return self._at_least(self.shares)
        return self._at_least({o: self._scaled(each, fits) for o, each in self.shares.items()})

    def _scaled(self, share: float, fits: float) -> float:
        """What becomes of a ``share`` until the next allocation, if now another part ``fits``: all
        of it if all does, and in between no jump, which pushes would be driven across and back."""
        if fits <= self._fits:
            return share * math.pow(fits / self._fits, 1 / _ELASTICITY)
        return 1.0 - (1.0 - share) * max(0.0, 1.0 - fits) / (1.0 - min(self._fits, 0.99))

    def _is_to_allocate(
        self, fits: float, alike: float, prices: Costs, budget: ProbeBudget
    ) -> bool:
        """Whether the shares of before do not serve a push of which ``fits`` fits; if not, what
        they are for is noted."""
        self._worked += budget.means
        is_alike = not self._is_stale and abs(fits - self._fits) < alike * self._fits
        is_dear = self._spent > _MOST_SPENT * self._worked
        if self.shares and (is_alike or is_dear):
            return False
        self._is_stale, self._worked = False, 0.0
        self._fits, self._priced = fits, dict(prices)
        return True

    @property
    def _inputs(self) -> list[StreamSet]:
        return [origin for each in self._counts.joins.values() for origin in each]

    def _at_least(self, shares: Mapping[StreamSet, float]) -> Mapping[StreamSet, float]:
        """The ``shares``, but so that nothing is never tried, and static relations are as ever."""
        found = dict(shares)
        is_tried = self._option.policy == "shed" or any(shares.values())
        for origin in self._inputs:
            if all(self._tree.leaves[stream].stream.is_static for stream in origin):
                found[origin] = 1.0
            elif is_tried:
                found[origin] = max(LEAST_SHARE_PROBING, found[origin])
        return found

    def _model(
        self, rows: Mapping[str, int], seconds: float, share_there: ShareThere
    ) -> tuple[PathModel, dict[str, float]]:
        """What there is to do, and the freshness that is asked for in seconds."""
        rates = {stream: rows.get(stream, 0) / seconds for stream in self._tree.leaves}
        sizes = {
            edge.streams: float(len(edge.input.rows))
            for edge in self._tree.edges
            if not self._by_rows
        }
        freshness = {
            alias: ticks / self._second
            for alias, ticks in self._freshness.asked.items()
            if rates.get(alias)
        }
        return self._counts.model(rates, share_there, sizes, rows), freshness

    def _found(
        self,
        model: PathModel,
        allowed: float,
        freshness: Mapping[str, float],
        budget: ProbeBudget,
    ) -> Allocation:
        """The allocation of so much work per second."""
        work = budget.prices
        if budget.is_timed:  # Rows are in.
            work = replace(work, row=0.0, result=work.result + budget.later_price)
        if self._option.allocator == "lifespan-greedy":
            return lifespan_greedy(model, allowed, freshness, work)
        if budget.is_timed:  # The others count probes alone.
            allowed *= model.saturation_resources / max(1e-9, work_of(model, work))
        return allocate(model, allowed, freshness, self._option.allocator)


def _shares(model: PathModel, found: Allocation) -> dict[StreamSet, float]:
    """The share of rows of each input that probe."""
    made = flow(model, found.probes, thin=True).made
    shares = {}
    for direction in model.directions:
        origin = direction.origin
        coming = made[origin] if origin in made else model.rates[min(origin)]
        probes = found.probes[direction.steps[0]]
        shares[origin] = min(1.0, probes / coming) if coming > 0 else 1.0
    return shares
