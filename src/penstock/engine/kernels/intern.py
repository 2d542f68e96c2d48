"""Numbering byte strings: the loops behind :class:`penstock.engine.interner.Interner`.

``slots`` is an open-addressing table with linear probing: two int64 per slot, the hash and the
entry, -1 for an empty slot. ``entries`` has two int64 per entry: where its bytes start in
``arena``, and its number. Entries and their bytes are in the order of their numbers, so entry ``e``
ends where ``e + 1`` starts, and there is always one start more than there are entries.

The hash decides nothing: a slot with the same hash is a hit only if all bytes agree.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Booleans = NDArray[np.bool_]

EMPTY = -1
NOT_A_VALUE = -1
"""What :func:`intern` gives for NULL."""

_K0 = np.uint64(0x9E3779B97F4A7C15)
_K1 = np.uint64(0xFF51AFD7ED558CCD)
_K2 = np.uint64(0xC4CEB9FE1A85EC53)
_32 = np.uint64(32)
_33 = np.uint64(33)


@njit(cache=True, inline="always")
def word_at(data: Bytes, position: int) -> np.uint64:
    """The eight bytes from ``position`` on, as a little-endian integer."""
    p = np.uint64(position)
    return (
        np.uint64(data[p])
        | (np.uint64(data[p + np.uint64(1)]) << np.uint64(8))
        | (np.uint64(data[p + np.uint64(2)]) << np.uint64(16))
        | (np.uint64(data[p + np.uint64(3)]) << np.uint64(24))
        | (np.uint64(data[p + np.uint64(4)]) << np.uint64(32))
        | (np.uint64(data[p + np.uint64(5)]) << np.uint64(40))
        | (np.uint64(data[p + np.uint64(6)]) << np.uint64(48))
        | (np.uint64(data[p + np.uint64(7)]) << np.uint64(56))
    )


@njit(cache=True)
def hash_bytes(data: Bytes, start: int, stop: int) -> np.int64:
    """A 64-bit hash of ``data[start:stop]``, as int64."""
    h = np.uint64(stop - start) * _K0
    position = start
    while position + 8 <= stop:
        h = (h ^ word_at(data, position)) * _K1
        h ^= h >> _32
        position += 8
    if position < stop:
        word = np.uint64(0)
        shift = np.uint64(0)
        while position < stop:
            word |= np.uint64(data[np.uint64(position)]) << shift
            shift += np.uint64(8)
            position += 1
        h = (h ^ word) * _K1
    h ^= h >> _33
    h *= _K2
    h ^= h >> _33
    return np.int64(h)


@njit(cache=True)
def same_bytes(left: Bytes, left_start: int, right: Bytes, right_start: int, size: int) -> bool:
    """Whether two stretches of ``size`` bytes are the same."""
    i = 0
    while i + 8 <= size:
        if word_at(left, left_start + i) != word_at(right, right_start + i):
            return False
        i += 8
    while i < size:
        if left[np.uint64(left_start + i)] != right[np.uint64(right_start + i)]:
            return False
        i += 1
    return True


@njit(cache=True)
def intern(
    data: Bytes,
    offsets: Int64s,
    validity: Booleans,
    slots: Int64s,
    entries: Int64s,
    arena: Bytes,
    count: int,
    next_number: int,
    first: int,
    out: Int64s,
) -> tuple[int, int]:
    """Number the rows from ``first`` on; the first row not done, and how many entries there are.

    Stops early when an entry more would not fit ``slots``, ``entries`` or ``arena``: the caller
    makes room and goes on. ``validity`` is empty if no row is NULL.
    """
    mask = len(slots) // 2 - 1
    limit = min(len(entries) // 2 - 1, (mask + 1) // 2)
    rows = len(offsets) - 1
    for row in range(first, rows):
        if len(validity) != 0 and not validity[row]:
            out[row] = NOT_A_VALUE
            continue
        start = offsets[row]
        size = offsets[row + 1] - start
        h = hash_bytes(data, start, start + size)
        slot = h & mask
        while True:
            entry = slots[2 * slot + 1]
            if entry == EMPTY:
                place = entries[2 * count]
                if count >= limit or place + size > len(arena):
                    return row, count
                for i in range(size):
                    arena[place + i] = data[start + i]
                slots[2 * slot] = h
                slots[2 * slot + 1] = count
                entries[2 * count + 1] = next_number
                out[row] = next_number
                next_number += 1
                count += 1
                entries[2 * count] = place + size
                break
            if slots[2 * slot] == h:
                place = entries[2 * entry]
                if entries[2 * entry + 2] - place == size and same_bytes(
                    arena, place, data, start, size
                ):
                    out[row] = entries[2 * entry + 1]
                    break
            slot = (slot + 1) & mask
    return rows, count


@njit(cache=True)
def rehash(old: Int64s, new: Int64s) -> None:
    """Move the entries of table ``old`` to the empty table ``new``, by the hashes stored there."""
    mask = len(new) // 2 - 1
    for i in range(len(old) // 2):
        if old[2 * i + 1] != EMPTY:
            h = old[2 * i]
            slot = h & mask
            while new[2 * slot + 1] != EMPTY:
                slot = (slot + 1) & mask
            new[2 * slot] = h
            new[2 * slot + 1] = old[2 * i + 1]


@njit(cache=True)
def mark_live(entries: Int64s, count: int, live: Int64s, kept: Booleans) -> tuple[int, int]:
    """Set ``kept`` for the entries numbered in ``live``; how many they are, and their bytes.

    Numbers in ``live`` may repeat, and may be of no entry. Entries are in the order of their
    numbers, so each is found by bisection.
    """
    found = 0
    size = 0
    for number in live:
        low = 0
        high = count
        while low < high:
            middle = (low + high) // 2
            if entries[2 * middle + 1] < number:
                low = middle + 1
            else:
                high = middle
        if low < count and entries[2 * low + 1] == number and not kept[low]:
            kept[low] = True
            found += 1
            size += entries[2 * low + 2] - entries[2 * low]
    return found, size


@njit(cache=True)
def copy_kept(
    entries: Int64s,
    arena: Bytes,
    count: int,
    kept: Booleans,
    new_entries: Int64s,
    new_arena: Bytes,
    new_slots: Int64s,
) -> None:
    """Copy the ``kept`` entries and their bytes, and enter them into the empty ``new_slots``."""
    mask = len(new_slots) // 2 - 1
    place = 0
    new = 0
    for entry in range(count):
        if kept[entry]:
            start = entries[2 * entry]
            stop = entries[2 * entry + 2]
            h = hash_bytes(arena, start, stop)
            new_entries[2 * new] = place
            new_entries[2 * new + 1] = entries[2 * entry + 1]
            for i in range(start, stop):
                new_arena[place] = arena[i]
                place += 1
            slot = h & mask
            while new_slots[2 * slot + 1] != EMPTY:
                slot = (slot + 1) & mask
            new_slots[2 * slot] = h
            new_slots[2 * slot + 1] = new
            new += 1
    new_entries[2 * new] = place
