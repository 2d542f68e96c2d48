"""Pushes that pass without a look, by credit (:mod:`penstock.engine.overload.credit`).

A push that was looked at gives credit if nothing is limited after it, or nothing but the door.
Those that pass then count as one push at the next look.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.engine.overload.credit import Credit
from penstock.engine.overload.limited_join import LimitedJoin
from penstock.engine.overload.push_at_hand import PushAtHand
from penstock.engine.overload.push_times import PushTimes
from penstock.engine.state.composites import Composites
from penstock.plan.stream_set import StreamSet

_DOOR_MOVED = 0.1
"""A door that has moved by less stands still."""
_PASSING_PART_OF_WINDOW, _MOST_PASSING_PUSHES = 0.8, 16
"""The part of a window whose pushes may pass under the door between two looks, and their number: a
look takes as much as to leave some thousand rows out, and after a window all that is known of what
is in it is old."""


class Passing:
    """Pushes of a ``join`` between two looks; ``push`` is the one that was looked at."""

    def __init__(self, join: LimitedJoin, push: PushAtHand, times: PushTimes) -> None:
        self._join = join
        self._push = push
        self._times = times
        self.credit: Credit | None = None
        """What pushes may use before the next look."""
        self.asks_age = bool(join.freshness.asked)
        """Whether results have to be as fresh as was written down."""
        self._has_moved = False
        """Whether the door takes in other shares of the next pushes."""

    @property
    def is_at_the_door(self) -> bool:
        """Whether pushes may pass under the door."""
        return self.credit is not None and self.credit.is_at_the_door

    @property
    def _is_to_weigh(self) -> bool:
        """Whether the push that passes is the first under a door that has moved, so that its
        results stand for more or less than those before."""
        credit = self.credit
        is_first = credit is not None and credit.is_at_the_door and not credit.pushes
        return is_first and self._has_moved

    @property
    def asks_results(self) -> bool:
        """Whether the results of the push that passes are to be looked at."""
        return self.asks_age or self._is_to_weigh

    def are_fresh(self, oldest: Sequence[int]) -> bool:
        """Whether all results of a push that passes may leave without a look: they are fresh if
        their ``oldest`` rows, of each stream in the order of their names, were born then."""
        assert self.credit is not None
        if self._is_to_weigh:
            return False
        self._join.freshness.note(oldest, self.credit.until)
        return self._join.freshness.allows(oldest, self.credit.until)

    def drop_stale(self, results: Composites) -> Composites:
        """The ``results`` of such a push that are fresh; others are counted."""
        assert self.credit is not None
        join = self._join
        if self._is_to_weigh:
            join.losses.weigh(results, (join.option.seed, self._push.number + 1), join.door.keys)
        if not self.asks_age:
            return results
        fresh = join.freshness.on_time(results, self.credit.until)
        self.credit.stale = len(results) - len(fresh)
        join.freshness.look(fresh, self.credit.until)
        return fresh

    def settle(self) -> None:
        """Account for pushes since the last look: they count as one."""
        credit, self.credit = self.credit, None
        if credit is None or not credit.pushes:
            self._times.learn()
            return
        join, push = self._join, self._push
        done = join.counts.take()
        join.book.totals["probes"] += done.probes
        join.book.totals["stale"] += credit.all_stale
        before, seconds = push.now, join.elapsed(credit.now - push.now)
        push.number += credit.pushes
        push.now = credit.now
        results = done.total(join.tree.root.streams) / max(1.0, done.work)
        push.grant = join.budget.settle(
            credit.pushes, credit.rows, seconds, results, credit.last, done.work, credit.took
        )
        push.need = done.work
        push.is_rationed = credit.is_at_the_door
        join.costs.note(done.probes)
        if credit.is_at_the_door:
            join.losses.passed(credit.pushes, join.door.pooled)
            join.losses.commit(join.counts, done.made, (), before, push.now, True, False)
            join.throttle.let_pass(credit.pushes)
            self._times.learn(seconds or 0.0, credit)
        join.tell(push)

    def give_credit(self) -> None:
        """After a look: let pushes pass as long as there is no doubt, if nothing else is to do."""
        self.credit = None
        join, push = self._join, self._push
        join.debts.settle()
        is_limited = join.option.policy != "exact" and not join.throttle.is_resting
        is_calm = not (is_limited and join.book.since is not None)
        is_calm &= not join.debts.are_there and join.pace.left is None
        if join.option.policy == "shed":
            is_calm &= not (join.losses.are_felt or join.door.shares)
        at_the_door = self._may_pass_under()
        if not (is_calm or at_the_door) and join.option.policy != "exact":
            return
        if join.costs.each and not push.is_given and join.tree.older is None:
            self.credit = join.budget.credit(
                {stream: join.costs.each[StreamSet.of(stream)] for stream in join.tree.leaves},
                push.grant,
                0.0 if join.by_rows and join.budget.is_timed else join.second,
                push.now,
                lambda: join.counts.work,
                is_limited and not at_the_door,
                at_the_door,
            )

    def _may_pass_under(self) -> int:
        """Pushes that may pass under the door as it is, if nothing else is limited."""
        join = self._join
        shares, rationing = join.door.shares, join.tree.rationing
        is_asked = join.has_door and (shares or join.throttle.is_resting)
        if not is_asked or rationing is None or rationing.is_limiting:
            return 0
        if join.pace.left is not None:
            return 0
        was = self._push.was_open
        self._has_moved = any(
            abs(each - was.get(stream, 1.0)) > _DOOR_MOVED * each for stream, each in shares.items()
        )
        window = min((leaf.span for leaf in join.tree.leaves.values() if leaf.span > 0), default=0)
        return min(
            _MOST_PASSING_PUSHES,
            int(_PASSING_PART_OF_WINDOW * window / max(1.0, self._push.seconds * join.second)),
        )
