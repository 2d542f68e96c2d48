"""Probes: which rows of a state meet which tuples of a batch.

A pair is a match if the keys are equal and the lifespans share an instant:
``max(birth) <= min(death)`` (design, section 1). A probe sees the rows from ``tail`` up to, not
including, ``bound``: with ``bound`` at the head of the ring before or after the batch was put in,
two deltas of one batch meet exactly once.

Inside an mjoin most partial results lead nowhere, and to look up their lifespans costs more than to
find them. There :func:`probe_keys` compares keys alone, and :func:`live_together` tests the
lifespans of the few that are complete.

The hash probes walk many chains in lock-step: their cache misses overlap instead of adding up. Keys
are tested against the filter :data:`GROUP` at a time, and when at least so many have passed, their
chains are walked together. Matches of one group come out interleaved; groups stay in order, so what
is stored later is in the order of births up to a group.

Whether a key passes, a row matches and a chain goes on are coin tosses, so there are no branches:
everything is written, and the place moves on if it is to stay. What is written is little: a walk is
two words, the position in the batch with the code, and the row. What will be read is asked for
ahead of time (:mod:`~penstock.kernels.prefetch`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.index import bucket_of, code_of, hash_of, hash_of_wide, tag_of
from penstock.kernels.kernel import inlined, kernel
from penstock.kernels.lifespan import death_after
from penstock.kernels.prefetch import AHEAD, prefetch

Int64s = NDArray[np.int64]
Uint32s = NDArray[np.uint32]

GROUP = 128
GONE = np.int64(-(2**63))
"""The death of a row that is not there any more."""
_LOW = (1 << 32) - 1
MATCHES_TO_PAUSE = 1 << 20
"""Matches beyond the room for them after which a probe ends, some milliseconds: a frequent key
may have a thousand million, and the caller has to look at signals in between."""


@inlined
def filter_keys(
    keys: Int64s,
    start: int,
    stop: int,
    heads: Uint32s,
    narrow: bool,
    shift: int,
    active: NDArray[np.int64],
    walking: np.uint64,
) -> np.uint64:
    """Add position with code, and head, of each key that passes the filter; how many there are.

    A wide key is in no narrow index, whatever its code.
    """
    last = keys.shape[0] - 1
    for i in range(start, stop):
        later = code_of(keys[np.uint64(min(i + AHEAD, last))], shift)
        prefetch(heads, bucket_of(hash_of(later, shift), shift))
        key = keys[np.uint64(i)]
        code = np.int64(np.int32(key))
        if code != key:
            if narrow:
                continue
            code = hash_of_wide(key, shift)
        hashed = hash_of(code, shift)
        head = heads[bucket_of(hashed, shift)]
        active[0, walking] = (i << 32) | (code & _LOW)
        active[1, walking] = np.int64(head)
        walking += (np.uint64(head) >> tag_of(hashed, shift)) & np.uint64(1)
    return walking


@inlined
def locate(
    active: NDArray[np.int64], walking: np.uint64, entries: Int64s, newest: int, mask: int
) -> None:
    """Turn heads into rows."""
    numbers = 2 * mask + 1
    for k in range(walking):
        at = np.uint64(k)
        s = newest - ((newest - active[1, at]) & numbers)
        prefetch(entries, np.uint64(s & mask))
        active[1, at] = s


@kernel
def walk_on(
    sought: int,
    s: int,
    entry: int,
    is_over: bool,
    entries: Int64s,
    tail: int,
    mask: int,
    active: NDArray[np.int64],
    staying: np.uint64,
) -> np.uint64:
    """Go on from row ``s`` to the next older one, unless there is none or the walk ``is_over``.

    ``staying`` walks go on already; how many do with this one.
    """
    older = s - (entry >> 32)
    prefetch(entries, np.uint64(max(older, tail) & mask))
    active[0, staying] = sought
    active[1, staying] = older
    return staying + np.uint64((not is_over) & (older >= tail))


@kernel
def probe(
    keys: Int64s,
    births: Int64s,
    deaths: Int64s,
    heads: Uint32s,
    entries: Int64s,
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
    kept: call again with a larger table. If it is more than :data:`MATCHES_TO_PAUSE`, not all is
    counted: call again with fewer keys. ``active`` is working space of shape ``(2, 2 * GROUP)``.
    ``newest`` is the last row of the ring. If the index is not ``narrow``, matches are candidates.
    """
    n = keys.shape[0]
    last = np.uint64(out.shape[1] - 1)
    enough = last + np.uint64(MATCHES_TO_PAUSE)
    count = np.uint64(0)
    seen = np.uint64(max(bound - tail, 0))
    walking = np.uint64(0)
    for start in range(0, n, GROUP):
        stop = min(start + GROUP, n)
        walking = filter_keys(keys, start, stop, heads, narrow, shift, active, walking)
        if walking < GROUP and stop < n:
            continue
        locate(active, walking, entries, newest, mask)
        while walking > 0:
            staying = np.uint64(0)
            for k in range(walking):
                sought = active[0, np.uint64(k)]
                s = active[1, np.uint64(k)]
                slot = np.uint64(s & mask)
                entry = entries[slot]
                i = sought >> 32
                b = max(births[np.uint64(i)], row_births[slot])
                d = min(deaths[np.uint64(i)], row_deaths[slot])
                at = min(count, last)
                out[0, at] = i
                out[1, at] = s
                out[2, at] = b
                out[3, at] = d
                count += np.uint64(
                    (np.int32(entry) == np.int32(sought)) & (np.uint64(s - tail) < seen) & (b <= d)
                )
                staying = walk_on(sought, s, entry, False, entries, tail, mask, active, staying)
            walking = staying
            if count > enough:
                return int(count)
    return int(count)


