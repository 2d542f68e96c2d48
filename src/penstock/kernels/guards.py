"""The guards of an input in a push: which rows come in, and which wait for a partner.

An input may have any number of guards. ``code`` has for each input, at the place of its item, the
numbers named below, and then :data:`GUARD` numbers for each guard. First, guard by guard, those
rows wake that wait there for what the opposite input has just got; then new rows are tested. A row
that wakes at one guard has to pass all the others, and a new row all of them. The rows of a window
wait where they are: a byte of each tells at which guard (:mod:`~penstock.kernels.asleep`).
Composites that wait are kept in a ring of the guard, where a byte tells which still do; new ones
are tested by the join that makes them (:func:`pass_composites`).

A guard without keys lets all rows through as soon as the opposite input has a row. One with a
table (``FILTER``, the address of where a filter lies and its size, or of how far a range reaches)
may let through by mistake. With a range, all rows that wait are tested again when it reaches
further. One that ``ENDS`` the way of rows without a partner drops them: none will ever come. One
that ``RESTS`` has been turned off: all rows that wait come in.

Woken rows are written into ``log``, guard by guard: if the push fails, they sleep on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.asleep import sort_out, wake
from penstock.kernels.demand import add_key, is_range, may_meet, reach
from penstock.kernels.kernel import kernel
from penstock.kernels.pointer import bytes_at, int64s, uint32s, uint64s
from penstock.kernels.rings import (
    FREE,
    HEAD,
    MASK,
    OLD,
    RING_LOW,
    TAIL,
    keys_at,
    keys_of,
    store,
)
from penstock.kernels.tables import Tables

Int64s = NDArray[np.int64]

DONE, RING_LACKS, WORK_LACKS, RESULTS_LACK, ORDER_STOPS, LOG_LACKS, PAUSED = range(7)
ITEM, STAGE, ROW, LACKING, LACKING_RING, RESULTS, ANSWERED, CAME_OF_SLICE, LOGGED, SPENT = range(10)
PROGRESS = 10
"""Places in ``progress``, and how many there are."""
WINDOW, INPUT, STORE, COLUMNS, BYTES, CAME, LET_IN, OWN_FLAGS, GUARDS = range(2, 11)
FIRST_GUARD = 11
"""Of an input: the ring of its window (-1: it gets composites), and the one that rows are let into;
where that is described, and its columns of ids; the address of the bytes of the window; places in
``counts``; the address of the bytes that tell which rows of the window may be in results (0: all);
the number of guards."""
(
    OPPOSITE,
    WAITING,
    BEDS,
    NUMBER,
    COUNTS,
    OWN_INDEX,
    THEIR_INDEX,
    FILTER,
    OWN_KEYS,
    THEIR_KEYS,
    THEIR_FLAGS,
    CHOOSES,
    ENDS,
    RESTS,
    SHELF,
    SHELF_IDS,
) = range(16)
GUARD = 16
"""Of a guard: the ring that rows wait for a partner in, the one in which they wait, the address of
the bytes of that, and the number in them of rows that wait; places in ``counts`` and ``code``;
where the ring of rows that wait is described, and the addresses of its columns of ids."""
TESTED, SLEPT, WOKEN, DROPPED = range(4)
"""Places in ``counts``, from that of a guard on."""
INDEX_HEADS, INDEX_ENTRIES, INDEX_SHIFT, INDEX_NARROW = range(4)
SCRATCH = 1 << 12
"""Rows of news that are looked at at a time. So many bytes of ``met`` come before those that one of
the guards fills for all new rows of its opposite input: it ``CHOOSES`` which of them probe."""
FEWEST_WOKEN = 16
_FEWEST_TESTED = 1 << 10
"""Rows for which a ring must have room before any are woken, and before new ones are tested."""


@kernel
def all_set(flags: int, mask: int, first: int, count: int) -> bool:
    """Whether all of ``count`` rows from ``first`` on have their flag, in a ring of bytes."""
    lacking = np.int64(0)
    start = first & mask
    before = min(count, mask + 1 - start)
    for each in bytes_at(flags + start, before):
        lacking += each == 0
    for each in bytes_at(flags, count - before):
        lacking += each == 0
    return bool(lacking == 0)


@kernel
def choose(
    is_met: bool,
    met: NDArray[np.uint8],
    flags: int,
    mask: int,
    first: int,
    count: int,
    out: NDArray[np.int64],
) -> tuple[int, int]:
    """Fill ``out`` with those of ``count`` rows from ``first`` on that are ``met``, if that counts,
    and may be in results; how many these are, and how many may be in results."""
    chosen, number = np.uint64(0), np.int64(count)
    if flags:
        number = np.int64(0)
        may = bytes_at(flags, mask + 1)
        for i in range(count):
            is_one = may[np.uint64((first + i) & mask)] != 0
            number += is_one
            out[chosen] = first + i
            chosen += np.uint64(is_one and (not is_met or met[np.uint64(i)] != 0))
        return int(np.int64(chosen)), int(number)
    for i in range(count):
        out[chosen] = first + i
        chosen += np.uint64(met[np.uint64(i)])
    return int(np.int64(chosen)), int(number)


@kernel
def _find_asleep(
    asleep: NDArray[np.uint8], mask: int, first: int, stop: int, number: int, out: Int64s
) -> tuple[int, int]:
    """Wake the rows from ``first`` on that wait at guard ``number``, as many as there is room for.

    They go into ``out``: how many, and the row to go on with.
    """
    count = 0
    while first < stop and count < out.shape[0]:
        slot = np.uint64(first & mask)
        if asleep[slot] == number:
            asleep[slot] = 0
            out[np.uint64(count)] = first
            count += 1
        first += 1
    return count, first


@kernel
def _run_of(flags: int, mask: int, first: int, stop: int) -> tuple[int, int]:
    """The first run of rows, from ``first`` on, that may be in results: where it begins and ends;
    both are ``stop`` if there is none."""
    may = bytes_at(flags, mask + 1)
    while first < stop and may[np.uint64(first & mask)] == 0:
        first += 1
    end = first
    while end < stop and may[np.uint64(end & mask)] != 0:
        end += 1
    return first, end


@kernel
def _sort_out(
    tables: Tables, guard: int, rows: Int64s, keys: Int64s, asleep: NDArray[np.uint8], number: int
) -> int:
    """Bring those of ``rows`` that have a partner to the front; how many. The bytes of the others
    become ``number``, theirs 0."""
    code, rings = tables.code, tables.rings
    count, beds = keys.shape[0], asleep.shape[0] - 1
    opposite, index = code[guard + OPPOSITE], code[guard + THEIR_INDEX]
    if index:
        mask = rings[opposite, MASK]
        return int(
            sort_out(
                rows[:count],
                keys,
                uint32s(code[index + INDEX_HEADS], mask + 1),
                int64s(code[index + INDEX_ENTRIES], mask + 1),
                tables.narrow[code[index + INDEX_NARROW]] != 0,
                code[index + INDEX_SHIFT],
                mask,
                rings[opposite, RING_LOW],
                rings[opposite, HEAD] - 1,
                asleep,
                number,
                tables.active,
                rows,
            )
        )
    has_rows = rings[opposite, HEAD] > rings[opposite, RING_LOW]
    kept = 0
    for i in range(count):
        row = rows[np.uint64(i)]
        passes = has_rows
        if code[guard + FILTER]:
            passes = may_meet(code[guard + FILTER], keys[np.uint64(i)])
        asleep[np.uint64(row & beds)] = 0 if passes else number
        rows[np.uint64(kept)] = row
        kept += int(passes)
    return kept


@kernel
def _pass(tables: Tables, at: int, skipped: int, count: int) -> int:
    """Bring those of ``count`` rows of a window, in ``found[0]``, to the front that pass all guards
    but ``skipped``; how many. The others wait where they did not pass."""
    code, keys, found = tables.code, tables.keys, tables.found
    beds = tables.rings[code[at + WINDOW], MASK]
    asleep = bytes_at(code[at + BYTES], beds + 1)
    for each in range(code[at + GUARDS]):
        guard = at + FIRST_GUARD + GUARD * each
        if each == skipped or code[guard + RESTS] or count == 0:
            continue
        if code[guard + OWN_KEYS]:
            shift = code[code[guard + OWN_INDEX] + INDEX_SHIFT]
            keys_at(code, code[guard + OWN_KEYS], shift, found, -1, count, keys)
        number, ends = code[guard + NUMBER], code[guard + ENDS]
        if ends:
            found[1, :count] = found[0, :count]
        kept = _sort_out(tables, guard, found[0], keys[:count], asleep, number)
        if ends:
            for i in range(count):
                asleep[np.uint64(found[1, np.uint64(i)] & beds)] = 0
        place = code[guard + COUNTS]
        tables.counts[place + TESTED] += count
        tables.counts[place + (DROPPED if ends else SLEPT)] += count - kept
        count = kept
    return count


@kernel
def pass_composites(
    tables: Tables,
    at: int,
    skipped: int,
    ids: NDArray[np.int64],
    slots: int,
    count: int,
    spare: NDArray[np.int64],
) -> int:
    """Bring those of ``count`` composites to the front of ``ids`` that pass all guards but
    ``skipped``; how many. The others are stored where they did not pass: there is room.

    Columns are where ``code`` tells from ``slots`` on (-1: in their order). ``spare`` has as many.
    """
    code, rings, keys, found = tables.code, tables.rings, tables.keys, tables.found
    sources = tables.sources
    for each in range(code[at + GUARDS]):
        guard = at + FIRST_GUARD + GUARD * each
        if each == skipped or code[guard + RESTS] or count == 0:
            continue
        if code[guard + OWN_KEYS]:
            shift = code[code[guard + OWN_INDEX] + INDEX_SHIFT]
            keys_at(code, code[guard + OWN_KEYS], shift, ids, slots, count, keys)
        size = 1
        while size < count:
            size *= 2
        idle = bytes_at(found[1].ctypes.data, size)
        for i in range(count):
            found[0, np.uint64(i)] = i
        kept = _sort_out(tables, guard, found[0], keys[:count], idle, 1)
        place, ends = code[guard + COUNTS], code[guard + ENDS]
        tables.counts[place + TESTED] += count
        tables.counts[place + (DROPPED if ends else SLEPT)] += count - kept
        if kept == count:
            continue
        waiting = 0
        for column in range(code[at + COLUMNS]):
            rows = ids[column if slots < 0 else code[slots + column]]
            waiting = 0
            for i in range(0 if ends else count):
                spare[column, np.uint64(waiting)] = rows[np.uint64(i)]
                waiting += int(idle[np.uint64(i)])
            for k in range(kept):
                rows[np.uint64(k)] = rows[np.uint64(found[0, np.uint64(k)])]
            sources[column] = spare[column].ctypes.data
        if waiting:
            ring = code[guard + WAITING]
            head, mask = rings[ring, HEAD], rings[ring, MASK]
            asleep = bytes_at(code[guard + BEDS], mask + 1)
            for row in range(head, head + waiting):
                asleep[np.uint64(row & mask)] = code[guard + NUMBER]
            store(tables, code[guard + SHELF], ring, waiting)
        count = kept
    return count


@kernel
def room_behind(tables: Tables, at: int, skipped: int) -> int:
    """Composites that can be let in, or put where they wait, whatever becomes of them. The ring
    that has the least room is noted."""
    code, rings, progress = tables.code, tables.rings, tables.progress
    least = rings[code[at + INPUT], FREE]
    progress[LACKING_RING] = code[at + INPUT]
    for each in range(code[at + GUARDS] if code[at + WINDOW] < 0 else 0):
        guard = at + FIRST_GUARD + GUARD * each
        if each != skipped and not code[guard + RESTS]:
            free = rings[code[guard + WAITING], FREE]
            if free < least:
                least = free
                progress[LACKING_RING] = code[guard + WAITING]
    return int(least)


@kernel
def _reach(tables: Tables, guard: int, flags: int, mask: int, first: int, stop: int) -> None:
    """Let the range of a guard reach as far as the new rows of its opposite input."""
    code, keys = tables.code, tables.keys
    while first < stop:
        until = stop
        if flags:
            first, until = _run_of(flags, mask, first, stop)
        count = min(until - first, keys.shape[0])
        news = keys_of(code, code[guard + THEIR_KEYS], 0, mask, first, count, keys)
        reach(code[guard + FILTER], news, count)
        first += count


@kernel
def _test_again(
    tables: Tables, at: int, guard: int, mask: int, count: int, asleep: NDArray[np.uint8]
) -> int:
    """Bring those of ``count`` rows, in ``found[0]``, to the front that the range of a guard
    reaches; how many. The others sleep on."""
    code, keys, found, work = tables.code, tables.keys, tables.found, tables.work
    if code[at + WINDOW] >= 0:
        keys_at(code, code[guard + OWN_KEYS], 0, found, -1, count, keys)
    else:
        for column in range(code[at + COLUMNS]):
            ids = int64s(code[code[guard + SHELF_IDS] + column], mask + 1)
            for i in range(count):
                work[0, column, np.uint64(i)] = ids[np.uint64(found[0, np.uint64(i)] & mask)]
        keys_at(code, code[guard + OWN_KEYS], 0, work[0], -1, count, keys)
    kept = 0
    for i in range(count):
        row = found[0, np.uint64(i)]
        found[0, np.uint64(kept)] = row
        if may_meet(code[guard + FILTER], keys[np.uint64(i)]):
            kept += 1
        else:
            asleep[np.uint64(row & mask)] = code[guard + NUMBER]
    return kept


@kernel
def _wake(tables: Tables, at: int, each: int) -> int:
    """Let in the rows that wait at a guard for what the opposite input has just got."""
    code, rings, progress, log = tables.code, tables.rings, tables.progress, tables.log
    work, keys, found, sources = tables.work, tables.keys, tables.found, tables.sources
    guard = at + FIRST_GUARD + GUARD * each
    ring, opposite, target = code[guard + WAITING], code[guard + OPPOSITE], code[at + INPUT]
    mask, room = rings[ring, MASK], keys.shape[0]
    index, number = code[guard + OWN_INDEX], code[guard + NUMBER]
    first, stop = rings[opposite, OLD], rings[opposite, HEAD]
    flags, their_mask = code[guard + THEIR_FLAGS], rings[opposite, MASK]
    rests = code[guard + RESTS] != 0
    is_for_all = rests or index == 0
    is_ranged = code[guard + FILTER] != 0 and is_range(code[guard + FILTER])
    if is_ranged:
        table = int64s(code[guard + FILTER], 3)
        if progress[ROW] == 0 and table[2] == 0:
            _reach(tables, guard, flags, their_mask, first, stop)
        if table[2] == 0 and not rests:  # No row that waits has a partner among the news.
            return DONE
    elif flags and is_for_all:
        first, _ = _run_of(flags, their_mask, first, stop)
    if is_for_all and not rests and first == stop:  # Any news would do.
        return DONE
    if is_for_all:
        first, stop = rings[ring, TAIL], rings[ring, OLD]
    progress[ROW] = max(progress[ROW], first)
    while progress[ROW] < stop:
        most = min(room, room_behind(tables, at, each))
        if most < FEWEST_WOKEN:
            progress[LACKING] = FEWEST_WOKEN
            return RING_LACKS
        most = min(most, log.shape[0] - progress[LOGGED])
        if most < FEWEST_WOKEN:
            progress[LACKING] = 2 * log.shape[0]
            return LOG_LACKS
        mask = rings[ring, MASK]
        asleep = bytes_at(code[guard + BEDS], mask + 1)
        if is_for_all:
            woken, progress[ROW] = _find_asleep(
                asleep, mask, progress[ROW], stop, number, found[0, :most]
            )
            if is_ranged and not rests:
                woken = _test_again(tables, at, guard, mask, woken, asleep)
        else:
            until = stop
            if flags:
                progress[ROW], until = _run_of(flags, their_mask, progress[ROW], stop)
            count = min(until - progress[ROW], min(room, SCRATCH))
            space = SCRATCH + progress[ROW] - first if code[guard + CHOOSES] else np.int64(0)
            shift, theirs = code[index + INDEX_SHIFT], code[guard + THEIR_KEYS]
            news = keys_of(code, theirs, shift, their_mask, progress[ROW], count, keys)
            if code[guard + FILTER]:
                table = int64s(code[guard + FILTER], 2)
                for i in range(count):
                    add_key(uint64s(table[0], table[1]), news[np.uint64(i)])
            woken = wake(
                news,
                uint32s(code[index + INDEX_HEADS], mask + 1),
                int64s(code[index + INDEX_ENTRIES], mask + 1),
                tables.narrow[code[index + INDEX_NARROW]] != 0,
                shift,
                mask,
                rings[ring, RING_LOW],
                rings[ring, HEAD] - 1,
                asleep,
                number,
                tables.active,
                tables.met[space:],
                found[0, :most],
            )
            if woken < most:  # Else more rows may wait for the same keys.
                progress[ROW] += count
        if woken == 0:
            continue
        logged = progress[LOGGED]
        log[logged : logged + woken] = found[0, :woken]
        progress[LOGGED] = logged + woken
        tables.counts[code[guard + COUNTS] + WOKEN] += woken
        if code[at + WINDOW] >= 0:
            count = _pass(tables, at, each, woken)
            sources[0] = found[0].ctypes.data
        else:
            for column in range(code[at + COLUMNS]):
                ids = int64s(code[code[guard + SHELF_IDS] + column], mask + 1)
                for i in range(woken):
                    work[0, column, np.uint64(i)] = ids[np.uint64(found[0, np.uint64(i)] & mask)]
            count = pass_composites(tables, at, each, work[0], -1, woken, work[1])
            for column in range(code[at + COLUMNS]):
                sources[column] = work[0, column].ctypes.data
        if count:
            store(tables, code[at + STORE], target, count)
            tables.counts[code[at + LET_IN]] += count
    if is_ranged:
        int64s(code[guard + FILTER], 3)[2] = 0
    return DONE


@kernel
def _test(tables: Tables, at: int) -> int:
    """Let in the new rows of a window that have a partner, and put the others to sleep."""
    code, rings, progress = tables.code, tables.rings, tables.progress
    found, counts = tables.found, tables.counts
    window, target = code[at + WINDOW], code[at + INPUT]
    mask, room, flags = rings[window, MASK], tables.keys.shape[0], code[at + OWN_FLAGS]
    tables.sources[0] = found[0].ctypes.data
    progress[ROW] = max(progress[ROW], rings[window, OLD])
    while progress[ROW] < rings[window, HEAD]:
        first = progress[ROW]
        count = min(rings[window, HEAD] - first, room)
        if rings[target, FREE] < min(count, _FEWEST_TESTED):
            progress[LACKING], progress[LACKING_RING] = min(count, _FEWEST_TESTED), target
            return RING_LACKS
        count = came = min(count, rings[target, FREE])
        if flags:
            _, came = choose(False, bytes_at(flags, 1), flags, mask, first, count, found[0])
        else:
            for i in range(count):
                found[0, np.uint64(i)] = first + i
        awake = _pass(tables, at, -1, came)
        if awake:
            store(tables, code[at + STORE], target, awake)
        counts[code[at + CAME]] += came
        counts[code[at + LET_IN]] += awake
        progress[ROW] += count
    return DONE


@kernel
def let_in(tables: Tables, at: int) -> int:
    """Let rows that have waited and new ones into an input, as far as guards allow; what is
    lacking, if it cannot be finished."""
    progress = tables.progress
    while progress[STAGE] < tables.code[at + GUARDS]:
        lacking = _wake(tables, at, progress[STAGE])
        if lacking:
            return int(lacking)
        progress[STAGE] += 1
        progress[ROW] = 0
    if tables.code[at + WINDOW] < 0:
        return DONE
    return int(_test(tables, at))
