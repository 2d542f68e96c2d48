"""A whole push in one call: what has died is let go of, rows go into their windows, joins run, and
the columns of the answer are filled.

Between two calls of kernels, Python finds its own code and objects gone from the processor's
caches: a call costs several times what it does by itself, and to see where every ring ends took ten
of them. ``code`` is that of :mod:`~penstock.kernels.push`, with one more part, at the place
that follows the items. It tells how the rows of rings die: the number of windows, and of each its
ring and the address of its deaths; the number of states, and of each its ring, the number of its
columns of ids, and of each column its address and the ring of its window.

``arrivals`` has a row of numbers for each window, those named below. ``facts`` are those of
:mod:`~penstock.kernels.arrow_struct`. A row with a NULL in a key is in no result and is left
out. If all rows of a batch go in as they lie, their columns are copied from where Arrow has them;
else they are gathered first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels import arrow_struct
from penstock.kernels.answer import answer
from penstock.kernels.arrow_struct import is_valid
from penstock.kernels.cycles import cycles
from penstock.kernels.guards import (
    ANSWERED,
    BYTES,
    CHOOSES,
    DONE,
    FIRST_GUARD,
    GUARD,
    GUARDS,
    OPPOSITE,
    RESULTS,
    SCRATCH,
    WINDOW,
    all_set,
)
from penstock.kernels.kernel import kernel
from penstock.kernels.lifespan import BEGINNING, FOREVER
from penstock.kernels.pointer import bytes_at, int64s
from penstock.kernels.push import GUARDED, KIND, run
from penstock.kernels.ring import first_alive
from penstock.kernels.rings import HEAD, MASK, OLD, RING_LOW, TAIL
from penstock.kernels.tables import Tables
from penstock.kernels.window import COLUMN, COLUMNS, FIRST, append

Int64s = NDArray[np.int64]

(
    CODE,
    SIZE,
    RING,
    LAP,
    SOURCE,
    FOUND,
    VALID,
    OFFSETS,
    PICKS,
    KEYS,
    COPIED,
    NUMBERS,
    SPACE,
    KEPT,
    FLAGS,
    IS_ARRANGED,
) = range(16)
ALL_KEYS = -(1 << 40)
"""The pick of a column that tells which rows have all keys of the window."""
OLDEST = 2
"""Where the earliest birth stands in a row of ``births``."""
ARRIVAL = 16
"""Of the new rows of a window: the table of :mod:`~penstock.kernels.window` and its size;
the ring; the lap; the number of the source; where the addresses of the columns of the source, of
their validity and the offsets of that are; which of these columns the window has (``PICKS``: keys
first, how many these are follows; a negative number -1 - c is the validity of column c, in bytes);
room for the addresses of these; where the numbers of its indexes are; the address of working space,
if it may be needed, for one number more per row than the window has columns, and then for one more
for each row; where to put which rows of the source were taken in (0: nowhere); on the arrival line,
the column of bytes that tell which rows may be in results, as all are taken in (else -1).
``IS_ARRANGED`` is found: whether these are not simply all as they lie."""


@kernel
def _let_go(code: Int64s, rings: NDArray[np.int64], end: int, instant: int) -> None:
    """Move ``end`` of all rings, ``TAIL`` or ``RING_LOW``, past what died before ``instant``."""
    at = code[1 + code[0]]
    windows, at = code[at], at + 1
    for _ in range(windows):
        ring, mask = code[at], rings[code[at], MASK]
        deaths = int64s(code[at + 1], mask + 1)
        rings[ring, end] = first_alive(deaths, mask, rings[ring, end], rings[ring, HEAD], instant)
        at += 2
    states, at = code[at], at + 1
    for _ in range(states):
        ring, columns, mask = code[at], code[at + 1], rings[code[at], MASK]
        row, head = rings[ring, end], rings[ring, HEAD]
        is_whole = False
        while row < head and not is_whole:
            is_whole = True
            for column in range(columns):
                ids, window = code[at + 2 + 2 * column], code[at + 3 + 2 * column]
                is_whole &= int64s(ids, mask + 1)[np.uint64(row & mask)] >= rings[window, end]
            row += not is_whole
        rings[ring, end] = row
        at += 2 + 2 * columns


@kernel
def _select(each: Int64s, fact: Int64s, valid: Int64s, offsets: Int64s, places: Int64s) -> int:
    """Fill ``places`` with the rows of the source that have all keys of the window; how many."""
    count, chosen = fact[arrow_struct.COUNT], fact[arrow_struct.CHOSEN]
    if chosen >= 0:
        places[:chosen] = int64s(fact[arrow_struct.PLACES], chosen)
    else:
        chosen = count
        for i in range(count):
            places[np.uint64(i)] = i
    picks = int64s(each[PICKS], each[KEYS])
    for key in range(each[KEYS] if each[FLAGS] < 0 else 0):
        address, offset = valid[picks[key]], offsets[picks[key]]
        if address == 0:
            continue
        kept = np.uint64(0)
        for i in range(chosen):
            place = places[np.uint64(i)]
            places[kept] = place
            kept += np.uint64(is_valid(address, offset, place))
        chosen = np.int64(kept)
    if each[KEPT]:
        int64s(each[KEPT], chosen)[:] = places[:chosen]
    return int(chosen)


@kernel
def _gather(source: int, width: int, places: Int64s, target: int) -> None:
    """Copy the values at ``places`` of a column, ``width`` bytes each, to ``target``."""
    count = places.shape[0]
    if width == 8:
        values, out = int64s(source, 1 << 40), int64s(target, count)
        for i in range(count):
            out[np.uint64(i)] = values[np.uint64(places[np.uint64(i)])]
        return
    parts, bytes_out = bytes_at(source, 1 << 40), bytes_at(target, width * count)
    for i in range(count):
        at = width * places[np.uint64(i)]
        for j in range(width):
            bytes_out[np.uint64(width * i + j)] = parts[np.uint64(at + j)]


@kernel
def _flag(
    address: int, offset: int, is_arranged: bool, places: Int64s, count: int, target: int
) -> None:
    """A byte for each row: whether its value is not NULL."""
    out = bytes_at(target, count)
    if address == 0:
        out[:] = 1
        return
    for i in range(count):
        place = places[np.uint64(i)] if is_arranged else np.int64(i)
        out[np.uint64(i)] = is_valid(address, offset, place)


@kernel
def _flag_whole(
    keys: Int64s,
    valid: Int64s,
    offsets: Int64s,
    is_arranged: bool,
    places: Int64s,
    count: int,
    target: int,
) -> None:
    """A byte for each row: whether none of its ``keys`` is NULL."""
    out = bytes_at(target, count)
    out[:] = 1
    for key in keys:
        if valid[key] == 0:
            continue
        for i in range(count):
            place = places[np.uint64(i)] if is_arranged else np.int64(i)
            out[np.uint64(i)] &= is_valid(valid[key], offsets[key], place)


@kernel
def _arrange(each: Int64s, fact: Int64s, table: Int64s) -> tuple[int, int]:
    """Find or make the columns of the new rows of a window; how many rows, and their times."""
    columns, count = table[COLUMNS], fact[arrow_struct.COUNT]
    width = fact[arrow_struct.COLUMNS]
    found, valid = int64s(each[FOUND], width), int64s(each[VALID], width)
    offsets = int64s(each[OFFSETS], width)
    picks, copied = int64s(each[PICKS], columns), int64s(each[COPIED], columns)
    is_arranged = fact[arrow_struct.CHOSEN] >= 0
    for key in range(each[KEYS] if each[FLAGS] < 0 else 0):
        is_arranged |= valid[picks[key]] != 0
    each[IS_ARRANGED] = is_arranged
    space = each[SPACE]
    places = int64s(space, count) if is_arranged else copied
    number = _select(each, fact, valid, offsets, places) if is_arranged else count
    places = places[:number]
    times = found[fact[arrow_struct.TIME]]
    if fact[arrow_struct.BIRTHS]:
        times = fact[arrow_struct.BIRTHS]
    if is_arranged:
        space += 8 * count
        _gather(times, 8, places, space)
        times = space
    for column in range(columns):
        pick = picks[column]
        space += 8 * count
        if pick == ALL_KEYS:
            keys = picks[: each[KEYS]]
            _flag_whole(keys, valid, offsets, is_arranged, places, number, space)
            copied[column] = space
        elif pick < 0:
            _flag(valid[-1 - pick], offsets[-1 - pick], is_arranged, places, number, space)
            copied[column] = space
        elif is_arranged:
            _gather(found[pick], table[FIRST + COLUMN * column + 1], places, space)
            copied[column] = space
        else:
            copied[column] = found[pick]
    return number, times


@kernel
def _take_in(
    arrivals: NDArray[np.int64],
    facts: NDArray[np.int64],
    hashes: Int64s,
    rings: NDArray[np.int64],
    narrow: Int64s,
    laps: Int64s,
) -> None:
    """Append to the windows what has come for them; there is room. ``laps`` get the cycles."""
    for i in range(arrivals.shape[0]):
        before = cycles()
        each = arrivals[i]
        fact = facts[each[SOURCE]]
        ring = each[RING]
        if fact[arrow_struct.COUNT] == 0:
            continue
        table = int64s(each[CODE], each[SIZE])
        count, times = _arrange(each, fact, table)
        head = rings[ring, HEAD]
        copied = int64s(each[COPIED], table[COLUMNS])
        flags = np.int64(0)
        if each[FLAGS] >= 0:
            own = copied[each[FLAGS]]
            flags = np.int64(0) if all_set(own, count, 0, count) else own
        wide = append(
            table,
            head,
            rings[ring, TAIL],
            times,
            1 if fact[arrow_struct.BIRTHS] else fact[arrow_struct.TICKS],
            count,
            copied,
            hashes,
            flags,
        )
        rings[ring, HEAD] = head + count
        index = 0
        while wide >> index:
            number = int64s(each[NUMBERS] + 8 * index, 1)[0]
            if wide >> index & 1:
                narrow[number] = 0
            index += 1
        laps[each[LAP]] = cycles() - before


@kernel
def _clear(code: Int64s, rings: NDArray[np.int64], met: NDArray[np.uint8]) -> None:
    """New rows are awake, and no news has been met."""
    for item in range(code[0]):
        at = code[1 + item]
        if code[at + KIND] != GUARDED or code[at + WINDOW] < 0:
            continue
        window = code[at + WINDOW]
        mask = rings[window, MASK]
        asleep = bytes_at(code[at + BYTES], mask + 1)
        for row in range(rings[window, OLD], rings[window, HEAD]):
            asleep[np.uint64(row & mask)] = 0
        for each in range(code[at + GUARDS]):
            guard = at + FIRST_GUARD + GUARD * each
            if code[guard + CHOOSES]:
                opposite = code[guard + OPPOSITE]
                met[SCRATCH : SCRATCH + rings[opposite, HEAD] - rings[opposite, OLD]] = 0


@kernel
def begin(
    arrivals: NDArray[np.int64],
    facts: NDArray[np.int64],
    hashes: Int64s,
    before: int,
    since: int,
    code: Int64s,
    rings: NDArray[np.int64],
    narrow: Int64s,
    laps: Int64s,
) -> None:
    """Let go of what died before ``before``, hide what died before ``since``, take in what came."""
    if before > BEGINNING:
        _let_go(code, rings, TAIL, before)
        for ring in range(rings.shape[0]):
            rings[ring, RING_LOW] = max(rings[ring, RING_LOW], rings[ring, TAIL])
    if since > BEGINNING:
        _let_go(code, rings, RING_LOW, since)
    _take_in(arrivals, facts, hashes, rings, narrow, laps)


@kernel
def _oldest(results: NDArray[np.int64], count: int, births: NDArray[np.int64]) -> None:
    """Note the earliest birth in the results, of each stream that ``births`` has."""
    for stream in range(births.shape[0]):
        mask = births[stream, 1]
        column, rows = int64s(births[stream, 0], mask + 1), results[stream]
        oldest = FOREVER
        for i in range(count):
            oldest = min(oldest, column[np.uint64(rows[np.uint64(i)] & mask)])
        births[stream, OLDEST] = oldest


@kernel
def push(
    arrivals: NDArray[np.int64],
    facts: NDArray[np.int64],
    hashes: Int64s,
    before: int,
    since: int,
    is_new: bool,
    code: Int64s,
    rings: NDArray[np.int64],
    narrow: Int64s,
    growth: NDArray[np.float64],
    counts: Int64s,
    laps: Int64s,
    progress: Int64s,
    work: NDArray[np.int64],
    keys: NDArray[np.int64],
    found: NDArray[np.int64],
    active: NDArray[np.int64],
    now: Int64s,
    tally: Int64s,
    sources: Int64s,
    met: NDArray[np.uint8],
    results: NDArray[np.int64],
    rest: Int64s,
    log: Int64s,
    columns: Int64s,
    order: NDArray[np.int64],
    out: NDArray[np.int64],
    births: NDArray[np.int64],
    shares: NDArray[np.float64],
    rations: NDArray[np.int64],
) -> int:
    """:func:`begin` if it ``is_new``; :func:`~penstock.kernels.push.run` what is left.

    If there are ``columns``, they are the ``code`` of :mod:`~penstock.kernels.answer`, which
    fills ``out`` if there is room, and ``progress`` says so. ``births`` has, for each stream of
    the results, the address of the births of its window, their mask, and room for the earliest of
    those in the results; it may have no rows.
    """
    if is_new:
        begin(arrivals, facts, hashes, before, since, code, rings, narrow, laps)
        _clear(code, rings, met)
    tables = Tables(
        code,
        rings,
        narrow,
        growth,
        counts,
        laps,
        progress,
        work,
        keys,
        found,
        active,
        now,
        tally,
        sources,
        met,
        results,
        rest,
        log,
        shares,
        rations,
    )
    lacking: int = run(tables)
    count = progress[RESULTS]
    if lacking == DONE and count:
        _oldest(results, count, births)
    if lacking == DONE and columns.shape[0] and 0 < count <= out.shape[1]:
        progress[ANSWERED] = answer(columns, results[:, :count], results.shape[0] - 2, order, out)
    return lacking
