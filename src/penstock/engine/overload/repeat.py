"""A push that can be repeated, and accounts that another engine takes over.

A host that may have to make a push again, elsewhere and later, and needs the same answer and the
same debt then, asks for decisions that follow from the accounts of the push before: costs, tokens,
what half-way joins found and how much there was to find. No clock is asked, so there are no slices
by the clock: a guess that was wrong is made good by the next push, not within this one. Which rows
probe depends also on how states are laid out, which differs between engines that took in the same.
So a push that is limited must begin with an engine just restored from a checkpoint, and says so
(:class:`NeedsBase`) before it has changed anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from penstock.engine.overload.limited_join import LimitedJoin
from penstock.engine.overload.passing import Passing
from penstock.engine.overload.push_at_hand import PushAtHand
from penstock.plan.stream_set import StreamSet


class NeedsBase(Exception):  # noqa: N818 - a request to the host, no error
    """A repeatable push is limited, and the engine has not just been restored."""


class Repeat:
    """Whether the next push of a ``join`` can be repeated, and the accounts for that."""

    def __init__(self, join: LimitedJoin, push: PushAtHand, passing: Passing) -> None:
        self._join = join
        self._push = push
        self._passing = passing
        self.is_asked = False
        """Whether the push at hand is to be repeatable."""
        self.rows: Mapping[str, int] = {}
        """Rows that it brings to each stream, by the host."""
        self._from_base = False

    def ask(
        self, accounts: Mapping[str, Any] | None, rows: Mapping[str, int], from_base: bool
    ) -> None:
        """Decide in the next push by ``accounts``, those of the push before, and by no clock.

        ``rows`` are those that the push brings to each stream: of ways to make a push, some leave
        out rows that fail a predicate before they are counted, and some do not. ``from_base`` if
        the engine has just been restored from a checkpoint.
        """
        self._passing.settle()
        if accounts is not None:
            self.take_over(accounts)
            self._join.counts.look_back(accounts.get("found", ()))
        self.is_asked, self._from_base, self.rows = True, from_base, rows
        self._join.costs.forget()
        self._join.shares.forget()

    @property
    def needs_base(self) -> bool:
        """Whether the push at hand must not be limited."""
        return self.is_asked and not self._from_base

    def accounts(self, events: int) -> dict[str, Any]:
        """What was done and lost so far, with the last ``events``."""
        self._passing.settle()
        join = self._join
        return {
            **join.book.to_json(events),
            **join.losses.to_json(),
            "pushes": self._push.number,
            "budget": join.budget.to_json(),
            "found": join.counts.to_json(),
            "carried": [[sorted(o), each] for o, each in join.debts.carried.items()],
            "left_out": dict(join.door.all_left_out),
        }

    def take_over(self, accounts: Mapping[str, Any]) -> None:
        """Go on from the accounts of another engine that has done the same."""
        self._passing.settle()
        join = self._join
        join.book.load_json(accounts)
        join.losses.load_json(accounts)
        if "budget" not in accounts:  # Of an earlier version.
            return
        self._push.number = accounts["pushes"]
        join.budget.load_json(accounts["budget"])
        join.door.all_left_out = Counter(accounts.get("left_out", {}))
        join.counts.load_json(accounts["found"])
        if join.tree.rationing is not None:
            carried = {StreamSet(origin): each for origin, each in accounts["carried"]}
            join.tree.rationing.carried = carried
