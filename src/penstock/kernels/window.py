"""New rows of a window, in one call: lifespans, columns and indexes.

``code`` tells where everything lies, as for :mod:`~penstock.kernels.probe_order`: first the
numbers named below; then, for each column, the address of its ring and the bytes of a value; then,
for each index, the addresses of heads and entries, the shift, and the positions of the key columns,
counted first. Key columns come first among the columns, and have eight bytes.

``ROWS`` is how many rows live, if rows die by counting; ``LISTS`` is the address of the addresses
of the lists of partitions (:mod:`~penstock.kernels.lifespan`), if it is by partition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.index import insert, insert_flagged, seed_of
from penstock.kernels.kernel import inlined, kernel
from penstock.kernels.lifespan import (
    FOREVER,
    death_after,
    kill_by_count,
    kill_by_partition,
)
from penstock.kernels.pairs import mixed
from penstock.kernels.pointer import bytes_at, int64s, uint32s

Int64s = NDArray[np.int64]
AnyColumn = NDArray[Any]

MASK, BIRTHS, DEATHS, SPAN, COLUMNS, INDEXES, ROWS, LISTS = range(8)
FIRST = 8
COLUMN = 2
LATER, VICTIMS, PARTITIONS, EARLIER, OLDEST, NEWEST, SIZES = range(7)
"""The lists of partitions: four columns of the ring, three by the number of a partition."""
_PARTITION_LIMIT = 1 << 40
"""More partitions than there are: their lists are as long as they are."""


@kernel
def _put(values: AnyColumn, ring: AnyColumn, first: int) -> None:
    """Copy ``values`` into ``ring`` from ``first`` on, then from its beginning."""
    before = min(values.shape[0], ring.shape[0] - first)
    ring[first : first + before] = values[:before]
    ring[: values.shape[0] - before] = values[before:]


@inlined
def _live(times: Int64s, ticks: int, span: int, births: Int64s, deaths: Int64s, slot: int) -> None:
    """Write down when rows are born and die, the first of ``times`` for row ``slot``."""
    for i in range(times.shape[0]):
        birth = times[np.uint64(i)] * ticks
        births[np.uint64(slot + i)] = birth
        deaths[np.uint64(slot + i)] = death_after(birth, span) if span >= 0 else FOREVER


@kernel
def append(
    code: Int64s,
    start: int,
    tail: int,
    times: int,
    ticks: int,
    count: int,
    sources: Int64s,
    hashes: Int64s,
    flags: int,
) -> int:
    """Put ``count`` rows in from ``start`` on, with columns from the addresses ``sources``.

    They are born at the times at the address ``times``, which count ``ticks``. ``hashes`` is
    working space for as many numbers as there are rows. ``flags`` is the address of a byte for each
    row that tells which go into indexes (0: all). The answer has bit ``i`` set if a key of index
    ``i`` is wide.
    """
    mask, span = code[MASK], code[SPAN]
    slot = start & mask
    before = min(count, mask + 1 - slot)
    births, deaths = int64s(code[BIRTHS], mask + 1), int64s(code[DEATHS], mask + 1)
    instants = int64s(times, count)
    _live(instants[:before], ticks, span, births, deaths, slot)
    _live(instants[before:], ticks, span, births, deaths, 0)
    at = FIRST
    for column in range(code[COLUMNS]):
        width = code[at + 1]
        if width == 8:
            _put(int64s(sources[column], count), int64s(code[at], mask + 1), slot)
        else:
            _put(
                bytes_at(sources[column], width * count),
                bytes_at(code[at], width * (mask + 1)),
                width * slot,
            )
        at += COLUMN
    wide = 0
    for index in range(code[INDEXES]):
        heads, entries = uint32s(code[at], mask + 1), int64s(code[at + 1], mask + 1)
        shift, keys = code[at + 2], code[at + 3]
        at += 4
        if keys == 1:
            values = int64s(sources[code[at]], count)
        else:
            values = hashes[:count]
            values[:] = seed_of(shift)
            for key in range(keys):
                column = int64s(sources[code[at + key]], count)
                for i in range(count):
                    values[np.uint64(i)] = mixed(values[np.uint64(i)], column[np.uint64(i)])
        at += keys
        if flags == 0:
            is_narrow = insert(heads, entries, shift, mask, tail, start, values)
        else:
            chosen = bytes_at(flags, count)
            is_narrow = insert_flagged(heads, entries, shift, mask, tail, start, values, chosen)
        if not is_narrow:
            wide |= 1 << index
    if code[ROWS]:
        _kill(code, tail, start, start + count, births, deaths)
    return wide


@kernel
def _kill(code: Int64s, tail: int, start: int, stop: int, births: Int64s, deaths: Int64s) -> None:
    """The rows from ``start`` on end the lives of older ones."""
    mask, count = code[MASK], code[ROWS]
    if code[LISTS] == 0:
        kill_by_count(births, deaths, mask, tail, start, stop, count)
        return
    lists = int64s(code[LISTS], 7)
    kill_by_partition(
        births,
        deaths,
        int64s(lists[LATER], mask + 1),
        int64s(lists[VICTIMS], mask + 1),
        int64s(lists[PARTITIONS], mask + 1),
        mask,
        start,
        stop,
        count,
        int64s(lists[OLDEST], _PARTITION_LIMIT),
        int64s(lists[NEWEST], _PARTITION_LIMIT),
        int64s(lists[EARLIER], mask + 1),
        int64s(lists[SIZES], _PARTITION_LIMIT),
    )