@kernel
def probe_keys(
    keys: Int64s,
    heads: Uint32s,
    entries: Int64s,
    narrow: bool,
    shift: int,
    mask: int,
    tail: int,
    newest: int,
    bound: int,
    offset: int,
    active: NDArray[np.int64],
    out: NDArray[np.int64],
) -> int:
    """As :func:`probe`, by keys alone: ``out`` has two rows, position plus ``offset``, and row."""
    n = keys.shape[0]
    last = np.uint64(out.shape[1] - 1)
    enough = last + np.uint64(MATCHES_TO_PAUSE)
    count = np.uint64(0)
    seen = np.uint64(max(bound - tail, 0))
    walking = np.uint64(0)
    for start in range(0, n, GROUP):
        stop = min(start + GROUP, n)
        walking = filter_keys(keys, start, stop, heads, narrow, shift, active, walking)
        if walking < GROUP and stop < n:
            continue
        locate(active, walking, entries, newest, mask)
        while walking > 0:
            staying = np.uint64(0)
            for k in range(walking):
                sought = active[0, np.uint64(k)]
                s = active[1, np.uint64(k)]
                entry = entries[np.uint64(s & mask)]
                at = min(count, last)
                out[0, at] = offset + (sought >> 32)
                out[1, at] = s
                count += np.uint64(
                    (np.int32(entry) == np.int32(sought)) & (np.uint64(s - tail) < seen)
                )
                staying = walk_on(sought, s, entry, False, entries, tail, mask, active, staying)
            walking = staying
            if count > enough:
                return int(count)
    return int(count)


@kernel
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
        s = rows[np.uint64(i)]
        slot = np.uint64(s & mask)
        births[np.uint64(i)] = max(births[np.uint64(i)], row_births[slot])
        deaths[np.uint64(i)] = min(deaths[np.uint64(i)], row_deaths[slot] if s >= tail else GONE)


@kernel
def live_together_for(
    births: Int64s,
    deaths: Int64s,
    rows: Int64s,
    row_births: Int64s,
    span: int,
    mask: int,
    tail: int,
) -> None:
    """As :func:`live_together`, of rows that live for ``span``: their deaths are not looked up."""
    for i in range(rows.shape[0]):
        s = rows[np.uint64(i)]
        birth = row_births[np.uint64(s & mask)]
        births[np.uint64(i)] = max(births[np.uint64(i)], birth)
        deaths[np.uint64(i)] = min(
            deaths[np.uint64(i)], death_after(birth, span) if s >= tail else GONE
        )


EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL = range(6)


@inlined
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


@kernel
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
