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
_LENGTH, _OFFSET, _BUFFERS, _CHILDREN = 0, 2, 5, 6


@njit(cache=True)
def locate(array: Int64s, positions: Int64s, widths: Int64s, out: Int64s) -> bool:
    """Fill ``out`` with the addresses of the columns at ``positions``, ``widths`` bytes a value.

    False if one of them may have NULLs, or lies at an odd address.
    """
    children = int64s(array[_CHILDREN], 1 + positions.max())
    for i in range(positions.shape[0]):
        column = int64s(children[positions[i]], WORDS)
        buffers = int64s(column[_BUFFERS], 2)
        out[i] = buffers[1] + widths[i] * column[_OFFSET]
        if buffers[0] != 0 or out[i] % widths[i] != 0:
            return False
    return True


@njit(cache=True)
def survey_times(
    address: int, count: int, ticks: int, farthest: int, earliest: int, births: Int64s
) -> bool:
    """Copy ``count`` event times from ``address`` to ``births``, in ticks.

    False if they are not in order, or one is too far away or before ``earliest``.
    """
    times = int64s(address, count)
    last = times[0]
    if last < -farthest or last * ticks < earliest:
        return False
    rising = True
    for i in range(count):
        time = times[np.uint64(i)]
        rising &= time >= last
        last = time
        births[np.uint64(i)] = time * ticks
    return rising and last <= farthest
