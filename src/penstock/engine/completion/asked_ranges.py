"""Old rows of an input that a probe without equal columns may ask for: by ranges of their values.

A probe by keys names the values that it asks for. One by comparisons names ranges: of the columns
of one input of the incomplete state, ``a.x < b.y`` asks for the b with a y above x, and a band for
those with a value between two others. The ranges of all probing rows are put together, and the open
rows whose value lies in one of them are what has to be completed before the probe. Where there is
nothing but a predicate on whole rows (a residual), it is tested on every pair of a probing row and
an open row, as the probe itself does on every pair of a probing row and a row of the state.

**What it costs.** Without the change of plan, the probing rows would have met that input and, with
every match, the others. Here each old row that is matched meets the others once, however many match
it, and then never again. So a push pays for completing no more than what the same push would have
paid in a plan that stores nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.engine.join.join_step import ColumnReader, Input
from penstock.engine.join.ordered_pairs import PAIRS_WORTH_SORTING, few_pairs, pass_all
from penstock.engine.state.composites import Composites
from penstock.engine.state.leaf_window import LeafWindow
from penstock.errors import PenstockError
from penstock.kernels import probe
from penstock.query.join_graph import Predicate
from penstock.values.evaluate import conjunction
from penstock.values.wiring import Condition, KeyColumn, Linking

Int64s = NDArray[np.int64]
Leaves = Mapping[str, LeafWindow]

_LEAST_INT64, _MOST_INT64 = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_RANGES_AT_SIGHT = 4
"""Ranges up to which a value is compared with each of them: to search takes longer."""
_BLOCK_ROWS = 1 << 13
"""Old rows that are compared with all probing rows at a time."""
_PAIRS_AT_ONCE = 1 << 17
"""Pairs on which a predicate is tested at a time: their columns stay in the cache."""


def can_tell(given: Input, linking: Linking, known: frozenset[str]) -> bool:
    """Whether the rows of ``given`` that probes of streams ``known`` ask for can be told."""
    return bool(_comparisons(given, linking)) or bool(_residuals(given, linking, known))


def asked_rows(
    rows: Int64s, given: Input, linking: Linking, ids: Mapping[str, Int64s], leaves: Leaves
) -> Int64s:
    """Those of the ``rows`` of ``given`` that the combinations ``ids`` may ask for."""
    for column, conditions in _comparisons(given, linking).items():
        starts, stops = _ranges(conditions, ids, leaves)
        if len(starts) == 0:
            return rows[:0]
        rows = rows[_lie_within(_values(column, given.resolve(rows), leaves), starts, stops)]
        if len(rows) == 0:
            return rows
    if len(_comparisons(given, linking)) > 1:
        rows = _meeting(rows, given, linking, ids, leaves)
    residuals = _residuals(given, linking, frozenset(ids))
    return _holding(rows, given, residuals, ids, leaves) if residuals else rows


def _meeting(
    rows: Int64s, given: Input, linking: Linking, ids: Mapping[str, Int64s], leaves: Leaves
) -> Int64s:
    """Those of ``rows`` for which all comparisons hold with one and the same of ``ids``.

    A band is two comparisons with two columns: ranges of each alone are of nearly all values.
    """
    conditions = [each for found in _comparisons(given, linking).values() for each in found]
    operators = np.array([each.operator for each in conditions], np.int64)
    lefts = np.stack([_values(each.left, ids, leaves) for each in conditions])
    if lefts.shape[1] * len(rows) >= PAIRS_WORTH_SORTING:
        theirs = given.resolve(rows)
        rights = np.stack([_values(each.right, theirs, leaves) for each in conditions])
        few = few_pairs(operators, lefts, rights)
        if few is not None:
            are_met = np.zeros(len(rows), np.bool_)
            for at, row in few.parts():
                are_met[row[pass_all(operators, lefts, rights, at, row)]] = True
            return rows[are_met]
    always = np.zeros(max(lefts.shape[1], _BLOCK_ROWS), np.int64)
    kept = []
    for start in range(0, len(rows), _BLOCK_ROWS):
        part = rows[start : start + _BLOCK_ROWS]
        theirs = given.resolve(part)
        rights = np.stack([_values(each.right, theirs, leaves) for each in conditions])
        out = np.empty((4, max(_PAIRS_AT_ONCE, len(part))), np.int64)
        first, count = 0, lefts.shape[1]
        while first < count:
            lives, theirs_live = always[:count], always[: len(part)]
            met, first = probe.nested_loop(
                operators, lefts, lives, lives, rights, theirs_live, theirs_live, part, first, out
            )
            kept.append(np.unique(out[1, :met]))
    return np.unique(np.concatenate(kept)) if kept else rows[:0]


def _comparisons(given: Input, linking: Linking) -> dict[KeyColumn, list[Condition]]:
    """The comparisons that make ranges, by the column of ``given``."""
    found: dict[KeyColumn, list[Condition]] = {}
    for each in linking.conditions:
        if each.right.stream in given.streams and each.operator != probe.NOT_EQUAL:
            found.setdefault(each.right, []).append(each)
    return found


def _residuals(given: Input, linking: Linking, known: frozenset[str]) -> list[Predicate]:
    return [each for each in linking.residuals if each.streams <= known | given.streams]


def _values(column: KeyColumn, ids: Mapping[str, Int64s], leaves: Leaves) -> Int64s:
    leaf = leaves[column.stream]
    values: Int64s = leaf.rows.take(leaf.key_column(column.position), ids[column.stream])
    return values


def _ranges(
    conditions: Sequence[Condition], ids: Mapping[str, Int64s], leaves: Leaves
) -> tuple[Int64s, Int64s]:
    """Ascending ranges, both ends included, of values that pass all ``conditions`` with some of the
    combinations. Conditions read ``left operator right``, and the ranges are of the right."""
    count = len(next(iter(ids.values())))
    starts, stops = np.full(count, _LEAST_INT64), np.full(count, _MOST_INT64)
    possible = np.ones(count, np.bool_)
    for each in conditions:
        values = _values(each.left, ids, leaves)
        if each.operator == probe.LESS:
            possible &= values < _MOST_INT64
            starts = np.maximum(starts, np.where(possible, values, 0) + 1)
        elif each.operator == probe.GREATER:
            possible &= values > _LEAST_INT64
            stops = np.minimum(stops, np.where(possible, values, 0) - 1)
        if each.operator in (probe.LESS_EQUAL, probe.EQUAL):
            starts = np.maximum(starts, values)
        if each.operator in (probe.GREATER_EQUAL, probe.EQUAL):
            stops = np.minimum(stops, values)
    possible &= starts <= stops
    return merged(starts[possible], stops[possible])


def merged(starts: Int64s, stops: Int64s) -> tuple[Int64s, Int64s]:
    """The union of ranges, both ends included, as ascending ranges that do not overlap."""
    order = np.argsort(starts)
    starts, stops = starts[order], np.maximum.accumulate(stops[order])
    # A range begins where all before it have ended.
    begins = np.ones(len(starts), np.bool_)
    begins[1:] = starts[1:] > stops[:-1]
    ends = np.ones(len(starts), np.bool_)
    ends[:-1] = begins[1:]
    return starts[begins], stops[ends]


def _lie_within(values: Int64s, starts: Int64s, stops: Int64s) -> NDArray[np.bool_]:
    if len(starts) <= _RANGES_AT_SIGHT:
        inside = np.zeros(len(values), np.bool_)
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            inside |= (values >= start) & (values <= stop)
        return inside
    at = np.searchsorted(starts, values, "right") - 1
    return (at >= 0) & (values <= stops[at])


def _holding(
    rows: Int64s,
    given: Input,
    residuals: Sequence[Predicate],
    ids: Mapping[str, Int64s],
    leaves: Leaves,
) -> Int64s:
    """Those of ``rows`` for which ``residuals`` hold together with some of ``ids``."""
    test = conjunction([each.expression for each in residuals])
    assert test is not None
    count = len(next(iter(ids.values())))
    kept = []
    for start in range(0, count, _PAIRS_AT_ONCE):
        some = {stream: each[start : start + _PAIRS_AT_ONCE] for stream, each in ids.items()}
        probing = min(count - start, _PAIRS_AT_ONCE)
        lot = max(1, _PAIRS_AT_ONCE // probing)
        for first in range(0, len(rows), lot):
            part = rows[first : first + lot]
            pairs = {stream: np.tile(each, len(part)) for stream, each in some.items()}
            theirs = given.resolve(part).items()
            pairs.update({stream: np.repeat(each, probing) for stream, each in theirs})
            try:
                held = test(ColumnReader(Composites.undated(pairs), leaves), probing * len(part))
            except PenstockError:  # Of a pair that need not be in any combination.
                kept.append(part)
            else:
                kept.append(part[held.reshape(len(part), probing).any(axis=1)])
    return np.unique(np.concatenate(kept)) if kept else rows[:0]
