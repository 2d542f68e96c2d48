"""Numbering pairs of int64: the loops behind :class:`penstock.values.pair_table.PairTable`.

``pairs`` holds pair ``i`` at ``2 * i`` and ``2 * i + 1``; its number is ``i``. ``slots`` is an
open-addressing table of numbers with linear probing, -1 for an empty slot. The pairs themselves are
compared, so the hash decides nothing. It is keyed by a secret.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import inlined, kernel
from penstock.kernels.pairs import mixed

Int64s = NDArray[np.int64]
Uint64s = NDArray[np.uint64]
Booleans = NDArray[np.bool_]

EMPTY = -1


@inlined
def slot_of(first: int, second: int, mask: int, secret: Uint64s) -> np.int64:
    """Where the search for a pair begins."""
    h = mixed(mixed(np.int64(secret[0]), first) ^ np.int64(secret[1]), second)
    return np.int64(h) & np.int64(mask)


@kernel
def number_pairs(
    firsts: Int64s,
    seconds: Int64s,
    slots: Int64s,
    pairs: Int64s,
    count: int,
    begin: int,
    out: Int64s,
    secret: Uint64s,
) -> tuple[int, int]:
    """Number the rows from ``begin`` on; the first row not done, and how many pairs there are.

    Stops early when a pair more would not fit: the caller makes room and goes on.
    """
    mask = len(slots) - 1
    limit = len(pairs) // 2
    rows = len(firsts)
    for row in range(begin, rows):
        first = firsts[row]
        second = seconds[row]
        slot = slot_of(first, second, mask, secret)
        while True:
            number = slots[slot]
            if number == EMPTY:
                if count >= limit:
                    return row, count
                slots[slot] = count
                pairs[2 * count] = first
                pairs[2 * count + 1] = second
                out[row] = count
                count += 1
                break
            if pairs[2 * number] == first and pairs[2 * number + 1] == second:
                out[row] = number
                break
            slot = (slot + 1) & mask
    return rows, count


@kernel
def enter_pairs(slots: Int64s, pairs: Int64s, count: int, secret: Uint64s) -> None:
    """Enter ``count`` distinct pairs into the empty table ``slots``."""
    mask = len(slots) - 1
    for number in range(count):
        slot = slot_of(pairs[2 * number], pairs[2 * number + 1], mask, secret)
        while slots[slot] != EMPTY:
            slot = (slot + 1) & mask
        slots[slot] = number
