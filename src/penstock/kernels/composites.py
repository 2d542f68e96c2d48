"""Stored composites, in one call: new ones with their keys, and the first that is still whole.

``code`` tells where everything lies, as for :mod:`~penstock.kernels.window`: first the mask
of the ring and the numbers of columns and indexes; then the address of each column of ids; then,
for each index, the addresses of heads and entries, the shift, the number of key columns, and for
each of these the address, the mask, and the column of ids by which it is read.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.index import insert, seed_of
from penstock.kernels.kernel import kernel
from penstock.kernels.pairs import mixed
from penstock.kernels.pointer import int64s, uint32s

Int64s = NDArray[np.int64]

MASK, COLUMNS, INDEXES = range(3)
FIRST = 3
INDEX = 4
KEY = 3


@kernel
def append(code: Int64s, start: int, tail: int, count: int, sources: Int64s, keys: Int64s) -> int:
    """Put ``count`` composites in from ``start`` on, whose ids are at the addresses ``sources``.

    ``keys`` is working space for as many numbers. The answer has bit ``i`` set if a key of index
    ``i`` is wide.
    """
    mask = code[MASK]
    first = start & mask
    before = min(count, mask + 1 - first)
    for column in range(code[COLUMNS]):
        ids, ring = int64s(sources[column], count), int64s(code[FIRST + column], mask + 1)
        ring[first : first + before] = ids[:before]
        ring[: count - before] = ids[before:]
    at = FIRST + code[COLUMNS]
    wide = 0
    for index in range(code[INDEXES]):
        heads, entries = uint32s(code[at], mask + 1), int64s(code[at + 1], mask + 1)
        shift, columns = code[at + 2], code[at + 3]
        at += INDEX
        for key in range(columns):
            key_mask = code[at + 1]
            values = int64s(code[at], key_mask + 1)
            ids = int64s(sources[code[at + 2]], count)
            at += KEY
            if columns == 1:
                for i in range(count):
                    keys[np.uint64(i)] = values[np.uint64(ids[np.uint64(i)] & key_mask)]
            else:
                for i in range(count):
                    value = values[np.uint64(ids[np.uint64(i)] & key_mask)]
                    known = keys[np.uint64(i)] if key else seed_of(shift)
                    keys[np.uint64(i)] = mixed(known, value)
        if not insert(heads, entries, shift, mask, tail, start, keys[:count]):
            wide |= 1 << index
    return wide


@kernel
def first_whole(code: Int64s, row: int, head: int, lowest: Int64s) -> int:
    """The first row from ``row`` on with no id below the ``lowest`` of its column, or ``head``."""
    mask = code[MASK]
    while row < head:
        whole = True
        for column in range(code[COLUMNS]):
            ids = int64s(code[FIRST + column], mask + 1)
            whole &= ids[np.uint64(row & mask)] >= lowest[column]
        if whole:
            break
        row += 1
    return row
