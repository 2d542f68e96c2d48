"""Probes that are owed (``defer``): what is held for them, and how they are made up for.

A probe that was put off looks back: it needs the rows that were alive when it should have been
made, so windows hold these until it is paid, or until no result of it would be fresh any more. Then
it is forgotten, and told. And where some of its partners are too old for a fresh result by the time
it is made, it misses these: what it finds with the others tells how many results that were, if rows
come evenly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.engine.overload.freshness import Freshness
from penstock.engine.rationing.debt import Forgotten
from penstock.engine.rationing.rationing import alive
from penstock.engine.state.clock import END
from penstock.engine.state.composites import Composites, concatenate
from penstock.engine.state.leaf_window import Lull
from penstock.engine.tree.join_tree import JoinTree
from penstock.plan.stream_set import StreamSet

_AT_ONCE = 1 << 13
"""Rows whose probes are made up for in one pass."""


_PARTS = 4
"""Of the time over which probes are owed, one such part is given up at once."""
_ENOUGH_THERE = 8
"""Owed probes with partners that tell what others of their pass would have found."""


@dataclass(slots=True)
class Payment:
    """Owed probes that were made."""

    fresh: Composites
    """The results of that which may leave."""
    probes: int
    stale: int = 0
    """Results that may not."""
    there: dict[StreamSet, float] = field(default_factory=lambda: defaultdict(float))
    """Results that were foreseen of the probes of each input with partners that are still fresh."""
    gone: dict[StreamSet, float] = field(default_factory=lambda: defaultdict(float))
    """Those with the others."""
    passes: list[tuple[StreamSet, float, float]] = field(default_factory=list)
    """Of each pass its input, results that were found, and those that were foreseen."""

    @property
    def shares(self) -> dict[StreamSet, float]:
        """The part of the partners of each input that was still fresh."""
        return {
            origin: each / (each + self.gone[origin])
            for origin, each in self.there.items()
            if each + self.gone[origin] > 0
        }


class Debts:
    """The probes that a ``tree`` owes."""

    def __init__(self, tree: JoinTree, freshness: Freshness, by_rows: bool) -> None:
        self._tree = tree
        self._freshness = freshness
        self._by_rows = by_rows
        self._marks: Any = None

    @property
    def are_there(self) -> bool:
        """Whether probes are owed."""
        return self._tree.rationing is not None and bool(self._tree.rationing.debt)

    @property
    def carried(self) -> Mapping[StreamSet, float]:
        """Fractions of a row that inputs have not used."""
        return {} if self._tree.rationing is None else self._tree.rationing.carried

    def mark(self) -> None:
        """A push begins, or something else that may fail."""
        rationing = self._tree.rationing
        if rationing is not None:
            self._marks = rationing.debt.marks(), rationing.carried

    def undo(self) -> None:
        """What has begun has failed: the debts are those at the mark."""
        rationing = self._tree.rationing
        if rationing is not None and self._marks is not None:
            rationing.debt.undo(self._marks[0])
            rationing.carried = self._marks[1]

    def settle(self) -> None:
        """There is nothing to go back to."""
        self._marks = None

    def forget_stale(self, now: int) -> list[tuple[StreamSet, Forgotten]]:
        """Let go of what would find nothing fresh at ``now``, by input."""
        rationing = self._tree.rationing
        if rationing is None or not rationing.debt:
            return []
        gone = [*rationing.debt.forget_stale(now).items()]
        if self._by_rows:
            gone += rationing.forget_dead(self._tree.edges, now).items()
        return gone

    def forget_oldest(self) -> list[tuple[StreamSet, Forgotten]]:
        """Let go of the oldest, which hold the most, by input."""
        assert self._tree.rationing is not None
        debt = self._tree.rationing.debt
        part = (debt.youngest - debt.oldest) // _PARTS
        return [*debt.forget_older(debt.oldest + part + 1).items()]

    def pay(self, affordable: Callable[[StreamSet], float], now: int) -> Payment | None:
        """Make up for owed probes as long as rows are ``affordable``; None if none is."""
        rationing = self._tree.rationing
        assert rationing is not None
        with self._tree.unhidden():
            paid = rationing.pay(self._tree.process_late, affordable, _AT_ONCE)
        if not paid:
            return None
        late = [self._freshness.late(each.results, now) for each in paid]
        payment = Payment(concatenate(late), sum(len(each.owed) for each in paid))
        payment.stale = sum(len(each.results) for each in paid) - len(payment.fresh)
        for each, fresh in zip(paid, late, strict=True):
            others = self._tree.root.streams - each.origin
            there = self._freshness.share_left(others, each.owed.births, now)
            if self._by_rows:
                edge = next(edge for edge in self._tree.edges if edge.streams == each.origin)
                there *= alive(edge.input, now, each.owed.rows)
            had = float(there.sum())
            foreseen = each.owed.results
            if foreseen >= 0:
                payment.passes.append((each.origin, len(fresh), foreseen * had))
            elif had >= _ENOUGH_THERE:
                foreseen = len(fresh) / had
            else:
                foreseen = rationing.foreseen.get(each.origin, 0.0)
            payment.there[each.origin] += foreseen * had
            payment.gone[each.origin] += foreseen * (len(there) - had)
        return payment

    # -- what is held for them ---------------------------------------------------------------

    def keep_from(self, alias: str, before: int, now: int) -> int:
        """Rows of ``alias`` that died before this instant may go; ``before`` if nothing is owed."""
        if self._by_rows or not self.are_there:
            return before
        return min(before, max(self._oldest, self._freshness.kept_until(alias, now)))

    def keep_all_from(self, before: int) -> int:
        """The same for whatever is made of several streams."""
        return before if self._by_rows or not self.are_there else min(before, self._oldest)

    def lull(self, before: int) -> Lull | None:
        """What was born after the first instant and died before the second is needed by nobody;
        None if there cannot be any, as long as debts are made."""
        if self._by_rows or not self.are_there:
            return None
        assert self._tree.rationing is not None
        leaves = self._tree.leaves.values()
        longest = max(leaf.span for leaf in leaves if not leaf.stream.is_static)
        since = min(END, self._tree.rationing.debt.youngest + longest)
        return (since, before) if since < before else None

    @property
    def _oldest(self) -> int:
        assert self._tree.rationing is not None
        return self._tree.rationing.debt.oldest

    def measure(self, now: int, second: float) -> dict[str, Any]:
        """What is owed, for people; ``second`` ticks are one."""
        if not self.are_there:
            return {"probes": 0, "age": 0.0, "bytes": 0, "inputs": {}}
        assert self._tree.rationing is not None
        debt = self._tree.rationing.debt
        return {
            "probes": len(debt),
            "age": max(0, now - debt.oldest) / second,
            "bytes": debt.nbytes,
            "inputs": {str(origin): number for origin, number in debt.by_input.items()},
        }
