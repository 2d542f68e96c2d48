"""Pairs that may pass comparisons, found in sorted rows instead of by trying all.

Rows that are sorted by a column pass ``left < right`` from some place on, and up to some place
``left > right``; so do all columns that are sorted with it, as the two ends of a band are. Of all
columns that one is taken which leaves the fewest pairs. To sort and to search is worth it where
many tuples meet many rows: after a change of plan or a restart, when old rows of one window meet
those of another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.kernels import probe

Int64s = NDArray[np.int64]

PAIRS_WORTH_SORTING = 1 << 20
"""Pairs from which on rows may be sorted first: to try so many takes 1 to 2 ms, to sort 10,000
rows 0.6."""
_PAIRS_OF_A_CANDIDATE = 8
"""Pairs that are tried in the time in which one is found in sorted rows."""
_PAIRS_AT_ONCE = 1 << 18
"""Pairs that are written down at a time, unless one tuple has more: 4 MiB."""


@dataclass(frozen=True, slots=True)
class OrderedPairs:
    """Tuple ``i`` may match the rows at ``order[starts[i]:stops[i]]``."""

    order: Int64s
    starts: Int64s
    counts: Int64s

    @property
    def total(self) -> int:
        """Pairs in all."""
        return int(self.counts.sum())

    def parts(self) -> Iterator[tuple[Int64s, Int64s]]:
        """The pairs, in parts: positions of tuples, and of rows."""
        ends = np.cumsum(self.counts)
        first, count = 0, len(ends)
        while first < count:
            done = int(ends[first - 1]) if first else 0
            after = max(first + 1, int(np.searchsorted(ends, done + _PAIRS_AT_ONCE, "right")))
            counts = self.counts[first:after]
            at = np.repeat(np.arange(first, after), counts)
            before = ends[first:after] - counts - self.starts[first:after]
            places = np.arange(done, done + len(at)) - np.repeat(before, counts)
            yield at, self.order[places]
            first = after


def ordered_pairs(
    operators: Int64s, lefts: NDArray[np.int64], rights: NDArray[np.int64]
) -> OrderedPairs | None:
    """The fewest pairs that one order of the rows leaves of those for which ``lefts[c, i]
    operators[c] rights[c, j]`` may hold for every ``c``; None if no comparison has an order."""
    best: OrderedPairs | None = None
    for sorting in np.flatnonzero(operators != probe.NOT_EQUAL).tolist():
        order = np.argsort(rights[sorting], kind="stable")
        starts = np.zeros(lefts.shape[1], np.int64)
        stops = np.full(lefts.shape[1], len(order))
        for operator, values, column in zip(operators.tolist(), lefts, rights, strict=True):
            column = column[order]
            if operator == probe.NOT_EQUAL or (column[1:] < column[:-1]).any():
                continue
            before = np.searchsorted(column, values, "left")
            after = np.searchsorted(column, values, "right")
            if operator in (probe.LESS, probe.LESS_EQUAL, probe.EQUAL):
                np.maximum(starts, after if operator == probe.LESS else before, out=starts)
            if operator in (probe.GREATER, probe.GREATER_EQUAL, probe.EQUAL):
                np.minimum(stops, before if operator == probe.GREATER else after, out=stops)
        found = OrderedPairs(order, starts, np.maximum(stops - starts, 0))
        if best is None or found.total < best.total:
            best = found
    return best


def few_pairs(
    operators: Int64s, lefts: NDArray[np.int64], rights: NDArray[np.int64]
) -> OrderedPairs | None:
    """:func:`ordered_pairs` if they are so few that to try all takes longer; else None."""
    found = ordered_pairs(operators, lefts, rights)
    most = lefts.shape[1] * rights.shape[1] / _PAIRS_OF_A_CANDIDATE
    return found if found is not None and found.total < most else None


def pass_all(
    operators: Int64s, lefts: NDArray[np.int64], rights: NDArray[np.int64], at: Int64s, row: Int64s
) -> NDArray[np.bool_]:
    """Mask of the pairs of tuples ``at`` and ``row`` pass every comparison."""
    keep = np.ones(len(at), np.bool_)
    for operator, values, column in zip(operators.tolist(), lefts, rights, strict=True):
        keep &= _HOLDS[operator](values[at], column[row])
    return keep


_HOLDS = {
    probe.EQUAL: np.equal,
    probe.NOT_EQUAL: np.not_equal,
    probe.LESS: np.less,
    probe.LESS_EQUAL: np.less_equal,
    probe.GREATER: np.greater,
    probe.GREATER_EQUAL: np.greater_equal,
}
