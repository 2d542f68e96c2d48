"""What a guard would see, from a sample: who has a partner, and how many rows share a key.

A look must cost next to nothing, also where nobody keeps an index: some hundred rows are looked
for among the newest few thousands of the opposite input, by a small filter of these. A larger
input is taken to go on as it ends.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from penstock.engine.feedback.demand_range import best_of, holds
from penstock.engine.feedback.guard import Guard
from penstock.engine.join.join_step import Input, JoinStep
from penstock.engine.state.composite_state import key_values
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.probing import exists, probe_keys
from penstock.kernels import demand

Int64s = NDArray[np.int64]
Leaves = Mapping[str, LeafWindow]

SAMPLE_ROWS = 512
"""Rows whose partners are looked for."""
_FEWEST_SEARCHED = 1 << 11
_MOST_SEARCHED = 1 << 13
_SEARCHED_SHARE = 1 / 64
"""Rows of an input without an index among which they are looked for: a share of it, if that is not
less (half a tenth of a millisecond) and not more."""
_WITHHELD_ROWS = 64
"""Sleepers whose pairs are counted: a probe may find many for each."""
PAIRS_PER_FOUND = 2.0
"""Pairs in the life of a row for each that it would find now: as many come later as are there."""
_WORDS_PER_KEY = 1
"""Of 64 bits, in the filter by which keys are looked for."""


def searched_rows(target: Input) -> int:
    """Rows of an input among which partners are looked for."""
    share = int(_SEARCHED_SHARE * len(target.rows))
    return min(len(target.rows), max(_FEWEST_SEARCHED, min(share, _MOST_SEARCHED)))


def newest_rows(source: Input, most: int) -> dict[str, Int64s]:
    """The leaf rows of the newest rows that ``source`` has."""
    rows = source.rows
    return source.resolve(np.arange(max(rows.tail, rows.head - most), rows.head, dtype=np.int64))


def older_rows(source: Input) -> dict[str, Int64s]:
    """The leaf rows of a sample of the older half of the rows that ``source`` has."""
    rows = source.rows
    middle = (rows.tail + rows.head + 1) // 2
    every = max(1, (middle - rows.tail) // SAMPLE_ROWS)
    return source.resolve(np.arange(rows.tail, middle, every, dtype=np.int64))


def share_met(guard: Guard, ids: dict[str, Int64s], leaves: Leaves, growth: float) -> float:
    """The share of the rows ``ids`` that would have a partner if the opposite input had ``growth``
    times the rows. None found among so few does not mean that there is none: half a row counts as
    found."""
    target = guard.opposite.input
    if not guard.theirs:
        return float(len(target.rows) > 0)
    sought = key_values(guard.mine, ids, leaves)
    if len(sought) == 0 or len(target.rows) == 0:
        return 0.0
    if guard.operator is not None:
        held = key_values(guard.theirs, newest_rows(target, searched_rows(target)), leaves)
        meet = holds(guard.operator, sought, best_of(guard.operator, held))
        return (int(np.count_nonzero(meet)) + 0.5) / (len(sought) + 1.0)
    index = target.whole_index(guard.theirs)
    if index is not None:
        found = exists(sought, target.rows, index, np.empty(len(sought), np.bool_))
    else:
        held = key_values(guard.theirs, newest_rows(target, searched_rows(target)), leaves)
        found = _count_among(sought, held)
        growth *= len(target.rows) / len(held)
    lonely = 1.0 - (found + 0.5) / (len(sought) + 1.0)
    return float(1.0 - lonely**growth)


def _count_among(sought: Int64s, held: Int64s) -> int:
    """How many of ``sought`` are ``held``, and about one in a thousand of the others: a filter is
    a quarter of the work of :func:`numpy.isin`."""
    words = 1 << (_WORDS_PER_KEY * len(held) - 1).bit_length()
    table, found = np.zeros(words, np.uint64), np.empty(len(sought), np.bool_)
    demand.add(table, held)
    return int(demand.may_contain(table, sought, found))


def rows_per_key(guard: Guard, source: Input, leaves: Leaves) -> float:
    """The rows of ``source`` that have the key of a row of the opposite input, on average."""
    if not guard.theirs or guard.operator is not None or len(source.rows) == 0:
        return 0.0
    own = np.sort(key_values(guard.mine, newest_rows(source, SAMPLE_ROWS), leaves))
    news = key_values(guard.theirs, newest_rows(guard.opposite.input, SAMPLE_ROWS), leaves)
    if len(news) == 0:
        news = own  # As if they came from the same values.
    found = np.searchsorted(own, news, "right") - np.searchsorted(own, news, "left")
    return float(np.mean(found)) * len(source.rows) / len(own)


def share_let_through(guard: Guard, others: list[Guard], leaves: Leaves) -> float:
    """The share of those who wait at ``guard`` that the ``others`` would let through."""
    asleep = guard.waiting.sleepers()
    ids = {stream: rows[-SAMPLE_ROWS:] for stream, rows in asleep.items()}
    count = len(next(iter(ids.values())))
    if count == 0:
        return 1.0
    passes = np.ones(count, np.bool_)
    found = np.empty(count, np.bool_)
    for other in others:
        rows = other.opposite.input.rows
        if not other.theirs:
            passes &= rows.head > rows.low
            continue
        keys = key_values(other.mine, ids, leaves)
        if other.filter is not None:
            other.filter.may_contain(keys, found)
        elif other.index is not None:
            exists(keys, rows, other.index, found)
        else:
            continue
        passes &= found
    return float(np.mean(passes))


def pairs_withheld(guard: Guard, step: JoinStep, leaves: Leaves) -> float | None:
    """Pairs per row that those who wait at ``guard`` would find now in the first ``step`` of their
    join; None if nobody waits, or there is no index."""
    if step.index is None:
        return None
    asleep = guard.waiting.sleepers()
    ids = {stream: rows[-_WITHHELD_ROWS:] for stream, rows in asleep.items()}
    count = len(next(iter(ids.values())))
    if count == 0:
        return None
    rows = step.target.rows
    keys = key_values(step.left_keys, ids, leaves)
    at, _ = probe_keys(keys, rows, step.index, rows.head, float(count))
    return len(at) / count
