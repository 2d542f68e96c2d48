"""A hash index over the rows of a ring: twelve bytes a row, and no deletes.

Rows have ever-growing sequence numbers; row ``s`` lives in slot ``s & mask``. A probe costs the
memory that it touches, so the index is small and what a walk needs lies together:

- ``heads[bucket]`` is the number of the newest row of the bucket, modulo twice the size of the
  ring, and, in the bits above, a filter with one bit set for the key of each row in the chain. No
  bit set means no row. A probe for a key that is not there mostly ends here, after one access.
- ``entries[slot]`` is, in one word, the 32-bit code of the key (:func:`code_of`) and above it the
  distance to the next older row of the bucket (:data:`END` if there is none; :data:`ABSENT` is the
  entry of a row that is not in the index).

A key that fits into 32 bits is its own code. As long as all keys of an index do (it is *narrow*),
comparing codes is exact. Otherwise a match of codes is a candidate, and the caller compares the
columns.

A walk stops at the first row below the tail of the ring, so a chain may lead to rows that are gone,
and so may a head, as long as its number cannot be mistaken for that of a later row. It counts up to
twice the size of the ring, so it is enough to clear the heads of expired rows
(:func:`sweep`) once while as many rows are put in as the ring has slots. A row that comes into a
bucket whose rows are all gone starts a new filter.

Buckets by multiplicative hashing: the high bits of ``code * factor``, and the bits below choose the
bit of the filter. The factor is a secret of the process, so that no sender can choose keys that all
go into one bucket; wide keys get their codes by it, too, and the hash of several columns begins
with it (:func:`seed_of`): a sender that knew how that begins could choose the last column so that
all hashes are equal. What is called ``shift`` here is a word with both: the shift in its lowest six
bits, the factor above them, which is odd in effect (:mod:`penstock.engine.state.hash_factor` makes
it). Indexes of one process share it, so that codes go from one to another as they are. Numbers that
index an array are unsigned: a signed index costs numba a test for the end from which it counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import inlined, kernel
from penstock.kernels.prefetch import AHEAD, prefetch

Int64s = NDArray[np.int64]
Uint32s = NDArray[np.uint32]

ABSENT = -1
END = (1 << 31) - 1
"""A distance beyond any tail."""
_SHIFT = 63
"""The bits of a word that are the shift."""
_LOW = (1 << 32) - 1
LARGEST = 1 << 30
"""The largest ring: a number below twice that and one bit of the filter fit into 32 bits."""


@inlined
def factor_of(shift: int) -> np.uint64:
    """The factor in a word, which is odd."""
    return np.uint64((shift & ~_SHIFT) | 1)


@inlined
def seed_of(shift: int) -> np.int64:
    """What the hash of several columns begins with (:func:`penstock.kernels.pairs.mixed`)."""
    return np.int64(shift & ~_SHIFT)


@inlined
def hash_of_wide(key: int, shift: int) -> np.int64:
    """The code of a key that does not fit into 32 bits."""
    h = np.uint64(key)
    h = (h ^ (h >> np.uint64(30))) * (factor_of(shift) * np.uint64(0xBF58476D1CE4E5B9))
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64(np.int32(np.int64(h >> np.uint64(32))))


@inlined
def code_of(key: int, shift: int) -> np.int64:
    """The key if it fits into 32 bits, else a hash of it that does."""
    code = np.int64(np.int32(key))
    if code != key:
        code = hash_of_wide(key, shift)
    return code


@inlined
def hash_of(code: int, shift: int) -> np.uint64:
    """Spreads a code over 64 bits."""
    hashed: np.uint64 = np.uint64(code) * factor_of(shift)
    return hashed


@inlined
def bucket_of(hashed: np.uint64, shift: int) -> np.uint64:
    """The bucket in a table of ``2 ** (64 - shift)`` buckets."""
    return hashed >> np.uint64(shift & _SHIFT)


@inlined
def tag_of(hashed: np.uint64, shift: int) -> np.uint64:
    """Which bit of a head is the key's: one of 8, 4, 2 or 1 above the number of a row."""
    below = shift & _SHIFT
    bits = 64 - below
    choices = 3 if bits <= 23 else 2 if bits <= 27 else 1 if bits <= 29 else 0
    which = (hashed >> np.uint64(below - 3)) & np.uint64((1 << choices) - 1)
    return np.uint64(bits + 1) + which


@inlined
def _enter(
    heads: Uint32s, entries: Int64s, shift: int, mask: int, tail: int, s: int, code: int
) -> None:
    """Put row ``s`` at the front of its chain. No branch: whether there is one is a coin toss."""
    hashed = hash_of(code, shift)
    bucket = bucket_of(hashed, shift)
    numbers = 2 * mask + 1
    head = np.int64(heads[bucket])
    distance = (s - head) & numbers
    tags = head & ~numbers
    link = distance if tags != 0 else END
    tags = tags if distance <= s - tail else np.int64(0)
    entries[np.uint64(s & mask)] = (link << 32) | (code & _LOW)
    tag = np.int64(np.uint64(1) << tag_of(hashed, shift))
    heads[bucket] = np.uint32((s & numbers) | tags | tag)


