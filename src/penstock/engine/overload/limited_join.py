"""The join that is limited: its running tree, what was counted in it, and what limits it.

When the plan changes another tree goes on, and what was counted in the old one is forgotten. The
account of the budget, the losses and the door stay.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.engine.overload.debts import Debts
from penstock.engine.overload.door import Door
from penstock.engine.overload.freshness import Freshness
from penstock.engine.overload.half_way_counts import HalfWayCounts
from penstock.engine.overload.losses import Losses
from penstock.engine.overload.overload import AT_RANDOM, Overload
from penstock.engine.overload.pace import Pace
from penstock.engine.overload.probe_budget import ProbeBudget
from penstock.engine.overload.probe_shares import ProbeShares
from penstock.engine.overload.push_at_hand import PushAtHand
from penstock.engine.overload.row_costs import RowCosts
from penstock.engine.overload.shortage_book import ShortageBook
from penstock.engine.overload.throttle import Throttle
from penstock.engine.rationing.probe_ranking import Correlated, Newest
from penstock.engine.rationing.rationing import Rationing
from penstock.engine.tree.join_tree import JoinTree
from penstock.plan.stream_set import StreamSet
from penstock.query.join_graph import JoinGraph


class LimitedJoin:
    """The first block of ``graph``, which runs as ``tree``."""

    def __init__(
        self, graph: JoinGraph, option: Overload, tree: JoinTree, freshness: Freshness
    ) -> None:
        self.option = option
        self.budget = ProbeBudget(option)
        self.freshness = freshness
        self.by_rows = graph.by_rows
        self.second = 1.0 if graph.by_rows else 1000.0 * graph.ticks_per_millisecond
        """Ticks of event time."""
        self.door = Door(graph)
        """Where rows wait that need not be taken in."""
        self.has_door = (
            option.policy == "shed"
            and option.cpu is not None
            and option.allocator in ("lifespan-greedy", AT_RANDOM)
            and bool(self.door.streams)
        )
        self.throttle = Throttle()
        self.losses = Losses(tree)
        self.pace = Pace()
        self.book = ShortageBook(option.policy)
        self.noted = 0.0
        """Work of the push at hand that the budget knows of."""
        self.attach(tree)

    def attach(self, tree: JoinTree) -> None:
        """Go on with another tree, or with other probe orders; an old tree owes nothing."""
        self.tree = tree
        self.counts = HalfWayCounts(tree, self.budget.prices)
        self.losses.attach(tree)
        self.debts = Debts(tree, self.freshness, self.by_rows)
        self.costs = RowCosts(self.counts)
        self.shares = ProbeShares(self.option, tree, self.counts, self.freshness, self.second)
        if self.option.policy == "exact":
            return
        ranking = None
        if self.option.choice != "random":
            ranking = (Newest if self.option.choice == "newest" else Correlated)(tree.leaves)
        deadlines = self.freshness.deadlines if self.option.policy == "defer" else None
        if tree.rationing is None:
            tree.rationing = Rationing(deadlines, ranking, self.option.audit)

    def forget_losses(self) -> None:
        """Count losses from nothing: a checkpoint is about to be loaded."""
        self.losses = Losses(self.tree)

    def elapsed(self, ticks: int) -> float | None:
        """Seconds of event time, if the budget has to do with it."""
        if self.by_rows and self.budget.is_timed:
            return None
        return max(0.0, ticks / self.second)

    def look(self, rows: Mapping[str, int]) -> None:
        """Note what a row of each input leads to, if that may be new."""
        if self.costs.look(rows, self.losses.share_there):
            self.shares.look(self.costs.each)

    def note(self, rows: int, late: bool = False) -> None:
        """Tell the budget what was done since the last call."""
        work = self.counts.used
        self.budget.note(rows, work - self.noted, late)
        self.noted = work

    def tell(self, push: PushAtHand) -> None:
        """Note when the query gets short, and when it has recovered."""
        allowed = push.grant.probes
        short = push.is_rationed or push.need > allowed or self.debts.are_there
        self.book.note(push.now, short, push.need, max(0.0, allowed))

    @property
    def foreseen_results(self) -> dict[StreamSet, float]:
        """Results that a row of each input leads to, if anything is known about that."""
        if self.option.policy != "defer" or not self.costs.are_known:
            return {}
        return {origin: each for origin, (_, each) in self.costs.each.items()}
