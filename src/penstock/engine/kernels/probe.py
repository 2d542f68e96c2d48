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
Matches = tuple[Int64s, Int64s, Int64s, Int64s]

GROUP = 128


@njit(cache=True)
def _grown(values: Int64s, size: int) -> Int64s:
    larger = np.empty(size, np.int64)
    larger[: values.shape[0]] = values
    return larger


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
) -> Matches:
    """All matches as (position in the batch, row, birth, death)."""
    n = keys.shape[0]
    size = 2 * n + GROUP
    at = np.empty(size, np.int64)
    row = np.empty(size, np.int64)
    birth = np.empty(size, np.int64)
    death = np.empty(size, np.int64)
    count = 0
    active_i = np.empty(GROUP, np.int64)
    active_s = np.empty(GROUP, np.int64)
    for start in range(0, n, GROUP):
        active = 0
        for i in range(start, min(start + GROUP, n)):
            s = heads[bucket_of(keys[i], shift)]
            if s >= tail:
                active_i[active] = i
                active_s[active] = s
                active += 1
        while active > 0:
            if count + active > size:
                size = 2 * size + GROUP
                at = _grown(at, size)
                row = _grown(row, size)
                birth = _grown(birth, size)
                death = _grown(death, size)
            staying = 0
            for k in range(active):
                i = active_i[k]
                s = active_s[k]
                slot = s & mask
                if row_keys[slot] == keys[i] and s < bound:
                    b = max(births[i], row_births[slot])
                    d = min(deaths[i], row_deaths[slot])
                    if b <= d:
                        at[count] = i
                        row[count] = s
                        birth[count] = b
                        death[count] = d
                        count += 1
                link = links[slot]
                s -= link
                if link > 0 and s >= tail:
                    active_i[staying] = i
                    active_s[staying] = s
                    staying += 1
            active = staying
    return at[:count], row[:count], birth[:count], death[:count]


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
    limit: int,
) -> tuple[Int64s, Int64s, Int64s, Int64s, int]:
    """Matches of a block of tuples with a list of rows, by trying every pair.

    ``lefts[c, i] operators[c] rights[c, j]`` must hold for every condition ``c``. The rows are
    walked in the outer loop by blocks that stay in the cache. Starts at tuple ``first`` and stops
    after the tuple that makes more than ``limit`` matches; the last value returned is the tuple to
    go on with.
    """
    n = births.shape[0]
    m = rows.shape[0]
    size = max(256, min(limit, 4 * n))
    at = np.empty(size, np.int64)
    row = np.empty(size, np.int64)
    birth = np.empty(size, np.int64)
    death = np.empty(size, np.int64)
    count = 0
    i = first
    while i < n and count <= limit:
        for j in range(m):
            b = max(births[i], row_births[j])
            d = min(deaths[i], row_deaths[j])
            if b > d:
                continue
            good = True
            for c in range(operators.shape[0]):
                if not holds(operators[c], lefts[c, i], rights[c, j]):
                    good = False
                    break
            if good:
                if count == size:
                    size *= 2
                    at = _grown(at, size)
                    row = _grown(row, size)
                    birth = _grown(birth, size)
                    death = _grown(death, size)
                at[count] = i
                row[count] = rows[j]
                birth[count] = b
                death[count] = d
                count += 1
        i += 1
    return at[:count], row[:count], birth[:count], death[:count], i
