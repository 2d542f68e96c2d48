"""Rows of a window that wait where they are: a byte for each row tells at which guard, 0 for none.

What a guard does with the new rows of a push is one call, and so is what it does with news from the
other side: look up keys in an index, and change the bytes of the rows that are concerned. A match
is one of codes (:mod:`~penstock.kernels.index`); where these are not the keys themselves, a
row may be woken or let through by mistake, which costs a probe and changes no answer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.demand import exists
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

    They go into ``out``; how many there are. When there is no room for more, those that are left
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
                sought = active[0, np.uint64(k)]
                s = active[1, np.uint64(k)]
                slot = np.uint64(s & mask)
                entry = entries[slot]
                if np.int32(entry) == np.int32(sought) and s >= tail:
                    met[np.uint64(sought >> 32)] = 1
                    if asleep[slot] == number and count < room:
                        asleep[slot] = 0
                        out[np.uint64(count)] = s
                        count += 1
                staying = walk_on(sought, s, entry, False, entries, tail, mask, active, staying)
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
    """Put those of ``rows`` to sleep at guard ``number`` whose key the other side lacks.

    The others go into ``out``, in the order in which they came; how many there are. The index is
    that of the other side, whose rows count from ``tail`` on, and ``asleep`` is a ring of a size of
    its own.
    """
    n, beds = keys.shape[0], asleep.shape[0] - 1
    found = np.empty(n, np.bool_)
    exists(keys, heads, entries, narrow, shift, mask, tail, newest, active, found)
    count = np.uint64(0)
    for i in range(n):
        row = rows[np.uint64(i)]
        asleep[np.uint64(row & beds)] = 0 if found[np.uint64(i)] else number
        out[count] = row
        count += np.uint64(found[np.uint64(i)])
    return int(np.int64(count))
