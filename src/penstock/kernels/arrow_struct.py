"""Arrow's C data interface, read in place: where the columns of a record batch lie.

The layout of ``struct ArrowArray`` is fixed for good (Arrow's specification, *The Arrow C data
interface*): ten words, namely length, null count, offset, number of buffers, number of children,
buffers, children, dictionary, release callback and private data. A record batch is a struct array
with one child per column. Buffer 0 of a column of fixed width marks its NULLs, and is absent where
there can be none; buffer 1 holds the values.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from penstock.kernels.pointer import call, int64s

Int64s = NDArray[np.int64]

WORDS = 10
RELEASE = 8
_OFFSET, _BUFFERS, _CHILDREN = 2, 5, 6


@njit(cache=True)
def look(
    array: Int64s,
    positions: Int64s,
    widths: Int64s,
    time: int,
    ticks: int,
    farthest: int,
    earliest: int,
    count: int,
    out: Int64s,
) -> bool:
    """Where the columns at ``positions`` lie, ``widths`` bytes a value: ``out``.

    Number ``time`` of them are event times, ``count`` of them, in ``ticks``. False if a column may
    have NULLs or lies at an odd address, if the times are not in order, or one of them is too far
    away or before ``earliest``.
    """
    children = int64s(array[_CHILDREN], 1 + positions.max())
    for i in range(positions.shape[0]):
        column = int64s(children[positions[i]], WORDS)
        buffers = int64s(column[_BUFFERS], 2)
        out[i] = buffers[1] + widths[i] * column[_OFFSET]
        if buffers[0] != 0 or out[i] % widths[i] != 0:
            return False
    times = int64s(out[time], count)
    last = times[0]
    if last < -farthest or last * ticks < earliest:
        return False
    rising = True
    for i in range(count):
        instant = times[np.uint64(i)]
        rising &= instant >= last
        last = instant
    return rising and last <= farthest


@njit(cache=True)
def births_of(address: int, ticks: int, births: Int64s) -> None:
    """Fill ``births`` with the event times from ``address`` on, which count ``ticks``."""
    times = int64s(address, births.shape[0])
    for i in range(births.shape[0]):
        births[np.uint64(i)] = times[np.uint64(i)] * ticks


COLUMNS, TIME, TICKS, FARTHEST, COUNT = range(5)
FACTS = 5


@njit(cache=True)
def look_at_all(
    arrays: NDArray[np.int64],
    positions: NDArray[np.int64],
    widths: NDArray[np.int64],
    facts: NDArray[np.int64],
    earliest: int,
    out: NDArray[np.int64],
    spans: NDArray[np.int64],
) -> bool:
    """:func:`look` at a batch of each source that has one: a row of each table is a source's.

    ``facts`` has the numbers named above; a source with a ``COUNT`` of 0 has no batch. ``spans``
    gets the first and the last event time, in ticks. In any case the ``arrays`` are released.
    """
    plain = True
    for source in range(arrays.shape[0]):
        count, columns = facts[source, COUNT], facts[source, COLUMNS]
        if count == 0:
            continue
        time, ticks = facts[source, TIME], facts[source, TICKS]
        plain = plain and look(
            arrays[source],
            positions[source, :columns],
            widths[source, :columns],
            time,
            ticks,
            facts[source, FARTHEST],
            earliest,
            count,
            out[source],
        )
        call(arrays[source, RELEASE], arrays[source].ctypes.data)
        if plain:
            times = int64s(out[source, time], count)
            spans[source, 0], spans[source, 1] = times[0] * ticks, times[count - 1] * ticks
    return plain
