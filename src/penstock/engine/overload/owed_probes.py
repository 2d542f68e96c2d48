"""Owed probes in a push: those that are made up for, those that are given up, and what is told.

What the policy ``defer`` puts off is paid when a push has something left
(:mod:`penstock.engine.overload.debts`). What would find nothing fresh any more is given up. Both
tell how many results came too late, once the push is done.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

from penstock.engine.overload.debts import Payment
from penstock.engine.overload.half_way_counts import Done
from penstock.engine.overload.limited_join import LimitedJoin
from penstock.engine.overload.push_at_hand import PushAtHand
from penstock.engine.rationing.debt import Forgotten
from penstock.engine.state.composites import Composites
from penstock.plan.stream_set import StreamSet


class OwedProbes:
    """Owed probes of a ``join`` that are paid and given up."""

    def __init__(self, join: LimitedJoin, push: PushAtHand) -> None:
        self._join = join
        self._push = push
        self._gone: list[tuple[StreamSet, Forgotten]] = []
        """Owed probes of each input that were given up in the push at hand."""
        self._missed: Payment | None = None
        """Those that were made in it, some of whose partners were gone."""

    def begin(self) -> None:
        """A push begins: what would find nothing fresh is given up."""
        self._join.debts.mark()
        self._gone = self._join.debts.forget_stale(self._push.now)

    def pay(self) -> Composites | None:
        """Make up for owed probes as far as the push at hand can; the results that are fresh."""
        return self._pay(self._affordable)

    def _affordable(self, origin: StreamSet) -> float:
        """How many rows of ``origin`` can still make up for their probes in this push."""
        join = self._join
        probes, results = join.costs.each[origin]
        if self._push.is_clocked:
            join.note(0, late=True)
            each = results / max(1.0, probes)
            left = join.budget.fitting(0, each, join.counts.results, late=True)
        else:
            left = (self._push.grant.probes - join.counts.used) / join.budget.late_premium
        return max(1.0, left / max(1.0, probes)) if left >= 1 else 0.0

    def _pay(self, affordable: Callable[[StreamSet], float]) -> Composites | None:
        """Make up for owed probes as long as rows are affordable; the results that are fresh."""
        join = self._join
        if not join.costs.each:
            join.look({})
        join.counts.learn()
        payment = join.debts.pay(affordable, self._push.now)
        if payment is None:
            return None
        join.counts.learn_late(payment.shares)
        join.book.draft["paid"] += payment.probes
        join.book.draft["stale"] += payment.stale
        self._missed = payment
        return payment.fresh

    def pay_all(self) -> Composites:
        """Between pushes: make all owed probes; the results that are fresh."""
        join = self._join
        rationing = join.tree.rationing
        assert rationing is not None
        join.debts.mark()
        fresh = self._pay(lambda _: math.inf)
        assert fresh is not None
        self._tell_missed()
        join.book.draft["probes"] += join.counts.take().probes
        join.book.commit()
        rationing.follow(join.tree.inputs())
        return fresh

    def forget_oldest(self) -> None:
        """Between pushes, when there is no memory to wait for them: give up the oldest debts."""
        join = self._join
        self._push.is_again = False
        join.book.begin()
        self._give_up(join.debts.forget_oldest())
        join.book.commit()
        if join.tree.rationing is not None:
            join.tree.rationing.follow(join.tree.inputs())

    def undo(self) -> None:
        """The push has failed."""
        self._gone.clear()
        self._missed = None

    def commit(self, done: Done) -> None:
        """The push has ``done`` so much: tell of owed probes that were given up or came late."""
        if self._join.option.policy == "defer" and self._push.is_rationed and self._missed is None:
            self._note_in_time(done)
        self._give_up(self._gone)
        self._tell_missed()

    def _give_up(self, gone: list[tuple[StreamSet, Forgotten]]) -> None:
        """Tell of owed probes that will not be made, and of the results that go with them."""
        join = self._join
        join.book.draft["forgotten"] += sum(each.rows for _, each in gone)
        if not self._push.is_again:
            join.losses.give_up_rows(gone, self._at_root, join.foreseen_results)
        gone.clear()

    def _note_in_time(self, done: Done) -> None:
        """Rows that probed in time were drawn from the same as those that did not: what they have
        found tells of these too."""
        rationing = self._join.tree.rationing
        assert rationing is not None
        found = done.made[self._join.tree.root.streams]
        for origin, probed in done.probed.items():
            foreseen = probed * rationing.foreseen.get(origin, 0.0)
            if foreseen > 0:
                self._join.losses.late.note(origin, found.get(origin, 0.0), foreseen)

    def _tell_missed(self) -> None:
        """Tell of results that owed probes came too late for."""
        payment, self._missed = self._missed, None
        if payment is None or self._push.is_again:
            return
        for each in payment.passes:
            self._join.losses.late.note(*each)
        self._join.losses.give_up(payment.gone.items(), self._at_root)

    @property
    def _at_root(self) -> Collection[StreamSet]:
        return self._join.counts.joins[self._join.tree.root.streams]
