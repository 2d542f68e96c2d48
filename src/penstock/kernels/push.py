"""A push through a whole tree in one call: guards, probe orders, and what is stored on the way.

New rows of an input are always the last rows of a ring: of a window, of a state, or of what was
admitted of a window. So all that has to be handed from join to join is where rings end, and a push
is a list of items that are worked off one after the other. ``code`` holds them, as numbers and
addresses. ``code[0]`` is the number of items, the place of each follows. An item is a *guard* or a
*join*:

- :data:`GUARDED` wakes the rows of a window that have waited for what the opposite input has just
  got, tests the new rows of the window, and appends those who are awake to the admitted rows
  (:mod:`~penstock.kernels.asleep`); without keys, any row of the opposite input will do;
- :data:`JOINED` runs new rows of each input through the probe order of that input
  (:mod:`~penstock.kernels.probe_order`), and appends what comes out to a state, or, of the
  last join, to the results.

Who wakes need not be looked up twice. What the opposite input has got is compared with all rows of
the window; a row of it that none of them meets can meet nothing that holds a row of the window
either. So (``CHOSEN``) only those that were met probe what was made of the window.

``rings`` has :data:`RING` numbers for each ring, of which ``HEAD`` moves. There is nothing to take
back when room runs out: before an item changes anything it makes sure that there is room for it. If
not, the call ends and says what is lacking (:data:`LACKING`), and the next one goes on from there;
``progress`` has the item, the stage or input, and the row to go on with. It ends as well
(:data:`PAUSED`) now and then, so that the caller can look whether it is to go on at all, and
(:data:`ORDER_STOPS`) when a probe order has come to a predicate that Python tests, or that cannot
be computed; ``rest`` says where that is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.asleep import sort_out, wake
from penstock.kernels.composites import append
from penstock.kernels.cycles import cycles
from penstock.kernels.index import seed_of
from penstock.kernels.kernel import kernel
from penstock.kernels.pairs import mixed
from penstock.kernels.pointer import bytes_at, int64s, uint32s
from penstock.kernels.probe import ENOUGH
from penstock.kernels.probe_order import BOUND, FAILED, LOW, NARROW, NEWEST, NOW, REST_STEP
from penstock.kernels.probe_order import run as run_order

Int64s = NDArray[np.int64]

RING_LOW, TAIL, HEAD, OLD, FREE, MASK = range(6)
RING = 6
"""Of a ring: the first row that probes see, tail, head, the first row of this push, how many rows
can be put in, and the mask."""
GUARDED, JOINED = range(2)
DONE, RING_LACKS, WORK_LACKS, RESULTS_LACK, ORDER_STOPS, PAUSED = range(6)
ITEM, STAGE, ROW, LACKING, RESULTS, ANSWERED, SPENT = range(7)
PROGRESS = 7
"""Places in ``progress``, and how many there are."""

KIND, LAP = range(2)
WINDOW, OPPOSITE, ADMITTED, STORE, BYTES, NUMBER, CAME, LET_IN, COUNTS = range(2, 11)
OWN_INDEX, THEIR_INDEX, OWN_KEYS, THEIR_KEYS, CHOOSES = range(11, 16)
"""Of a guard: rings; places in ``code`` and ``counts``."""
INPUTS, STATE, STATE_STORE, MADE, SLOTS_OF_STATE, ORDERS = range(2, 8)
"""Of a join; from ``ORDERS`` on, the place of each order."""
INDEX_HEADS, INDEX_ENTRIES, INDEX_SHIFT, INDEX_NARROW = range(4)
SOURCE, COLUMNS, STEPS, TABLE, TABLE_SIZE, IS_DATED, WIDTH, GROWTH, CHOSEN, PARTS = range(10)
"""Of an order; from ``PARTS`` on, the addresses of the columns of ids if the input holds
composites; then :data:`STEP` numbers for each step; then the ring of each slot."""
STEP_RING, STEP_INDEX, STEP_NEW, STEP_COUNTS = range(4)
STEP = 4
MOST = 1 << 15
PARTIAL = 1 << 17
FEWEST = 64
"""Rows that go through an order at a time, and partial results that they should make, at most."""
PAUSE = 1 << 20
"""Partial results after which a call ends for a moment: they take some milliseconds."""
SCRATCH = 1 << 12
"""Rows of news that are looked at at a time. So many bytes of ``met`` come before those that one of
the guards fills for all new rows of its opposite input: it ``CHOOSES`` who probes."""
_TOUCH = 16
_TESTED = 1 << 10
"""Who is woken goes into a ring that has room for so many, at least; and so does who is tested."""


@kernel
def _keys_of(
    code: Int64s, at: int, shift: int, mask: int, first: int, count: int, keys: NDArray[np.int64]
) -> Int64s:
    """The keys of the rows from ``first`` on: one column, or the hash of several.

    ``shift`` is that of the index that they are looked for in.

    ``code[at]`` is their number. Each has its address, its mask, and the address of the ids by
    which it is read, 0 if by the rows themselves. One column of a window is read where it lies,
    unless it goes over the end of the ring; else the keys are gathered in ``keys``.
    """
    columns = code[at]
    if columns == 1 and code[at + 3] == 0:
        slot = first & code[at + 2]
        if slot + count <= code[at + 2] + 1:
            as_it_lies: Int64s = int64s(code[at + 1] + 8 * slot, count)
            return as_it_lies
    for column in range(columns):
        address, own_mask, ids = code[at + 1], code[at + 2], code[at + 3]
        at += 3
        values = int64s(address, own_mask + 1)
        for i in range(count):
            row = first + i
            if ids:
                row = int64s(ids, mask + 1)[np.uint64(row & mask)]
            value = values[np.uint64(row & own_mask)]
            if columns > 1:
                value = mixed(keys[np.uint64(i)] if column else seed_of(shift), value)
            keys[np.uint64(i)] = value
    return keys[:count]


@kernel
def _store(
    code: Int64s,
    at: int,
    rings: NDArray[np.int64],
    ring: int,
    count: int,
    sources: Int64s,
    narrow: Int64s,
    space: NDArray[np.int64],
) -> None:
    """Append to ``ring``; ``code[at]`` tells how many indexes it has, and their numbers follow."""
    indexes = code[at]
    table = code[at + 1 + indexes :]
    head = rings[ring, HEAD]
    wide = append(table, head, rings[ring, TAIL], count, sources, space)
    for index in range(indexes):
        if wide >> index & 1:
            narrow[code[at + 1 + index]] = 0
    rings[ring, HEAD] = head + count
    rings[ring, FREE] -= count


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
def _wake(
    code: Int64s,
    at: int,
    rings: NDArray[np.int64],
    narrow: Int64s,
    counts: Int64s,
    progress: Int64s,
    keys: NDArray[np.int64],
    found: NDArray[np.int64],
    active: NDArray[np.int64],
    sources: Int64s,
    met: NDArray[np.uint8],
) -> int:
    """Let in who has waited for what the opposite input has just got."""
    window, opposite, admitted = code[at + WINDOW], code[at + OPPOSITE], code[at + ADMITTED]
    mask, room = rings[window, MASK], keys.shape[0]
    asleep = bytes_at(code[at + BYTES], mask + 1)
    index, number = code[at + OWN_INDEX], code[at + NUMBER]
    first, stop = rings[opposite, OLD], rings[opposite, HEAD]
    if index == 0:  # Any news will do for everybody.
        first, stop = rings[window, TAIL], rings[window, OLD] if first < stop else np.int64(0)
    progress[ROW] = max(progress[ROW], first)
    while progress[ROW] < stop:
        if rings[admitted, FREE] < _TOUCH:
            progress[LACKING] = _TOUCH
            return RING_LACKS
        most = min(room, rings[admitted, FREE])
        if index == 0:
            woken, progress[ROW] = _find_asleep(
                asleep, mask, progress[ROW], stop, number, found[0, :most]
            )
        else:
            count = min(stop - progress[ROW], min(room, SCRATCH))
            space = SCRATCH + progress[ROW] - first if code[at + CHOOSES] else np.int64(0)
            their_mask = rings[opposite, MASK]
            shift = code[index + INDEX_SHIFT]
            theirs = code[at + THEIR_KEYS]
            woken = wake(
                _keys_of(code, theirs, shift, their_mask, progress[ROW], count, keys),
                uint32s(code[index + INDEX_HEADS], mask + 1),
                int64s(code[index + INDEX_ENTRIES], mask + 1),
                narrow[code[index + INDEX_NARROW]] != 0,
                shift,
                mask,
                rings[window, RING_LOW],
                rings[window, HEAD] - 1,
                asleep,
                number,
                active,
                met[space:],
                found[0, :most],
            )
            if woken < most:  # Else there may be more who wait for the same keys.
                progress[ROW] += count
        if woken:
            _store(code, code[at + STORE], rings, admitted, woken, sources, narrow, found[1])
            counts[code[at + COUNTS] + 2] += woken
            counts[code[at + LET_IN]] += woken
    return DONE


@kernel
def _test(
    code: Int64s,
    at: int,
    rings: NDArray[np.int64],
    narrow: Int64s,
    counts: Int64s,
    progress: Int64s,
    keys: NDArray[np.int64],
    found: NDArray[np.int64],
    active: NDArray[np.int64],
    sources: Int64s,
) -> int:
    """Let in the new rows that have a partner, and put the others to sleep."""
    window, opposite, admitted = code[at + WINDOW], code[at + OPPOSITE], code[at + ADMITTED]
    own_mask, mask, room = rings[window, MASK], rings[opposite, MASK], keys.shape[0]
    asleep = bytes_at(code[at + BYTES], own_mask + 1)
    index, number = code[at + THEIR_INDEX], code[at + NUMBER]
    progress[ROW] = max(progress[ROW], rings[window, OLD])
    while progress[ROW] < rings[window, HEAD]:
        first = progress[ROW]
        count = min(rings[window, HEAD] - first, room)
        if rings[admitted, FREE] < min(count, _TESTED):
            progress[LACKING] = min(count, _TESTED)
            return RING_LACKS
        count = min(count, rings[admitted, FREE])
        if index == 0:
            awake = count if rings[opposite, HEAD] > rings[opposite, RING_LOW] else 0
            for i in range(count):
                found[0, np.uint64(i)] = first + i
                if awake == 0:
                    asleep[np.uint64((first + i) & own_mask)] = number
        else:
            for i in range(count):
                found[1, np.uint64(i)] = first + i
            shift = code[index + INDEX_SHIFT]
            awake = sort_out(
                found[1, :count],
                _keys_of(code, code[at + OWN_KEYS], shift, 0, first, count, keys),
                uint32s(code[index + INDEX_HEADS], mask + 1),
                int64s(code[index + INDEX_ENTRIES], mask + 1),
                narrow[code[index + INDEX_NARROW]] != 0,
                shift,
                mask,
                rings[opposite, RING_LOW],
                rings[opposite, HEAD] - 1,
                asleep,
                number,
                active,
                found[0],
            )
        if awake:
            _store(code, code[at + STORE], rings, admitted, awake, sources, narrow, found[1])
        place = code[at + COUNTS]
        counts[code[at + CAME]] += count
        counts[code[at + LET_IN]] += awake
        counts[place] += count
        counts[place + 1] += count - awake
        progress[ROW] += count
    return DONE


@kernel
def _ready(
    code: Int64s,
    order: int,
    rings: NDArray[np.int64],
    narrow: Int64s,
    now: Int64s,
) -> bool:
    """Write down where the rings of an order begin and end; whether all have rows to be seen."""
    steps, width = code[order + STEPS], code[order + WIDTH]
    at = order + PARTS + code[order + COLUMNS]
    for step in range(steps):
        ring = code[at + STEP_RING]
        bound = rings[ring, HEAD] if code[at + STEP_NEW] else rings[ring, OLD]
        if bound <= rings[ring, RING_LOW]:
            return False
        now[NOW * step + LOW] = rings[ring, RING_LOW]
        now[NOW * step + NEWEST] = rings[ring, HEAD] - 1
        now[NOW * step + BOUND] = bound
        now[NOW * step + NARROW] = narrow[code[at + STEP_INDEX]]
        at += STEP
    for slot in range(width):
        ring = code[at + slot]
        now[NOW * steps + slot] = rings[ring, TAIL]
        now[NOW * steps + width + slot] = rings[ring, RING_LOW]
    return True


@kernel
def _choose(met: NDArray[np.uint8], first: int, count: int, out: NDArray[np.int64]) -> int:
    """Fill ``out`` with those of ``count`` rows from ``first`` on that are ``met``; how many."""
    chosen = np.uint64(0)
    for i in range(count):
        out[chosen] = first + i
        chosen += np.uint64(met[np.uint64(i)])
    return int(np.int64(chosen))


@kernel
def _join(
    code: Int64s,
    at: int,
    rings: NDArray[np.int64],
    narrow: Int64s,
    growth: NDArray[np.float64],
    counts: Int64s,
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
) -> int:
    state = code[at + STATE]
    while progress[STAGE] < code[at + INPUTS]:
        order = code[at + ORDERS + progress[STAGE]]
        ring = code[order + SOURCE]
        progress[ROW] = max(progress[ROW], rings[ring, OLD])
        steps, width, columns = code[order + STEPS], code[order + WIDTH], code[order + COLUMNS]
        numbers = NOW * steps + 2 * width
        table = code[code[order + TABLE] : code[order + TABLE] + code[order + TABLE_SIZE]]
        number = code[order + GROWTH]
        while progress[ROW] < rings[ring, HEAD] and _ready(code, order, rings, narrow, now):
            first = progress[ROW]
            fewest = FEWEST if growth[number] * FEWEST < ENOUGH else 1
            size = max(fewest, min(MOST, int(PARTIAL / growth[number])))
            count = min(rings[ring, HEAD] - first, size)
            if count >= keys.shape[0]:
                progress[LACKING] = count + 1
                return WORK_LACKS
            asking = count
            if code[order + CHOSEN] and rest[REST_STEP] == 0:
                asking = _choose(met[SCRATCH + first - rings[ring, OLD] :], first, count, found[0])
                work[0, 0, :asking] = found[0, :asking]
            mask = rings[ring, MASK]
            for column in range(columns if rest[REST_STEP] == 0 else 0):
                ids = int64s(code[order + PARTS + column], mask + 1)
                for i in range(asking):
                    row = found[0, np.uint64(i)] if code[order + CHOSEN] else first + i
                    work[0, column, np.uint64(i)] = ids[np.uint64(row & mask)]
            made = run_order(
                table,
                now[:numbers],
                steps,
                -1 if columns or code[order + CHOSEN] else first,
                max(columns, 1),
                asking,
                code[order + IS_DATED] != 0,
                work,
                keys,
                found,
                active,
                tally[: 2 * steps],
                rest,
            )
            if FAILED - made > ENOUGH and count > 1:  # Room for so many is not even asked for.
                growth[number] = max(2 * growth[number], (FAILED - made) / count)
                progress[SPENT] += ENOUGH
                continue
            if made < 0:
                progress[LACKING] = FAILED - made
                return WORK_LACKS if made < FAILED else ORDER_STOPS
            side = steps & 1
            if state >= 0:
                if rings[state, FREE] < made:
                    progress[LACKING] = made
                    return RING_LACKS
                if made:
                    slots = code[at + SLOTS_OF_STATE] + progress[STAGE] * width
                    for column in range(width):
                        sources[column] = work[side, code[slots + column]].ctypes.data
                    store = code[at + STATE_STORE]
                    _store(code, store, rings, state, made, sources, narrow, found[1])
            else:
                there = progress[RESULTS]
                if there + made > results.shape[1]:
                    progress[LACKING] = there + made
                    return RESULTS_LACK
                slots = code[at + SLOTS_OF_STATE] + progress[STAGE] * (width + 2)
                for column in range(width + 2):
                    results[column, there : there + made] = work[side, code[slots + column], :made]
                progress[RESULTS] = there + made
            counts[code[at + MADE]] += made
            most = spent = np.int64(count)
            step_at = order + PARTS + columns
            for step in range(steps):
                place = code[step_at + STEP * step + STEP_COUNTS]
                counts[place] += tally[2 * step] if step else count
                counts[place + 1] += tally[2 * step + 1]
                most = max(most, tally[2 * step], tally[2 * step + 1])
                spent += tally[2 * step + 1]
            growth[number] = 0.5 * growth[number] + 0.5 * most / count
            progress[ROW] += count
            progress[SPENT] += spent
            if progress[SPENT] > PAUSE:
                progress[SPENT] = 0
                return PAUSED
        progress[STAGE] += 1
        progress[ROW] = 0
    return DONE


@kernel
def run(
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
) -> int:
    """Work off what is left of a push; what is lacking, if it cannot be finished.

    ``met`` has bytes for news, zero at first. ``work``, ``keys``, ``found``, ``active``, ``now``,
    ``tally`` and ``sources`` are working space. ``laps`` gets the cycles of each item.
    """
    while progress[ITEM] < code[0]:
        at = code[1 + progress[ITEM]]
        before = cycles()
        if code[at + KIND] == GUARDED:
            lacking = DONE
            sources[0] = found[0].ctypes.data
            if progress[STAGE] == 0:
                lacking = _wake(
                    code, at, rings, narrow, counts, progress, keys, found, active, sources, met
                )
                if lacking == DONE:
                    progress[STAGE], progress[ROW] = 1, 0
            if lacking == DONE:
                lacking = _test(
                    code, at, rings, narrow, counts, progress, keys, found, active, sources
                )
        else:
            lacking = _join(
                code,
                at,
                rings,
                narrow,
                growth,
                counts,
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
            )
        laps[code[at + LAP]] += cycles() - before
        if lacking:
            return lacking
        progress[ITEM] += 1
        progress[STAGE] = progress[ROW] = 0
    return DONE
