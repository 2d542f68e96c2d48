"""Which share of pairs passes what is no equality: ranges, and residuals on sampled rows.

*Comparisons.* A band (``A.v BETWEEN B.v - 5 AND B.v + 5``) and a single ``<`` compare one column of
a stream with bounds that each row of the other gives. So for every row of the other the partners
are a range of the sorted column, and two binary searches count them: all pairs of the two samples,
where a table of pairs could hold but few rows of each. What has another form is tried on such a
table.

*Residuals* need their columns decoded. They are evaluated on pairs of sampled rows that agree on
the equalities beside them, where there are some, as these are the pairs that they will see; on
pairs drawn at random otherwise; and, over three and more streams, on combinations drawn at random.
A predicate that cannot be evaluated on such rows (a division by zero that an equality would have
kept away) is left to the planner's guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.control.pair_shares import compare_all
from penstock.engine.control.stream_sample import StreamSample
from penstock.engine.join.join_step import ColumnReader
from penstock.engine.state.composites import Composites
from penstock.engine.state.leaf_window import LeafWindow
from penstock.errors import PenstockError
from penstock.kernels.probe import GREATER, GREATER_EQUAL, LESS, LESS_EQUAL
from penstock.query.join_graph import Predicate
from penstock.values.evaluate import conjunction
from penstock.values.wiring import Condition

Int64s = NDArray[np.int64]

TABLE_ROWS = 256
"""Rows of each stream whose pairs are tried one by one."""
TRIED = 1 << 11
"""Combinations on which a residual is evaluated, at most."""
LEAST_TRIED = 32
"""Pairs that agree on the equalities, if a residual is to be evaluated on these alone."""


def compared_share(
    conditions: Sequence[Condition], left: StreamSample, right: StreamSample
) -> float:
    """The share of the pairs of two samples that pass ``conditions``."""
    seen = [condition.seen_from(left.leaf.streams) for condition in conditions]
    if len(left.all) == 0 or len(right.all) == 0:
        return 1.0
    if all(each.operator in (LESS, LESS_EQUAL, GREATER, GREATER_EQUAL) for each in seen):
        if len({each.left for each in seen}) == 1:
            return _in_ranges(seen, left, right)
        if len({each.right for each in seen}) == 1:
            mirrored = [each.seen_from(right.leaf.streams) for each in seen]
            return _in_ranges(mirrored, right, left)
    mine, theirs = _thinned(left.all), _thinned(right.all)
    good = np.ones((len(mine), len(theirs)), np.bool_)
    for each in seen:
        one, two = (
            _values(left, each.left.position, mine),
            _values(right, each.right.position, theirs),
        )
        good &= compare_all(each.operator, one, two)
    return float(good.mean())


def _in_ranges(seen: Sequence[Condition], left: StreamSample, right: StreamSample) -> float:
    """The same if all of them compare one column of ``left``."""
    column = np.sort(_values(left, seen[0].left.position, left.all))
    first = np.zeros(len(right.all), np.int64)
    stop = np.full(len(right.all), len(column))
    for each in seen:
        bounds = _values(right, each.right.position, right.all)
        below = each.operator in (LESS, GREATER_EQUAL)
        at = np.searchsorted(column, bounds, "left" if below else "right")
        if each.operator in (LESS, LESS_EQUAL):
            stop = np.minimum(stop, at)
        else:
            first = np.maximum(first, at)
    return float(np.maximum(0, stop - first).mean()) / len(column)


def residual_share(
    residuals: Sequence[Predicate],
    left: StreamSample,
    right: StreamSample,
    keys: tuple[Int64s, Int64s] | None,
    leaves: Mapping[str, LeafWindow],
) -> float | None:
    """The share of pairs that pass ``residuals``, of those whose ``keys`` agree; None if unknown.

    ``keys`` are those of ``left.recent`` and ``right.all``.
    """
    chance = np.random.default_rng(len(left.all))
    pairs = None if keys is None else _agreeing(*keys, chance)
    if pairs is None or len(pairs[0]) < LEAST_TRIED:
        count = min(TRIED, len(left.recent) * len(right.all))
        pairs = (
            chance.integers(0, len(left.recent), count),
            chance.integers(0, len(right.all), count),
        )
    ids = {
        left.leaf.stream.alias: left.recent[pairs[0]],
        right.leaf.stream.alias: right.all[pairs[1]],
    }
    return _passing(residuals, ids, leaves)


def share_of_many(
    predicate: Predicate, samples: Mapping[str, StreamSample], leaves: Mapping[str, LeafWindow]
) -> float | None:
    """The share of combinations of three or more streams that pass; None if unknown."""
    chance = np.random.default_rng(len(predicate.streams))
    ids = {}
    for alias in sorted(predicate.streams):
        rows = samples[alias].all
        if len(rows) == 0:
            return None
        ids[alias] = rows[chance.integers(0, len(rows), TRIED)]
    return _passing([predicate], ids, leaves)


def _agreeing(mine: Int64s, theirs: Int64s, chance: np.random.Generator) -> tuple[Int64s, Int64s]:
    """Positions of up to :data:`TRIED` pairs whose keys agree, one partner for each row."""
    order = np.argsort(theirs, kind="stable")
    values = theirs[order]
    first, stop = np.searchsorted(values, mine, "left"), np.searchsorted(values, mine, "right")
    found = np.flatnonzero(stop > first)
    if len(found) > TRIED:
        found = chance.choice(found, TRIED, replace=False)
    partner = first[found] + (chance.random(len(found)) * (stop - first)[found]).astype(np.int64)
    return found, order[partner]


def _passing(
    predicates: Sequence[Predicate], ids: Mapping[str, Int64s], leaves: Mapping[str, LeafWindow]
) -> float | None:
    """The share of the combinations ``ids`` that pass; at least half a one."""
    count = len(next(iter(ids.values())))
    test = conjunction(tuple(each.expression for each in predicates))
    if test is None or count == 0:
        return None
    nowhere = np.zeros(count, np.int64)
    try:
        passed = test(ColumnReader(Composites(dict(ids), nowhere, nowhere), leaves), count)
    except (PenstockError, pa.ArrowException):
        return None
    return max(0.5, float(np.count_nonzero(passed))) / count


def _values(sample: StreamSample, position: int, rows: Int64s) -> Int64s:
    return sample.leaf.rows.take(sample.leaf.key_column(position), rows)


def _thinned(rows: Int64s) -> Int64s:
    return rows[:: max(1, len(rows) // TABLE_ROWS)]
