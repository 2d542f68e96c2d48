"""What is to happen to results: which enter the relation when, and which leave it when.

Results are the columns of an int64 matrix whose rows mean one thing each: birth, death, group, and
what the aggregates need. An agenda holds such columns until an instant has come.

:class:`Agenda` has them in lists by the digits of the instant that they wait for
(:mod:`penstock.kernels.agenda`): a push costs what it adds and takes, and not what is held.

:class:`ArrivalAgenda` is for the arrival line, where a death becomes known only when it happens. It
is looked through as a whole. Its entries have numbers that stay the same until :meth:`pack`.

Both stage their changes: ``exchange`` shows nothing until ``commit``, which needs no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from penstock.kernels import agenda as kernels
from penstock.kernels.aggregate import DEATH
from penstock.kernels.lifespan import FOREVER

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

_FEWEST_ENTRIES = 64
"""Entries for which there always is room."""
_SPARE_ENTRIES = 1 << 12
"""Entries for which working space is kept though few are taken."""


class Agenda:
    """Entries of ``width`` rows that wait for the instant in their row ``due``."""

    def __init__(self, width: int, due: int) -> None:
        self._due = due
        self._room = 0
        """Entries for which there are blocks."""
        self._pool = kernels.pool_for(0, width)
        self._heads = kernels.NONE_HELD.copy()
        self._out = np.empty((width, 0), np.int64)
        """Rows that were taken and are not settled; else working space for them."""
        self._new: Int64s | None = None
        """Rows of the push that is under way."""
        self._until = 0
        """The instant that the push has come to."""
        self._rests = int(FOREVER)
        """An instant before which nothing is due."""

    def __len__(self) -> int:
        return int(self._heads[kernels.HELD])

    @property
    def nbytes(self) -> int:
        return self._pool.nbytes + self._heads.nbytes + self._out.nbytes

    def exchange(self, until: int, new: Int64s) -> tuple[Int64s, int]:
        """Entries that are due at ``until`` or before, of those that wait and of ``new``; the
        others of ``new`` will wait. They are the first columns, and how many, until the next call.
        """
        new = np.ascontiguousarray(new)
        self._make_room(len(self) + new.shape[1])
        count, is_done = self._take(until, new)
        while not is_done:
            out = np.empty((len(self._out), count + (count >> 1) + _FEWEST_ENTRIES), np.int64)
            taken = self._heads[kernels.TAKEN]
            out[:, :taken] = self._out[:, :taken]
            self._out = out
            count, is_done = self._take(until, new)
        if self._out.shape[1] > 8 * count + _SPARE_ENTRIES:
            self._out = self._out[:, :count].copy()
        self._new, self._until = new, until
        return self._out, count

    def rests(self, until: int) -> bool:
        """Whether it is known that nothing is due at ``until`` or before."""
        return until < self._rests

    def _take(self, until: int, new: Int64s) -> tuple[int, bool]:
        found: tuple[int, bool] = kernels.take(
            self._pool, self._heads, self._due, until, new, self._out
        )
        return found

    def staying(self) -> Int64s:
        """Everything that will wait after :meth:`commit`."""
        waiting, new = self._waiting(), self._new
        if new is None:
            return waiting
        return np.concatenate([waiting, new[:, new[self._due] > self._until]], axis=1)

    def commit(self) -> None:
        if self._new is not None:
            self._settle(self._until, self._new)
        self._new = None

    def rollback(self) -> None:
        self._new, self._rests = None, -(2**63)

    def _settle(self, until: int, new: Int64s) -> None:
        self._rests = kernels.settle(self._pool, self._heads, self._due, until, new)

    def entries(self) -> Int64s:
        """A copy of everything that waits, while no push is under way."""
        taken = self._out[:, : self._heads[kernels.TAKEN]]
        return np.concatenate([self._waiting(), taken], axis=1)

    def put(self, entries: Int64s) -> None:
        """Have these instead of what :meth:`entries` has given: as many. Takes no memory."""
        last = self._heads[kernels.LAST]
        self._heads[:] = kernels.NONE_HELD
        self._heads[kernels.LAST] = last
        self._settle(-(2**63), entries)

    def _waiting(self) -> Int64s:
        waiting = np.empty((len(self._out), len(self)), np.int64)
        count = kernels.waiting(self._pool, self._heads, waiting)
        return waiting[:, :count]

    def _make_room(self, count: int) -> None:
        """Have room for ``count`` entries, and not for many more."""
        if count <= self._room <= max(_FEWEST_ENTRIES, 8 * count):
            return
        room = max(_FEWEST_ENTRIES, 2 * count)
        entries, width = self.entries(), len(self._out)
        out, pool = np.empty((width, 0), np.int64), kernels.pool_for(room, width)
        self._pool, self._room, self._out = pool, room, out
        self.put(entries)


class ArrivalAgenda:
    """Entries that wait for their death, which may still come nearer."""

    def __init__(self, width: int, ids: Mapping[str, int], death: int = DEATH) -> None:
        """Rows ``ids`` of an entry are leaf rows by stream, ``death`` is when it dies."""
        self._ids = dict(ids)
        self._death = death
        self._entries = np.empty((width, _FEWEST_ENTRIES), np.int64)
        self._count = 0
        self._gone = np.zeros(_FEWEST_ENTRIES, np.bool_)
        self._gone_count = 0
        self._shortened: Int64s | None = None
        self._gone_next: tuple[Bools, int] | None = None
        """Entries that will be gone after the push, and how many."""
        self._more = 0
        """Entries that were written behind the others, to be there after the push."""

    def __len__(self) -> int:
        return self._count - self._gone_count

    @property
    def nbytes(self) -> int:
        return self._entries.nbytes + self._gone.nbytes

    @property
    def next_number(self) -> int:
        """The number that the first of the entries added next will have."""
        return self._count

    @property
    def deaths(self) -> Int64s:
        """The deaths by the number of the entry, as far as they are known."""
        if self._shortened is not None:
            return self._shortened
        return self._entries[self._death, : self._count]

    def shorten(self, refresh: Callable[[dict[str, Int64s], Int64s], None]) -> None:
        """Let ``refresh`` lower the deaths to those of the leaf rows. Staged as well."""
        deaths = self._entries[self._death, : self._count].copy()
        refresh({a: self._entries[row, : self._count] for a, row in self._ids.items()}, deaths)
        self._shortened = deaths

    def exchange(self, until: int, new: Int64s) -> tuple[Int64s, int]:
        """Entries that die at ``until`` or before, of those that wait and of ``new``; the others of
        ``new`` will wait. They are columns, and how many."""
        deaths = self.deaths
        due = np.flatnonzero((deaths <= until) & ~self._gone[: self._count])
        taken = picked(self._entries, due)
        taken[self._death] = deaths[due]
        gone = self._gone.copy()
        gone[due] = True
        self._gone_next = gone, self._gone_count + len(due)
        is_dead = new[self._death] <= until
        if np.count_nonzero(is_dead):
            taken = np.concatenate([taken, new[:, is_dead]], axis=1)
            new = new[:, ~is_dead]
        more = new.shape[1]
        if self._count + more > self._entries.shape[1]:
            self._resize(1 << (self._count + more - 1).bit_length())
        self._entries[:, self._count : self._count + more] = new
        self._more = more
        return taken, taken.shape[1]

    def rests(self, until: int) -> bool:
        """Whether it is known that nothing is due at ``until`` or before: never."""
        return False

    @property
    def added(self) -> Int64s:
        """Entries that will wait since the push that is under way."""
        return self._entries[:, self._count : self._count + self._more]

    def staying(self) -> Int64s:
        """Everything that will wait after :meth:`commit`."""
        gone = self._gone if self._gone_next is None else self._gone_next[0]
        rows = np.flatnonzero(~gone[: self._count + self._more])
        taken = picked(self._entries, rows)
        known = int(np.searchsorted(rows, self._count))
        taken[self._death, :known] = self.deaths[rows[:known]]
        return taken

    def commit(self) -> None:
        if self._shortened is not None:
            self._entries[self._death, : self._count] = self._shortened
        if self._gone_next is not None:
            self._gone, self._gone_count = self._gone_next
        self._count += self._more
        self.rollback()

    def rollback(self) -> None:
        self._shortened = self._gone_next = None
        self._more = 0

    @property
    def is_worth_packing(self) -> bool:
        """Whether half of the entries are gone."""
        return 2 * self._gone_count > max(self._count, _FEWEST_ENTRIES)

    def pack(self, follow: Callable[[Int64s], Callable[[], None]]) -> None:
        """Make room. ``follow`` gets the new numbers, -1 for entries that are gone, and gives what
        is to be called when all memory that it takes is there."""
        kept = np.flatnonzero(~self._gone[: self._count])
        numbers = np.full(self._count, -1, np.int64)
        numbers[kept] = np.arange(len(kept))
        capacity = self._entries.shape[1]
        if 4 * len(kept) < capacity:
            capacity = max(_FEWEST_ENTRIES, 1 << (2 * len(kept)).bit_length())
        entries = np.empty((len(self._entries), capacity), np.int64)
        entries[:, : len(kept)] = picked(self._entries, kept)
        gone = np.zeros(capacity, np.bool_)
        adopt = follow(numbers)
        # Only now: without memory for it, everything is as it was.
        self._entries, self._gone = entries, gone
        self._count, self._gone_count = len(kept), 0
        adopt()

    def renumber(self, alias: str, mapping: Int64s, first: int) -> None:
        """Leaf row ``r`` of ``alias`` is now ``mapping[r - first]``; -1 where it is gone."""
        if alias not in self._ids:
            return
        ids = self._entries[self._ids[alias], : self._count]
        known = (ids >= first) & (ids < first + len(mapping))
        ids[:] = np.where(known, mapping[np.where(known, ids - first, 0)], -1)

    def entries(self) -> Int64s:
        """A copy of everything that waits."""
        return self._entries[:, : self._count].copy()

    def put(self, entries: Int64s) -> None:
        """Have these instead of what :meth:`entries` has given."""
        self._entries[:, : self._count] = entries

    def _resize(self, capacity: int) -> None:
        entries = np.empty((len(self._entries), capacity), np.int64)
        entries[:, : self._count] = self._entries[:, : self._count]
        gone = [np.zeros(capacity, np.bool_), np.zeros(capacity, np.bool_)]
        gone[0][: self._count] = self._gone[: self._count]
        if self._gone_next is not None:
            gone[1][: self._count] = self._gone_next[0][: self._count]
            self._gone_next = gone[1], self._gone_next[1]
        self._entries, self._gone = entries, gone[0]


def picked(entries: Int64s, positions: Int64s) -> Int64s:
    """The columns at ``positions``, copied."""
    return np.take(entries, positions, axis=1)
