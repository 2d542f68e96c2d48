"""A hash index over the rows of a ring, with no deletes.

Rows have ever-growing sequence numbers; row ``s`` lives in slot ``s & mask``. A probe costs what it
touches in memory, so what a walk needs lies together: ``entries[slot]`` is the key of the row and
the distance to the next older row of its bucket (0 ends a chain, :data:`ABSENT` marks a row that is
not in the index), and ``heads[bucket]`` is the newest row of the bucket in the upper bits, with a
filter of 16 bits below: one bit for the key of each row in the chain. A probe for a key that is not
there mostly ends at the filter, after one access.

A walk stops at the first row below the tail of the ring, so expiry costs nothing: heads and
distances may lead to rows that are gone, and are never followed. The filter of a bucket starts
afresh when its chain is found dead at an insertion.

Buckets by Fibonacci hashing: the high bits of ``key * 2^64 / φ``, and the next four bits choose the
bit of the filter.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Int64s = NDArray[np.int64]

ABSENT = -1
EMPTY = -1
_PHI = np.uint64(11400714819323198485)
TAG_BITS = 16
_TAGS = (1 << TAG_BITS) - 1


@njit(cache=True, inline="always")
def hash_of(key: int) -> np.uint64:
    """Spreads a key over 64 bits."""
    return np.uint64(key) * _PHI


@njit(cache=True, inline="always")
def bucket_of(hashed: np.uint64, shift: int) -> np.int64:
    """The bucket in a table of ``2 ** (64 - shift)`` buckets."""
    return np.int64(hashed >> np.uint64(shift))


@njit(cache=True, inline="always")
def tag_of(hashed: np.uint64, shift: int) -> np.int64:
    """The bit of the filter."""
    return np.int64(1) << np.int64((hashed >> np.uint64(shift - 4)) & np.uint64(15))


@njit(cache=True, inline="always")
def _enter(
    heads: Int64s, entries: Int64s, shift: int, mask: int, tail: int, s: int, key: int
) -> None:
    """Put row ``s`` at the front of its chain. No branch: whether a chain is alive is a coin toss."""
    hashed = hash_of(key)
    bucket = bucket_of(hashed, shift)
    head = heads[bucket]
    older = head >> TAG_BITS
    alive = np.int64(older >= tail)
    slot = 2 * (s & mask)
    entries[slot] = key
    entries[slot + 1] = (s - older) * alive
    heads[bucket] = (s << TAG_BITS) | ((head & _TAGS) * alive) | tag_of(hashed, shift)


@njit(cache=True)
def insert(
    heads: Int64s,
    entries: Int64s,
    shift: int,
    mask: int,
    tail: int,
    start: int,
    keys: Int64s,
    ahead: Int64s,
) -> None:
    """Put the rows from ``start`` on, with these keys, at the front of their chains.

    The heads of a block are read before any is written: the reads overlap, where writes that miss
    the cache would queue up. ``ahead`` is working space of any size.
    """
    n = keys.shape[0]
    block = ahead.shape[0]
    for first in range(0, n, block):
        last = min(first + block, n)
        for i in range(first, last):
            ahead[i - first] = heads[bucket_of(hash_of(keys[i]), shift)]
        for i in range(first, last):
            _enter(heads, entries, shift, mask, tail, start + i, keys[i])


@njit(cache=True)
def insert_chosen(
    heads: Int64s,
    entries: Int64s,
    shift: int,
    mask: int,
    tail: int,
    start: int,
    keys: Int64s,
    chosen: Int64s,
) -> None:
    """As :func:`insert`, but only the rows at the positions ``chosen`` (ascending) are in it."""
    for i in range(keys.shape[0]):
        slot = (start + i) & mask
        entries[2 * slot] = keys[i]
        entries[2 * slot + 1] = ABSENT
    for i in chosen:
        _enter(heads, entries, shift, mask, tail, start + i, keys[i])


@njit(cache=True)
def remove(heads: Int64s, entries: Int64s, shift: int, mask: int, start: int, stop: int) -> None:
    """Undo the insertion of the rows ``start`` to ``stop``, which must be the newest."""
    for s in range(stop - 1, start - 1, -1):
        slot = s & mask
        link = entries[2 * slot + 1]
        if link != ABSENT:
            bucket = bucket_of(hash_of(entries[2 * slot]), shift)
            tags = heads[bucket] & _TAGS
            heads[bucket] = EMPTY if link == 0 else ((s - link) << TAG_BITS) | tags


@njit(cache=True)
def rebuild(
    heads: Int64s,
    entries: Int64s,
    shift: int,
    mask: int,
    old_entries: Int64s,
    old_mask: int,
    tail: int,
    head: int,
) -> None:
    """Fill new ``heads`` and ``entries`` with the rows of an index of another size."""
    for s in range(tail, head):
        old = 2 * (s & old_mask)
        if old_entries[old + 1] == ABSENT:
            slot = 2 * (s & mask)
            entries[slot] = old_entries[old]
            entries[slot + 1] = ABSENT
        else:
            _enter(heads, entries, shift, mask, tail, s, old_entries[old])
