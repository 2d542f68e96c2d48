"""Rows that wait for demand: the blacklist of JIT (section IV.B), indexed by what they wait for.

A waiting row is a composite that has not been handed to its join. When partners of its key turn up,
all rows of that key are claimed at once and handed over. A claimed row stays in its chain until the
ring is packed, so a byte tells who still waits; a failed push takes its claims back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.composite_state import CompositeState
from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.leaf_window import LeafWindow, Lull
from penstock.engine.state.probing import probe_keys
from penstock.plan.stream_set import StreamSet
from penstock.values.wiring import KeyColumn

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Waiting(CompositeState):
    """Composites over ``streams`` that wait for a partner with their value of ``keys``."""

    number = 1
    """The byte of those who wait."""

    def __init__(
        self,
        streams: StreamSet,
        leaves: Mapping[str, LeafWindow],
        keys: tuple[KeyColumn, ...],
    ) -> None:
        """Without ``keys``, for any partner at all."""
        super().__init__(streams, leaves)
        self._asleep = self.rows.add_column(np.uint8)
        self.index: HashIndex | None = self.index_on(keys) if keys else None
        self._ratio = 1.0
        self._log: list[Int64s] = []
        """Rows that were claimed since the last commit."""

    @property
    def bytes(self) -> NDArray[np.uint8]:
        """The byte of each row, in a ring: :attr:`number` if it waits, 0 if it was claimed."""
        column: NDArray[np.uint8] = self.rows.columns[self._asleep]
        return column

    def open(self) -> None:
        """From now on, somebody may wait: nothing has to be done for that."""

    def put(self, ids: Mapping[str, Int64s]) -> None:
        """These wait from now on."""
        start, count = self.rows.head, len(next(iter(ids.values())))
        self.append_ids(ids)
        self.rows.put(self._asleep, start, np.full(count, self.number, np.uint8))

    def claim(self, keys: Int64s) -> dict[str, Int64s] | None:
        """Hand over all that wait for one of ``keys``, or (without keys) all."""
        rows = self.rows
        if rows.head == rows.low:
            return None
        if self.index is None:
            found = np.arange(rows.low, rows.head, dtype=np.int64)
        else:
            at, found = probe_keys(keys, rows, self.index, rows.head, len(keys) * self._ratio)
            self._ratio = 0.5 * self._ratio + 0.5 * len(at) / len(keys)
        return self._hand_over(found)

    def claim_if(self, passes: Callable[[Mapping[str, Int64s]], Bools]) -> dict[str, Int64s] | None:
        """Hand over those who wait that pass a test."""
        found = np.arange(self.rows.tail, self.rows.head, dtype=np.int64)
        found = found[self._waits(found)]
        return self._hand_over(found[passes(self.resolve(found))]) if len(found) else None

    def claim_all(self) -> dict[str, Int64s] | None:
        """Hand over all that wait."""
        return self._hand_over(np.arange(self.rows.tail, self.rows.head, dtype=np.int64))

    def _hand_over(self, found: Int64s) -> dict[str, Int64s] | None:
        if len(found) == 0:
            return None
        mine = np.unique(found[self._waits(found)])  # Several may have asked for the same.
        if len(mine) == 0:
            return None
        self.bytes[mine & self.rows.mask] = 0
        self._log.append(mine)
        return self.resolve(mine)

    def note_woken(self, rows: Int64s) -> None:
        """Note that ``rows`` were woken elsewhere."""
        self._log.append(rows)

    def _waits(self, rows: Int64s) -> NDArray[np.bool_]:
        """Which of ``rows`` still wait."""
        waits: NDArray[np.bool_] = self.rows.take(self._asleep, rows) != 0
        return waits

    def holds(self, keys: Int64s) -> NDArray[np.bool_]:
        """For which of ``keys`` somebody waits already: the MNS buffer, read."""
        if self.index is None:
            return np.full(len(keys), self.asleep > 0)
        at, found = probe_keys(keys, self.rows, self.index, self.rows.head, len(keys))
        held = np.zeros(len(keys), np.bool_)
        held[at[self._waits(found)]] = True
        return held

    @property
    def asleep(self) -> int:
        """How many wait, those that have died but were not cleared away yet included."""
        living = np.arange(self.rows.tail, self.rows.head, dtype=np.int64)
        return int(np.count_nonzero(self._waits(living)))

    def sleepers(self) -> dict[str, Int64s]:
        """All who wait."""
        living = np.arange(self.rows.tail, self.rows.head, dtype=np.int64)
        return self.resolve(living[self._waits(living)])

    def forget_made_of(self, alias: str, marked: NDArray[np.uint8]) -> int:
        count = super().forget_made_of(alias, marked)
        if count:
            column = self.rows.columns[self.id_columns[alias]]
            self.bytes[column < 0] = 0
        return count

    def forget(self, rows: Int64s) -> None:
        super().forget(rows)
        self.bytes[rows & self.rows.mask] = 0

    def clear(self) -> None:
        """Nobody waits any more."""
        self.rows.advance(self.rows.head)
        self.rows.fit()

    def commit(self) -> None:
        """Make it final that woken rows are gone."""
        self._log.clear()

    def undo_claims(self) -> None:
        """Go back to the last commit."""
        for rows in self._log:
            self.bytes[rows & self.rows.mask] = self.number
        self._log.clear()

    def _are_wanted(
        self, living: Int64s, before: int, lull: Lull | None = None
    ) -> NDArray[np.bool_]:
        return super()._are_wanted(living, before, lull) & self._waits(living)
