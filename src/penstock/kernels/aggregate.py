"""Aggregates in time: rows of groups, and exact sums that can be taken back.

An *event* is a result that enters or leaves the relation. Events are the columns of one int64
matrix; those before ``entering`` enter, the others leave. ``order`` sorts them by group and, inside
a group, by instant. :func:`rows_in_time` cuts that order into *rows*: for each group one row for
the state before the push, then one for every instant at which it changes. The sums run along the
rows, from the stored state of the group on.

**Sums are exact.** A sum is a two's complement integer of ``L`` limbs of 64 bits. Adding and taking
back are integer additions, so a sum depends on the values that are alive and on nothing else: not
on the order, and not on values that have been and gone. Integers and decimals are added as they
are. A double is ``m * 2^(p - 1074)`` with ``m < 2^53`` and ``0 <= p <= 2045``: an integer shifted
by ``p`` bits, in units of the smallest double (Kulisch's accumulator). Since the values of one
column are of like size, only the limbs ``first`` to ``first + L`` of the 34 are kept, as few as the
values so far need; the caller widens them. One limb above the highest that a value touches holds
the carries of 2^62 values. :func:`to_double` rounds once, half to even. Infinities and NaN are
counted apart.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import kernel
from penstock.kernels.ring import DIGIT, sort_further, survey

Int64s = NDArray[np.int64]
Limbs = NDArray[np.uint64]
Doubles = NDArray[np.float64]
Bools = NDArray[np.bool_]

BIRTH, DEATH, GROUP, MASK = range(4)
"""The rows that every event has. Bits of MASK say which arguments are not NULL."""
OWNER, INSTANT, STOP, LIVING, TOUCHED, END = range(6)
"""What :func:`rows_in_time` tells."""
PLUS_INFINITY, MINUS_INFINITY, NOT_A_NUMBER = 0, 1, 2

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_ONES = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_63 = np.uint64(63)
_64 = np.uint64(64)
_EXPONENTS = 0x7FF
_FRACTION = (1 << 52) - 1


@kernel
def _sort(values: Int64s, turns: int, order: Int64s) -> int:
    """Sort the order that so many passes have made by ``values``; the number of passes by now."""
    lowest, highest, rising = survey(values)
    if rising and turns == 0:
        return turns
    bits = 0
    apart = np.uint64(highest - lowest)
    while bits < 64 and apart >> np.uint64(bits):
        bits += 1
    passes = -(-bits // DIGIT)
    if passes:
        sort_further(values, lowest, -(-bits // passes), turns, passes, order)
    return turns + passes


@kernel
def counts_in_time(
    coming: Int64s,
    entering: int,
    going: Int64s,
    leaving: int,
    before: int,
    alive: int,
    old: bool,
    work: Int64s,
    out: Int64s,
) -> tuple[int, int]:
    """The numbers of results that one group has in the end, and how many numbers leave: ``out``
    is filled with these.

    The first of ``coming`` enter at their birth, the first of ``going`` leave just after their
    death, nothing earlier than ``before``. There are ``alive``. ``work`` is room for three numbers
    for each. ``old`` is as in :func:`differences`.
    """
    instants, order = work[0], work[1:]
    for i in range(entering):
        instants[i] = max(before, coming[BIRTH, i])
    for i in range(leaving):
        instants[entering + i] = max(before, going[DEATH, i] + 1)
    events = entering + leaving
    for i in range(events):
        order[0, i] = i
    positions = order[_sort(instants[:events], 0, order) % 2]
    found = 0
    i = 0
    while i < events:
        now, was = instants[positions[i]], alive
        while i < events and instants[positions[i]] == now:
            alive += 1 if positions[i] < entering else -1
            i += 1
        shown = was if old else alive
        if alive != was and shown > 0:
            out[found] = shown
            found += 1
    return alive, found


@kernel
def rows_in_time(
    events: Int64s,
    instants: Int64s,
    entering: int,
    alive: Int64s,
    everyone: int,
    order: Int64s,
    rows: Int64s,
) -> tuple[int, int, int]:
    """Put ``events`` in order, by group and then by instant; and fill ``rows`` with a column for
    each row: its owner, instant, end and living; and for each touched group: which, and its last
    row. The row of ``order`` that has the order; how many groups, and how many rows.

    The owner of a row is a position among the touched groups, its end one in the order. Touched are
    the groups with events, in ascending order, or if ``everyone`` is not 0 all groups below it.
    """
    count = instants.shape[0]
    which = 0
    if count > 0:
        for i in range(count):
            order[0, i] = i
        which = _sort(events[GROUP], _sort(instants, 0, order), order) % 2
    positions, groups = order[which], events[GROUP]
    row = 0
    i = 0
    k = 0
    while k < everyone or i < count:
        group = k if everyone > 0 else groups[positions[i]]
        living = alive[group]
        rows[OWNER, row] = k
        rows[INSTANT, row] = 0
        rows[STOP, row] = i
        rows[LIVING, row] = living
        row += 1
        while i < count and groups[positions[i]] == group:
            now = instants[positions[i]]
            while i < count and groups[positions[i]] == group and instants[positions[i]] == now:
                living += 1 if positions[i] < entering else -1
                i += 1
            rows[OWNER, row] = k
            rows[INSTANT, row] = now
            rows[STOP, row] = i
            rows[LIVING, row] = living
            row += 1
        rows[TOUCHED, k] = group
        rows[END, k] = row - 1
        k += 1
    return which, k, row


@kernel
def changed_counts(rows: Int64s, count: int, old: bool, leaving: Int64s) -> tuple[int, bool]:
    """Which of the first ``count`` of ``rows`` leave if nothing but the number of the living tells
    those of a group apart, and when; how many, and if in order. ``old`` is as below."""
    found = 0
    in_order = True
    for row in range(1, count):
        before, now = rows[LIVING, row - 1], rows[LIVING, row]
        if rows[OWNER, row] != rows[OWNER, row - 1] or before == now:
            continue
        if (before if old else now) > 0:
            leaving[0, found] = row - 1 if old else row
            leaving[1, found] = rows[INSTANT, row]
            in_order &= found == 0 or leaving[1, found] >= leaving[1, found - 1]
            found += 1
    return found, in_order


@kernel
def add_words(limbs: Limbs, events: Int64s, first: int, words: int, event: int) -> None:
    """Add the integer in rows ``first`` to ``first + words`` of ``events``, low word first."""
    extension = _ONES if events[first + words - 1, event] < 0 else _ZERO
    carry = _ZERO
    for i in range(limbs.shape[0]):
        word = np.uint64(events[first + i, event]) if i < words else extension
        half = limbs[i] + word
        whole = half + carry
        carry = _ONE if half < word or whole < half else _ZERO
        limbs[i] = whole


@kernel
def take_words(limbs: Limbs, events: Int64s, first: int, words: int, event: int) -> None:
    """Undo :func:`add_words`."""
    extension = _ONES if events[first + words - 1, event] < 0 else _ZERO
    borrow = _ZERO
    for i in range(limbs.shape[0]):
        word = np.uint64(events[first + i, event]) if i < words else extension
        half = limbs[i] - word
        whole = half - borrow
        borrow = _ONE if limbs[i] < word or half < borrow else _ZERO
        limbs[i] = whole


@kernel
def sum_words(
    owner: Int64s,
    stop: Int64s,
    order: Int64s,
    entering: int,
    events: Int64s,
    mask_row: int,
    bit: int,
    first: int,
    words: int,
    touched: Int64s,
    known: Int64s,
    limbs: Limbs,
) -> tuple[Int64s, Limbs]:
    """Along the rows, how many values there are and their sum; only the first if no ``words``."""
    rows = owner.shape[0]
    width = limbs.shape[1]
    counts = np.empty(rows, np.int64)
    sums = np.empty((rows, width), np.uint64)
    total = np.zeros(width, np.uint64)
    count = 0
    for row in range(rows):
        if row == 0 or owner[row] != owner[row - 1]:
            group = touched[owner[row]]
            count = known[group]
            for i in range(width):
                total[i] = limbs[group, i]
        else:
            for at in range(stop[row - 1], stop[row]):
                event = order[at]
                if (events[mask_row, event] >> bit) & 1:
                    if event < entering:
                        count += 1
                        if words > 0:
                            add_words(total, events, first, words, event)
                    else:
                        count -= 1
                        if words > 0:
                            take_words(total, events, first, words, event)
        counts[row] = count
        for i in range(width):
            sums[row, i] = total[i]
    return counts, sums


@kernel
def limbs_of_doubles(bits: Int64s, mask: Int64s, bit: int) -> tuple[int, int]:
    """The lowest and the highest limb that a finite value touches; (1, 0) if there is none."""
    lowest = 64
    highest = -1
    for i in range(bits.shape[0]):
        exponent = (bits[i] >> 52) & _EXPONENTS
        if ((mask[i] >> bit) & 1) == 0 or exponent == _EXPONENTS:
            continue
        if exponent == 0 and (bits[i] & _FRACTION) == 0:
            continue
        position = max(exponent, 1) - 1
        lowest = min(lowest, position >> 6)
        highest = max(highest, (position + 52) >> 6)
    if highest < 0:
        return 1, 0
    return lowest, highest


@kernel
def shift_in(limbs: Limbs, low: np.uint64, high: np.uint64, at: int, negative: bool) -> None:
    """Add (or take away) ``low`` at limb ``at`` and ``high`` at the next one."""
    carry = _ZERO
    for i in range(at, limbs.shape[0]):
        word = low if i == at else (high if i == at + 1 else _ZERO)
        if i > at + 1 and carry == _ZERO:
            return
        old = limbs[i]
        if negative:
            half = old - word
            limbs[i] = half - carry
            carry = _ONE if old < word or half < carry else _ZERO
        else:
            half = old + word
            limbs[i] = half + carry
            carry = _ONE if half < word or limbs[i] < half else _ZERO


@kernel
def add_double(limbs: Limbs, first: int, bits: int, sign: int) -> None:
    """Add (``sign`` 1) or take away (-1) the finite double with these ``bits``."""
    exponent = (bits >> 52) & _EXPONENTS
    fraction = bits & _FRACTION
    if exponent != 0:
        fraction |= 1 << 52
    elif fraction == 0:
        return
    position = max(exponent, 1) - 1
    mantissa = np.uint64(fraction)
    shift = np.uint64(position & 63)
    low = mantissa << shift
    high = _ZERO if shift == _ZERO else mantissa >> (_64 - shift)
    shift_in(limbs, low, high, (position >> 6) - first, (bits < 0) != (sign < 0))


@kernel
def to_double(limbs: Limbs, first: int, magnitude: Limbs) -> float:
    """The sum in ``limbs``, rounded half to even; ``magnitude`` is room to work in."""
    width = limbs.shape[0]
    if width == 0:
        return 0.0
    negative = (limbs[width - 1] >> _63) != _ZERO
    carry = _ONE
    top = -1
    for i in range(width):
        word = limbs[i]
        if negative:
            word = ~word + carry
            carry = _ONE if carry == _ONE and word == _ZERO else _ZERO
        magnitude[i] = word
        if word != _ZERO:
            top = i
    if top < 0:
        return 0.0
    bit = 63
    while (magnitude[top] >> np.uint64(bit)) == _ZERO:
        bit -= 1
    highest = 64 * (first + top) + bit
    lowest = highest - 52
    if lowest <= 0:  # Below 2^53 units: exact, and the only case of subnormal sums.
        value = math.ldexp(float(magnitude[top]), 64 * (first + top) - 1074)
        return -value if negative else value
    mantissa = _ZERO
    limb = (lowest >> 6) - first
    shift = np.uint64(lowest & 63)
    if limb >= 0:
        mantissa = magnitude[limb] >> shift
        if shift != _ZERO and limb + 1 < width:
            mantissa |= magnitude[limb + 1] << (_64 - shift)
    else:  # All that is kept lies above.
        mantissa = magnitude[0] << (_64 - shift)
    mantissa &= np.uint64((1 << 53) - 1)
    half = lowest - 1
    limb = (half >> 6) - first
    if limb >= 0:
        shift = np.uint64(half & 63)
        if (magnitude[limb] >> shift) & _ONE:
            sticky = (magnitude[limb] & ((_ONE << shift) - _ONE)) != _ZERO
            for i in range(limb):
                if magnitude[i] != _ZERO:
                    sticky = True
            if sticky or (mantissa & _ONE):
                mantissa += _ONE
    value = math.ldexp(float(mantissa), lowest - 1074)
    return -value if negative else value


@kernel
def sum_doubles(
    owner: Int64s,
    stop: Int64s,
    order: Int64s,
    entering: int,
    events: Int64s,
    mask_row: int,
    bit: int,
    values_row: int,
    touched: Int64s,
    known: Int64s,
    limbs: Limbs,
    first: int,
    special: Int64s,
) -> tuple[Int64s, Doubles, Limbs, Int64s]:
    """Along the rows, how many values there are and their sum; and the last state per group."""
    rows = owner.shape[0]
    width = limbs.shape[1]
    counts = np.empty(rows, np.int64)
    sums = np.empty(rows, np.float64)
    last = np.empty((touched.shape[0], width), np.uint64)
    last_special = np.empty((touched.shape[0], 3), np.int64)
    magnitude = np.zeros(width, np.uint64)
    count = 0
    for row in range(rows):
        k = owner[row]
        total = last[k]
        apart = last_special[k]
        if row == 0 or k != owner[row - 1]:
            group = touched[k]
            count = known[group]
            for i in range(width):
                total[i] = limbs[group, i]
            for i in range(3):
                apart[i] = special[group, i]
        else:
            for at in range(stop[row - 1], stop[row]):
                event = order[at]
                if ((events[mask_row, event] >> bit) & 1) == 0:
                    continue
                sign = 1 if event < entering else -1
                count += sign
                bits = events[values_row, event]
                if ((bits >> 52) & _EXPONENTS) != _EXPONENTS:
                    add_double(total, first, bits, sign)
                elif (bits & _FRACTION) != 0:
                    apart[NOT_A_NUMBER] += sign
                elif bits > 0:
                    apart[PLUS_INFINITY] += sign
                else:
                    apart[MINUS_INFINITY] += sign
        counts[row] = count
        if apart[NOT_A_NUMBER] > 0 or (apart[PLUS_INFINITY] > 0 and apart[MINUS_INFINITY] > 0):
            sums[row] = math.nan
        elif apart[PLUS_INFINITY] > 0:
            sums[row] = math.inf
        elif apart[MINUS_INFINITY] > 0:
            sums[row] = -math.inf
        else:
            sums[row] = to_double(total, first, magnitude)
    return counts, sums, last, last_special


@kernel
def changed_from(keys: Int64s, changed: Bools) -> None:
    """Set ``changed[i]`` where ``keys[i]`` is not ``keys[i - 1]``."""
    for i in range(1, keys.shape[0]):
        if keys[i] != keys[i - 1]:
            changed[i] = True


@kernel
def differences(
    owner: Int64s, instants: Int64s, living: Int64s, shown: Int64s, changed: Bools, old: bool
) -> tuple[Int64s, Int64s, bool]:
    """Which of the rows ``shown`` (of groups with living results) leave, when, and if in order.

    ``changed[i]`` tells whether row ``shown[i]`` differs from ``shown[i - 1]``. A row leaves if it
    differs from the one before it in its group, or there was none; ``old``: if the next one in its
    group differs from it, or there is none.
    """
    rows = owner.shape[0]
    leaving = np.empty(shown.shape[0], np.int64)
    when = np.empty(shown.shape[0], np.int64)
    count = 0
    in_order = True
    for i in range(shown.shape[0]):
        row = shown[i]
        if old:
            later = row + 1
            if later == rows or owner[later] != owner[row]:
                continue
            if living[later] > 0 and not changed[i + 1]:
                continue
        else:
            later = row
            if row == 0 or owner[row - 1] != owner[row]:
                continue
            if living[row - 1] > 0 and not changed[i]:
                continue
        leaving[count] = i
        when[count] = instants[later]
        if count > 0 and when[count] < when[count - 1]:
            in_order = False
        count += 1
    return leaving[:count], when[:count], in_order
