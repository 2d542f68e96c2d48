"""A whole probe order in one call: from new rows to the combinations that they complete.

What :mod:`~penstock.kernels.probe` and :mod:`~penstock.kernels.pairs` do step by step
is done here for all steps at once, with nothing made for Python in between. The order is a table of
numbers, ``code``; what changes from push to push stands in ``now``.

``code`` begins with :data:`STEP` numbers for each step, at the places named below; three of them
say where in ``code`` lists begin: of the columns of the key (address, mask, slot), of the
comparisons that the probe does not make, and of the columns of ids (addresses) if the target holds
composites. Behind the steps, the lifespans of the leaf of each slot are found. A *slot* is a place
for the leaf rows of one stream; streams have slots in the order in which they come in. A step
without an index (``HEADS`` is 0) tries all pairs.

A step whose target ``LACKS`` rows since a change of plan stops before it probes: the caller
completes what the candidates are going to look for. What is completed comes to stand behind the new
rows of the target, but counts as old: the rows in between are the gap that a probe must not see.

A step may have a residual predicate. Either it is a program, and candidates are tested here
(:mod:`~penstock.kernels.predicate`); it is an error if it fails for a candidate that has lived, and
those that have not are left out, whatever becomes of the program. Or (``ASKS``) the caller tests
them: the order stops there, and goes on when it is called again. In both cases ``rest`` tells where
it stands: the step, how many candidates there are, and which of them has failed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.index import seed_of
from penstock.kernels.kernel import kernel
from penstock.kernels.lifespan import BEGINNING, FOREVER
from penstock.kernels.pairs import mixed
from penstock.kernels.pointer import bytes_at, int64s, uint32s
from penstock.kernels.predicate import keep_where
from penstock.kernels.probe import (
    MATCHES_TO_PAUSE,
    holds,
    live_together,
    live_together_for,
    probe_keys,
)
from penstock.kernels.tables import Tables

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
    PROGRAM,
    PARTS,
    DEPTH,
    FLAGS,
    LACKS,
) = range(17)
STEP = 17
ASKS = -1
"""The number of ``PARTS`` of a predicate that the caller tests."""
KEY = 3
"""Address, mask, slot."""
CHECK = 7
"""Operator; address, mask, slot of the left column; the same of the right one."""
DATE = 4
"""Address of births, address of deaths, span (negative: see the deaths), mask."""
LOW, NEWEST, BOUND, NARROW, GAP_FROM, GAP_TO = range(6)
NOW = 6
"""What a step needs to know in this push; the tails of the leaves follow by slot, and then the
first rows that probes may see."""
REST_STEP, REST_COUNT, REST_FAILED, REST_LACKS, IS_LONG, LONG_ITEMS = range(6)
REST = 6
"""Where an order that was stopped stands: the step, 0 if it is the beginning, else 1 more; the
candidates of it; the one that failed. If it was stopped for a target that lacks rows, 1 more than
its step (then the first number is the step); negative when that has been seen to. And whether the
push is so long against windows that many candidates have never lived: then these are left out at
every step (``LONG_ITEMS`` has a bit for each item of a push, :mod:`~penstock.kernels.push`)."""
STOPPED, FAILED = -1, -2
"""Answers of an order: the caller has to act; a predicate has failed. Less than that is a lack of
room."""


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
    keys[:count] = seed_of(code[base + SHIFT])
    for each in range(columns):
        at = first + KEY * each
        mask = code[at + 1]
        column = int64s(code[at], mask + 1)
        rows = known[code[at + 2]]
        for i in range(count):
            place = np.uint64(rows[np.uint64(i)] & mask)
            keys[np.uint64(i)] = mixed(keys[np.uint64(i)], column[place])


@kernel
def _compare(operator: int, left: int, rights: Int64s, keep: NDArray[np.uint8]) -> None:
    """Clear ``keep`` where ``left operator right`` does not hold."""
    for k in range(rights.shape[0]):
        keep[np.uint64(k)] &= np.uint8(holds(operator, left, rights[np.uint64(k)]))


@kernel
def _seen(
    code: Int64s, base: int, slots: int, low: int, bound: int, lows: Int64s, rows: Int64s
) -> int:
    """Fill ``rows`` with the rows of the target that may be in results; how many."""
    mask, flags = code[base + MASK], code[base + FLAGS]
    number = 0
    for row in range(low, bound):
        place = np.uint64(row & mask)
        is_one = flags == 0 or bytes_at(flags, mask + 1)[place] != 0
        for each in range(code[base + ID_COUNT]):
            ids = int64s(code[code[base + IDS] + each], mask + 1)
            is_one &= ids[place] >= lows[slots + each]
        rows[np.uint64(number)] = row
        number += int(is_one)
    return number


@kernel
def _try_all(
    code: Int64s,
    base: int,
    known: NDArray[np.int64],
    slots: int,
    count: int,
    low: int,
    bound: int,
    lows: Int64s,
    found: NDArray[np.int64],
) -> int:
    """Find the pairs of combinations and rows of the target that pass every comparison; how many.

    Positions and rows are in ``found``, as far as there is room.
    """
    room, mask = found.shape[1], code[base + MASK]
    rows = np.empty(max(bound - low, 0), np.int64)
    size = _seen(code, base, slots, low, bound, lows, rows)
    checks, many = code[base + WIDE_CHECKS], code[base + WIDE_COUNT]
    rights = np.empty((many, size), np.int64)
    for each in range(many):
        at = checks + CHECK * each
        column = int64s(code[at + 4], code[at + 5] + 1)
        part = code[at + 6] - slots
        for k in range(size):
            row = rows[np.uint64(k)]
            if code[base + ID_COUNT]:
                row = int64s(code[code[base + IDS] + part], mask + 1)[np.uint64(row & mask)]
            rights[each, np.uint64(k)] = column[np.uint64(row & code[at + 5])]
    keep = np.empty(size, np.uint8)
    number = 0
    for i in range(count):
        keep[:] = 1
        for each in range(many):
            at = checks + CHECK * each
            row = known[code[at + 3], i]
            left = int64s(code[at + 1], code[at + 2] + 1)[np.uint64(row & code[at + 2])]
            _compare(code[at], left, rights[each], keep)
        for k in range(size):
            if keep[np.uint64(k)]:
                if number < room:
                    found[0, np.uint64(number)] = i
                    found[1, np.uint64(number)] = rows[np.uint64(k)]
                number += 1
        if number > room + MATCHES_TO_PAUSE:
            return number
    return number


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
def _has_lived(
    code: Int64s, dates: int, tails: Int64s, made: NDArray[np.int64], slots: int, i: int
) -> bool:
    """Whether the lifespans of candidate ``i`` share an instant."""
    birth, death = BEGINNING, FOREVER
    for slot in range(slots):
        at, row = dates + DATE * slot, made[slot, i]
        if row < tails[slot]:
            return False
        place = np.uint64(row & code[at + 3])
        birth = max(birth, int64s(code[at], code[at + 3] + 1)[place])
        death = min(death, int64s(code[at + 1], code[at + 3] + 1)[place])
    return bool(birth <= death)


@kernel
def _keep_living(
    code: Int64s,
    dates: int,
    tails: Int64s,
    made: NDArray[np.int64],
    slots: int,
    number: int,
    keep: Int64s,
) -> int:
    """Keep the candidates that have lived; how many."""
    kept = np.uint64(0)
    for i in range(number):
        keep[kept] = i
        kept += np.uint64(_has_lived(code, dates, tails, made, slots, i))
    living = int(np.int64(kept))
    if living < number:
        _pack(made, slots, keep, living)
    return living


@kernel
def _test(
    code: Int64s,
    base: int,
    dates: int,
    tails: Int64s,
    made: NDArray[np.int64],
    slots: int,
    number: int,
    keep: Int64s,
    failed: Int64s,
    rest: Int64s,
) -> int:
    """Keep the candidates for which the program of a step holds; negative if it has failed."""
    for i in range(number):
        keep[np.uint64(i)] = i
    program, parts, depth = code[base + PROGRAM], code[base + PARTS], code[base + DEPTH]
    kept, wrong = keep_where(code, program, parts, depth, made, keep, number, failed)
    for k in range(wrong):
        if _has_lived(code, dates, tails, made, slots, failed[k]):
            rest[REST_FAILED] = failed[k]
            return -1
    if kept < number:
        _pack(made, slots, keep, kept)
    return int(kept)


@kernel
def _keep_whole(
    made: NDArray[np.int64], first: int, after: int, lows: Int64s, count: int, kept: Int64s
) -> int:
    """Fill ``kept`` with the positions where no row in the slots from ``first`` on is hidden; how
    many these are. To join a composite with a hidden row would make more that is dead."""
    number = 0
    for i in range(count):
        whole = True
        for slot in range(first, after):
            whole &= made[slot, np.uint64(i)] >= lows[slot]
        kept[np.uint64(number)] = i
        number += int(whole)
    return number


@kernel
def run_order(
    tables: Tables,
    code: Int64s,
    now: Int64s,
    steps: int,
    first: int,
    slots: int,
    count: int,
    is_dated: bool,
) -> int:
    """Run ``count`` combinations through the order; how many come out.

    They fill ``slots`` slots of ``work[0]``: the caller has put them there, or else they are the
    rows from ``first`` on of one stream (-1: not so). What comes out is in ``work[steps & 1]``,
    with births and deaths behind the slots if it ``is_dated``. ``tally`` gets, for each step, how
    many came to it and how many left it. The answer is negative if the order has been
    :data:`STOPPED` or has :data:`FAILED`, or if there is not enough room: then it is
    :data:`FAILED` minus the room that is needed. Where it stands is in ``rest``, zeros at first.
    """
    work, keys, found = tables.work, tables.keys, tables.found
    tally, rest = tables.tally, tables.rest
    room = keys.shape[0]
    begin = rest[REST_STEP]
    rest[REST_STEP] = 0
    if begin == 0:
        tally[: 2 * steps] = 0
        if first >= 0:
            rows = work[0, 0]
            for i in range(count):
                rows[np.uint64(i)] = first + i
    tails = now[NOW * steps :]
    lows = tails[(now.shape[0] - NOW * steps) // 2 :]
    dates = STEP * steps
    if begin == 0 and slots > 1 and rest[IS_LONG]:
        count = _keep_living(code, dates, tails, work[0], slots, count, keys)
    for step in range(begin):
        slots += max(code[STEP * step + ID_COUNT], 1)
    if begin:
        count = rest[REST_COUNT]
        tally[2 * begin - 1] = count
    for step in range(begin, steps):
        if count == 0:
            return 0
        known, made = work[step & 1], work[1 - (step & 1)]
        base, at = STEP * step, NOW * step
        if code[base + LACKS] and rest[REST_LACKS] != -(step + 1):
            rest[REST_STEP], rest[REST_COUNT], rest[REST_LACKS] = step, count, step + 1
            return STOPPED
        rest[REST_LACKS] = 0
        narrow = now[at + NARROW] != 0
        mask = code[base + MASK]
        tally[2 * step] = count
        tries_all = code[base + HEADS] == 0
        if tries_all:
            low, bound = now[at + LOW], now[at + BOUND]
            number = _try_all(code, base, known, slots, count, low, bound, lows, found)
        else:
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
                        tables.active,
                        found,
                    )
                )
            )
        if number >= room:
            return int(FAILED - (number + 1))
        positions, matches = found[0], found[1]
        if now[at + GAP_TO] > now[at + GAP_FROM]:
            kept = 0
            for i in range(number):
                row = matches[np.uint64(i)]
                positions[np.uint64(kept)] = positions[np.uint64(i)]
                matches[np.uint64(kept)] = row
                kept += int(row < now[at + GAP_FROM] or row >= now[at + GAP_TO])
            number = kept
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
        if many and number and not tries_all:
            for i in range(number):
                keys[np.uint64(i)] = i
            kept = number
            for each in range(many):
                kept = _check(code, checks + CHECK * each, made, kept, keys)
            if kept < number:
                _pack(made, slots, keys, kept)
            number = kept
        if rest[IS_LONG] and number:
            number = _keep_living(code, dates, tails, made, slots, number, keys)
        if code[base + PARTS] and number:
            rest[REST_COUNT] = number
            if code[base + PARTS] == ASKS:
                rest[REST_STEP] = step + 1
                return STOPPED
            number = _test(code, base, dates, tails, made, slots, number, keys, found[0], rest)
            if number < 0:
                rest[REST_STEP] = step + 1
                return FAILED
        tally[2 * step + 1] = number
        count = number
    if is_dated and count:
        count = _date(code, dates, tails, work[steps & 1], slots, count, keys)
    return int(count)
