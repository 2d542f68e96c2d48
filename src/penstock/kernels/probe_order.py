"""A whole probe order in one call: from new rows to the combinations that they complete.

What :mod:`~penstock.kernels.probe` and :mod:`~penstock.kernels.pairs` do step by step
is done here for all steps at once, with nothing made for Python in between. The order is a table of
numbers, ``code``; what changes from push to push stands in ``now``.

``code`` begins with :data:`STEP` numbers for each step, at the places named below; three of them
say where in ``code`` lists begin: of the columns of the key (address, mask, slot), of the
comparisons that the probe does not make, and of the columns of ids (addresses) if the target holds
composites. ``DATES`` says where, for each slot, the lifespans of its leaf are found. A *slot*
is a place for the leaf rows of one stream; streams have slots in the order in which they come in.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import kernel
from penstock.kernels.lifespan import BEGINNING, FOREVER
from penstock.kernels.pairs import mixed
from penstock.kernels.pointer import int64s, uint32s
from penstock.kernels.probe import holds, live_together, live_together_for, probe_keys

Int64s = NDArray[np.int64]

(
    HEADS,
    ENTRIES,
    SHIFT,
    MASK,
    KEYS,
    KEY_COUNT,
    NARROW_CHECKS,
    NARROW_COUNT,
    WIDE_CHECKS,
    WIDE_COUNT,
    IDS,
    ID_COUNT,
) = range(12)
STEP = 12
KEY = 3
"""Address, mask, slot."""
CHECK = 7
"""Operator; address, mask, slot of the left column; the same of the right one."""
DATE = 4
"""Address of births, address of deaths, span (negative: see the deaths), mask."""
LOW, NEWEST, BOUND, NARROW = range(4)
NOW = 4
"""What a step needs to know in this push; the tails of the leaves follow by slot, and then the
first rows that probes may see."""


@kernel
def _gather_keys(
    code: Int64s, base: int, known: NDArray[np.int64], count: int, keys: Int64s
) -> None:
    first, columns = code[base + KEYS], code[base + KEY_COUNT]
    if columns == 1:
        mask = code[first + 1]
        column = int64s(code[first], mask + 1)
        rows = known[code[first + 2]]
        for i in range(count):
            keys[np.uint64(i)] = column[np.uint64(rows[np.uint64(i)] & mask)]
        return
    keys[:count] = 0
    for each in range(columns):
        at = first + KEY * each
        mask = code[at + 1]
        column = int64s(code[at], mask + 1)
        rows = known[code[at + 2]]
        for i in range(count):
            place = np.uint64(rows[np.uint64(i)] & mask)
            keys[np.uint64(i)] = mixed(keys[np.uint64(i)], column[place])


@kernel
def _check(code: Int64s, at: int, made: NDArray[np.int64], count: int, keep: Int64s) -> int:
    """Positions of ``keep`` that pass one comparison; how many."""
    operator = code[at]
    left_mask, right_mask = code[at + 2], code[at + 5]
    left, right = int64s(code[at + 1], left_mask + 1), int64s(code[at + 4], right_mask + 1)
    left_rows, right_rows = made[code[at + 3]], made[code[at + 6]]
    kept = np.uint64(0)
    for k in range(count):
        i = np.uint64(keep[np.uint64(k)])
        keep[kept] = np.int64(i)
        kept += np.uint64(
            holds(
                operator,
                left[np.uint64(left_rows[i] & left_mask)],
                right[np.uint64(right_rows[i] & right_mask)],
            )
        )
    return int(np.int64(kept))


@kernel
def _pack(made: NDArray[np.int64], width: int, keep: Int64s, count: int) -> None:
    """Bring the positions in ``keep`` (ascending) to the front."""
    for slot in range(width):
        rows = made[slot]
        for k in range(count):
            rows[np.uint64(k)] = rows[np.uint64(keep[np.uint64(k)])]


@kernel
def _date(
    code: Int64s,
    dates: int,
    tails: Int64s,
    made: NDArray[np.int64],
    width: int,
    count: int,
    keep: Int64s,
) -> int:
    """Fill the two rows behind the slots with births and deaths; drop what never lived."""
    births, deaths = made[width], made[width + 1]
    births[:count] = BEGINNING
    deaths[:count] = FOREVER
    for slot in range(width):
        at = dates + DATE * slot
        mask = code[at + 3]
        if code[at + 2] >= 0:
            live_together_for(
                births,
                deaths,
                made[slot][:count],
                int64s(code[at], mask + 1),
                code[at + 2],
                mask,
                tails[slot],
            )
        else:
            live_together(
                births,
                deaths,
                made[slot][:count],
                int64s(code[at], mask + 1),
                int64s(code[at + 1], mask + 1),
                mask,
                tails[slot],
            )
    kept = np.uint64(0)
    for i in range(count):
        keep[kept] = i
        kept += np.uint64(births[np.uint64(i)] <= deaths[np.uint64(i)])
    living = int(np.int64(kept))
    if living < count:
        _pack(made, width + 2, keep, living)
    return living


@kernel
def _keep_whole(
    made: NDArray[np.int64], first: int, after: int, lows: Int64s, count: int, kept: Int64s
) -> int:
    """Fill ``kept`` with the positions where no row in the slots from ``first`` on is hidden; how
    many these are. Whoever joined a composite with a hidden row would make more that is dead."""
    number = 0
    for i in range(count):
        whole = True
        for slot in range(first, after):
            whole &= made[slot, np.uint64(i)] >= lows[slot]
        kept[np.uint64(number)] = i
        number += int(whole)
    return number


@kernel
def run(
    code: Int64s,
    now: Int64s,
    steps: int,
    first: int,
    slots: int,
    count: int,
    dates: int,
    work: NDArray[np.int64],
    keys: Int64s,
    found: NDArray[np.int64],
    active: NDArray[np.int64],
    tally: Int64s,
) -> int:
    """Run ``count`` combinations through the order; how many come out.

    They fill ``slots`` slots of ``work[0]``: the caller has put them there, or else they are the
    rows from ``first`` on of one stream (-1: not so). What comes out is in ``work[steps & 1]``,
    with births and deaths behind the slots if ``dates`` is not 0. ``tally`` gets, for each step,
    how many came to it and how many left it. If there is not enough room, the answer is negative:
    minus the room that is needed.
    """
    room = keys.shape[0]
    if first >= 0:
        rows = work[0, 0]
        for i in range(count):
            rows[np.uint64(i)] = first + i
    tally[:] = 0
    lows = now[NOW * steps + (now.shape[0] - NOW * steps) // 2 :]
    for step in range(steps):
        if count == 0:
            return 0
        known, made = work[step & 1], work[1 - (step & 1)]
        base, at = STEP * step, NOW * step
        narrow = now[at + NARROW] != 0
        mask = code[base + MASK]
        tally[2 * step] = count
        _gather_keys(code, base, known, count, keys)
        number = int(
            np.int64(
                probe_keys(
                    keys[:count],
                    uint32s(code[base + HEADS], mask + 1),
                    int64s(code[base + ENTRIES], mask + 1),
                    narrow,
                    code[base + SHIFT],
                    mask,
                    now[at + LOW],
                    now[at + NEWEST],
                    now[at + BOUND],
                    0,
                    active,
                    found,
                )
            )
        )
        if number >= room:
            return -(number + 1)
        positions, matches = found[0], found[1]
        for slot in range(slots):
            old, new = known[slot], made[slot]
            for i in range(number):
                new[np.uint64(i)] = old[np.uint64(positions[np.uint64(i)])]
        if code[base + ID_COUNT] == 0:
            made[slots][:number] = matches[:number]
            slots += 1
        for each in range(code[base + ID_COUNT]):
            column = int64s(code[code[base + IDS] + each], mask + 1)
            new = made[slots]
            for i in range(number):
                new[np.uint64(i)] = column[np.uint64(matches[np.uint64(i)] & mask)]
            slots += 1
        if code[base + ID_COUNT] and number:
            kept = _keep_whole(made, slots - code[base + ID_COUNT], slots, lows, number, keys)
            if kept < number:
                _pack(made, slots, keys, kept)
            number = kept
        checks = code[base + (NARROW_CHECKS if narrow else WIDE_CHECKS)]
        many = code[base + (NARROW_COUNT if narrow else WIDE_COUNT)]
        if many and number:
            for i in range(number):
                keys[np.uint64(i)] = i
            kept = number
            for each in range(many):
                kept = _check(code, checks + CHECK * each, made, kept, keys)
            if kept < number:
                _pack(made, slots, keys, kept)
            number = kept
        tally[2 * step + 1] = number
        count = number
    if dates and count:
        count = _date(code, dates, now[NOW * steps :], work[steps & 1], slots, count, keys)
    return count
