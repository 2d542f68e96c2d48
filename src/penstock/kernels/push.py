"""A push through a whole tree in one call: guards, probe orders, and what is stored on the way.

New rows of an input are always the last rows of a ring: of a window, of a state, or of what was
admitted of a window. So all that has to be handed from join to join is where rings end
(:mod:`~penstock.kernels.rings`), and a push is a list of items that are worked off one after the
other. ``code`` holds them, as numbers and addresses. ``code[0]`` is the number of items, the place
of each follows. An item is an *input with guards* or a *join*:

- :data:`GUARDED` lets those rows into an input that have waited for what has just come, and the
  new rows of a window that have partners (:mod:`~penstock.kernels.guards`);
- :data:`JOINED` runs new rows of each input through the probe order of that input
  (:mod:`~penstock.kernels.probe_order`), and appends what comes out to a state, as far as guards
  let it through, or, of the last join, to the results.

Partners of woken rows need not be looked up twice. What the opposite input has got is compared with
all rows of the window; a row of it that none of them meets can meet nothing that holds a row of the
window either. So (``CHOSEN``) only those that were met probe what was made of the window.

There is nothing to take back when room runs out: before an item changes anything it makes sure that
there is room for it. If not, the call ends and says what is lacking, and the next one goes on from
there; ``progress`` has the item, the stage or input, and the row to go on with. It ends as well
(:data:`PAUSED`) now and then, so that the caller can look whether it is to go on at all, and
(:data:`ORDER_STOPS`) when a probe order has come to a predicate that Python tests, or that cannot
be computed; ``rest`` says where that is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.cycles import cycles
from penstock.kernels.guards import (
    CAME,
    CAME_OF_SLICE,
    DONE,
    ITEM,
    LACKING,
    LACKING_RING,
    LET_IN,
    ORDER_STOPS,
    PAUSED,
    RESULTS,
    RESULTS_LACK,
    RING_LACKS,
    ROW,
    SCRATCH,
    SPENT,
    STAGE,
    WORK_LACKS,
    all_set,
    choose,
    let_in,
    pass_composites,
    room_behind,
)
from penstock.kernels.kernel import kernel
from penstock.kernels.pointer import int64s
from penstock.kernels.probe import MATCHES_TO_PAUSE
from penstock.kernels.probe_order import (
    BOUND,
    FAILED,
    GAP_FROM,
    GAP_TO,
    IS_LONG,
    LONG_ITEMS,
    LOW,
    NARROW,
    NEWEST,
    NOW,
    REST_STEP,
    run_order,
)
from penstock.kernels.ration import (
    ASKING,
    FOUND,
    GROUPS,
    OFFERED,
    PROBED,
    SEED,
    TOTAL,
    allowed,
    count_groups,
    draw,
)
from penstock.kernels.rings import COMPLETED, FREE, HEAD, MASK, OLD, RING_LOW, TAIL, store
from penstock.kernels.tables import Tables

Int64s = NDArray[np.int64]

GUARDED, JOINED = range(2)
KIND, LAP = range(2)
INPUTS, STATE, STATE_STORE, MADE, SLOTS_OF_STATE, GUARDS_OF_STATE, ORDERS = range(2, 9)
"""Of a join; ``GUARDS_OF_STATE`` is the place of the item that lets others into the state (0: it
has no guards); from ``ORDERS`` on, the place of each order."""
SOURCE, COLUMNS, STEPS, TABLE, TABLE_SIZE, IS_DATED, WIDTH, GROWTH, CHOSEN, FLAGS = range(10)
PARTS = 10
"""Of an order; ``FLAGS`` are those of its window; from ``PARTS`` on, the addresses of the columns
of ids if the input holds composites; then :data:`STEP` numbers for each step; then the ring of each
slot."""
STEP_RING, STEP_INDEX, STEP_NEW, STEP_COUNTS, STEP_LACKS = range(5)
STEP = 5
"""Of a step; without an index, that is -1."""
MOST_ROWS = 1 << 15
"""Rows that go through a probe order at a time, at most."""
PARTIAL_AT_ONCE = 1 << 17
"""Partial results that the rows of one time should make, at most."""
FEWEST_ROWS = 64
"""Rows at a time, at least, unless so many are expected to make MATCHES_TO_PAUSE."""
PAUSE = 1 << 20
"""Partial results after which a call ends for a moment: they take some milliseconds."""
PAIRS = 1 << 24
"""Pairs that a step without an index tries at a time, at most: some milliseconds as well."""
_PAIRS_PER_RESULT = 16
"""Pairs that take as long to try as a partial result to make."""


@kernel
def _ready(tables: Tables, order: int) -> bool:
    """Write down where the rings of an order begin and end; whether all have rows to be seen."""
    code, rings, narrow, now = tables.code, tables.rings, tables.narrow, tables.now
    steps, width = code[order + STEPS], code[order + WIDTH]
    at = order + PARTS + code[order + COLUMNS]
    for step in range(steps):
        ring = code[at + STEP_RING]
        bound, gap = rings[ring, HEAD], np.int64(0)
        if not code[at + STEP_NEW]:
            if rings[ring, COMPLETED] < rings[ring, HEAD]:
                gap = rings[ring, COMPLETED]
            else:
                bound = rings[ring, OLD]
        if bound <= rings[ring, RING_LOW] and not code[at + STEP_LACKS]:
            return False
        now[NOW * step + GAP_FROM] = rings[ring, OLD] if gap else 0
        now[NOW * step + GAP_TO] = gap
        now[NOW * step + LOW] = rings[ring, RING_LOW]
        now[NOW * step + NEWEST] = rings[ring, HEAD] - 1
        now[NOW * step + BOUND] = bound
        index = code[at + STEP_INDEX]
        now[NOW * step + NARROW] = narrow[index] if index >= 0 else 0
        at += STEP
    for slot in range(width):
        ring = code[at + slot]
        now[NOW * steps + slot] = rings[ring, TAIL]
        now[NOW * steps + width + slot] = rings[ring, RING_LOW]
    return True


@kernel
def _tried(tables: Tables, order: int) -> int:
    """Rows of the largest target without an index, with each of which a row of the order makes a
    pair; at least 1."""
    code, rings = tables.code, tables.rings
    at, most = order + PARTS + code[order + COLUMNS], np.int64(1)
    for _ in range(code[order + STEPS]):
        ring = code[at + STEP_RING]
        if code[at + STEP_INDEX] < 0:
            most = max(most, rings[ring, HEAD] - rings[ring, RING_LOW])
        at += STEP
    return int(most)


@kernel
def _join(tables: Tables, at: int) -> int:
    code, rings, progress, rest = tables.code, tables.rings, tables.progress, tables.rest
    growth, counts, tally, sources = tables.growth, tables.counts, tables.tally, tables.sources
    work, found, results = tables.work, tables.found, tables.results
    state = code[at + STATE]
    rest[IS_LONG] = (rest[LONG_ITEMS] >> min(progress[ITEM], 62)) & 1
    while progress[STAGE] < code[at + INPUTS]:
        order = code[at + ORDERS + progress[STAGE]]
        ring = code[order + SOURCE]
        progress[ROW] = max(progress[ROW], rings[ring, OLD])
        steps, width, columns = code[order + STEPS], code[order + WIDTH], code[order + COLUMNS]
        numbers = NOW * steps + 2 * width
        table = code[code[order + TABLE] : code[order + TABLE] + code[order + TABLE_SIZE]]
        number = code[order + GROWTH]
        end = min(rings[ring, HEAD], rings[ring, COMPLETED])
        tried = _tried(tables, order)
        total, ration = end - rings[ring, OLD], tables.rations[number]
        is_rationed = allowed(tables.shares[number], total) < total
        ration[TOTAL] = total
        while progress[ROW] < end and _ready(tables, order):
            first = progress[ROW]
            fewest = FEWEST_ROWS if growth[number] * FEWEST_ROWS < MATCHES_TO_PAUSE else 1
            size = max(fewest, min(MOST_ROWS, int(PARTIAL_AT_ONCE / growth[number])))
            size = min(size, max(1, PAIRS // tried))
            count = min(end - first, size)
            if count >= tables.keys.shape[0]:
                progress[LACKING] = count + 1
                return WORK_LACKS
            asking = came = count
            mask = rings[ring, MASK]
            is_met = code[order + CHOSEN] != 0 and not is_rationed
            flags = code[order + FLAGS]
            if flags and all_set(flags, mask, first, count):
                flags = np.int64(0)
            is_picked = is_met or flags != 0
            if is_picked and rest[REST_STEP] == 0:
                asking, came = choose(
                    is_met,
                    tables.met[SCRATCH + first - rings[ring, OLD] :],
                    flags,
                    mask,
                    first,
                    count,
                    found[0],
                )
                progress[CAME_OF_SLICE] = came
            elif is_picked:
                came = progress[CAME_OF_SLICE]
            if is_rationed and rest[REST_STEP] == 0:
                may = np.empty(count, np.uint8)
                draw(
                    tables.shares[number], ration[SEED], total, first - rings[ring, OLD], count, may
                )
                drawn = 0
                for i in range(asking):
                    row = found[0, np.uint64(i)] if is_picked else first + i
                    found[0, np.uint64(drawn)] = row
                    drawn += may[np.uint64(row - first)]
                asking = drawn
            is_picked |= is_rationed
            if is_picked and rest[REST_STEP] == 0:
                work[0, 0, :asking] = found[0, :asking]
            for column in range(columns if rest[REST_STEP] == 0 else 0):
                ids = int64s(code[order + PARTS + column], mask + 1)
                for i in range(asking):
                    row = found[0, np.uint64(i)] if is_picked else first + i
                    work[0, column, np.uint64(i)] = ids[np.uint64(row & mask)]
            if is_rationed and rest[REST_STEP] == 0:
                ration[ASKING : ASKING + GROUPS] = 0
                count_groups(work[0], max(columns, 1), asking, ration[ASKING:])
            made = run_order(
                tables,
                table,
                tables.now[:numbers],
                steps,
                -1 if columns or is_picked else first,
                max(columns, 1),
                asking,
                code[order + IS_DATED] != 0,
            )
            if FAILED - made > MATCHES_TO_PAUSE and count > 1:  # That is too many to make room for.
                growth[number] = max(2 * growth[number], (FAILED - made) / count)
                progress[SPENT] += MATCHES_TO_PAUSE
                continue
            if made < 0:
                progress[LACKING] = FAILED - made
                return WORK_LACKS if made < FAILED else ORDER_STOPS
            side = steps & 1
            if state >= 0:
                progress[LACKING], progress[LACKING_RING] = made, state
                if rings[state, FREE] < made:
                    return RING_LACKS
                guards, passing = code[at + GUARDS_OF_STATE], made
                slots = code[at + SLOTS_OF_STATE] + progress[STAGE] * width
                if guards:
                    if room_behind(tables, guards, -1) < made:
                        return RING_LACKS
                    passing = pass_composites(
                        tables, guards, -1, work[side], slots, made, work[1 - side]
                    )
                    counts[code[guards + CAME]] += made
                    counts[code[guards + LET_IN]] += passing
                if passing:
                    for column in range(width):
                        sources[column] = work[side, code[slots + column]].ctypes.data
                    store(tables, code[at + STATE_STORE], state, passing)
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
            if is_rationed:
                ration[OFFERED] += came
                ration[PROBED : PROBED + GROUPS] += ration[ASKING : ASKING + GROUPS]
                count_groups(work[side], max(columns, 1), made, ration[FOUND:])
            most = spent = np.int64(count)
            step_at = order + PARTS + columns
            for step in range(steps):
                place = code[step_at + STEP * step + STEP_COUNTS]
                is_counted = step or columns or is_rationed
                counts[place] += tally[2 * step] if is_counted else came
                counts[place + 1] += tally[2 * step + 1]
                most = max(most, tally[2 * step], tally[2 * step + 1])
                spent += tally[2 * step + 1]
            growth[number] = 0.5 * growth[number] + 0.5 * most / count
            progress[ROW] += count
            progress[SPENT] += spent + count * tried // _PAIRS_PER_RESULT
            if progress[SPENT] > PAUSE:
                progress[SPENT] = 0
                return PAUSED
        progress[STAGE] += 1
        progress[ROW] = 0
    return DONE


@kernel
def run(tables: Tables) -> int:
    """Work off what is left of a push; what is lacking, if it cannot be finished."""
    code, progress = tables.code, tables.progress
    while progress[ITEM] < code[0]:
        at = code[1 + progress[ITEM]]
        before = cycles()
        lacking = let_in(tables, at) if code[at + KIND] == GUARDED else _join(tables, at)
        tables.laps[code[at + LAP]] += cycles() - before
        if lacking:
            return int(lacking)
        progress[ITEM] += 1
        progress[STAGE] = progress[ROW] = 0
    return DONE
