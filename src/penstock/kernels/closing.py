"""Closing open rows: each of those that are asked for, once, in the order in which they are.

There is a bit for each row, the lowest of a byte first; it is set when the row is closed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import kernel

Int64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Bools = NDArray[np.bool_]


@kernel
def close(rows: Int64s, first: int, closed: Bytes, out: Int64s) -> int:
    """Close ``rows``, of which row ``first`` has the first bit; how many were open, and are in
    ``out`` now."""
    count = 0
    for i in range(rows.shape[0]):
        place = rows[i] - first
        bit = np.uint8(1 << (place & 7))
        if not closed[place >> 3] & bit:
            closed[place >> 3] |= bit
            out[count] = rows[i]
            count += 1
    return count


@kernel
def reopen(rows: Int64s, first: int, closed: Bytes) -> None:
    """Open ``rows``."""
    for i in range(rows.shape[0]):
        place = rows[i] - first
        closed[place >> 3] &= np.uint8(255 - (1 << (place & 7)))


@kernel
def are_open(rows: Int64s, first: int, closed: Bytes, out: Bools) -> None:
    """Tell which of ``rows`` are open."""
    for i in range(rows.shape[0]):
        place = rows[i] - first
        out[i] = not closed[place >> 3] >> (place & 7) & 1


@kernel
def count_open(closed: Bytes, start: int, stop: int) -> int:
    """How many rows from the bit ``start`` to ``stop`` are open."""
    count = 0
    for place in range(start, stop):
        count += 1 - (closed[place >> 3] >> (place & 7) & 1)
    return count


@kernel
def put(closed: Bytes, start: int, stop: int, value: bool) -> None:
    """Close or open all rows from the bit ``start`` to ``stop``."""
    for place in range(start, stop):
        bit = np.uint8(1 << (place & 7))
        if value:
            closed[place >> 3] |= bit
        else:
            closed[place >> 3] &= np.uint8(255 - bit)
