"""Rows: columns in a growing and shrinking ring.

The common ground of leaf windows and states of composites. A row has an ever-growing sequence
number, a birth and a death; rows live from ``tail`` to ``head``. Every column is a numpy array of
``capacity`` (a power of two) values. Columns and hash indexes are resized together, in one piece of
memory, or partly in files (:mod:`penstock.engine.state.ring_files`). Appending never moves a row to
another number, so :meth:`truncate` can take back what a failed push put in.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.index_sweep import IndexSweep
from penstock.engine.state.page_by_page import give_page_by_page
from penstock.engine.state.ring_files import HEADS, KEYS, PAYLOAD, Blocks, RingFiles
from penstock.engine.state.spare_memory import Block, SpareMemory
from penstock.engine.state.spill_files import SpillFiles, let_go
from penstock.errors import PenstockError
from penstock.kernels import ring
from penstock.kernels.index import LARGEST

Int64s = NDArray[np.int64]
Follower = Callable[[Int64s, int], None]
"""Told which rows were kept, and the new number of the first; the others follow in this order."""

BIRTH = 0
DEATH = 1
SMALLEST = 64
"""Rows of the smallest ring: less than a page for each column."""
LEAP = 32
"""Times what is needed that a ring grows to, at most."""
_SMALL_ROWS = 1024
"""Rows below which a ring is copied in microseconds, and need not grow ahead."""
_FORGOTTEN_PER_ROW = 4
"""Rows that are expected no more for each that expires: a quarter of a window says how large a ring
should be."""
_GENERATIONS = itertools.count()


class Rows:
    """A ring of rows.

    Probes see the rows from ``low`` on. Between pushes that is the tail; while a large push is
    worked off slice by slice, it moves ahead of the tail, past rows that died before the slice.
    """

    def __init__(self, dated: bool = True) -> None:
        """Columns 0 and 1 are birth and death if the rows are ``dated``."""
        self.capacity = SMALLEST
        self.mask = SMALLEST - 1
        self.tail = 0
        self.head = 0
        self.low = 0
        self.is_late = False
        """Whether those that probe now should have done so long ago."""
        self.generation = next(_GENERATIONS)
        """Another number whenever a column or an index has come, gone or moved; no other ring's."""
        self.columns: list[NDArray[Any]] = []
        self.indexes: list[HashIndex] = []
        self.followers: list[Follower] = []
        """Functions that are called when rows get new numbers."""
        self.spare: SpareMemory | None = None
        """The memory to use, if the ring is filled bit by bit and it need not be new."""
        self.on_disk: RingFiles | None = None
        """Columns that lie in files, if any do."""
        self._payload: set[int] = set()
        """Columns that no probe reads."""
        self._behind: list[Callable[[], None]] = []
        """Work that followers have yet to do: there was no memory when rows got new numbers."""
        self._alive_at_check = 0
        self._expected = 0
        """Rows that the ring was made for; fewer with every row that expires."""
        self._first_here = 0
        """The tail when columns and indexes came to lie where they are."""
        self._waits_for_huge_pages = False
        """Whether their memory was given in small pages, which may be put together later."""
        self._sweep = IndexSweep(self)
        if dated:
            self.add_column(np.int64)
            self.add_column(np.int64)

    def __len__(self) -> int:
        return self.head - self.tail

    @property
    def births(self) -> Int64s:
        return self.columns[BIRTH]

    @property
    def deaths(self) -> Int64s:
        return self.columns[DEATH]

    @property
    def block(self) -> Block | None:
        """The memory of all columns, and of indexes that are as old; None if it is not in one
        piece, or lies in a file."""
        if self.on_disk is not None:
            return None
        base = self.columns[0].base
        return base if isinstance(base, np.ndarray) and base.dtype == np.uint8 else None

    @property
    def nbytes(self) -> int:
        """Bytes of columns and indexes in memory."""
        total = sum(c.nbytes for c in self.columns) + sum(i.nbytes for i in self.indexes)
        block = self.block
        if block is not None:  # A part of it may be in no use any more, and is held all the same.
            arrays = [*self.columns, *(a for i in self.indexes for a in (i.heads, i.entries))]
            total += block.nbytes - sum(each.nbytes for each in arrays if each.base is block)
        return total - self.bytes_away

    @property
    def bytes_away(self) -> int:
        """Bytes of columns and indexes that are on disk alone, or of no row."""
        if self.on_disk is None:
            return 0
        return sum(
            part.nbytes - self.on_disk.nbytes(part, kind, self.tail, self.head)
            for part, kind in self._parts()
        )

    def bytes_of(self, kind: int) -> int:
        """Bytes in memory of columns of a ``kind`` (:mod:`penstock.engine.state.ring_files`)."""
        disk = self.on_disk
        return sum(
            part.nbytes if disk is None else disk.nbytes(part, kind, self.tail, self.head)
            for part, its in self._parts()
            if its == kind
        )

    def _parts(self) -> list[tuple[NDArray[Any], int]]:
        """All columns, and heads and entries of indexes, each with its kind."""
        arrays = [*self.columns, *(a for i in self.indexes for a in (i.heads, i.entries))]
        return list(zip(arrays, self._kinds, strict=True))

    @property
    def _kinds(self) -> list[int]:
        columns = range(len(self.columns))
        kinds = [PAYLOAD if number in self._payload else KEYS for number in columns]
        return kinds + [HEADS, KEYS] * len(self.indexes)

    def is_in_file(self, kind: int) -> bool:
        """Whether columns of a ``kind`` lie in a file."""
        return self.on_disk is not None and kind in self.on_disk.blocks

    def cold(self, kind: int) -> int:
        """Columns of a ``kind`` of the rows before this one are on disk."""
        return self.on_disk.cold[kind] if self.on_disk and kind in self.on_disk.blocks else 0

    # -- on disk -----------------------------------------------------------------------------

    def spill(self, kind: int, before: int, files: SpillFiles) -> bool:
        """Keep the rows before ``before`` on disk alone, as far as columns of a ``kind`` go; False
        if there is no room on disk, or they could not be written there: then they are in memory."""
        disk = self.on_disk or RingFiles(files)
        if kind not in disk.blocks:
            wanted, known = disk.wanted, self.on_disk
            disk.wanted, self.on_disk = wanted | {kind}, disk
            try:
                fresh = self._allocate(self.capacity)
                if kind in fresh[2]:
                    disk.cold[kind] = self.tail
                    self._move_to(fresh)
            finally:
                if kind not in disk.blocks:
                    disk.wanted, self.on_disk = wanted, known
            if kind not in disk.blocks:
                return False
        cold = max(disk.cold[kind], min(before, self.head))
        if cold > disk.cold[kind] and not files.settled(disk.blocks[kind]):
            return False
        disk.cold[kind] = cold
        self.let_go()
        return True

    def spill_share(self, kind: int, share: float, files: SpillFiles) -> bool:
        """The same for the oldest ``share`` of the rows of which that kind is in memory."""
        return self.spill(kind, self.row_after(share, self.cold(kind)), files)

    def row_after(self, share: float, cold: int) -> int:
        """The row behind the oldest ``share`` of the rows from ``cold`` on."""
        return self.head - math.floor((self.head - max(cold, self.tail)) * (1 - share))

    def let_go(self) -> None:
        """Let memory go that a push has read or written of rows that are on disk."""
        if self.on_disk is not None:
            self.on_disk.let_go(self._parts(), self.head)

    def bring_back(self) -> None:
        """Hold all rows in memory again."""
        disk, self.on_disk = self.on_disk, None
        try:
            self._resize(self.capacity)
        except MemoryError:
            self.on_disk = disk
            raise

    def forget_earlier(self) -> None:
        """Forget earlier bounds: no probe looks back any more."""
        for index in self.indexes:
            index.earlier = None

    def give_page_by_page(self, small: bool) -> None:
        """Let memory that no row has touched come in ``small`` pages, which never take long, or in
        huge ones, which are better afterwards (:mod:`penstock.engine.state.page_by_page`).

        Huge ones have to wait until rows have been everywhere: all columns come to the next one
        with the same row, and the push that has it would take twenty times as long.
        """
        self._waits_for_huge_pages = not small
        if small and self.block is not None:
            give_page_by_page(self.block)

    def _give_huge_pages(self) -> None:
        """Small pages may be put together, if all of them have been touched."""
        if self.head - self._first_here >= self.capacity:
            self._waits_for_huge_pages = False
            if self.block is not None:
                give_page_by_page(self.block, small=False)

    def note_moved(self) -> None:
        """Something that belongs to the rows lies elsewhere from now on."""
        self.generation = next(_GENERATIONS)

    def add_column(self, dtype: Any, is_payload: bool = False) -> int:
        """A new column, zero in all rows; its number. ``is_payload`` if no probe reads it."""
        self.generation = next(_GENERATIONS)
        self.columns.append(np.zeros(self.capacity, dtype))
        number = len(self.columns) - 1
        if is_payload:
            self._payload.add(number)
        return number

    def add_index(self) -> HashIndex:
        """A new index, in which no row has been entered yet."""
        self.generation = next(_GENERATIONS)
        index = HashIndex.of(self.capacity)
        index.stop = self.tail
        self.indexes.append(index)
        return index

    def drop_index(self, index: HashIndex) -> None:
        """Do without ``index`` from now on."""
        self.generation = next(_GENERATIONS)
        self.indexes = [each for each in self.indexes if each is not index]

    def has_room(self, count: int) -> bool:
        """Whether ``count`` more rows fit as it is."""
        return self.head - self.tail + count <= self.capacity

    @property
    def room(self) -> int:
        """Rows that fit in places that are free and swept."""
        tail, swept = self.tail, self._sweep.swept
        return self.capacity - self.head + (tail if tail < swept else swept)

    def reserve(self, count: int, expected: int = 0, leap: int = LEAP) -> None:
        """Make room for ``count`` more rows.

        ``expected`` is how many rows there may be once the window is full. While it fills, a ring
        that has to grow grows towards that, since memory that is never copied is never touched
        twice; but to no more than ``leap`` times what is needed now, and not while it is small.
        """
        needed = self.head - self.tail + count
        if needed > self.capacity:
            if needed > LARGEST:
                raise PenstockError(f"a window or state would hold {needed:,} rows; 2^30 can be")
            wanted = needed
            if needed >= _SMALL_ROWS:
                wanted = min(max(needed, min(expected, leap * needed)), LARGEST)
            self._resize(1 << (wanted - 1).bit_length())
            self._expected = max(wanted, self.capacity // 2)
        elif self.head + count - self._sweep.swept > self.capacity:
            self._sweep.do_all()
        elif self.head > self._sweep.next:
            self._sweep.do_some()

    def put(self, column: int, start: int, values: NDArray[Any]) -> None:
        """Write ``values`` into ``column`` from row ``start`` on."""
        first = start & self.mask
        stop = first + len(values)
        if stop <= self.capacity:  # In one piece: numpy copies it without a call to a kernel.
            self.columns[column][first:stop] = values
        else:
            ring.put(self.columns[column], self.mask, start, values)

    def take(self, column: int, rows: Int64s) -> NDArray[Any]:
        """The values of ``column`` in ``rows``."""
        taken: NDArray[Any] = ring.take(self.columns[column], self.mask, rows)
        return taken

    def insert(
        self, index: HashIndex, start: int, keys: Int64s, chosen: Int64s | None = None
    ) -> None:
        """Put the rows from ``start`` on into ``index``, or those at the positions ``chosen``."""
        index.insert(self.mask, self.tail, start, keys, chosen)

    def truncate(self, head: int) -> None:
        """Forget the rows from ``head`` on."""
        for index in self.indexes:
            index.truncate(self.mask, self.tail, head)
        self.head = head
        self.low = self.tail
        if self.on_disk is not None:
            self.on_disk.cold = [min(each, head) for each in self.on_disk.cold]
        self._forget_expected(self._expected)
        self._sweep.forget_begun()

    def hide_before(self, instant: int) -> None:
        """Let probes skip the oldest rows up to the first that is alive at ``instant``."""
        self.low = ring.first_alive(self.deaths, self.mask, self.low, self.head, instant)

    def expire(self, before: int) -> None:
        """Let go of the oldest rows up to the first whose death is not before ``before``."""
        self.advance(ring.first_alive(self.deaths, self.mask, self.tail, self.head, before))

    def advance(self, tail: int) -> None:
        """Let go of the rows before ``tail``."""
        if tail > self.tail:
            self._forget_expected(tail - self.tail)
            self.tail, self.low = tail, max(self.low, tail)

    def _forget_expected(self, rows: int) -> None:
        """``rows`` that expire tell how large it should be; unless it is being filled.

        Of a state that was filled after a change of plan some of the first rows die long before the
        others come, so the first to expire says little. (That is while its pages are small ones.)
        """
        if self.spare is None:
            left = self._expected - _FORGOTTEN_PER_ROW * rows
            self._expected = max(0, left) if self._waits_for_huge_pages else 0

    def fit(self) -> None:
        """Give memory back when the ring is much too large."""
        if self._waits_for_huge_pages:
            self._give_huge_pages()
        live = max(self.head - self.tail, self._expected)
        if self.capacity > SMALLEST and live * 4 < self.capacity:
            self._resize(max(SMALLEST, 1 << max(0, 2 * live - 1).bit_length()))

    def keep_only(self, rows: Int64s, expected: int = 0) -> None:
        """Renumber: the given rows (ascending) become the rows from the present head on.

        There will be room for twice as many, or for ``expected``.
        """
        kept = [ring.take(column, self.mask, rows) for column in self.columns]
        saved = [
            ring.take(index.entries, self.mask, rows[: np.searchsorted(rows, index.stop)])
            for index in self.indexes
        ]
        room = max(SMALLEST, 2 * len(rows), expected)
        fresh = self._allocate(1 << (room - 1).bit_length())
        self._expected = expected
        self.tail = self.low = self.head
        self.head += len(rows)
        self._adopt(*fresh)
        if self.on_disk is not None:
            self.on_disk.cold = [self.tail, self.tail]
        for column, values in zip(self.columns, kept, strict=True):
            ring.put(column, self.mask, self.tail, values)
        for index, entries in zip(self.indexes, saved, strict=True):
            index.enter_codes(self.mask, self.tail, entries)
        self._behind += [partial(follow, rows, self.tail) for follow in self.followers]
        with suppress(MemoryError):
            self.let_follow()

    def let_follow(self) -> None:
        """Call the followers again that lacked memory when rows got new numbers."""
        while self._behind:
            self._behind[0]()
            del self._behind[0]

    @property
    def is_followed(self) -> bool:
        """Whether all followers know the numbers that rows have."""
        return not self._behind

    def is_worth_a_check(self) -> bool:
        """Whether so many rows came since the last count that most of them may be dead.

        Composites of two streams die at an even rate over a window, so half of those between tail
        and head are dead as a rule, and packing them would be for ever. Two thirds are worth it.
        """
        return len(self) > 3 * self._alive_at_check + SMALLEST

    def move_on(self, low: int, tail: int, head: int) -> bool:
        """Rows have come and gone; whether it should be packed or is too large, by the look of it.

        Indexes are for the caller to see to.
        """
        if tail != self.tail:
            self._forget_expected(tail - self.tail)
            self.tail = tail
        self.low, self.head = low, head
        if head > self._sweep.next:
            self._sweep.do_some()
        live = head - tail
        return live > 3 * self._alive_at_check + SMALLEST or (
            live * 4 < self.capacity > SMALLEST and self._expected * 4 < self.capacity
        )

    def note_alive(self, count: int) -> None:
        """So many rows are alive: the next check is when there may be thrice as many."""
        self._alive_at_check = count

    def is_worth_packing(self, alive: Int64s) -> bool:
        """Whether the rows ``alive``, which are all that are, are less than a third."""
        self.note_alive(len(alive))
        return 3 * len(alive) < len(self)

    def pack(self, alive: Int64s) -> None:
        """Keep only the rows ``alive``.

        About as many as there were now will be there again the next time.
        """
        self.keep_only(alive, min(len(self), 4 * len(alive)))

    def _allocate(self, capacity: int) -> tuple[int, list[NDArray[Any]], Blocks]:
        """New memory for all columns and indexes, in one piece and those of files; nothing else
        changes yet.

        A large piece is given huge pages by numpy, which makes random access much cheaper.
        """
        types = self._types
        sizes = [capacity * dtype.itemsize for dtype in types]
        is_blank = self._is_blank(sum(sizes))
        if self.on_disk is None:
            pieces, blocks = _cut(self._memory(sum(sizes)), sizes), Blocks()
        else:
            pieces, blocks = self.on_disk.allocate(sizes, self._kinds, self._memory)
        parts = [piece.view(dtype) for piece, dtype in zip(pieces, types, strict=True)]
        if not is_blank:  # To write zeros over zeros would touch every page of them.
            for heads in parts[len(self.columns) :: 2]:
                heads[:] = 0
        return capacity, parts, blocks

    def _is_blank(self, size: int) -> bool:
        """Whether :meth:`_memory` gives ``size`` zeros."""
        return self.on_disk is None and self.spare is not None and not self.spare.has(size)

    def _memory(self, size: int) -> Block:
        return np.empty(size, np.uint8) if self.spare is None else self.spare.take(size)

    @property
    def _types(self) -> list[np.dtype[Any]]:
        """Types of all columns, and of the heads and entries of indexes."""
        types = [column.dtype for column in self.columns]
        return types + [np.dtype(np.uint32), np.dtype(np.int64)] * len(self.indexes)

    def _adopt(self, capacity: int, parts: list[NDArray[Any]], blocks: Blocks) -> None:
        """Let columns and indexes, all still empty, live in new memory."""
        self.generation = next(_GENERATIONS)
        self.capacity = capacity
        self.mask = capacity - 1
        self._first_here = self.tail
        self._sweep.note_done(self.head)
        count = len(self.columns)
        self.columns = parts[:count]
        for number, index in enumerate(self.indexes):
            index.move_to(*parts[count + 2 * number : count + 2 * number + 2])
        if self.on_disk is not None:
            self.on_disk.blocks = blocks

    def _resize(self, capacity: int) -> None:
        self._move_to(self._allocate(capacity))

    def _move_to(self, fresh: tuple[int, list[NDArray[Any]], Blocks]) -> None:
        """Move to new memory with all rows."""
        old_columns, old_mask = self.columns, self.mask
        old_entries = [index.entries for index in self.indexes]
        old_blocks = [] if self.on_disk is None else list(self.on_disk.blocks.values())
        self._adopt(*fresh)
        for old, new in zip(old_columns, self.columns, strict=True):
            ring.move(old, old_mask, new, self.mask, self.tail, self.head)
            # So that never more than a column comes back at once.
            if self.on_disk is not None and self.on_disk.settled():
                self.let_go()
                for block in old_blocks:
                    let_go(block)
        for index, entries in zip(self.indexes, old_entries, strict=True):
            index.enter_again(self.mask, entries, old_mask, self.tail)
        if self.on_disk is not None and self.on_disk.settled():
            self.let_go()


def _cut(whole: Block, sizes: list[int]) -> list[Block]:
    """Pieces of ``whole``, one after the other."""
    stops = list(itertools.accumulate(sizes))
    return [whole[stop - size : stop] for stop, size in zip(stops, sizes, strict=True)]
