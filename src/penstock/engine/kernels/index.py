"""A hash index over the rows of a ring: twelve bytes a row, and no deletes inside chains.

Rows have ever-growing sequence numbers; row ``s`` lives in slot ``s & mask``. A probe costs the
memory that it touches, so the index is small and what a walk needs lies together:

- ``heads[bucket]`` is the slot of the newest row of the bucket and, in the bits above, a filter
  with one bit set for the key of each row in the chain. No bit set means no row. A probe for a key
  that is not there mostly ends here, after one access.
- ``entries[slot]`` is the 32-bit code of the key (:func:`code_of`) and the distance to the next
  older row of the bucket (0 ends a chain, :data:`ABSENT` marks a row that is not in the index).

A key that fits into 32 bits is its own code. As long as all keys of an index do (it is *narrow*),
comparing codes is exact. Otherwise a match of codes is a candidate, and the caller compares the
columns.

A walk stops at the first row below the tail of the ring, so a chain may lead to rows that are gone.
A head may not: its slot will be used again. So when rows expire, heads that point at them are
cleared (:func:`forget`), which also empties the filter of a bucket whose rows are all gone.

Buckets by Fibonacci hashing: the high bits of ``code * 2^64 / φ``, and the bits below choose the
bit of the filter.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]

ABSENT = -1
_PHI = np.uint64(11400714819323198485)
LARGEST = 1 << 30
"""The largest ring: a slot and at least one bit of the filter fit into 31 bits."""


@njit(cache=True, inline="always")
def code_of(key: int) -> np.int64:
    """The key if it fits into 32 bits, else a hash of it that does."""
    code = np.int64(np.int32(key))
    if code != key:
        h = np.uint64(key)
        h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        code = np.int64(np.int32(np.int64(h >> np.uint64(32))))
    return code


@njit(cache=True, inline="always")
def hash_of(code: int) -> np.uint64:
    """Spreads a code over 64 bits."""
    return np.uint64(code) * _PHI


@njit(cache=True, inline="always")
def bucket_of(hashed: np.uint64, shift: int) -> np.int64:
    """The bucket in a table of ``2 ** (64 - shift)`` buckets."""
    return np.int64(hashed >> np.uint64(shift))


@njit(cache=True, inline="always")
def tag_of(hashed: np.uint64, shift: int) -> np.int64:
    """The bit of the filter, above the bits of a slot: one of 8, 4, 2 or 1, as there is room."""
    bits = 64 - shift
    choices = 3 if bits <= 23 else 2 if bits <= 27 else 1 if bits <= 29 else 0
    which = (hashed >> np.uint64(shift - 3)) & np.uint64((1 << choices) - 1)
    return np.int64(1) << (np.int64(bits) + np.int64(which))


@njit(cache=True, inline="always")
def _enter(heads: Int32s, entries: Int32s, shift: int, mask: int, s: int, code: int) -> None:
    """Put row ``s`` at the front of its chain. No branch: whether there is one is a coin toss."""
    hashed = hash_of(code)
    bucket = bucket_of(hashed, shift)
    head = np.int64(heads[bucket])
    tags = head & ~np.int64(mask)
    slot = s & mask
    entries[2 * slot] = np.int32(code)
    entries[2 * slot + 1] = np.int32(((s - head) & mask) * np.int64(tags != 0))
    heads[bucket] = np.int32(slot | tags | tag_of(hashed, shift))


@njit(cache=True)
def insert(
    heads: Int32s,
    entries: Int32s,
    shift: int,
    mask: int,
    start: int,
    keys: Int64s,
    ahead: NDArray[np.int64],
) -> bool:
    """Put the rows from ``start`` on, with these keys, at the front of their chains.

    Whether all the keys were narrow. The heads of a block are read before any is written: the reads
    overlap, where writes that miss the cache would queue up. ``ahead`` is working space, two rows.
    """
    n = keys.shape[0]
    block = ahead.shape[1]
    wide = np.int64(0)
    for first in range(0, n, block):
        last = min(first + block, n)
        for i in range(first, last):
            code = code_of(keys[i])
            wide |= code ^ keys[i]
            ahead[0, i - first] = code
            ahead[1, i - first] = heads[bucket_of(hash_of(code), shift)]
        for i in range(first, last):
            _enter(heads, entries, shift, mask, start + i, ahead[0, i - first])
    return bool(wide == 0)


@njit(cache=True)
def insert_chosen(
    heads: Int32s,
    entries: Int32s,
    shift: int,
    mask: int,
    start: int,
    keys: Int64s,
    chosen: Int64s,
) -> bool:
    """As :func:`insert`, but only the rows at the positions ``chosen`` (ascending) are in it."""
    wide = np.int64(0)
    for i in range(keys.shape[0]):
        entries[2 * ((start + i) & mask) + 1] = ABSENT
    for i in chosen:
        code = code_of(keys[i])
        wide |= code ^ keys[i]
        _enter(heads, entries, shift, mask, start + i, code)
    return bool(wide == 0)


@njit(cache=True)
def remove(
    heads: Int32s, entries: Int32s, shift: int, mask: int, tail: int, start: int, stop: int
) -> None:
    """Undo the insertion of the rows ``start`` to ``stop``, which must be the newest."""
    for s in range(stop - 1, start - 1, -1):
        slot = s & mask
        distance = np.int64(entries[2 * slot + 1])
        if distance != ABSENT:
            bucket = bucket_of(hash_of(np.int64(entries[2 * slot])), shift)
            tags = np.int64(heads[bucket]) & ~np.int64(mask)
            older = s - distance
            alive = distance > 0 and older >= tail
            heads[bucket] = np.int32((older & mask) | tags) if alive else np.int32(0)


@njit(cache=True)
def forget(heads: Int32s, entries: Int32s, shift: int, mask: int, start: int, stop: int) -> None:
    """Clear the heads that point at the rows ``start`` to ``stop``, which have expired."""
    for s in range(start, stop):
        slot = s & mask
        if entries[2 * slot + 1] != ABSENT:
            bucket = bucket_of(hash_of(np.int64(entries[2 * slot])), shift)
            if np.int64(heads[bucket]) & mask == slot:
                heads[bucket] = 0


@njit(cache=True)
def rebuild(
    heads: Int32s,
    entries: Int32s,
    shift: int,
    mask: int,
    old_entries: Int32s,
    old_mask: int,
    tail: int,
    head: int,
) -> None:
    """Fill new ``heads`` and ``entries`` with the rows of an index of another size."""
    for s in range(tail, head):
        old = 2 * (s & old_mask)
        if old_entries[old + 1] == ABSENT:
            entries[2 * (s & mask) + 1] = ABSENT
        else:
            _enter(heads, entries, shift, mask, s, np.int64(old_entries[old]))


@njit(cache=True)
def enter_codes(
    heads: Int32s, entries: Int32s, shift: int, mask: int, start: int, saved: Int32s
) -> None:
    """Put rows from ``start`` on back, from their saved entries."""
    for i in range(saved.shape[0] // 2):
        if saved[2 * i + 1] == ABSENT:
            entries[2 * ((start + i) & mask) + 1] = ABSENT
        else:
            _enter(heads, entries, shift, mask, start + i, np.int64(saved[2 * i]))
