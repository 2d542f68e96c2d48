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

from penstock.engine.kernels.pointer import int64s

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
    out: Int64s,
    births: Int64s,
) -> bool:
    """Where the columns at ``positions`` lie, ``widths`` bytes a value: ``out``.

    Number ``time`` of them are event times, which are copied to ``births``, in ticks. False if a
    column may have NULLs or lies at an odd address, if the times are not in order, or one of them
    is too far away or before ``earliest``.
    """
    children = int64s(array[_CHILDREN], 1 + positions.max())
    for i in range(positions.shape[0]):
        column = int64s(children[positions[i]], WORDS)
        buffers = int64s(column[_BUFFERS], 2)
        out[i] = buffers[1] + widths[i] * column[_OFFSET]
        if buffers[0] != 0 or out[i] % widths[i] != 0:
            return False
    count = births.shape[0]
    times = int64s(out[time], count)
    last = times[0]
    if last < -farthest or last * ticks < earliest:
        return False
    rising = True
    for i in range(count):
        instant = times[np.uint64(i)]
        rising &= instant >= last
        last = instant
        births[np.uint64(i)] = instant * ticks
    return rising and last <= farthest
