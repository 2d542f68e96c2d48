"""Numbers for rows of int64: the loops behind
:class:`penstock.engine.output.group_table.GroupTable`.

Open addressing with linear probing. ``slots`` holds group numbers, -1 where it is empty, and is at
least twice as long as there are groups. A hash leads to a slot; all columns of ``keys`` decide.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import inlined, kernel
from penstock.kernels.pairs import mixed

Int64s = NDArray[np.int64]
Uint64s = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

EMPTY = -1


@inlined
def hash_row(keys: Int64s, row: int, secret: Uint64s) -> np.uint64:
    """A hash of all columns of one row, keyed by a secret."""
    h, key = np.int64(secret[0]), np.int64(secret[1])
    for i in range(keys.shape[1]):
        h = mixed(h, keys[np.uint64(row), np.uint64(i)]) ^ key
    return np.uint64(h)


@kernel
def number(
    rows: Int64s, keys: Int64s, slots: Int64s, count: int, secret: Uint64s
) -> tuple[Int64s, Int64s]:
    """The group of each of ``rows``, and the rows that are the first of a new group.

    ``keys`` and ``slots`` have room for as many new groups as there are rows.
    """
    mask = np.uint64(slots.shape[0] - 1)
    groups = np.empty(rows.shape[0], np.int64)
    firsts = np.empty(rows.shape[0], np.int64)
    new = 0
    for row in range(rows.shape[0]):
        slot = hash_row(rows, row, secret) & mask
        while True:
            group = slots[slot]
            if group == EMPTY:
                group = count + new
                slots[slot] = group
                for i in range(rows.shape[1]):
                    keys[group, i] = rows[row, i]
                firsts[new] = row
                new += 1
                break
            same = True
            for i in range(rows.shape[1]):
                place = np.uint64(i)
                same &= keys[np.uint64(group), place] == rows[np.uint64(row), place]
            if same:
                break
            slot = (slot + np.uint64(1)) & mask
        groups[np.uint64(row)] = group
    return groups, firsts[:new]


@kernel
def enter(keys: Int64s, count: int, slots: Int64s, secret: Uint64s) -> None:
    """Put the groups up to ``count`` into the empty ``slots``."""
    mask = np.uint64(slots.shape[0] - 1)
    for group in range(count):
        slot = hash_row(keys, group, secret) & mask
        while slots[slot] != EMPTY:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = group


@kernel
def forget(slots: Int64s, count: int) -> None:
    """Take back all groups but the first ``count``: the others were put in after them, so that no
    search for one of these leads past them."""
    for slot in range(slots.shape[0]):
        if slots[slot] >= count:
            slots[slot] = EMPTY


@kernel
def size_of(offsets: Int64s, rows: Int64s) -> int:
    """How many bytes the values in ``rows`` have."""
    size = 0
    for row in rows:
        size += offsets[row + 1] - offsets[row]
    return size


@kernel
def copy_bytes(
    data: Bytes, offsets: Int64s, rows: Int64s, arena: Bytes, ends: Int64s, count: int
) -> None:
    """Append the values ``data[offsets[row]:offsets[row + 1]]`` to the ``count`` in ``arena``.

    Value ``i`` in ``arena`` lies between ``ends[i]`` and ``ends[i + 1]``.
    """
    place = ends[count]
    for i in range(rows.shape[0]):
        start = offsets[rows[i]]
        size = offsets[rows[i] + 1] - start
        for j in range(size):
            arena[place + j] = data[start + j]
        place += size
        ends[count + i + 1] = place
