"""Deaths: by a fixed span on the event-time line, by counting on the arrival line.

``ROWS n``: the leaf keeps every tuple of its stream, so the tuple that row ``s`` kills is row
``s - n``. ``PARTITION BY k ROWS n``: the living rows of a partition form a list from ``oldest`` to
``newest``, linked by ``later``; the n-th later tuple kills the oldest. All of it can be undone in
reverse order, which is what makes a failed push harmless.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import inlined, kernel

Int64s = NDArray[np.int64]

FOREVER = np.int64(2**63 - 1)
BEGINNING = np.int64(-(2**63) + 1)


@inlined
def death_after(birth: int, span: int) -> np.int64 | int:
    """``birth + span``, which stops at the end of time instead of overflowing."""
    return birth + span if birth <= FOREVER - 1 - span else FOREVER - 1


@kernel
def _after(births: Int64s, span: int, out: Int64s) -> None:
    for i in range(births.shape[0]):
        out[i] = death_after(births[i], span)


def after(births: Int64s, span: int) -> Int64s:
    """:func:`death_after` each of ``births``."""
    out = np.empty(births.shape[0], np.int64)
    _after(births, span, out)
    return out


@kernel
def kill_by_count(
    birth: Int64s, death: Int64s, mask: int, tail: int, start: int, stop: int, count: int
) -> None:
    """Row ``s`` ends the life of row ``s - count``, for the new rows ``start`` to ``stop``."""
    for s in range(start, stop):
        victim = s - count
        if victim >= tail:
            death[victim & mask] = birth[s & mask] - 1


@kernel
def revive_by_count(death: Int64s, mask: int, tail: int, start: int, stop: int, count: int) -> None:
    """Undo :func:`kill_by_count`."""
    for s in range(start, stop):
        victim = s - count
        if tail <= victim < start:
            death[victim & mask] = FOREVER


@kernel
def kill_by_partition(
    birth: Int64s,
    death: Int64s,
    later: Int64s,
    victims: Int64s,
    partitions: Int64s,
    mask: int,
    start: int,
    stop: int,
    count: int,
    oldest: Int64s,
    newest: Int64s,
    earlier: Int64s,
    sizes: Int64s,
) -> None:
    """Append the new rows to their partitions; each beyond ``count`` kills the oldest."""
    for s in range(start, stop):
        slot = s & mask
        p = partitions[slot]
        later[slot] = -1
        victims[slot] = -1
        earlier[slot] = newest[p]
        if sizes[p] > 0:
            later[newest[p] & mask] = s
        else:
            oldest[p] = s
        newest[p] = s
        sizes[p] += 1
        if sizes[p] > count:
            victim = oldest[p]
            death[victim & mask] = birth[slot] - 1
            oldest[p] = later[victim & mask]
            victims[slot] = victim
            sizes[p] -= 1


@kernel
def revive_by_partition(
    death: Int64s,
    later: Int64s,
    victims: Int64s,
    partitions: Int64s,
    mask: int,
    start: int,
    stop: int,
    oldest: Int64s,
    newest: Int64s,
    earlier: Int64s,
    sizes: Int64s,
) -> None:
    """Undo :func:`kill_by_partition`, newest row first."""
    for s in range(stop - 1, start - 1, -1):
        slot = s & mask
        p = partitions[slot]
        if victims[slot] >= 0:
            victim = victims[slot]
            death[victim & mask] = FOREVER
            oldest[p] = victim
            sizes[p] += 1
        sizes[p] -= 1
        newest[p] = earlier[slot]
        if sizes[p] > 0:
            later[newest[p] & mask] = -1
