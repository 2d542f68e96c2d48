"""Rows of a window that wait where they are: a byte for each row tells at which guard, 0 for none.

What a guard does with the new rows of a push is one call, and so is what it does with news from the
other side: look up keys in an index, and change the bytes of the rows that are concerned. A match
is one of codes (:mod:`~penstock.kernels.index`); where these are not the keys themselves, a
row may be woken or let through by mistake, which costs a probe and changes no answer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import kernel
from penstock.kernels.probe import GROUP, filter_keys, locate, walk_on

Int64s = NDArray[np.int64]
Uint32s = NDArray[np.uint32]
Bytes = NDArray[np.uint8]


@kernel
def wake(
    keys: Int64s,
    heads: Uint32s,
    entries: Int64s,
    narrow: bool,
    shift: int,
    mask: int,
    tail: int,
    newest: int,
    asleep: Bytes,
    number: int,
    active: NDArray[np.int64],
    met: Bytes,
    out: Int64s,
) -> int:
    """Wake the rows from ``tail`` on that wait at guard ``number`` for one of ``keys``.

    They go into ``out``; how many there are. When there is no room for more, those who are left
    sleep on: call again. ``met`` is set for each key that any row has, asleep or not.
    """
    n = keys.shape[0]
    room = out.shape[0]
    count = 0
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
                asked = active[0, np.uint64(k)]
                s = active[1, np.uint64(k)]
                slot = np.uint64(s & mask)
                entry = entries[slot]
                if np.int32(entry) == np.int32(asked) and s >= tail:
                    met[np.uint64(asked >> 32)] = 1
                    if asleep[slot] == number and count < room:
                        asleep[slot] = 0
                        out[np.uint64(count)] = s
                        count += 1
                staying = walk_on(asked, s, entry, False, entries, tail, mask, active, staying)
            walking = staying
    return count


@kernel
def sort_out(
    rows: Int64s,
    keys: Int64s,
    heads: Uint32s,
    entries: Int64s,
    narrow: bool,
    shift: int,
    mask: int,
    tail: int,
    newest: int,
    asleep: Bytes,
    number: int,
    active: NDArray[np.int64],
    out: Int64s,
) -> int:
    """Put those of ``rows`` to sleep at guard ``number`` whose key nobody has; who is awake.

    They go into ``out``, in the order in which they came; how many there are. The index is that of
    the others, who are seen from ``tail`` on, and ``asleep`` is a ring of a size of its own.
    """
    n = keys.shape[0]
    beds = asleep.shape[0] - 1
    for i in range(n):
        asleep[np.uint64(rows[np.uint64(i)] & beds)] = number
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
                asked = active[0, np.uint64(k)]
                s = active[1, np.uint64(k)]
                entry = entries[np.uint64(s & mask)]
                equal = (np.int32(entry) == np.int32(asked)) & (s >= tail)
                if equal:
                    asleep[np.uint64(rows[np.uint64(asked >> 32)] & beds)] = 0
                staying = walk_on(asked, s, entry, equal, entries, tail, mask, active, staying)
            walking = staying
    count = np.uint64(0)
    for i in range(n):
        row = rows[np.uint64(i)]
        out[count] = row
        count += np.uint64(asleep[np.uint64(row & beds)] == 0)
    return int(np.int64(count))
