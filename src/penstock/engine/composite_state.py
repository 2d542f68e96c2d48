"""A state: the stored composites of a set of streams, indexed by what their consumer probes.

A composite is the leaf rows that it is made of, its birth and its death: about 36 bytes with one
index. It dies with its first leaf row, so composites do not die in the order in which they were
made: the tail waits for the oldest, a dead row fails the test of lifespans, and when many are dead
the rest is packed together.

On the arrival line (ROWS) a death becomes known only when it happens. There the stored death is an
upper bound, and :meth:`shorten` brings it down to what the leaf windows say by now.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from penstock.engine.composites import Composites
from penstock.engine.kernels import pairs, ring
from penstock.engine.kernels.probe import GONE
from penstock.engine.leaf_window import LeafWindow
from penstock.engine.rows import BIRTH, DEATH, HashIndex, Rows
from penstock.engine.wiring import KeyColumn
from penstock.plan.stream_set import StreamSet

Int64s = NDArray[np.int64]


class CompositeState:
    """Composites over ``streams``, with their indexes."""

    def __init__(self, streams: StreamSet, leaves: Mapping[str, LeafWindow], by_rows: bool) -> None:
        self.streams = streams
        self.rows = Rows()
        self.by_rows = by_rows
        self._leaves = {alias: leaf for alias, leaf in leaves.items() if alias in streams}
        self._ids = {alias: self.rows.add_column(np.int64) for alias in self._leaves}
        self._keys: dict[tuple[KeyColumn, ...], HashIndex] = {}

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes

    def index_on(self, keys: tuple[KeyColumn, ...]) -> HashIndex:
        """The index on ``keys``, made if there is none."""
        if keys not in self._keys:
            self._keys[keys] = self.rows.add_index()
        return self._keys[keys]

    def append(self, new: Composites) -> None:
        """Store ``new`` and put it into every index."""
        rows, start, count = self.rows, self.rows.head, len(new)
        rows.reserve(count)
        rows.put(BIRTH, start, new.births)
        rows.put(DEATH, start, new.deaths)
        for alias, column in self._ids.items():
            rows.put(column, start, new.ids[alias])
        for keys, index in self._keys.items():
            rows.insert(index, start, key_values(keys, new.ids, self._leaves))
        rows.head = start + count

    def resolve(self, rows: Int64s) -> dict[str, Int64s]:
        """The leaf rows that the composites in ``rows`` are made of."""
        return {alias: self.rows.take(column, rows) for alias, column in self._ids.items()}

    def visible(self, bound: int) -> Int64s:
        """The rows that a probe up to ``bound`` may see."""
        return np.arange(self.rows.low, bound, dtype=np.int64)

    def shorten(self, found: Composites) -> None:
        """Bring deaths of ``found``, which came from this state, down to those of its leaf rows."""
        for leaf in self._leaves.values():
            leaf.shorten_by_id(found)

    def expire(self, before: int) -> None:
        """Let go of rows whose death is before ``before``."""
        rows = self.rows
        if self.by_rows:
            if not rows.is_worth_a_check():
                return
            self._shorten_stored()
        rows.expire(before)
        if rows.is_worth_a_check():
            alive = ring.alive_rows(rows.deaths, rows.mask, rows.tail, rows.head, before)
            if 2 * len(alive) < len(rows):
                rows.keep_only(alive)
            rows.note_alive(len(alive))
        rows.fit()

    def renumber(self, alias: str, mapping: Int64s, first: int) -> None:
        """Leaf row ``r`` of ``alias`` is now ``mapping[r - first]``; -1 where it is gone."""
        rows = self.rows
        column = rows.columns[self._ids[alias]]
        living = np.arange(rows.tail, rows.head, dtype=np.int64)
        old = ring.take(column, rows.mask, living)
        new = np.full(len(old), -1, np.int64)
        known = (old >= first) & (old < first + len(mapping))
        new[known] = mapping[old[known] - first]
        ring.put(column, rows.mask, rows.tail, new)
        dead = living[new < 0]
        rows.deaths[dead & rows.mask] = GONE

    def _shorten_stored(self) -> None:
        rows = self.rows
        living = np.arange(rows.tail, rows.head, dtype=np.int64)
        deaths = ring.take(rows.deaths, rows.mask, living)
        for alias, column in self._ids.items():
            leaf = self._leaves[alias].rows
            ids = ring.take(rows.columns[column], rows.mask, living)
            pairs.shorten(deaths, ids, leaf.deaths, leaf.mask, leaf.tail)
        ring.put(rows.deaths, rows.mask, rows.tail, deaths)


def key_values(
    keys: tuple[KeyColumn, ...], ids: Mapping[str, Int64s], leaves: Mapping[str, LeafWindow]
) -> Int64s:
    """The value of one key column, or the hash of several, for composites given by ``ids``."""
    if len(keys) == 1:
        (key,) = keys
        rows = leaves[key.stream].rows
        values: Int64s = ring.take(
            rows.columns[leaves[key.stream].key_column(key.position)], rows.mask, ids[key.stream]
        )
        return values
    hashes = np.zeros(len(ids[keys[0].stream]), np.int64)
    for key in keys:
        leaf = leaves[key.stream]
        column = leaf.rows.columns[leaf.key_column(key.position)]
        pairs.mix_into(hashes, column, leaf.rows.mask, ids[key.stream])
    return hashes
