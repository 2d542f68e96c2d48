"""The limit of a push: which shares of its rows may probe, at once or slice by slice.

A push that fits is not limited. Otherwise what may be done is divided among inputs
(:mod:`penstock.engine.overload.probe_shares`), or the door takes a part of it off, or the clock
tells as it goes (:mod:`penstock.engine.overload.pace`). What states still lack is made before, or
given up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sized

from penstock.engine.overload.limited_join import LimitedJoin
from penstock.engine.overload.pace import ROOM
from penstock.engine.overload.probe_budget import Grant
from penstock.engine.overload.push_at_hand import PushAtHand
from penstock.plan.stream_set import StreamSet


class ProbeLimit:
    """The limit of the ``push`` at hand of a ``join``."""

    def __init__(self, join: LimitedJoin, push: PushAtHand) -> None:
        self._join = join
        self._push = push

    def decide(self, taken_in: int, last: int) -> Mapping[StreamSet, float] | None:
        """The shares of rows that may probe in the push at hand, of which so many rows were
        ``taken_in``, after one of ``last`` rows; None if all may, or if the clock will tell."""
        join, push = self._join, self._push
        allowed = push.grant.probes
        is_paced = push.is_clocked and self._is_to_pace(last)
        has_share = join.has_door and not is_paced and not push.is_given
        share = None
        is_short = push.need > allowed
        if has_share:
            share = join.throttle.decide(self._foreseen(taken_in), push.count)
            is_short = share is not None and share < 1
        if (is_short or is_paced) and join.tree.missing:
            self._complete_or_give_up()
        if is_paced:
            join.pace.left = Counter(push.rows) - Counter(join.door.by_stream())
            push.need, push.grant = 0.0, Grant(0.0, 0.0)
            return None
        if not is_short:
            join.door.open({})
            return None
        push.is_rationed, push.was_open = True, join.door.shares
        if share is None:
            return self._divide(push.rows, push.need, allowed)
        return join.shares.through_the_door(
            push.rows,
            share,
            prices=join.costs.each,
            seconds=push.seconds,
            budget=join.budget,
            share_there=join.losses.share_there,
            door=join.door,
        )

    def _is_to_pace(self, last: int) -> bool:
        """Whether the push at hand, after one of ``last`` rows, is worked off by the clock."""
        push, join = self._push, self._join
        is_doubtful = join.pace.is_to_pace(push.count, last, push.need, push.grant.probes)
        return is_doubtful or not join.budget.cost.is_known

    def _foreseen(self, taken_in: int) -> float:
        """The part of all that there is to do which fits, rows at the door included."""
        costs, push = self._join.budget.cost.costs, self._push
        whole = (push.need + 1.0) * costs.probe + costs.row * push.count
        return (push.grant.probes * costs.probe + costs.row * taken_in) / whole

    def _complete_or_give_up(self) -> None:
        """See to what states lack since a restart or a change of plan, before probes are limited.

        Probes that are put off have bounds, which mean nothing while old rows come in late. So
        under ``defer`` all is made now. Under ``shed`` it is made when it is asked for, a key at a
        time, which no clock can divide; it takes about what it took to probe with all rows of the
        windows once, and if there is no time for that, states do without.
        """
        join = self._join
        if join.option.policy == "defer":
            join.tree.complete_all()
        elif self._push.is_clocked:
            held = sum(len(leaf.rows) for leaf in join.tree.leaves.values())
            costs = join.budget.cost.costs
            if held * (costs.row + costs.probe) > ROOM * join.budget.seconds_left:
                join.losses.thin(join.tree.give_up_missing())

    def begin_slice(self, arrivals: Mapping[str, Sized]) -> None:
        """The next slice of a push comes."""
        join, push, left = self._join, self._push, self._join.pace.left
        if left is None:
            return
        rationing = join.tree.rationing
        assert rationing is not None
        rows = {stream: len(each) for stream, each in arrivals.items()}
        if not any(rows.values()):
            return
        join.counts.learn()
        join.costs.be_due()
        join.look({stream: count // 2 for stream, count in left.items()})
        need, _ = join.costs.of(rows)
        need_left, push.results = join.costs.of(left)
        fitting = join.budget.fitting(left.total(), push.results, join.counts.results)
        allowed = need * fitting / max(1.0, need_left)
        shares = None
        # At first there is something to load, which looks like dear probes; the clock knows better.
        is_known = join.budget.cost.is_known or join.budget.share_left < ROOM
        if need > allowed and is_known:
            push.is_rationed = True
            if join.tree.missing:
                join.losses.thin(join.tree.give_up_missing())
            shares = self._divide(rows, need, allowed)
        rationing.limit(shares)
        join.budget.skip()
        push.need += need
        allowed = allowed if is_known else max(need, allowed)
        push.grant = Grant(push.grant.probes + allowed, 0.0)

    def end_slice(self, arrivals: Mapping[str, Sized]) -> None:
        """The slice is done."""
        if self._join.pace.left is None:
            return
        rows = {stream: len(each) for stream, each in arrivals.items()}
        self._join.pace.take(rows)
        self._join.note(sum(rows.values()))

    def _divide(
        self, rows: Mapping[str, int], need: float, allowed: float
    ) -> Mapping[StreamSet, float]:
        """The share of rows of each input that may probe, of ``need`` probes the ``allowed``."""
        join = self._join
        return join.shares.divide(
            rows,
            need,
            allowed,
            prices=join.costs.each,
            seconds=self._push.seconds,
            budget=join.budget,
            results=self._push.results,
            share_there=join.losses.share_there,
            in_a_push=join.pace.left is not None,
        )
