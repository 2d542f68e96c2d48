"""Probes: which rows of a state meet which tuples of a batch.

A pair is a match if the keys are equal and the lifespans share an instant:
``max(birth) <= min(death)`` (design, section 1). A probe sees the rows from ``tail`` up to, not
including, ``bound``: with ``bound`` at the head of the ring before or after the batch was put in,
two deltas of one batch meet exactly once.

Inside an mjoin most partial results lead nowhere, and to look up their lifespans costs more than to
find them. There :func:`probe_keys` compares keys alone, and :func:`live_together` tests the
lifespans of the few that are complete.

The hash probes walk many chains in lock-step (:data:`GROUP` at a time): their cache misses overlap
instead of adding up. Matches of one group come out interleaved; groups stay in order, so what is
stored later is in the order of births up to a group.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from penstock.engine.kernels.index import bucket_of, code_of, hash_of, tag_of

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]

GROUP = 128
GONE = np.int64(-(2**63))
"""The death of a row that is not there any more."""


@njit(cache=True, inline="always")
def start_chains(
    keys: Int64s,
    start: int,
    stop: int,
    heads: Int32s,
    narrow: bool,
    shift: int,
    mask: int,
    tail: int,
    newest: int,
    active: NDArray[np.int64],
) -> int:
    """Position, newest row of the chain and code of each key that passes the filter; how many.

    A wide key is in no narrow index, whatever its code.
    """
    walking = 0
    for i in range(start, stop):
        code = code_of(keys[i])
        hashed = hash_of(code)
        head = np.int64(heads[bucket_of(hashed, shift)])
        s = newest - ((newest - head) & mask)
        active[0, walking] = i
        active[1, walking] = s
        active[2, walking] = code
        walking += (
            ((head & tag_of(hashed, shift)) != 0) & (s >= tail) & ((code == keys[i]) | (not narrow))
        )
    return walking


@njit(cache=True)
def probe(
    keys: Int64s,
    births: Int64s,
    deaths: Int64s,
    heads: Int32s,
    entries: Int32s,
    narrow: bool,
    shift: int,
    row_births: Int64s,
    row_deaths: Int64s,
    mask: int,
    tail: int,
    newest: int,
    bound: int,
    active: NDArray[np.int64],
    out: NDArray[np.int64],
) -> int:
    """Fill ``out`` with matches (position in the batch, row, birth, death); how many there are.

    ``out`` needs room for one more than there are; when it has not, the surplus is counted but not
    kept: call again with a larger table. ``active`` is working space of shape ``(3, GROUP + 1)``.
    ``newest`` is the last row of the ring. If the index is not ``narrow``, matches are candidates.

    Whether a row matches and whether a chain goes on are coin tosses, so there are no branches:
    every row is written, and the place moves on if it was a match.
    """
    n = keys.shape[0]
    last = out.shape[1] - 1
    count = 0
    for start in range(0, n, GROUP):
        walking = start_chains(
            keys, start, min(start + GROUP, n), heads, narrow, shift, mask, tail, newest, active
        )
        while walking > 0:
            staying = 0
            for k in range(walking):
                i = active[0, k]
                s = active[1, k]
                slot = s & mask
                b = max(births[i], row_births[slot])
                d = min(deaths[i], row_deaths[slot])
                at = min(count, last)
                out[0, at] = i
                out[1, at] = s
                out[2, at] = b
                out[3, at] = d
                code = active[2, k]
                count += (np.int64(entries[2 * slot]) == code) & (s < bound) & (b <= d)
                link = np.int64(entries[2 * slot + 1])
                active[0, staying] = i
                active[1, staying] = s - link
                active[2, staying] = code
                staying += (link > 0) & (s - link >= tail)
            walking = staying
    return count


@njit(cache=True)
def probe_keys(
    keys: Int64s,
    heads: Int32s,
    entries: Int32s,
    narrow: bool,
    shift: int,
    mask: int,
    tail: int,
    newest: int,
    bound: int,
    active: NDArray[np.int64],
    out: NDArray[np.int64],
) -> int:
    """As :func:`probe`, by keys alone: ``out`` has two rows, position in the batch and row."""
    n = keys.shape[0]
    last = out.shape[1] - 1
    count = 0
    for start in range(0, n, GROUP):
        walking = start_chains(
            keys, start, min(start + GROUP, n), heads, narrow, shift, mask, tail, newest, active
        )
        while walking > 0:
            staying = 0
            for k in range(walking):
                i = active[0, k]
                s = active[1, k]
                slot = s & mask
                at = min(count, last)
                out[0, at] = i
                out[1, at] = s
                code = active[2, k]
                count += (np.int64(entries[2 * slot]) == code) & (s < bound)
                link = np.int64(entries[2 * slot + 1])
                active[0, staying] = i
                active[1, staying] = s - link
                active[2, staying] = code
                staying += (link > 0) & (s - link >= tail)
            walking = staying
    return count


@njit(cache=True)
def live_together(
    births: Int64s,
    deaths: Int64s,
    rows: Int64s,
    row_births: Int64s,
    row_deaths: Int64s,
    mask: int,
    tail: int,
) -> None:
    """Bring births up and deaths down to those of ``rows``; a row below the tail is gone."""
    for i in range(rows.shape[0]):
        s = rows[i]
        slot = s & mask
        births[i] = max(births[i], row_births[slot])
        deaths[i] = min(deaths[i], row_deaths[slot] if s >= tail else GONE)


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
