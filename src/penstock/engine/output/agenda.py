"""What is to happen to results: who enters the relation when, and who leaves it when.

Results are the columns of an int64 matrix whose rows mean one thing each: birth, death, group, and
what the aggregates need. An agenda holds such columns until an instant has come.

:class:`Agenda` has them in chunks, each sorted by the row ``due``. Who is due is a prefix of each
chunk, and chunks of like size are merged, as in a binary counter: a push costs what it adds and
takes, times a logarithm, and not what is held.

:class:`ArrivalAgenda` is for the arrival line, where a death becomes known only when it happens. It
is looked through as a whole. Its entries have numbers that stay the same until :meth:`pack`.

Both stage their changes: ``take`` and ``add`` show nothing until ``commit``, which takes over what
they have made and needs no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from penstock.kernels import aggregate, ring

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

BIRTH, DEATH, GROUP, MASK = range(4)
"""The rows that every entry has. Bits of MASK say which arguments are not NULL."""

_SMALLEST = 64


class Agenda:
    """Entries of ``width`` rows that wait for the instant in their row ``due``."""

    def __init__(self, width: int, due: int) -> None:
        self._due = due
        self._nobody = np.empty((width, 0), np.int64)
        self._chunks: list[Int64s] = []
        self._heads: list[int] = []
        self._cuts: list[int] = []
        self._staged: tuple[list[Int64s], list[int]] | None = None
        """Chunks and heads after the push."""

    def __len__(self) -> int:
        return sum(c.shape[1] - h for c, h in zip(self._chunks, self._heads, strict=True))

    @property
    def nbytes(self) -> int:
        return sum(chunk.nbytes for chunk in self._chunks)

    def take(self, until: int) -> Int64s:
        """Who is due at ``until`` or before."""
        parts: list[Int64s] = []
        cuts: list[int] = []
        for chunk, head in zip(self._chunks, self._heads, strict=True):
            due = chunk[self._due]
            cut = head
            if due[head] <= until:
                cut += int(due[head:].searchsorted(until, side="right"))
                parts.append(chunk[:, head:cut])
            cuts.append(cut)
        self._cuts = cuts
        return joined(parts) if parts else self._nobody

    def add(self, entries: Int64s) -> None:
        """Let copies of ``entries`` wait. Called after :meth:`take`, once."""
        order = ring.order_of(entries[self._due])
        entries = entries.copy() if order is None else picked(entries, order)
        chunks: list[Int64s] = []
        heads: list[int] = []
        for chunk, cut in zip(self._chunks, self._cuts, strict=True):
            size = chunk.shape[1]
            if cut == size:
                continue
            if 2 * cut > size:
                chunk, cut = chunk[:, cut:].copy(), 0
            chunks.append(chunk)
            heads.append(cut)
        if entries.shape[1]:
            chunks.append(entries)
            heads.append(0)
            while len(chunks) > 1:
                last, before = chunks[-1].shape[1] - heads[-1], chunks[-2].shape[1] - heads[-2]
                if before > 2 * last:
                    break
                both = np.empty((len(entries), before + last), np.int64)
                aggregate.merge(chunks[-2], heads[-2], chunks[-1], heads[-1], self._due, both)
                chunks[-2:] = [both]
                heads[-2:] = [0]
        self._staged = chunks, heads

    def staying(self) -> Int64s:
        """Everything that will wait after :meth:`commit`."""
        chunks, heads = self._staged or (self._chunks, self._heads)
        parts = [chunk[:, head:] for chunk, head in zip(chunks, heads, strict=True)]
        return joined(parts) if parts else self._nobody

    def commit(self) -> None:
        if self._staged is not None:
            self._chunks, self._heads = self._staged
        self._staged = None

    def rollback(self) -> None:
        self._staged = None

    def entries(self) -> Iterator[Int64s]:
        """Everything that waits, as views that may be written to (but not their row ``due``)."""
        for chunk, head in zip(self._chunks, self._heads, strict=True):
            yield chunk[:, head:]


class ArrivalAgenda:
    """Entries that wait for their death, which may still come nearer."""

    def __init__(self, width: int, ids: Mapping[str, int], death: int = DEATH) -> None:
        """Rows ``ids`` of an entry are leaf rows by stream, ``death`` is when it dies."""
        self._ids = dict(ids)
        self._death = death
        self._entries = np.empty((width, _SMALLEST), np.int64)
        self._count = 0
        self._gone = np.zeros(_SMALLEST, np.bool_)
        self._gone_count = 0
        self._shortened: Int64s | None = None
        self._gone_next: tuple[Bools, int] | None = None
        """Who will be gone after the push, and how many."""
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

    def take(self, until: int) -> Int64s:
        """Who dies at ``until`` or before."""
        deaths = self.deaths
        due = np.flatnonzero((deaths <= until) & ~self._gone[: self._count])
        taken = picked(self._entries, due)
        taken[self._death] = deaths[due]
        gone = self._gone.copy()
        gone[due] = True
        self._gone_next = gone, self._gone_count + len(due)
        return taken

    def add(self, entries: Int64s) -> None:
        """Let ``entries`` wait. Called after :meth:`take`, once."""
        more = entries.shape[1]
        if self._count + more > self._entries.shape[1]:
            self._resize(1 << (self._count + more - 1).bit_length())
        self._entries[:, self._count : self._count + more] = entries
        self._more = more

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
        return 2 * self._gone_count > max(self._count, _SMALLEST)

    def pack(self, follow: Callable[[Int64s], Callable[[], None]]) -> None:
        """Make room. ``follow`` is told the new numbers, -1 for who is gone, and gives what is to
        be called when all memory that it takes is there."""
        kept = np.flatnonzero(~self._gone[: self._count])
        numbers = np.full(self._count, -1, np.int64)
        numbers[kept] = np.arange(len(kept))
        capacity = self._entries.shape[1]
        if 4 * len(kept) < capacity:
            capacity = max(_SMALLEST, 1 << (2 * len(kept)).bit_length())
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

    def entries(self) -> Iterator[Int64s]:
        """Everything that waits, as views that may be written to."""
        yield self._entries[:, : self._count]

    def _resize(self, capacity: int) -> None:
        entries = np.empty((len(self._entries), capacity), np.int64)
        entries[:, : self._count] = self._entries[:, : self._count]
        gone = [np.zeros(capacity, np.bool_), np.zeros(capacity, np.bool_)]
        gone[0][: self._count] = self._gone[: self._count]
        if self._gone_next is not None:
            gone[1][: self._count] = self._gone_next[0][: self._count]
            self._gone_next = gone[1], self._gone_next[1]
        self._entries, self._gone = entries, gone[0]


def joined(parts: list[Int64s]) -> Int64s:
    """The columns of all ``parts``, of which there is at least one."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def picked(entries: Int64s, positions: Int64s) -> Int64s:
    """The columns at ``positions``, copied."""
    return np.take(entries, positions, axis=1)
