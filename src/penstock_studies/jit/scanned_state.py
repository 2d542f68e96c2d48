"""A state that is searched by nested loops: one scan over whole columns for each probe.

Rows stand in the order in which they were stored, so that a scan meets the oldest first. Who leaves
is only struck out; :meth:`ScannedState.purge` closes the gaps and drops who has died.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from penstock_studies.jit.ledger import Ledger
from penstock_studies.jit.part import Part

Int64s = NDArray[np.int64]

_GONE = np.iinfo(np.int64).min


class ScannedState:
    """Parts with ``width`` values each, of ``size`` bytes."""

    def __init__(self, width: int, size: int, ledger: Ledger) -> None:
        self.parts: list[Part] = []
        self._columns = np.empty((width, 64), np.int64)
        self._times = np.empty(64, np.int64)
        self._size = size
        self._ledger = ledger
        self._gone = 0

    def __len__(self) -> int:
        return len(self.parts) - self._gone

    def insert(self, part: Part) -> None:
        place = len(self.parts)
        if place == len(self._times):
            self._columns = np.concatenate([self._columns, np.empty_like(self._columns)], axis=1)
            self._times = np.concatenate([self._times, np.empty_like(self._times)])
        part.place = place
        self.parts.append(part)
        self._columns[:, place] = part.values
        self._times[place] = part.time
        self._ledger.hold(1, self._size)

    def remove(self, part: Part) -> None:
        self._times[part.place] = _GONE
        self._gone += 1
        self._ledger.hold(-1, self._size)

    def is_empty(self, since: int) -> bool:
        """Whether nobody is left whose time is ``since`` or later."""
        count = len(self.parts)
        if count and self._times[count - 1] >= since:
            return False
        return not (self._times[:count] >= since).any()

    def scan(self, columns: Sequence[int], values: Sequence[int], since: int) -> Int64s:
        """The places where ``columns`` have ``values``, of those alive; oldest first."""
        count = len(self.parts)
        self._ledger.comparisons += len(self)
        if not columns:
            return np.flatnonzero(self._times[:count] >= since)
        found = np.flatnonzero(self._columns[columns[0], :count] == values[0])
        for column, value in zip(columns[1:], values[1:], strict=True):
            if len(found) == 0:
                return found
            self._ledger.comparisons += len(found)
            found = found[self._columns[column, found] == value]
        return found[self._times[found] >= since] if len(found) else found

    def find(self, columns: Sequence[int], values: Sequence[int], since: int) -> list[Part]:
        """The parts at those places."""
        return [self.parts[place] for place in self.scan(columns, values, since).tolist()]

    def purge(self, since: int) -> bool:
        """Drop who has died; whether anybody had, or had left."""
        count = len(self.parts)
        kept = np.flatnonzero(self._times[:count] >= since)
        if len(kept) == count:
            return False
        died = count - self._gone - len(kept)
        self._columns[:, : len(kept)] = self._columns[:, kept]
        self._times[: len(kept)] = self._times[kept]
        self.parts = [self.parts[place] for place in kept.tolist()]
        for place, part in enumerate(self.parts):
            part.place = place
        self._gone = 0
        self._ledger.hold(-died, self._size)
        return True
