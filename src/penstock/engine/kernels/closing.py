"""Closing open rows: each of those that are asked for, once, in the order in which they are."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]


@njit(cache=True)
def close(rows: Int64s, first: int, closed: Bools, out: Int64s) -> int:
    """Close ``rows``, of which row ``first`` has the first flag; how many were open, and are in
    ``out`` now."""
    count = 0
    for i in range(rows.shape[0]):
        place = rows[i] - first
        if not closed[place]:
            closed[place] = True
            out[count] = rows[i]
            count += 1
    return count
