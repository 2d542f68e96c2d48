"""Rings by number: where each begins and ends in a push, and how composites are put into one.

``rings`` has :data:`RING` numbers for each ring, of which ``HEAD`` moves while rows come in.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.composites import append
from penstock.kernels.index import seed_of
from penstock.kernels.kernel import kernel
from penstock.kernels.pairs import mixed
from penstock.kernels.pointer import int64s
from penstock.kernels.tables import Tables

Int64s = NDArray[np.int64]

RING_LOW, TAIL, HEAD, OLD, FREE, MASK, COMPLETED = range(7)
RING = 7
"""Of a ring: the first row that probes see, tail, head, the first row of this push, how many rows
can be put in, the mask, and the first row that was completed in this push, behind the new ones."""
NONE_COMPLETED = 1 << 62
"""Instead of that row, if there is none."""
KEY = 3
"""Of a key column: its address, its mask, and by what it is read."""


@kernel
def keys_of(
    code: Int64s, at: int, shift: int, mask: int, first: int, count: int, keys: NDArray[np.int64]
) -> Int64s:
    """The keys of the rows of a ring from ``first`` on: one column, or the hash of several.

    ``shift`` is that of any index: hashes begin by it. ``code[at]`` is the number of columns. Each
    has its address, its mask, and the address of the ids by which it is read, 0 if by the rows
    themselves. One column of a window is read where it lies, unless it goes over the end of the
    ring; else the keys are gathered in ``keys``.
    """
    columns = code[at]
    if columns == 1 and code[at + 3] == 0:
        slot = first & code[at + 2]
        if slot + count <= code[at + 2] + 1:
            as_it_lies: Int64s = int64s(code[at + 1] + 8 * slot, count)
            return as_it_lies
    for column in range(columns):
        address, own_mask, ids = code[at + 1], code[at + 2], code[at + 3]
        at += KEY
        values = int64s(address, own_mask + 1)
        for i in range(count):
            row = first + i
            if ids:
                row = int64s(ids, mask + 1)[np.uint64(row & mask)]
            value = values[np.uint64(row & own_mask)]
            if columns > 1:
                value = mixed(keys[np.uint64(i)] if column else seed_of(shift), value)
            keys[np.uint64(i)] = value
    return keys[:count]


@kernel
def keys_at(
    code: Int64s,
    at: int,
    shift: int,
    ids: NDArray[np.int64],
    slots: int,
    count: int,
    keys: NDArray[np.int64],
) -> None:
    """Fill ``keys`` with those of ``count`` combinations: one column, or the hash of several.

    ``code`` is as above, but a column is read by a row of ``ids``: the one of that number, or the
    one that ``code`` tells for it from ``slots`` on (-1: the same).
    """
    columns = code[at]
    for column in range(columns):
        address, mask, slot = code[at + 1], code[at + 2], code[at + 3]
        at += KEY
        values = int64s(address, mask + 1)
        rows = ids[slot if slots < 0 else code[slots + slot]]
        for i in range(count):
            value = values[np.uint64(rows[np.uint64(i)] & mask)]
            if columns > 1:
                value = mixed(keys[np.uint64(i)] if column else seed_of(shift), value)
            keys[np.uint64(i)] = value


@kernel
def store(tables: Tables, at: int, ring: int, count: int) -> None:
    """Append what ``sources`` have to ``ring``; ``code[at]`` tells how many indexes it has, and
    their numbers follow."""
    code, rings = tables.code, tables.rings
    indexes = code[at]
    table = code[at + 1 + indexes :]
    head = rings[ring, HEAD]
    wide = append(table, head, rings[ring, TAIL], count, tables.sources, tables.found[1])
    for index in range(indexes):
        if wide >> index & 1:
            tables.narrow[code[at + 1 + index]] = 0
    rings[ring, HEAD] = head + count
    rings[ring, FREE] -= count
