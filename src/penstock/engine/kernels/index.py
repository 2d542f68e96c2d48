"""A hash index over the rows of a ring, with no deletes.

Rows have ever-growing sequence numbers; row ``s`` lives in slot ``s & mask``. ``heads[bucket]`` is
the newest row of a bucket (-1 if there never was one), ``links[slot]`` the distance to the next
older row of the same bucket: 0 ends a chain, and :data:`ABSENT` marks a row that is not in the
index. A walk stops at the first row below the tail of the ring, so expiry costs nothing: heads and
links may point at rows that are gone, and are never followed. Distances fit 32 bits since a
distance as long as the ring leads below the tail in any case.

Buckets by Fibonacci hashing: the high bits of ``key * 2^64 / φ``.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]

ABSENT = np.int32(-1)
_PHI = np.uint64(11400714819323198485)
_LONGEST = 2_147_483_647


@njit(cache=True, inline="always")
def bucket_of(key: int, shift: int) -> np.int64:
    """The bucket of ``key`` in a table of ``2 ** (64 - shift)`` buckets."""
    return np.int64((np.uint64(key) * _PHI) >> np.uint64(shift))


@njit(cache=True)
def insert_range(
    heads: Int64s, links: Int32s, keys: Int64s, shift: int, mask: int, start: int, stop: int
) -> None:
    """Put the rows ``start`` to ``stop`` at the front of their chains."""
    for s in range(start, stop):
        slot = s & mask
        bucket = bucket_of(keys[slot], shift)
        head = heads[bucket]
        links[slot] = 0 if head < 0 else min(s - head, _LONGEST)
        heads[bucket] = s


@njit(cache=True)
def insert_selected(
    heads: Int64s,
    links: Int32s,
    keys: Int64s,
    shift: int,
    mask: int,
    start: int,
    stop: int,
    selected: Int64s,
) -> None:
    """As :func:`insert_range`, but only for the rows in ``selected`` (ascending)."""
    for s in range(start, stop):
        links[s & mask] = ABSENT
    for s in selected:
        slot = s & mask
        bucket = bucket_of(keys[slot], shift)
        head = heads[bucket]
        links[slot] = 0 if head < 0 else min(s - head, _LONGEST)
        heads[bucket] = s


@njit(cache=True)
def remove_range(
    heads: Int64s, links: Int32s, keys: Int64s, shift: int, mask: int, start: int, stop: int
) -> None:
    """Undo the insertion of the rows ``start`` to ``stop``, which must be the newest."""
    for s in range(stop - 1, start - 1, -1):
        slot = s & mask
        link = links[slot]
        if link != ABSENT:
            heads[bucket_of(keys[slot], shift)] = -1 if link == 0 else s - link


@njit(cache=True)
def rebuild(
    heads: Int64s,
    links: Int32s,
    keys: Int64s,
    shift: int,
    mask: int,
    old_links: Int32s,
    old_mask: int,
    tail: int,
    head: int,
) -> None:
    """Fill new ``heads`` and ``links`` for the rows that the old index held.

    ``keys`` is already laid out by the new ``mask``.
    """
    heads[:] = -1
    for s in range(tail, head):
        slot = s & mask
        if old_links[s & old_mask] == ABSENT:
            links[slot] = ABSENT
            continue
        bucket = bucket_of(keys[slot], shift)
        newest = heads[bucket]
        links[slot] = 0 if newest < 0 else min(s - newest, _LONGEST)
        heads[bucket] = s
