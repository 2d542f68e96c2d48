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
integers per row. An owed row is forgotten when it is stale itself. When a ring is packed its rows
get new numbers in the same order, so numbers and bounds are carried over.

Nothing here is changed in place: a failed push puts back what was there (:meth:`Debt.marks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.clock import END, START
from penstock.engine.state.rows import Follower, Rows
from penstock.plan.stream_set import StreamSet

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]
Marks = dict[StreamSet, tuple["Owed", ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Owed:
    """Rows of one input that have not probed.

    ``bounds`` has a place for every input of the join; that of their own means nothing.
    ``deadlines`` are the last instants at which results with them are fresh.
    """

    rows: Int64s
    births: Int64s
    deadlines: Int64s
    bounds: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def oldest(self) -> int:
        return int(self.births.min())

    def pick(self, positions: Int64s | slice) -> Owed:
        return Owed(
            self.rows[positions], self.births[positions], self.deadlines[positions], self.bounds
        )

    def fresh_at(self, now: int) -> Owed:
        """Those of which results may still be fresh."""
        keep = self.deadlines >= now
        return self if keep.all() else self.pick(np.flatnonzero(keep))


class Debt:
    """What the inputs of one tree owe, by the streams of the input."""

    def __init__(self) -> None:
        self._owed: dict[StreamSet, tuple[Owed, ...]] = {}
        self._watched: list[tuple[Rows, Follower]] = []

    def __len__(self) -> int:
        return sum(len(each) for owed in self._owed.values() for each in owed)

    def __bool__(self) -> bool:
        return any(self._owed.values())

    @property
    def nbytes(self) -> int:
        return 24 * len(self)

    @property
    def by_input(self) -> dict[StreamSet, int]:
        """How many rows of each input owe their probe."""
        return {origin: sum(map(len, owed)) for origin, owed in self._owed.items() if owed}

    @property
    def oldest(self) -> int:
        """The earliest birth of a row that owes; the end of time if none does."""
        return min((e.oldest for owed in self._owed.values() for e in owed), default=END)

    @property
    def youngest(self) -> int:
        """The latest birth of a row that owes; the beginning of time if none does."""
        births = (int(e.births.max()) for owed in self._owed.values() for e in owed)
        return max(births, default=START)

    def items(self) -> Iterator[tuple[StreamSet, Owed]]:
        for origin, owed in self._owed.items():
            for each in owed:
                yield origin, each

    # -- a push ------------------------------------------------------------------------------

    def owe(self, origin: StreamSet, owed: Owed) -> None:
        """``owed`` of the input ``origin`` have not probed."""
        if len(owed):
            self._owed[origin] = (*self._owed.get(origin, ()), owed)

    def take(self, origin: StreamSet, most: int) -> Owed | None:
        """The last of what ``origin`` owes, at most so many rows: they are about to probe."""
        owed = self._owed.get(origin, ())
        if not owed:
            return None
        last = owed[-1]
        if len(last) <= most:
            self._owed[origin] = owed[:-1]
            return last
        self._owed[origin] = (*owed[:-1], last.pick(slice(0, len(last) - most)))
        return last.pick(slice(len(last) - most, None))

    def next_origin(self) -> StreamSet | None:
        """Whose turn it is to pay: the input whose last debt is the youngest."""
        fronts = [(owed[-1].oldest, o) for o, owed in self._owed.items() if owed]
        return max(fronts, key=lambda each: each[0])[1] if fronts else None

    def forget_stale(self, now: int) -> dict[StreamSet, int]:
        """Let go of rows whose results would be stale at ``now``; how many of each input."""
        forgotten = {}
        for origin, owed in self._owed.items():
            fresh = [each.fresh_at(now) for each in owed]
            gone = sum(map(len, owed)) - sum(map(len, fresh))
            if gone:
                forgotten[origin] = gone
                self._owed[origin] = tuple(each for each in fresh if len(each))
        return forgotten

    def keep(self, origin: StreamSet, wanted: Callable[[Int64s], Bools]) -> None:
        """Let go of rows of ``origin`` that are not ``wanted``."""
        owed = self._owed.get(origin, ())
        left = [each.pick(np.flatnonzero(wanted(each.rows))) for each in owed]
        self._owed[origin] = tuple(each for each in left if len(each))

    def marks(self) -> Marks:
        return dict(self._owed)

    def undo(self, marks: Marks) -> None:
        self._owed = marks

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
            origin: tuple(
                moved
                for owed in self._owed.get(origin, ())
                if len(moved := _moved(owed, kept, first))
            )
        }
        for other in others:
            changed[other] = tuple(
                Owed(
                    owed.rows,
                    owed.births,
                    owed.deadlines,
                    (
                        *owed.bounds[:place],
                        first + int(np.searchsorted(kept, owed.bounds[place])),
                        *owed.bounds[place + 1 :],
                    ),
                )
                for owed in self._owed.get(other, ())
            )
        self._owed |= changed


def _moved(owed: Owed, kept: Int64s, first: int) -> Owed:
    """With the new numbers; rows that were not kept are dead, and gone."""
    at = np.searchsorted(kept, owed.rows)
    found = (
        np.flatnonzero((at < len(kept)) & (kept[np.minimum(at, len(kept) - 1)] == owed.rows))
        if len(kept)
        else np.empty(0, np.int64)
    )
    left = owed.pick(found)
    return Owed(first + at[found], left.births, left.deadlines, left.bounds)
