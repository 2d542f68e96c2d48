"""Probes: which rows of a state meet which tuples of a batch.

A pair is a match if the keys are equal and the lifespans share an instant:
``max(birth) <= min(death)`` (design, section 1). A probe sees the rows from ``tail`` up to, not
including, ``bound``: with ``bound`` at the head of the ring before or after the batch was put in,
two deltas of one batch meet exactly once.

The hash probe walks many chains in lock-step (:data:`GROUP` at a time): their cache misses overlap
instead of adding up. Matches of one group come out interleaved; groups stay in order, so what is
stored later is in the order of births up to a group.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from penstock.engine.kernels.index import bucket_of

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]
GROUP = 128
POSITION, ROW, BORN, DIES = range(4)
"""The rows of a table of matches: position in the batch, row of the state, birth, death."""


@njit(cache=True)
def probe(
    keys: Int64s,
    births: Int64s,
    deaths: Int64s,
    heads: Int64s,
    links: Int32s,
    row_keys: Int64s,
    shift: int,
    row_births: Int64s,
    row_deaths: Int64s,
    mask: int,
    tail: int,
    bound: int,
    active: NDArray[np.int64],
    out: NDArray[np.int64],
) -> int:
    """Fill ``out`` (see :data:`POSITION`) with matches; how many there are.

    When there are more than ``out`` has room for, the surplus is counted but not written: call
    again with a larger table. ``active`` is working space of shape ``(2, GROUP)``.
    """
    n = keys.shape[0]
    room = out.shape[1]
    count = 0
    for start in range(0, n, GROUP):
        walking = 0
        for i in range(start, min(start + GROUP, n)):
            s = heads[bucket_of(keys[i], shift)]
            if s >= tail:
                active[0, walking] = i
                active[1, walking] = s
                walking += 1
        while walking > 0:
            staying = 0
            for k in range(walking):
                i = active[0, k]
                s = active[1, k]
                slot = s & mask
                if row_keys[slot] == keys[i] and s < bound:
                    b = max(births[i], row_births[slot])
                    d = min(deaths[i], row_deaths[slot])
                    if b <= d:
                        if count < room:
                            out[0, count] = i
                            out[1, count] = s
                            out[2, count] = b
                            out[3, count] = d
                        count += 1
                link = links[slot]
                s -= link
                if link > 0 and s >= tail:
                    active[0, staying] = i
                    active[1, staying] = s
                    staying += 1
            walking = staying
    return count


EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL = range(6)


@njit(cache=True, inline="always")
def holds(operator: int, left: int, right: int) -> bool:
    """``left operator right``."""
    if operator == EQUAL:
        return left == right
    if operator == NOT_EQUAL:
        return left != right
    if operator == LESS:
        return left < right
    if operator == LESS_EQUAL:
        return left <= right
    if operator == GREATER:
        return left > right
    return left >= right


@njit(cache=True)
def nested_loop(
    operators: Int64s,
    lefts: NDArray[np.int64],
    births: Int64s,
    deaths: Int64s,
    rights: NDArray[np.int64],
    row_births: Int64s,
    row_deaths: Int64s,
    rows: Int64s,
    first: int,
    out: NDArray[np.int64],
) -> tuple[int, int]:
    """Matches of tuples with a block of rows that fits the cache, by trying every pair.

    ``lefts[c, i] operators[c] rights[c, j]`` must hold for every condition ``c``. Starts at tuple
    ``first`` and stops before a tuple whose matches might not fit into ``out``: how many matches
    were written, and the tuple to go on with. ``out`` has room for at least one tuple's.
    """
    n = births.shape[0]
    m = rows.shape[0]
    room = out.shape[1]
    count = 0
    i = first
    while i < n and count + m <= room:
        for j in range(m):
            b = max(births[i], row_births[j])
            d = min(deaths[i], row_deaths[j])
            good = b <= d
            for c in range(operators.shape[0]):
                if not good:
                    break
                good = holds(operators[c], lefts[c, i], rights[c, j])
            if good:
                out[0, count] = i
                out[1, count] = rows[j]
                out[2, count] = b
                out[3, count] = d
                count += 1
        i += 1
    return count, i
