"""What pushes took, for the throttle of the door and for people.

Where there is a door, the seconds of a push are told to the throttle. A push after which others
pass under the door waits for these: what they took together says more than what one of them did.
"""

from __future__ import annotations

import math

from penstock.engine.overload.credit import Credit
from penstock.engine.overload.limited_join import LimitedJoin
from penstock.engine.overload.push_at_hand import PushAtHand
from penstock.plan.stream_set import StreamSet

_TELLING_SHARE = 0.95
"""Shares above it tell nothing about what others keep."""


class PushTimes:
    """Seconds that pushes of a ``join`` take."""

    def __init__(self, join: LimitedJoin, push: PushAtHand) -> None:
        self._join = join
        self._push = push
        self._unlearned: tuple[float, float, float, int] | None = None
        """Of a push after which others pass under the door: seconds that it took, those that there
        were for it, its seconds of event time, and its rows."""
        self._passed_outside = 0
        """Rows of these others that were left outside."""
        self._books = self._mark = 0.0
        """Seconds that limits took of that for themselves, and when they began to."""

    def begin_books(self, anew: bool) -> None:
        """Limits are decided upon from here on; ``anew`` for another push."""
        if anew:
            self._books = 0.0
        self._mark = self._join.budget.spent() if self._join.has_door else 0.0

    def end_books(self) -> None:
        """Limits have been decided upon."""
        if self._join.has_door:
            self._books += self._join.budget.spent() - self._mark

    def close(self, credit: Credit | None) -> None:
        """The push has been answered; others may pass by ``credit``."""
        budget, door = self._join.budget, self._join.door
        if credit is not None and credit.is_at_the_door and credit.pushes:
            took = budget.let_pass()
            credit.took += took
            credit.longest = max(credit.longest, took)
            self._passed_outside += sum(door.left_out.values())
        budget.close()
        if not self._join.has_door:
            return
        took, had = budget.taken()
        if took and self._join.pace.left is None:
            self._unlearned = took, had, self._push.seconds, self._push.count
            if credit is None or not credit.is_at_the_door:
                self.learn()
            budget.close_late()
        door.all_left_out.update(door.left_out)

    def learn(self, seconds: float = 0.0, credit: Credit | None = None) -> None:
        """Tell the throttle what a push took, with those that have passed by ``credit`` under the
        door after it, in so many ``seconds`` of event time."""
        found, self._unlearned = self._unlearned, None
        outside, self._passed_outside = self._passed_outside, 0
        if found is None:
            return
        join = self._join
        took, had, since, count = found
        usual, pushes = took, 1
        if credit is not None:
            more, there_was = join.budget.taken()
            usual, took, had = usual + credit.usual, took + more, had + there_was
            since, count = since + seconds, count + credit.rows + outside
            pushes += credit.pushes
        spans = [leaf.span for leaf in join.tree.leaves.values() if leaf.span > 0]
        of_window = since * join.second / min(spans, default=1)
        age = self._push.now - self._push.began
        is_full = not join.losses.are_felt and age >= max(spans, default=0)
        books, self._books = self._books, 0.0
        drift, power, streams = self._drift(), self._power(), len(join.tree.leaves)
        join.throttle.learn(
            took, had, of_window, count, drift, is_full, power, streams, books, usual, pushes
        )

    def _power(self) -> float:
        """By which power of the share of all work the results are kept, about."""
        leaves = self._join.tree.leaves
        share, kept = self._join.throttle.share, self._join.door.kept(leaves)
        if share is None or not (0.0 < share < _TELLING_SHARE and 0.0 < kept < _TELLING_SHARE):
            return 1.0
        return max(1.0, min(float(len(leaves)), math.log(kept) / math.log(share)))

    def _drift(self) -> float:
        """How many times what the last push took one like it will take when the windows have been
        filled by such: what is found there changes as they do."""
        door, losses = self._join.door, self._join.losses
        part = self.parts().get("probes and results", 0.0)
        if door.arcs:
            arc = next(iter(door.arcs.values()))
            longer = arc.length / losses.length_there()
            return 1.0 - part + part * door.keys.drift(longer)
        held = [losses.share_there(StreamSet.of(stream)) for stream in door.streams]
        taken = 1.0 - sum(door.left_out.values()) / max(1, self._push.count)
        ratio = taken * len(held) / sum(held)
        return 1.0 - part + part * ratio ** (len(door.streams) - 1)

    def parts(self) -> dict[str, float]:
        """The part of the time of a push that each kind of work takes, by what they cost; empty
        where only probes count."""
        budget, push = self._join.budget, self._push
        if not (budget.is_timed and budget.cost.is_known and push.count):
            return {}
        costs = budget.cost.costs
        rows = push.count - sum(self._join.door.left_out.values())
        found = {
            "bookkeeping": costs.push,
            "rows": costs.row * rows,
            "probes and results": costs.probe * push.used,
        }
        whole = sum(found.values())
        return {name: each / whole for name, each in found.items()} if whole > 0 else {}
