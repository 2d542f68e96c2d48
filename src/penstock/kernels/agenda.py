"""Entries that wait for an instant: the loops behind :class:`penstock.engine.output.agenda.Agenda`.

A hierarchical timing wheel (Varghese and Lauck, 1987) without a tick. ``LAST`` is the latest
instant that was ever asked for. An entry that is due later lies in one of 64 lists of a level: the
level is that of the highest digit, in base 64, in which its instant differs from ``LAST``, and the
list is that digit of its instant. So all of a lower level is due before anything of a higher one,
and in a level a lower digit is due first. When ``LAST`` moves on, only lists up to the level at
which it has changed are looked through. Of these, every list but the last is due as a whole; of the
last, which has the digit of the new instant, what is not due goes to lower levels. An entry moves
at most once for each digit, which is two or three times if a window has a hundred thousand
instants, however many entries there are, and whatever their order.

A list is a chain of blocks of the ``pool``, all full but the first: what is read lies together. A
block has the place of the next one, the number of its entries, and these. ``heads`` has the first
block of each list, and the numbers below. What has been taken stays in ``out`` until it is settled.
If that never happens, since the push has failed, it is looked at again by the next :func:`take`:
nothing has to be undone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import inlined, kernel
from penstock.kernels.lifespan import BEGINNING, FOREVER

Int64s = NDArray[np.int64]

END = -1
LAST, HELD, TAKEN, FRESH, FREE, OVERDUE, LEVELS = range(7)
"""The latest instant that was asked for, entries that wait or were taken, those that were taken,
numbers of the pool that have ever been in use; then the lists: free blocks, what is due by
``LAST``, levels."""
_NEXT, _FILL, _ENTRIES = range(3)
BLOCK = 16
"""Entries of a block: some cache lines."""
_DIGIT = 6
"""Bits of a digit."""
_DIGITS = 1 << _DIGIT
LISTS = LEVELS + 11 * _DIGITS
"""Eleven digits of six bits are more than 64 bits."""
_SIGN = np.uint64(1 << 63)


@inlined
def list_of(instant: int, last: int) -> int:
    """The list for an entry that is due at ``instant``."""
    # With the sign turned round, digits are in the order of the instants.
    place, now = np.uint64(np.int64(instant)) ^ _SIGN, np.uint64(np.int64(last)) ^ _SIGN
    apart = (place ^ now) >> np.uint64(_DIGIT)
    level = 0
    while apart:
        apart >>= np.uint64(_DIGIT)
        level += 1
    digit = np.int64((place >> np.uint64(_DIGIT * level)) & np.uint64(_DIGITS - 1))
    return int(LEVELS + _DIGITS * level + digit) if instant > last else OVERDUE


@kernel
def _place(pool: Int64s, heads: Int64s, width: int, instant: int) -> int:
    """Where in the pool there is room for an entry more that is due at ``instant``."""
    target = np.uint64(list_of(instant, heads[LAST]))
    block = heads[target]
    if block == END or pool[np.uint64(block + _FILL)] == BLOCK:
        later = block
        block = heads[FREE]
        if block == END:
            block = heads[FRESH]
            heads[FRESH] += _ENTRIES + BLOCK * width
        else:
            heads[FREE] = pool[np.uint64(block + _NEXT)]
        pool[np.uint64(block + _NEXT)] = later
        pool[np.uint64(block + _FILL)] = 0
        heads[target] = block
    fill = pool[np.uint64(block + _FILL)]
    pool[np.uint64(block + _FILL)] = fill + 1
    return int(block + _ENTRIES + width * fill)


@kernel
def _size(pool: Int64s, block: int) -> int:
    """Entries of a list."""
    size = 0
    while block != END:
        size += pool[block + _FILL]
        block = pool[block + _NEXT]
    return size


@kernel
def _empty(pool: Int64s, heads: Int64s, source: int, due: int, until: int, out: Int64s) -> None:
    """Take a list apart: what is due goes to ``out``, the rest where it belongs by now."""
    width = out.shape[0]
    block = heads[source]
    heads[source] = END
    count = heads[TAKEN]
    while block != END:
        first = block + _ENTRIES
        for at in range(first, first + width * pool[block + _FILL], width):
            instant = pool[np.uint64(at + due)]
            if instant <= until:
                for row in range(width):
                    out[np.uint64(row), np.uint64(count)] = pool[np.uint64(at + row)]
                count += 1
            else:
                target = _place(pool, heads, width, instant)
                for row in range(width):
                    pool[np.uint64(target + row)] = pool[np.uint64(at + row)]
        later = pool[block + _NEXT]
        pool[block + _NEXT] = heads[FREE]
        heads[FREE] = block
        block = later
    heads[TAKEN] = count


@kernel
def _put(pool: Int64s, heads: Int64s, due: int, entries: Int64s, i: int) -> None:
    """Let one of ``entries`` wait."""
    at = _place(pool, heads, entries.shape[0], entries[due, i])
    for row in range(entries.shape[0]):
        pool[np.uint64(at + row)] = entries[np.uint64(row), np.uint64(i)]


@kernel
def take(
    pool: Int64s, heads: Int64s, due: int, until: int, new: Int64s, out: Int64s
) -> tuple[int, bool]:
    """Fill ``out`` with the entries that are due at ``until`` or before, and then with those of
    ``new`` that are; how many. If there is room for fewer than so many, False: it is called again.
    """
    count = heads[TAKEN]
    heads[TAKEN] = 0
    for i in range(count):  # Of a push that has failed.
        if out[due, i] <= until:
            for row in range(out.shape[0]):
                out[row, heads[TAKEN]] = out[row, i]
            heads[TAKEN] += 1
        else:
            _put(pool, heads, due, out, i)
    passed = list_of(until, heads[LAST])
    for each in range(OVERDUE, passed + 1):
        if heads[each] == END:
            continue
        needed = heads[TAKEN] + _size(pool, heads[each])
        if needed > out.shape[1]:
            return needed, False
        if each == passed:
            heads[LAST] = max(until, heads[LAST])
        _empty(pool, heads, each, due, until, out)
    heads[LAST] = max(until, heads[LAST])
    count = heads[TAKEN]
    for i in range(new.shape[1]):
        if new[due, i] <= until:
            if count < out.shape[1]:
                for row in range(out.shape[0]):
                    out[row, count] = new[row, i]
            count += 1
    return count, count <= out.shape[1]


@kernel
def _begins(number: int, last: int) -> np.int64:
    """The earliest instant that belongs into a list."""
    if number == OVERDUE:
        return BEGINNING
    shift = _DIGIT * ((number - LEVELS) // _DIGITS)
    above = np.uint64(0)
    if shift + _DIGIT < 64:
        above = ((np.uint64(np.int64(last)) ^ _SIGN) >> np.uint64(shift + _DIGIT)) << np.uint64(
            shift + _DIGIT
        )
    place = above | (np.uint64((number - LEVELS) % _DIGITS) << np.uint64(shift))
    return np.int64(place ^ _SIGN)


@kernel
def settle(pool: Int64s, heads: Int64s, due: int, until: int, new: Int64s) -> np.int64:
    """Let go of what was taken, and let those of ``new`` wait that are due after ``until``. There
    is room for them. An instant before which nothing is due."""
    heads[HELD] -= heads[TAKEN]
    heads[TAKEN] = 0
    for i in range(new.shape[1]):
        if new[due, i] > until:
            _put(pool, heads, due, new, i)
            heads[HELD] += 1
    for each in range(OVERDUE, LISTS):
        if heads[each] != END:
            begins: np.int64 = _begins(each, heads[LAST])
            return begins
    return FOREVER


@kernel
def waiting(pool: Int64s, heads: Int64s, out: Int64s) -> int:
    """Fill ``out`` with everything that has not been taken; how many."""
    count = 0
    for each in range(OVERDUE, heads.shape[0]):
        block = heads[each]
        while block != END:
            for i in range(pool[block + _FILL]):
                for row in range(out.shape[0]):
                    out[row, count] = pool[block + _ENTRIES + out.shape[0] * i + row]
                count += 1
            block = pool[block + _NEXT]
    return count


NONE_HELD = np.full(LISTS, END, np.int64)
"""``heads`` of no entries."""
NONE_HELD[[HELD, TAKEN, FRESH]] = 0
NONE_HELD[LAST] = -(2**63)


def pool_for(count: int, width: int) -> Int64s:
    """Blocks for ``count`` entries of ``width`` numbers: in each list one may not be full, and of
    a list that is taken apart one is read."""
    blocks = -(-count // BLOCK) + min(count, LISTS) + 2
    return np.empty(blocks * (_ENTRIES + BLOCK * width), np.int64)