@kernel
def insert(
    heads: Uint32s,
    entries: Int64s,
    shift: int,
    mask: int,
    tail: int,
    start: int,
    keys: Int64s,
) -> bool:
    """Put the rows from ``start`` on, with these keys, at the front of their chains.

    Whether all the keys were narrow.
    """
    n = keys.shape[0]
    wide = np.int64(0)
    for i in range(n):
        later = code_of(keys[np.uint64(min(i + AHEAD, n - 1))], shift)
        prefetch(heads, bucket_of(hash_of(later, shift), shift))
        key = keys[np.uint64(i)]
        code = code_of(key, shift)
        wide |= code ^ key
        _enter(heads, entries, shift, mask, tail, start + i, code)
    return bool(wide == 0)


@kernel
def insert_chosen(
    heads: Uint32s,
    entries: Int64s,
    shift: int,
    mask: int,
    tail: int,
    start: int,
    keys: Int64s,
    chosen: Int64s,
) -> bool:
    """As :func:`insert`, but only the rows at the positions ``chosen`` (ascending) are in it."""
    wide = np.int64(0)
    for i in range(keys.shape[0]):
        entries[(start + i) & mask] = ABSENT
    for i in chosen:
        code = code_of(keys[i], shift)
        wide |= code ^ keys[i]
        _enter(heads, entries, shift, mask, tail, start + i, code)
    return bool(wide == 0)


@kernel
def insert_flagged(
    heads: Uint32s,
    entries: Int64s,
    shift: int,
    mask: int,
    tail: int,
    start: int,
    keys: Int64s,
    flags: NDArray[np.uint8],
) -> bool:
    """As :func:`insert_chosen`, with a byte for each row."""
    wide = np.int64(0)
    for i in range(keys.shape[0]):
        if flags[i]:
            code = code_of(keys[i], shift)
            wide |= code ^ keys[i]
            _enter(heads, entries, shift, mask, tail, start + i, code)
        else:
            entries[(start + i) & mask] = ABSENT
    return bool(wide == 0)


@kernel
def remove(
    heads: Uint32s, entries: Int64s, shift: int, mask: int, tail: int, start: int, stop: int
) -> None:
    """Undo the insertion of the rows ``start`` to ``stop``, which must be the newest."""
    numbers = 2 * mask + 1
    for s in range(stop - 1, start - 1, -1):
        entry = entries[s & mask]
        if entry != ABSENT:
            bucket = bucket_of(hash_of(np.int64(np.int32(entry)), shift), shift)
            tags = np.int64(heads[bucket]) & ~numbers
            older = s - (entry >> 32)
            heads[bucket] = np.uint32((older & numbers) | tags if older >= tail else 0)


@kernel
def sweep(heads: Uint32s, mask: int, tail: int, newest: int) -> None:
    """Clear the heads that point at rows below the tail."""
    numbers = 2 * mask + 1
    for bucket in range(heads.shape[0]):
        head = np.int64(heads[bucket])
        s = newest - ((newest - head) & numbers)
        heads[bucket] = np.uint32(head if s >= tail else 0)


@kernel
def rebuild(
    heads: Uint32s,
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
        old = old_entries[s & old_mask]
        if old == ABSENT:
            entries[s & mask] = ABSENT
        else:
            _enter(heads, entries, shift, mask, tail, s, np.int64(np.int32(old)))


@kernel
def heads_of(heads: Uint32s, entries: Int64s, shift: int, mask: int, tail: int, stop: int) -> None:
    """Fill new ``heads`` as they were when the row before ``stop`` was the newest."""
    numbers = 2 * mask + 1
    for s in range(tail, stop):
        entry = entries[np.uint64(s & mask)]
        if entry != ABSENT:
            hashed = hash_of(np.int64(np.int32(entry)), shift)
            bucket = bucket_of(hashed, shift)
            tags = np.int64(heads[bucket]) & ~numbers
            tag = np.int64(np.uint64(1) << tag_of(hashed, shift))
            heads[bucket] = np.uint32((s & numbers) | tags | tag)


@kernel
def enter_codes(
    heads: Uint32s, entries: Int64s, shift: int, mask: int, start: int, saved: Int64s
) -> None:
    """Put rows from ``start`` on, which is the tail, back from their saved entries."""
    for i in range(saved.shape[0]):
        if saved[i] == ABSENT:
            entries[(start + i) & mask] = ABSENT
        else:
            _enter(heads, entries, shift, mask, start, start + i, np.int64(np.int32(saved[i])))
