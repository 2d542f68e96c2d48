"""Columns as power-of-two rings, addressed by sequence number: ``slot = s & mask``.

A compiled function that returns an array pays about 2 µs to wrap it for Python; an array made by
Python and filled by the function costs a tenth of that. So what runs in every push is of the
second kind.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import kernel

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]
AnyColumn = NDArray[Any]


@kernel
def put(column: AnyColumn, mask: int, start: int, values: AnyColumn) -> None:
    """Write ``values`` to the rows from ``start`` on: up to the end of the ring, then from its
    beginning. Two plain loops, which become block copies."""
    n = values.shape[0]
    first = start & mask
    before = min(n, mask + 1 - first)
    for i in range(before):
        column[first + i] = values[i]
    for i in range(before, n):
        column[i - before] = values[i]


@kernel
def _take(column: AnyColumn, mask: int, rows: Int64s, out: AnyColumn) -> None:
    for i in range(rows.shape[0]):
        out[np.uint64(i)] = column[np.uint64(rows[np.uint64(i)] & mask)]


def take(column: AnyColumn, mask: int, rows: Int64s) -> AnyColumn:
    """The values of ``column`` in ``rows``."""
    out = np.empty(rows.shape[0], column.dtype)
    _take(column, mask, rows, out)
    return out


@kernel
def take_since(
    column: Int64s, mask: int, rows: Int64s, first: int, out: Int64s, since: Bools
) -> int:
    """Fill ``out`` with the values of ``column`` in ``rows``, and clear ``since`` where one is
    below ``first``; how many are."""
    below = np.int64(0)
    for i in range(rows.shape[0]):
        value = column[np.uint64(rows[np.uint64(i)] & mask)]
        out[np.uint64(i)] = value
        older = value < first
        since[np.uint64(i)] &= not older
        below += np.int64(older)
    return int(below)


@kernel
def forget_marked(
    ids: Int64s,
    mask: int,
    tail: int,
    head: int,
    first: int,
    marked: NDArray[np.uint8],
    own_mask: int,
) -> int:
    """Make the ids -1, of the rows from ``tail`` to ``head``, that are ``marked``, by the place of
    the row in a ring of its own, and not below ``first``; how many these are."""
    count = np.int64(0)
    for row in range(tail, head):
        slot = np.uint64(row & mask)
        own = ids[slot]
        if own >= first and marked[np.uint64(own & own_mask)]:
            ids[slot] = -1
            count += 1
    return int(count)


@kernel
def _pick(values: AnyColumn, positions: Int64s, out: AnyColumn) -> None:
    for i in range(positions.shape[0]):
        out[np.uint64(i)] = values[np.uint64(positions[np.uint64(i)])]


def pick(values: AnyColumn, positions: Int64s) -> AnyColumn:
    """``values[positions]`` for a plain array."""
    out = np.empty(positions.shape[0], values.dtype)
    _pick(values, positions, out)
    return out


@kernel
def move(
    column: AnyColumn, mask: int, target: AnyColumn, target_mask: int, tail: int, head: int
) -> None:
    """Copy the rows ``tail`` to ``head`` into a ring of another size."""
    for s in range(tail, head):
        target[s & target_mask] = column[s & mask]


@kernel
def first_alive(death: Int64s, mask: int, tail: int, head: int, before: int) -> int:
    """The first row whose death is not before ``before``; ``head`` if there is none."""
    while tail < head and death[tail & mask] < before:
        tail += 1
    return tail


@kernel
def last_born(birth: Int64s, mask: int, low: int, bound: int, instant: int) -> int:
    """The row after the last one before ``bound`` that was born by ``instant``, or ``low``."""
    while bound > low and birth[np.uint64((bound - 1) & mask)] > instant:
        bound -= 1
    return bound


def alive_rows(death: Int64s, mask: int, tail: int, head: int, before: int) -> Int64s:
    """All rows whose death is not before ``before``."""
    rows = np.arange(tail, head, dtype=np.int64)
    alive: Int64s = rows[take(death, mask, rows) >= before]
    return alive


@kernel
def is_sorted(values: Int64s) -> bool:
    """Whether ``values`` never go down."""
    for i in range(1, values.shape[0]):  # noqa: SIM110 - a plain loop compiles best
        if values[i] < values[i - 1]:
            return False
    return True


@kernel
def is_run(rows: Int64s) -> bool:
    """Whether ``rows`` are consecutive numbers."""
    gaps = np.int64(0)
    for i in range(rows.shape[0]):
        gaps |= rows[i] - rows[0] - i
    return bool(gaps == 0)


@kernel
def survey(values: Int64s) -> tuple[int, int, bool]:
    """The lowest and the highest of ``values``, at least one; and if they never fall."""
    lowest = highest = values[0]
    rising = True
    for i in range(1, values.shape[0]):
        rising &= values[i] >= values[i - 1]
        lowest = min(lowest, values[i])
        highest = max(highest, values[i])
    return lowest, highest, rising


@kernel
def sort_by_digits(
    values: Int64s, lowest: int, bits: int, passes: int, order: NDArray[np.int64]
) -> None:
    """Fill ``order[passes % 2]`` with the stable order of ``values``, digit by digit of ``bits``.

    ``order`` is two rows of as many numbers as there are values.
    """
    for i in range(values.shape[0]):
        order[0, i] = i
    sort_further(values, lowest, bits, 0, passes, order)


@kernel
def sort_further(
    values: Int64s, lowest: int, bits: int, turn: int, passes: int, order: NDArray[np.int64]
) -> None:
    """Sort the order that ``turn`` passes have made by other ``values``, in so many passes more.
    Equal values stay in the order that they are in."""
    n = values.shape[0]
    ends = np.empty(1 << bits, np.int64)
    last = np.uint64((1 << bits) - 1)
    for each in range(passes):
        source, target = order[(turn + each) & 1], order[1 - ((turn + each) & 1)]
        shift = np.uint64(each * bits)
        ends[:] = 0
        for i in range(n):
            ends[(np.uint64(values[i] - lowest) >> shift) & last] += 1
        start = 0
        for digit in range(1 << bits):
            start, ends[digit] = start + ends[digit], start
        for i in range(n):
            position = np.uint64(source[i])
            bucket = (np.uint64(values[position] - lowest) >> shift) & last
            target[np.uint64(ends[bucket])] = position
            ends[bucket] += 1


DIGIT = 9
"""Bits that are sorted by at once."""
_FEWEST_SORTED_BY_DIGITS = 200
"""Values from which on sorting by digits is quicker than comparing."""


def order_of(values: Int64s) -> Int64s | None:
    """Positions that put ``values`` in order, equal ones as they come; None if they are in order.

    The instants of a push lie close together: few digits tell them apart, and sorting by digits is
    several times faster than by comparisons.
    """
    n = len(values)
    if n == 0:
        return None
    lowest, highest, rising = survey(values)
    if rising:
        return None
    bits = (int(highest) - int(lowest)).bit_length()
    if n < _FEWEST_SORTED_BY_DIGITS or bits > 4 * DIGIT:
        return np.argsort(values, kind="stable")
    passes = -(-bits // DIGIT)
    order = np.empty((2, n), np.int64)
    sort_by_digits(values, lowest, -(-bits // passes), passes, order)
    in_order: Int64s = order[passes % 2]
    return in_order
