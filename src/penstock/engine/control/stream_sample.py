"""A sample of the window of one stream: rows from all of it, and rows that came lately.

What a join does next is what its *new* rows find in the *whole* opposite window. So the share of
pairs that match is measured between recent rows of one stream and all rows of the other, and the
other way round: that is exact for streams at rest, also where keys follow time (bids on auctions
that are open now), and when streams change it changes as the work does.

Rows are drawn at random from equal strata. Every n-th row would be cheaper, and wrong for streams
with a period. The draw is the same every time: the same windows give the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.engine.state.composite_state import key_values
from penstock.engine.state.hash_factor import shift_for
from penstock.engine.state.leaf_window import LeafWindow
from penstock.kernels import agreement
from penstock.values.wiring import KeyColumn

Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]

SAMPLE = 1 << 13
RECENT = 16
"""The last one in so many rows of a window is recent."""
LEAST_RECENT = 1 << 11
"""Recent rows that are enough for a sample."""


class _Counted:
    """The values of a column in a sample, and a table of how often each occurs."""

    def __init__(self, values: Int64s) -> None:
        self.values = values
        self._table: tuple[Int64s, Int64s, int] | None = None

    def share_equal_to(self, other: _Counted) -> float:
        """The share of all pairs that are equal: Σ p(v) q(v)."""
        pairs = len(self.values) * len(other.values)
        return float(self.partners_of(other).sum()) / pairs if pairs else 0.0

    def partners_of(self, other: _Counted) -> Int64s:
        """For each value of ``other``, the values here that are equal to it."""
        if self._table is None:
            bits = max(1, (2 * len(self.values) - 1).bit_length())
            keys, counts = np.empty(1 << bits, np.int64), np.zeros(1 << bits, np.int64)
            self._table = keys, counts, shift_for(1 << bits)
            agreement.tally(self.values, *self._table)
        partners: Int64s = agreement.agreeing(other.values, *self._table)
        return partners


class StreamSample:
    """Rows of ``leaf``, with the values of its key columns counted when asked for."""

    def __init__(self, leaf: LeafWindow) -> None:
        rows = leaf.rows
        newest = rows.head - max(len(rows) // RECENT, min(len(rows), LEAST_RECENT))
        self.leaf = leaf
        self.all = _chosen(leaf, drawn(rows.tail, rows.head, SAMPLE))
        self.recent = _chosen(leaf, drawn(newest, rows.head, SAMPLE))
        self.is_recent = len(self.recent) == len(rows)
        """Whether all rows of the window are recent, and in the sample."""
        self._counted: dict[tuple[bool, tuple[KeyColumn, ...]], _Counted] = {}

    def share_equal_to(
        self,
        other: StreamSample,
        keys: Sequence[tuple[KeyColumn, KeyColumn]],
        leaves: Mapping[str, LeafWindow],
        recent: bool = False,
        other_recent: bool = False,
    ) -> float:
        """The share of the pairs of the two samples that agree on ``keys``."""
        mine = self._values(tuple(k for k, _ in keys), recent, leaves)
        theirs = other._values(tuple(k for _, k in keys), other_recent, leaves)
        # The table is made of all rows: it is used twice.
        return theirs.share_equal_to(mine) if recent else mine.share_equal_to(theirs)

    def partners_in(
        self,
        other: StreamSample,
        keys: Sequence[tuple[KeyColumn, KeyColumn]],
        leaves: Mapping[str, LeafWindow],
    ) -> Int64s:
        """For each recent row here, the rows of the sample of ``other`` that agree on ``keys``."""
        mine = self._values(tuple(k for k, _ in keys), True, leaves)
        return other._values(tuple(k for _, k in keys), False, leaves).partners_of(mine)

    def keys_of(
        self,
        other: StreamSample,
        keys: Sequence[tuple[KeyColumn, KeyColumn]],
        leaves: Mapping[str, LeafWindow],
    ) -> tuple[Int64s, Int64s]:
        """The values of ``keys`` of the recent rows here, and of all rows of ``other``."""
        mine = self._values(tuple(k for k, _ in keys), True, leaves)
        return mine.values, other._values(tuple(k for _, k in keys), False, leaves).values

    def distinct(self, column: str) -> float | None:
        """Different values of ``column`` in the window, about; None if it is not kept there.

        In a sample of n of the N rows with d values, f of which occur once, n·d / (n − f + f·n/N)
        (Haas and Stokes, JASA 1998): d if every value came back, N if none did.
        """
        leaf, sampled = self.leaf, len(self.all)
        if sampled == 0:
            return None
        if column in leaf.payload.columns:
            values = leaf.payload.take(column, self.all)
        else:
            names = [leaf.key_name(position) for position in range(leaf.key_count)]
            name = f"{leaf.stream.alias}.{column}"
            if name not in names:
                return None
            values = pa.array(leaf.rows.take(leaf.key_column(names.index(name)), self.all))
        counts = pc.value_counts(values).field("counts").to_numpy()
        found, once = len(counts), int((counts == 1).sum())
        total = max(len(leaf.rows), sampled)
        return float(min(total, sampled * found / (sampled - once + once * sampled / total)))

    def _values(
        self, keys: tuple[KeyColumn, ...], recent: bool, leaves: Mapping[str, LeafWindow]
    ) -> _Counted:
        found = self._counted.get((recent, keys))
        if found is None:
            rows = self.recent if recent else self.all
            found = _Counted(key_values(keys, self.leaf.resolve(rows), leaves))
            self._counted[recent, keys] = found
        return found


def _chosen(leaf: LeafWindow, rows: Int64s) -> Int64s:
    """On the arrival line, only rows that may be in results count."""
    flags = leaf.chosen(rows)
    return rows if flags is None else rows[flags]


def drawn(first: int, last: int, most: int) -> Int64s:
    """At most ``most`` of the rows from ``first`` to before ``last``."""
    count = last - first
    if count <= most:
        return np.arange(first, last, dtype=np.int64)
    return first + (_strata(most) * count).astype(np.int64)


@lru_cache(maxsize=4)
def _strata(count: int) -> Floats:
    """A place in [0, 1) from each of ``count`` equal parts."""
    places: Floats = (np.arange(count) + np.random.default_rng(0).random(count)) / count
    return places
