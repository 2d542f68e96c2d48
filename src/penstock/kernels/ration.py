"""Probes that not every row may make, inside of a push: which rows do, and what they find.

Each probe order has a *share* of rows that may probe, and a fraction of a row that it has not used.
Of the first n rows of a push, n · share + fraction probe, rounded down, for every n at the end of a
block of rows; which ones of a block is drawn at random (selection sampling; Knuth, The Art of
Computer Programming 2, Algorithm S). A draw is a hash of the seed of the push, the block and the
row, so it does not depend on how many rows go through the order at a time, and a part of the push
that is done again, since room was lacking, draws the same rows.

What was lost is told by what the others found (:mod:`penstock.overload.missed_results`). For the
error the spread of their findings is needed, and results are in no order by the rows that found
them. So rows are thrown into :data:`GROUPS` by a product of their numbers, and both rows and
results are counted by group: of a group with n rows, the square of what it found beyond n times the
mean has the expectation n · s².
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import inlined, kernel

Int64s = NDArray[np.int64]

SHARE, CARRIED = range(2)
SHARES = 2
"""Of an order: the share of rows that probe, below 0 if all do; the fraction of before."""
GROUPS = 64
_GROUP_BITS = np.uint64(58)
"""Bits of a code that do not tell its group."""
SEED, TOTAL, OFFERED = range(3)
ASKING = 3
"""The rows of the part at hand by group; they count when it is done."""
PROBED = ASKING + GROUPS
FOUND = PROBED + GROUPS
RATION = FOUND + GROUPS
"""Of an order: the seed, all rows that came, those that were drawn from, and, by group, rows that
probed and results."""

_BLOCK = 256
"""Rows among which is drawn at a time."""
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
"""Factors with well mixed bits (Steele, Lea and Flood 2014)."""


@inlined
def _hashed(number: np.uint64) -> np.uint64:
    mixed = (number ^ (number >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))


@kernel
def allowed(shares: NDArray[np.float64], rows: int) -> int:
    """How many of the first ``rows`` may probe."""
    if shares[SHARE] < 0:
        return rows
    return min(rows, int(rows * shares[SHARE] + shares[CARRIED]))


@kernel
def draw(
    shares: NDArray[np.float64],
    seed: int,
    total: int,
    first: int,
    count: int,
    picked: NDArray[np.uint8],
) -> None:
    """Fill ``picked`` with 1 for the rows that may probe, of ``count`` rows from ``first`` on of a
    push of ``total``."""
    stop = first + count
    low = first - first % _BLOCK
    while low < stop:
        high = min(low + _BLOCK, total)
        wanted = allowed(shares, high) - allowed(shares, low)
        left = high - low
        state = _hashed(np.uint64(seed) + np.uint64(low) * _STEP)
        for row in range(low, min(high, stop)):
            state += _STEP
            chance = np.float64(_hashed(state) >> np.uint64(11)) * 2.0**-53
            is_one = chance * left < wanted
            wanted -= int(is_one)
            left -= 1
            if row >= first:
                picked[np.uint64(row - first)] = np.uint8(is_one)
        low = high


@kernel
def count_groups(rows: NDArray[np.int64], slots: int, count: int, groups: Int64s) -> None:
    """Add to ``groups`` the ``count`` combinations in ``rows``, by their first ``slots`` rows.

    One multiplication for each of these rows, and the highest bits of the sum: rows that follow one
    another then fall into different groups, which is what is asked of them.
    """
    if slots == 1:
        for i in range(count):
            code = np.uint64(rows[0, np.uint64(i)]) * _STEP
            groups[code >> _GROUP_BITS] += 1
        return
    for i in range(count):
        code = np.uint64(0)
        for slot in range(slots):
            code = (code ^ np.uint64(rows[slot, np.uint64(i)])) * _STEP
        groups[code >> _GROUP_BITS] += 1
