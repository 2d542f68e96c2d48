"""A hash index on the rows of a ring: chains of rows by the bucket of their key.

Chains lead from the newest row to older ones and are never cut: a walk ends at the first row that
has expired, so expiry touches no index (:mod:`penstock.kernels.index`). The ring that an index
belongs to (:mod:`penstock.engine.state.rows`) gives it memory, and tells it the mask that makes a
slot of a row number and the tail, the oldest row that is there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.hash_factor import shift_for
from penstock.engine.state.page_by_page import zeros
from penstock.kernels import index as kernels

Int64s = NDArray[np.int64]
UInt32s = NDArray[np.uint32]


@dataclass(slots=True)
class HashIndex:
    """Chains of rows by the bucket of their key."""

    heads: UInt32s
    """The newest row of each bucket."""
    entries: Int64s
    """The code of each row's key, and the next older row of its bucket."""
    shift: int
    """The shift for so many heads, and the factor of this process above it."""
    narrow: bool = True
    """Whether every key so far fits into 32 bits, so that a match needs no second look."""
    stop: int = 0
    """Rows before this one have been entered (or left out on purpose). Less than the head of the
    ring while the index of an old window is being filled."""
    touched: int = 0
    """Heads before this one lie in memory that has been touched."""
    earlier: HashIndex | None = None
    """The index as it was at some earlier time, while probes of then are made
    (:mod:`penstock.engine.state.earlier_heads`)."""

    @classmethod
    def of(cls, capacity: int) -> HashIndex:
        """An empty index for ``capacity`` rows, a power of two."""
        return cls(zeros(capacity, np.uint32), zeros(capacity, np.int64), shift_for(capacity))

    @property
    def nbytes(self) -> int:
        """Bytes of heads and entries, those of an earlier time included."""
        earlier = 0 if self.earlier is None else self.earlier.heads.nbytes
        return self.heads.nbytes + self.entries.nbytes + earlier

    def insert(
        self, mask: int, tail: int, start: int, keys: Int64s, chosen: Int64s | None = None
    ) -> None:
        """Enter the rows from ``start`` on, or those at the positions ``chosen``."""
        if chosen is None:
            narrow = kernels.insert(self.heads, self.entries, self.shift, mask, tail, start, keys)
        else:
            narrow = kernels.insert_chosen(
                self.heads, self.entries, self.shift, mask, tail, start, keys, chosen
            )
        self.stop = start + len(keys)
        if not narrow:
            self.narrow = False

    def truncate(self, mask: int, tail: int, head: int) -> None:
        """Take out the rows from ``head`` on."""
        kernels.remove(self.heads, self.entries, self.shift, mask, tail, head, self.stop)
        self.stop = min(self.stop, head)
        self.earlier = None

    def sweep(self, mask: int, tail: int, newest: int, first: int, last: int) -> None:
        """Clear heads that are of expired rows, in the buckets from ``first`` to ``last``."""
        kernels.sweep(self.heads[first:last], mask, tail, newest)

    def touch(self, count: int) -> bool:
        """Ask for memory for ``count`` more heads of a new index; whether all is there.

        Memory is given when it is first touched, which takes longer than filling it, and heads are
        touched at random: without this, the first rows would pay for all of them.
        """
        if self.touched >= len(self.heads):
            return True
        self.heads[self.touched : self.touched + count] = 0
        self.touched += count
        return False

    def move_to(self, heads: UInt32s, entries: Int64s) -> None:
        """Live in other memory, in which no row has been entered yet."""
        self.heads, self.entries = heads, entries
        self.shift = shift_for(len(heads))
        self.touched = len(heads)

    def enter_again(self, mask: int, entries: Int64s, old_mask: int, tail: int) -> None:
        """Enter the rows that ``entries`` had, with the same numbers."""
        kernels.rebuild(
            self.heads, self.entries, self.shift, mask, entries, old_mask, tail, self.stop
        )

    def enter_codes(self, mask: int, tail: int, entries: Int64s) -> None:
        """Enter the rows from ``tail`` on, whose keys have the codes that ``entries`` had."""
        kernels.enter_codes(self.heads, self.entries, self.shift, mask, tail, entries)
        self.stop = tail + len(entries)
