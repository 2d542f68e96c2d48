"""Arrow's C data interface, read in place: where the columns of a record batch lie, which of its
values are NULL, and which of its rows are taken in, in which order.

The layout of ``struct ArrowArray`` is fixed for good (Arrow's specification, *The Arrow C data
interface*): ten words, namely length, null count, offset, number of buffers, number of children,
buffers, children, dictionary, release callback and private data. A record batch is a struct array
with one child per column. Buffer 0 of a column of fixed width marks its NULLs, and is absent where
there can be none; buffer 1 holds the values.

A *source* is a row in each of several tables: ``facts`` (the numbers named below), ``positions``
and ``widths`` of its columns (a negative position: the column lies elsewhere, and it is known
where), and what is found: the address of the values of each column, the address of its validity (0
if no value is NULL), and the offset of the validity in bits (:data:`IN_BYTES`: it has a byte for
each value instead).

Rows without an event time and rows that are late are left out and counted, and rows that are out of
order are put in order, equal times as they come. Of what is on time, a part may be left at the door
(:mod:`penstock.kernels.door`). Mostly there is nothing of that kind, and the rows are taken as they
lie (``CHOSEN`` is negative).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.door import ALL, KIND, keep
from penstock.kernels.kernel import inlined, kernel
from penstock.kernels.pointer import bytes_at, call, int64s
from penstock.kernels.ring import DIGIT, sort_by_digits, survey

Int64s = NDArray[np.int64]

WORDS = 10
RELEASE = 8
_NULLS, _OFFSET, _BUFFERS, _CHILDREN = 1, 2, 5, 6

COLUMNS, TIME, TICKS, FARTHEST, EARLIEST, COUNT, PLACES, IS_KNOWN = range(8)
"""Given: the number of columns; which of them are event times, how many ticks one counts, and how
far from zero it may be; the instant before which rows are late; rows, 0 if there is no batch; the
address of room for two numbers for each of them; whether all about the source is known, and nothing
has to be found out."""
FIRST, LAST, CHOSEN, LATE, WITHOUT_TIME, NULLS = range(8, 14)
"""Found: the first and the last event time of the rows that are taken in, in ticks; how many these
are, in ``PLACES`` (negative: all as they lie); rows that are late or have no time; a bit for each
column that has a NULL."""
BIRTHS = 14
"""The address of the places of rows on the arrival line, 0 where event times are what counts."""
LEFT = 15
"""Found: rows on time that were left at the door."""
FACTS = 16
MOST_COLUMNS = 63
"""Columns of a source for which there are bits."""
IN_BYTES = -1

READY, ODD, TOO_FAR = range(3)
"""All is found; a column is not laid out as Arrow has it; an event time is out of reach."""


@kernel
def is_valid(address: int, offset: int, i: int) -> bool:
    """Whether value ``i`` is not NULL, by the validity at ``address``, which is not 0."""
    if offset < 0:
        return bool(bytes_at(address + i, 1)[0] != 0)
    bit = offset + i
    return bool((bytes_at(address + (bit >> 3), 1)[0] >> (bit & 7)) & 1)


@kernel
def has_null(address: int, offset: int, count: int) -> bool:
    """Whether one of ``count`` bits from ``offset`` on is not set."""
    bits = bytes_at(address, (offset + count + 7) >> 3)
    i, end = offset, offset + count
    while i < end and i & 7:
        if not (bits[i >> 3] >> (i & 7)) & 1:
            return True
        i += 1
    while i + 8 <= end:
        if bits[i >> 3] != 255:
            return True
        i += 8
    while i < end:
        if not (bits[i >> 3] >> (i & 7)) & 1:
            return True
        i += 1
    return False


@kernel
def _locate(
    array: Int64s,
    positions: Int64s,
    widths: Int64s,
    count: int,
    found: Int64s,
    valid: Int64s,
    offsets: Int64s,
) -> int:
    """Where the columns lie; a bit for each that has a NULL, negative if one lies oddly."""
    nulls = np.int64(0)
    children = int64s(array[_CHILDREN], 1 + positions.max())
    for i in range(positions.shape[0]):
        if positions[i] >= 0:
            column = int64s(children[positions[i]], WORDS)
            buffers, offset = int64s(column[_BUFFERS], 2), column[_OFFSET]
            found[i] = buffers[1] + widths[i] * offset
            if buffers[1] == 0 or found[i] % widths[i] != 0:
                return -1
            valid[i] = 0
            if buffers[0] and column[_NULLS] and has_null(buffers[0], offset, count):
                valid[i], offsets[i] = buffers[0], offset
        nulls |= np.int64(valid[i] != 0) << i
    return int(nulls)


@kernel
def _put_in_order(times: Int64s, places: NDArray[np.int64], count: int) -> None:
    """Put the first row of ``places``, ``count`` rows, in the order of their times."""
    own = np.empty(count, np.int64)
    for i in range(count):
        own[np.uint64(i)] = times[np.uint64(places[0, np.uint64(i)])]
    lowest, highest, rising = survey(own)
    if rising:
        return
    apart = highest - lowest
    bits = 0
    while bits < 63 and apart >> bits:
        bits += 1
    if bits <= 4 * DIGIT:
        passes = -(-bits // DIGIT)
        order = np.empty((2, count), np.int64)
        sort_by_digits(own, lowest, -(-bits // passes), passes, order)
        by_time = order[passes % 2]
    else:
        by_time = np.argsort(own, kind="mergesort")
    for i in range(count):
        places[1, np.uint64(i)] = places[0, np.uint64(by_time[np.uint64(i)])]
    places[0, :count] = places[1, :count]


@kernel
def _choose(
    fact: Int64s, times: Int64s, valid: int, offset: int, doors: Int64s, found: Int64s
) -> int:
    """Find out which rows are taken in, and in which order."""
    count, ticks, farthest = fact[COUNT], fact[TICKS], fact[FARTHEST]
    earliest = fact[EARLIEST]
    fact[CHOSEN] = -1
    fact[LATE] = fact[WITHOUT_TIME] = fact[LEFT] = 0
    is_open = doors[KIND] == ALL
    if valid == 0:
        lowest, highest, rising = survey(times)
        if lowest < -farthest or highest > farthest:
            return TOO_FAR
        if rising and lowest * ticks >= earliest:
            fact[FIRST], fact[LAST] = lowest * ticks, highest * ticks
            if is_open:
                return READY
            in_order = int64s(fact[PLACES], count)
            for i in range(count):
                in_order[np.uint64(i)] = i
            number = keep(doors, found, in_order, count, count - 1)
            fact[FIRST] = times[in_order[0]] * ticks
            fact[CHOSEN], fact[LEFT] = number, count - number
            return READY
    places = int64s(fact[PLACES], 2 * count).reshape((2, count))
    chosen, newest = np.uint64(0), np.int64(-1)
    for i in range(count):
        if valid != 0 and not is_valid(valid, offset, i):
            fact[WITHOUT_TIME] += 1
            continue
        instant = times[np.uint64(i)]
        if instant < -farthest or instant > farthest:
            return TOO_FAR
        is_late = instant * ticks < earliest
        fact[LATE] += is_late
        places[0, chosen] = i
        chosen += np.uint64(not is_late)
        if not is_late and (newest < 0 or instant > times[newest]):
            newest = np.int64(i)
    number = np.int64(chosen)
    if not is_open:
        on_time = number
        number = np.int64(keep(doors, found, places[0], on_time, newest))
        fact[LEFT] = on_time - number
    fact[CHOSEN] = number
    if number:
        _put_in_order(times, places, number)
        fact[FIRST] = times[places[0, 0]] * ticks
        fact[LAST] = times[places[0, number - 1]] * ticks
    return READY


@kernel
def number_arrivals(
    facts: NDArray[np.int64], found: NDArray[np.int64], place: int, births: Int64s
) -> int:
    """Number the rows of all sources from ``place`` on in the order of their times; how many.

    Rows of one time stand in the order of the sources, and then as they lie. ``births`` has room
    for all rows. ``FIRST`` and ``LAST`` become the places of the first and the last row.
    """
    starts, total = np.zeros(facts.shape[0] + 1, np.int64), np.int64(0)
    starts[1:] = np.cumsum(facts[:, COUNT])
    times = np.empty(starts[-1], np.int64)
    for source in range(facts.shape[0]):
        fact, first = facts[source], starts[source]
        if fact[COUNT] == 0:
            continue
        fact[BIRTHS] = births[first:].ctypes.data
        number = _times_in_order(fact, found[source], times[first : starts[source + 1]])
        for i in range(number):
            births[np.uint64(first + i)] = place + i
        for other in range(source):
            here, count = starts[other], _taken(facts[other])
            _interleave(
                times[here : here + count],
                times[first : first + number],
                births[here : here + count],
                births[first : first + number],
            )
        total += number
    for source in range(facts.shape[0]):
        fact, number = facts[source], _taken(facts[source])
        own = births[starts[source] : starts[source + 1]]
        if number == 0:
            continue
        fact[FIRST], fact[LAST] = own[0], own[number - 1]
        if fact[CHOSEN] >= 0:
            numbers = own[:number].copy()
            own[int64s(fact[PLACES], number)] = numbers
    return int(total)


@inlined
def _taken(fact: Int64s) -> np.int64:
    """Rows of a source that are taken in; without a batch, ``CHOSEN`` is of an earlier one."""
    return np.int64(min(fact[CHOSEN], fact[COUNT]) if fact[CHOSEN] >= 0 else fact[COUNT])


@kernel
def _times_in_order(fact: Int64s, found: Int64s, out: Int64s) -> int:
    """Fill ``out`` with the event times of the rows that are taken in, in ticks; how many."""
    times, ticks, number = int64s(found[fact[TIME]], fact[COUNT]), fact[TICKS], _taken(fact)
    if fact[CHOSEN] < 0:
        out[:] = times * ticks
        return int(number)
    places = int64s(fact[PLACES], number)
    for i in range(number):
        out[np.uint64(i)] = times[np.uint64(places[np.uint64(i)])] * ticks
    return int(number)


@kernel
def _interleave(earlier: Int64s, later: Int64s, ranks: Int64s, others: Int64s) -> None:
    """Add to the ``ranks`` of rows in order of their times how many of another source stand before
    them, and the other way round; of one time those of the ``earlier`` source come first.

    Which row is next cannot be foretold, so there is no branch on it.
    """
    i = j = np.uint64(0)
    stop, end = np.uint64(earlier.shape[0]), np.uint64(later.shape[0])
    while i < stop and j < end:
        is_later = np.uint64(later[j] < earlier[i])
        ranks[i] += np.int64(j * (np.uint64(1) - is_later))
        others[j] += np.int64(i * is_later)
        i += np.uint64(1) - is_later
        j += is_later
    ranks[i:] += np.int64(j)
    others[j:] += np.int64(i)


@kernel
def look_at_all(
    arrays: NDArray[np.int64],
    positions: NDArray[np.int64],
    widths: NDArray[np.int64],
    facts: NDArray[np.int64],
    found: NDArray[np.int64],
    valid: NDArray[np.int64],
    offsets: NDArray[np.int64],
    doors: NDArray[np.int64],
) -> int:
    """Look at a batch of each source that has one. In any case the ``arrays`` are released."""
    answer = READY
    for source in range(facts.shape[0]):
        fact = facts[source]
        count, columns = fact[COUNT], fact[COLUMNS]
        if count == 0 or fact[IS_KNOWN]:
            continue
        if answer == READY:
            fact[NULLS] = _locate(
                arrays[source],
                positions[source, :columns],
                widths[source, :columns],
                count,
                found[source],
                valid[source],
                offsets[source],
            )
            if fact[NULLS] < 0:
                answer = ODD
            else:
                time = fact[TIME]
                times = int64s(found[source, time], count)
                answer = _choose(
                    fact,
                    times,
                    valid[source, time],
                    offsets[source, time],
                    doors[source],
                    found[source],
                )
        call(arrays[source, RELEASE], arrays[source].ctypes.data)
    return answer
