"""Which columns of a ring lie in files, and from which row on they are in memory, too.

A ring (:mod:`penstock.engine.state.rows`) has three kinds of columns. *Payload* is what results
and residual predicates read. *Keys* are everything that probes read: births, deaths, keys, the
entries of indexes. *Heads* of indexes are read at random by every probe and stay in memory. Either
of the first two can lie in a file, each for itself: payload goes first. Numbers of rows, masks and
addresses are as before, so nothing else changes; a file only makes it possible to let go of pages.

Of what lies in a file the rows from ``cold`` on count as held in memory. Older ones, and slots that
no living row has, are let go after each push (:meth:`RingFiles.let_go`), whether or not the push
has read some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from numpy.typing import NDArray

from penstock.engine.state.spill_files import Block, SpillFiles, let_go

PAYLOAD, KEYS, HEADS = range(3)
"""Kinds of columns, in the order in which they go to disk; the last never does."""
Blocks = dict[int, Block]
"""Blocks in files, by the kind of columns that are in them."""


class RingFiles:
    """The columns of one ring that are in ``files``."""

    def __init__(self, files: SpillFiles) -> None:
        self.files = files
        self.wanted: set[int] = set()
        """Kinds of columns that are to be in files whenever there is new memory for them."""
        self.blocks: Blocks = {}
        """Kinds of columns that are, and where."""
        self.cold = [0, 0]
        """Rows before this one are on disk alone, by kind."""

    def allocate(
        self, sizes: Sequence[int], kinds: Sequence[int], heap: Callable[[int], Block]
    ) -> tuple[list[Block], Blocks]:
        """New memory for columns of ``sizes`` and ``kinds``, in files if it is wanted there and not
        refused, else from the ``heap``. Nothing changes yet."""
        places = [kind if kind in self.wanted else HEADS for kind in kinds]
        blocks: Blocks = {}
        for kind in set(places) - {HEADS}:
            total = sum(s for s, place in zip(sizes, places, strict=True) if place == kind)
            block = self.files.block(total) if total else None
            if block is None:
                places = [HEADS if place == kind else place for place in places]
            else:
                blocks[kind] = block
        rest = sum(s for s, place in zip(sizes, places, strict=True) if place == HEADS)
        whole = {**blocks, HEADS: heap(rest)}
        starts = dict.fromkeys(whole, 0)
        parts = []
        for size, place in zip(sizes, places, strict=True):
            start = starts[place]
            parts.append(whole[place][start : start + size])
            starts[place] = start + size
        return parts, blocks

    def holds(self, column: NDArray[Any], kind: int) -> bool:
        """Whether ``column`` lies in a file."""
        return kind in self.blocks and column.base is self.blocks[kind]

    def nbytes(self, column: NDArray[Any], kind: int, tail: int, head: int) -> int:
        """Bytes of ``column`` that are in memory, of a ring with rows from ``tail`` to ``head``."""
        if not self.holds(column, kind):
            return column.nbytes
        return column.itemsize * (head - max(self.cold[kind], tail))

    def settled(self) -> bool:
        """Whether all blocks are on the disk, now that they have been written and waited for. One
        that has failed is asked no more: the system tells that once."""
        blocks = self.blocks.values()
        return not self.files.failed and all(self.files.settled(block) for block in blocks)

    def let_go(self, columns: Iterable[tuple[NDArray[Any], int]], head: int) -> None:
        """Let go of all pages of the ``columns`` (each with its kind) that have no row from
        ``cold`` on; ``head`` is the row that comes next. After a write that failed, of none."""
        if self.files.failed:
            return
        for column, kind in columns:
            if not self.holds(column, kind):
                continue
            cold, capacity = self.cold[kind], len(column)
            first, stop = cold & (capacity - 1), head & (capacity - 1)
            if cold == head:
                let_go(column)
            elif first < stop:
                let_go(column[:first])
                let_go(column[stop:])
            else:
                let_go(column[stop:first])
