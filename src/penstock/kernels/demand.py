"""Demand: whether there is a partner for a key.

:func:`exists` looks into a hash index (:mod:`penstock.kernels.index`); :func:`add` and
:func:`may_contain` are a Bloom filter, which answers from two bits of a small table and may say yes
by mistake, never no. A *table* is a filter, by its address and its words, or a range, by how far it
reaches and the :func:`tag_of` its operator, which is negative.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import inlined, kernel
from penstock.kernels.pointer import int64s, uint64s
from penstock.kernels.probe import (
    GROUP,
    LESS,
    LESS_EQUAL,
    filter_keys,
    holds,
    locate,
    walk_on,
)

Int64s = NDArray[np.int64]
Uint32s = NDArray[np.uint32]
UInt64s = NDArray[np.uint64]
Bools = NDArray[np.bool_]

_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@kernel
def exists(
    keys: Int64s,
    heads: Uint32s,
    entries: Int64s,
    narrow: bool,
    shift: int,
    mask: int,
    tail: int,
    newest: int,
    active: NDArray[np.int64],
    found: Bools,
) -> int:
    """Set ``found`` where a row from ``tail`` on has the key; how many are found.

    If the index is not ``narrow``, equal codes count as equal keys: yes by mistake, never no.
    ``active`` is working space as for a probe.
    """
    n = keys.shape[0]
    count = np.uint64(0)
    walking = np.uint64(0)
    for i in range(n):
        found[i] = False
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
                equal = (np.int32(entry) == np.int32(sought)) & (s >= tail)
                at = np.uint64(sought >> 32)
                found[at] |= equal
                count += np.uint64(equal)
                staying = walk_on(sought, s, entry, equal, entries, tail, mask, active, staying)
            walking = staying
    return int(count)


@kernel
def split(found: Bools, yes: Int64s, no: Int64s) -> None:
    """Fill ``yes`` with the positions that are set in ``found`` and ``no`` with the others.

    Each needs room for one more.
    """
    there = np.uint64(0)
    for i in range(found.shape[0]):
        yes[there] = i
        no[np.uint64(i) - there] = i
        there += np.uint64(found[np.uint64(i)])


@inlined
def _places(key: int, bits: int) -> tuple[np.int64, np.int64]:
    h = np.uint64(key)
    h = (h ^ (h >> np.uint64(30))) * _FIRST
    h = (h ^ (h >> np.uint64(27))) * _SECOND
    h = h ^ (h >> np.uint64(31))
    spare = np.uint64(bits - 1)
    return np.int64(h & spare), np.int64((h >> np.uint64(32)) & spare)


@inlined
def add_key(table: UInt64s, key: int) -> None:
    """Put ``key`` into the filter, whose size is a power of two."""
    first, second = _places(key, 64 * table.shape[0])
    table[first >> 6] |= np.uint64(1) << np.uint64(first & 63)
    table[second >> 6] |= np.uint64(1) << np.uint64(second & 63)


@inlined
def may_have(table: UInt64s, key: int) -> bool:
    """Whether ``key`` may be in the filter."""
    first, second = _places(key, 64 * table.shape[0])
    one = (table[first >> 6] >> np.uint64(first & 63)) & np.uint64(1)
    two = (table[second >> 6] >> np.uint64(second & 63)) & np.uint64(1)
    return bool((one & two) != 0)


def tag_of(operator: int) -> int:
    """The number that stands for a range with ``operator``."""
    return -1 - operator


@inlined
def is_range(place: int) -> bool:
    """Whether the table at an address is a range."""
    return bool(int64s(place, 2)[1] < 0)


@inlined
def may_meet(place: int, key: int) -> bool:
    """Whether there may be a partner for ``key``, by the table at an address."""
    table = int64s(place, 2)
    if table[1] < 0:
        return bool(holds(-1 - table[1], key, table[0]))
    return bool(may_have(uint64s(table[0], table[1]), key))


@kernel
def reach(place: int, keys: Int64s, count: int) -> None:
    """Let the range at an address reach as far as ``count`` of ``keys``, and note if that is
    further."""
    table = int64s(place, 3)
    operator, best = -1 - table[1], table[0]
    is_upward = operator in (LESS, LESS_EQUAL)
    for i in range(count):
        key = keys[np.uint64(i)]
        best = max(best, key) if is_upward else min(best, key)
    if best != table[0]:
        table[0], table[2] = best, 1


@kernel
def add(table: UInt64s, keys: Int64s) -> None:
    """Put ``keys`` into the filter."""
    for i in range(keys.shape[0]):
        add_key(table, keys[i])


@kernel
def may_contain(table: UInt64s, keys: Int64s, found: Bools) -> int:
    """Set ``found`` where the key may be in the filter; how many may."""
    count = 0
    for i in range(keys.shape[0]):
        found[i] = may_have(table, keys[i])
        count += found[i]
    return count
