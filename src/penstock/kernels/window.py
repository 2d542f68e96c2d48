"""New rows of a window, in one call: lifespans, columns and indexes.

``code`` tells where everything lies, as for :mod:`~penstock.kernels.probe_order`: first the
numbers named below; then, for each column, the address of its ring and the bytes of a value; then,
for each index, the addresses of heads and entries, the shift, and the positions of the key columns,
counted first. Key columns come first among the columns, and have eight bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.index import insert, seed_of
from penstock.kernels.kernel import inlined, kernel
from penstock.kernels.lifespan import FOREVER, death_after
from penstock.kernels.pairs import mixed
from penstock.kernels.pointer import bytes_at, int64s, uint32s

Int64s = NDArray[np.int64]
AnyColumn = NDArray[Any]

MASK, BIRTHS, DEATHS, SPAN, COLUMNS, INDEXES = range(6)
FIRST = 6
COLUMN = 2


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
) -> int:
    """Put ``count`` rows in from ``start`` on, with columns from the addresses ``sources``.

    They are born at the times at the address ``times``, which count ``ticks``. ``hashes`` is
    working space for as many numbers as there are rows. The answer has bit ``i`` set if a key of
    index ``i`` is wide.
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
        if not insert(heads, entries, shift, mask, tail, start, values):
            wide |= 1 << index
    return wide
