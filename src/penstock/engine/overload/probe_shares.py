"""Shares: which part of the rows of each input may probe, if not all may.

An allocator of :mod:`penstock.overload` divides the probes that are allowed among the half-way
joins of the running tree; the share of an input is what it gets of what comes. The allocation is
used again while need, budget and what rows cost are about the same.

Under ``shed`` at least one row in a hundred probes at every input: what is never tried cannot be
estimated, and nobody would see that it has become worth while.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.engine.overload.freshness import Freshness
from penstock.engine.overload.half_way_counts import HalfWayCounts
from penstock.engine.overload.loss_estimate import LossEstimate
from penstock.engine.overload.overload import Overload
from penstock.engine.overload.probe_budget import ProbeBudget
from penstock.engine.tree.join_tree import JoinTree
from penstock.overload.allocation import Allocation
from penstock.overload.allocators import allocate
from penstock.overload.flow import flow
from penstock.plan.stream_set import StreamSet

LEAST = 0.01
"""The share of rows that probe at every input under ``shed``."""
_ALIKE, _ALIKE_IN_A_PUSH = 0.05, 0.25
"""Budgets that differ by less share an allocation, and so do costs of a row."""

Prices = Mapping[StreamSet, tuple[float, float]]
"""Probes and results that a row of each input leads to."""


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
        self._fits = 0.0
        """The part of the need that the shares were made for."""
        self._priced: Prices = {}
        """The prices that they were made for."""

    def forget(self) -> None:
        """Allocate anew next time."""
        self.shares = {}

    def look(self, prices: Prices) -> None:
        """Allocate anew if rows do not cost about what they did."""
        if not all(
            abs(cost - self._priced[origin][0]) <= _ALIKE * self._priced[origin][0]
            and abs(output - self._priced[origin][1]) <= _ALIKE * self._priced[origin][1]
            for origin, (cost, output) in prices.items()
            if origin in self._priced
        ):
            self.shares = {}

    def divide(
        self,
        rows: Mapping[str, int],
        need: float,
        allowed: float,
        *,
        prices: Prices,
        seconds: float,
        budget: ProbeBudget,
        results: float,
        loss: LossEstimate,
        in_a_push: bool,
    ) -> Mapping[StreamSet, float]:
        """The share of rows of each input that may probe, of ``need`` probes the ``allowed``.

        ``rows`` came in ``seconds`` of event time; a probe leads to so many ``results``. With
        ``in_a_push``, this is a slice of a push.
        """
        inputs = [origin for each in self._counts.joins.values() for origin in each]
        if allowed <= 0:
            shares = dict.fromkeys(inputs, 0.0)
        else:
            fits = allowed / need
            alike = _ALIKE_IN_A_PUSH if in_a_push else _ALIKE
            if not (self.shares and abs(fits - self._fits) < alike * self._fits):
                self._fits, self._priced = fits, dict(prices)
                self.shares = self._allocate(rows, allowed, seconds, budget, results, loss)
            more = fits / self._fits
            shares = {origin: min(1.0, more * each) for origin, each in self.shares.items()}
        for origin in inputs:
            if all(self._tree.leaves[stream].stream.is_static for stream in origin):
                shares[origin] = 1.0
            elif self._option.policy == "shed":
                shares[origin] = max(LEAST, shares[origin])
        return shares

    def _allocate(
        self,
        rows: Mapping[str, int],
        allowed: float,
        seconds: float,
        budget: ProbeBudget,
        results: float,
        loss: LossEstimate,
    ) -> dict[StreamSet, float]:
        rates = {stream: rows.get(stream, 0) / seconds for stream in self._tree.leaves}
        sizes = {
            edge.streams: float(len(edge.input.rows))
            for edge in self._tree.edges
            if not self._by_rows
        }
        model = self._counts.model(rates, loss.share_made, sizes, rows)
        freshness = {
            alias: ticks / self._second
            for alias, ticks in self._freshness.asked.items()
            if rates.get(alias)
        }
        self.allocation = found = allocate(
            model, allowed / seconds, freshness, self._option.allocator
        )
        made = flow(model, found.probes, thin=True).made
        scale = 1.0
        if budget.is_timed and found.resources > 0:
            # The probes that are chosen make more results than the average: that takes time too.
            dearer = budget.seconds_of(found.throughput / found.resources)
            scale = min(1.0, budget.seconds_of(results) / dearer)
        shares = {}
        for direction in model.directions:
            origin = direction.origin
            coming = made[origin] if origin in made else rates[min(origin)]
            probes = found.probes[direction.steps[0]]
            shares[origin] = min(1.0, scale * probes / coming) if coming > 0 else 1.0
        return shares
