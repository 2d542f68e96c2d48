"""Probes that are owed: which rows did not probe, and what they would have seen.

A row that is stored but does not probe misses exactly the pairs with what was stored before it:
whoever is stored after it finds it by probing itself. So an owed probe is the row and, for each
other input of its join, the *bound* up to which it may look, as it stood at its turn
(:mod:`penstock.engine.join.join_operator`). Made later with the same bounds it finds the same
pairs, neither more nor fewer, as long as these rows are still there. What it makes then enters the
state above as a new row, meets all that is there, and is found by all that comes later: again each
pair once, when the later of the two is stored.

**What must be kept.** A result of an owed row is born no earlier than the row, so it needs partners
that die no earlier than that. And it is stale if one of its tuples is older than its freshness
allows. So windows keep a row until the watermark has passed its death, as ever, and beyond that
only while an owed probe is older than its death *and* a result with it would be fresh: never longer
than FRESHNESS, and not at all longer where that is the window. Nor do owed rows meet what was born
when the last of them had died. So from the end of a burst on, what is held is what the burst left
and what is alive, and nothing of the time in between, however long that is.

**Who pays first.** The youngest. A walk begins at the newest row and passes over all that came
after its bound, and it ends where the rows begin that were dead when the owed row was born. From
the youngest on, both ways are short; from the oldest on, every walk passes over all that is held.
Each probe is made for itself, so the order makes no difference to the answer; but the oldest are
the first to become stale, if they do before it is their turn.

Rows of one slice that wait at one input share their bounds, and are one :class:`Owed`: three
integers per row. Of each piece is noted how many rows it has, and when the first and the last of
them was born and gets stale. How much is owed, how old it is, and which pieces have something that
is stale, is read off these numbers; no piece is touched that has nothing stale.
An owed row is forgotten when it is stale itself, or when there is no memory to wait for it: the
oldest first, which hold the most. When a ring is packed its rows
get new numbers in the same order, so numbers and bounds are carried over.

Nothing here is changed in place: a failed push puts back what was there (:meth:`Debt.marks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.clock import END, START
from penstock.engine.state.rows import Follower, Rows
from penstock.plan.stream_set import StreamSet

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]
Marks = dict[StreamSet, "_Pile"]


@dataclass(frozen=True, slots=True, eq=False)
class Owed:
    """Rows of one input that have not probed.

    ``bounds`` has a place for every input of the join; that of their own means nothing.
    ``deadlines`` are the last instants at which results with them are fresh. Each row would have
    led to so many ``results`` at its turn, as was foreseen then; below 0 if nothing was known.
    """

    rows: Int64s
    births: Int64s
    deadlines: Int64s
    bounds: tuple[int, ...]
    results: float = -1.0

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def oldest(self) -> int:
        return int(self.births.min())

    def pick(self, positions: Int64s | slice) -> Owed:
        return replace(
            self,
            rows=self.rows[positions],
            births=self.births[positions],
            deadlines=self.deadlines[positions],
        )


class Forgotten(NamedTuple):
    """Owed probes of an input that will not be made."""

    rows: int
    results: float
    """What they would have led to, as was foreseen at their turn."""
    unforeseen: int = 0
    """Those of which nothing was known then; they are not among the results."""


_COUNT, _OLDEST, _YOUNGEST, _EARLIEST, _LATEST = range(5)


class _Pile(NamedTuple):
    """Pieces of one input, the youngest last."""

    pieces: tuple[Owed, ...] = ()
    facts: Int64s = np.empty((5, 0), np.int64)
    """Of each piece its rows, their first and last birth, their first and last deadline."""

    def with_more(self, pieces: Iterable[Owed]) -> _Pile:
        """The pile with those of ``pieces`` on top that have rows."""
        more = [each for each in pieces if len(each)]
        if not more:
            return self
        facts = np.array([_facts(each) for each in more], np.int64).T
        return _Pile((*self.pieces, *more), np.hstack([self.facts, facts]))

    def replaced(self, positions: Int64s, others: Sequence[Owed]) -> _Pile:
        """The pile with ``others`` at these ``positions``, without those that have no rows."""
        if not len(positions):
            return self
        pieces, facts = list(self.pieces), self.facts.copy()
        for position, other in zip(positions, others, strict=True):
            pieces[position] = other
            facts[:, position] = _facts(other) if len(other) else 0
        left = facts[_COUNT] > 0
        return _Pile(tuple(compress(pieces, left)), np.ascontiguousarray(facts[:, left]))

    @property
    def owed(self) -> int:
        """Rows of all pieces."""
        return int(self.facts[_COUNT].sum())

    @property
    def oldest(self) -> int:
        return int(self.facts[_OLDEST].min(initial=END))

    @property
    def youngest(self) -> int:
        return int(self.facts[_YOUNGEST].max(initial=START))


_NOTHING = _Pile()


def _facts(owed: Owed) -> tuple[int, ...]:
    births, deadlines = owed.births, owed.deadlines
    return (len(owed), *(int(f()) for f in (births.min, births.max, deadlines.min, deadlines.max)))


class Debt:
    """What the inputs of one tree owe, by the streams of the input."""

    def __init__(self) -> None:
        self._piles: dict[StreamSet, _Pile] = {}
        self._watched: list[tuple[Rows, Follower]] = []

    def __len__(self) -> int:
        return sum(pile.owed for pile in self._piles.values())

    def __bool__(self) -> bool:
        return any(pile.pieces for pile in self._piles.values())

    @property
    def nbytes(self) -> int:
        return 24 * len(self)

    @property
    def by_input(self) -> dict[StreamSet, int]:
        """How many rows of each input owe their probe."""
        return {origin: pile.owed for origin, pile in self._piles.items() if pile.pieces}

    @property
    def oldest(self) -> int:
        """The earliest birth of a row that owes; the end of time if none does."""
        return min((pile.oldest for pile in self._piles.values()), default=END)

    @property
    def youngest(self) -> int:
        """The latest birth of a row that owes; the beginning of time if none does."""
        return max((pile.youngest for pile in self._piles.values()), default=START)

    def items(self) -> Iterator[tuple[StreamSet, Owed]]:
        for origin, pile in self._piles.items():
            for each in pile.pieces:
                yield origin, each

    # -- a push ------------------------------------------------------------------------------

    def owe(self, origin: StreamSet, owed: Owed) -> None:
        """``owed`` of the input ``origin`` have not probed."""
        self._piles[origin] = self._piles.get(origin, _NOTHING).with_more([owed])

    def take(self, origin: StreamSet, most: int) -> Owed | None:
        """The last of what ``origin`` owes, at most so many rows: they are about to probe."""
        pile = self._piles.get(origin, _NOTHING)
        if not pile.pieces:
            return None
        last = pile.pieces[-1]
        self._piles[origin] = _Pile(pile.pieces[:-1], pile.facts[:, :-1])
        if len(last) <= most:
            return last
        self.owe(origin, last.pick(slice(0, len(last) - most)))
        return last.pick(slice(len(last) - most, None))

    def next_origin(self) -> StreamSet | None:
        """Whose turn it is to pay: the input whose last debt is the youngest."""
        fronts = [(int(p.facts[_OLDEST, -1]), o) for o, p in self._piles.items() if p.pieces]
        return max(fronts, key=lambda each: each[0])[1] if fronts else None

    def forget_stale(self, now: int) -> dict[StreamSet, Forgotten]:
        """Let go of rows whose results would be stale at ``now``, by input."""
        return self._forget((_EARLIEST, _LATEST), now, lambda owed: owed.deadlines >= now)

    def forget_older(self, instant: int) -> dict[StreamSet, Forgotten]:
        """Let go of rows that were born before ``instant``, by input."""
        return self._forget((_OLDEST, _YOUNGEST), instant, lambda owed: owed.births >= instant)

    def _forget(
        self, facts: tuple[int, int], instant: int, wanted: Callable[[Owed], Bools]
    ) -> dict[StreamSet, Forgotten]:
        """Let go of rows that are not ``wanted``, of pieces whose first one of two ``facts`` lies
        before ``instant``; if the last does too, none of their rows is wanted."""
        gone = {}
        for origin, pile in self._piles.items():
            late = np.flatnonzero(pile.facts[facts[0]] < instant)
            if len(late):
                done = pile.facts[facts[1], late] < instant
                gone[origin] = self._thin_out(origin, late, done, wanted)
        return gone

    def keep(self, origin: StreamSet, wanted: Callable[[Int64s], Bools]) -> Forgotten:
        """Let go of rows of ``origin`` that are not ``wanted``."""
        number = len(self._piles.get(origin, _NOTHING).pieces)
        every, none = np.arange(number), np.zeros(number, np.bool_)
        return self._thin_out(origin, every, none, lambda owed: wanted(owed.rows))

    def _thin_out(
        self, origin: StreamSet, late: Int64s, done: Bools, wanted: Callable[[Owed], Bools]
    ) -> Forgotten:
        """Let go of rows that are not ``wanted`` of the pieces of ``origin`` at ``late``, and of
        all of those that are ``done``."""
        pile = self._piles.get(origin, _NOTHING)
        left = [
            pile.pieces[position].pick(
                slice(0, 0) if is_done else np.flatnonzero(wanted(pile.pieces[position]))
            )
            for position, is_done in zip(late, done, strict=True)
        ]
        self._piles[origin] = fewer = pile.replaced(late, left)
        gone = [
            (len(pile.pieces[position]) - len(kept), kept.results)
            for position, kept in zip(late, left, strict=True)
        ]
        return Forgotten(
            pile.owed - fewer.owed,
            sum(rows * results for rows, results in gone if results >= 0),
            sum(rows for rows, results in gone if results < 0),
        )

    def marks(self) -> Marks:
        return dict(self._piles)

    def undo(self, marks: Marks) -> None:
        self._piles = marks

    @property
    def is_watching(self) -> bool:
        return bool(self._watched)

    # -- rows that get new numbers -----------------------------------------------------------

    def watch(self, inputs: Mapping[StreamSet, tuple[Rows, StreamSet, int]]) -> None:
        """Follow the rows of the inputs, while anything is owed.

        ``inputs`` has for every input its rows, the streams of the join that it feeds, and its
        place among the inputs of that join.
        """
        for rows, follower in self._watched:
            rows.followers.remove(follower)
        self._watched = []
        siblings: dict[StreamSet, list[StreamSet]] = {}
        for origin, (_, join, _) in inputs.items():
            siblings.setdefault(join, []).append(origin)
        if self:
            for origin, (rows, join, place) in inputs.items():
                others = [each for each in siblings[join] if each != origin]
                follower = partial(self._packed, origin, others, place)
                rows.followers.append(follower)
                self._watched.append((rows, follower))

    def _packed(
        self, origin: StreamSet, others: list[StreamSet], place: int, kept: Int64s, first: int
    ) -> None:
        """The rows ``kept`` of an input are numbered from ``first`` on."""
        changed = {
            origin: _NOTHING.with_more(
                _moved(each, kept, first) for each in self._piles.get(origin, _NOTHING).pieces
            )
        }
        for other in others:
            changed[other] = _NOTHING.with_more(
                Owed(
                    owed.rows,
                    owed.births,
                    owed.deadlines,
                    (
                        *owed.bounds[:place],
                        first + int(np.searchsorted(kept, owed.bounds[place])),
                        *owed.bounds[place + 1 :],
                    ),
                    owed.results,
                )
                for owed in self._piles.get(other, _NOTHING).pieces
            )
        self._piles |= changed


def _moved(owed: Owed, kept: Int64s, first: int) -> Owed:
    """With the new numbers; rows that were not kept are dead, and gone."""
    at = np.searchsorted(kept, owed.rows)
    found = (
        np.flatnonzero((at < len(kept)) & (kept[np.minimum(at, len(kept) - 1)] == owed.rows))
        if len(kept)
        else np.empty(0, np.int64)
    )
    left = owed.pick(found)
    return replace(left, rows=first + at[found])
