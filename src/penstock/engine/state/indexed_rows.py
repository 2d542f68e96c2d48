"""Rows with indexes that several may use, made for the first user and dropped with the last.

The common ground of leaf windows and states of composites, which differ in where the keys of a row
come from. An index over many rows can be filled a piece at a time, beside whatever else goes on
(:mod:`penstock.engine.migration.preparation`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.rows import Rows
from penstock.values.wiring import KeyColumn

Int64s = NDArray[np.int64]
Keys = tuple[KeyColumn, ...]


class IndexedRows(ABC):
    """``rows`` and the indexes on them, by the columns that they are on."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._indexes: dict[Keys, HashIndex] = {}
        self._users: dict[Keys, int] = {}
        self.became_whole = 0
        """Times that an index has got the last row that it lacked."""

    @abstractmethod
    def _entries(self, keys: Keys, rows: Int64s) -> tuple[Int64s, Int64s | None]:
        """The values of ``keys`` in ``rows``, and the positions that go into an index (all)."""

    def index_on(self, keys: Keys) -> HashIndex:
        """The index on ``keys`` for one more user, made and filled if there is none."""
        self.begin_index(keys)
        index = self._indexes[keys]
        if index.stop < self.rows.head:
            self.fill_index(keys, len(self.rows))
        return index

    def begin_index(self, keys: Keys) -> None:
        """One more user of the index on ``keys``; if it is new, it has to be filled."""
        if keys not in self._indexes:
            self._indexes[keys] = self.rows.add_index()
        self._users[keys] = self._users.get(keys, 0) + 1

    def fill_index(self, keys: Keys, most: int) -> int:
        """Enter up to ``most`` rows that are not in the index; how many are left then."""
        rows, index = self.rows, self._indexes[keys]
        start = max(index.stop, rows.tail)
        stop = min(start + most, rows.head)
        if stop < rows.head and not index.touch(8 * most):
            return rows.head - start
        new = None
        if start < stop:
            new = self._entries(keys, np.arange(start, stop, dtype=np.int64))
        self.became_whole += index.stop < stop == rows.head
        index.stop = stop  # Only now: there may be no memory for what is entered.
        if new is not None:
            rows.insert(index, start, *new)
        return rows.head - stop

    def unfilled(self, keys: Keys) -> int:
        """Rows that would have to be entered into an index on ``keys``."""
        index = self._indexes.get(keys)
        first = self.rows.tail if index is None else max(index.stop, self.rows.tail)
        return self.rows.head - first

    @property
    def indexes(self) -> list[HashIndex]:
        """All indexes, in the order in which they came."""
        return list(self._indexes.values())

    @property
    def indexed(self) -> list[Keys]:
        """The columns of all indexes."""
        return list(self._indexes)

    def whole_index(self, keys: Keys) -> HashIndex | None:
        """The index on ``keys``, if there is one and all rows are in it."""
        index = self._indexes.get(keys)
        return None if index is None or index.stop < self.rows.head else index

    def users_of(self, keys: Keys) -> int:
        """Number of users of the index on ``keys``."""
        return self._users.get(keys, 0)

    def release_index(self, keys: Keys) -> None:
        """One user less of the index on ``keys``; the last one takes it along."""
        self._users[keys] -= 1
        if self._users[keys] == 0:
            self.rows.drop_index(self._indexes.pop(keys))
