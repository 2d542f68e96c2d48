"""One bit for each row of a ring, from some row on.

For a million rows that is as much as a cache near the processor holds, and little new memory. With
a byte for each row, to make the flags took as long as to make the operators of a new plan.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.page_by_page import zeros
from penstock.kernels import closing

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

_BYTES_GIVEN_LATE = 1 << 16
"""Bytes from which on memory is taken when it is touched, not before."""


class RowBits:
    """Bits of the rows from ``first`` on; at first they are those of ``flags``."""

    def __init__(self, first: int, flags: Bools) -> None:
        self.first = first
        self._size = len(flags)
        self._bytes = np.packbits(flags, bitorder="little")

    @classmethod
    def zeros(cls, first: int, size: int) -> RowBits:
        """The bits of ``size`` rows, none set."""
        bits = cls(first, np.empty(0, np.bool_))
        bits._size = size
        bits._bytes = zeros(-(-size // 8), np.uint8, _BYTES_GIVEN_LATE)
        return bits

    @property
    def stop(self) -> int:
        """There are bits for the rows before this one."""
        return self.first + self._size

    def extend(self, stop: int) -> None:
        """Have bits for all rows before ``stop``; new ones are set."""
        size = stop - self.first
        if size > 8 * len(self._bytes):
            more = np.full(
                max(-(-size // 8), 2 * len(self._bytes)) - len(self._bytes), 255, np.uint8
            )
            self._bytes = np.concatenate([self._bytes, more])
        if size > self._size:
            before, self._size = self.stop, size
            self.put(before, stop, True)

    def put(self, start: int, stop: int, value: bool) -> None:
        """Give all rows from ``start`` to ``stop`` the same bit."""
        closing.put(self._bytes, start - self.first, stop - self.first, value)

    def close(self, rows: Int64s) -> Int64s:
        """Set the bits of ``rows``; those of them that were not set, each once."""
        out = np.empty(len(rows), np.int64)
        return out[: closing.close(rows, self.first, self._bytes, out)]

    def clear(self, rows: Int64s) -> None:
        """Unset the bits of ``rows``."""
        closing.reopen(rows, self.first, self._bytes)

    def are_clear(self, rows: Int64s) -> Bools:
        """Mask of the ``rows`` whose bit is not set."""
        out = np.empty(len(rows), np.bool_)
        closing.are_open(rows, self.first, self._bytes, out)
        return out

    def clear_between(self, start: int, stop: int) -> Int64s:
        """The rows from ``start`` to ``stop`` whose bits are not set."""
        start, stop = max(start, self.first), min(stop, self.stop)
        if start >= stop:
            return np.empty(0, np.int64)
        begin = (start - self.first) >> 3
        some = self._bytes[begin : ((stop - 1 - self.first) >> 3) + 1]
        rows: Int64s = np.flatnonzero(np.unpackbits(some, bitorder="little") == 0)
        rows += self.first + 8 * begin
        return rows[np.searchsorted(rows, start) : np.searchsorted(rows, stop)]

    def count_clear(self, start: int, stop: int) -> int:
        """Rows from ``start`` to ``stop`` whose bits are not set."""
        return int(closing.count_open(self._bytes, start - self.first, stop - self.first))

    def kept(self, rows: Int64s, first: int) -> RowBits:
        """The bits of ``rows``, which are numbered from ``first`` on."""
        return RowBits(first, ~self.are_clear(rows))
