"""Working space of probe orders: what they make on the way, before it is stored or answered."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

_ASKEW = 40
"""Columns that are a power of two apart compete for the same places of a cache."""
_FEWEST_COMBINATIONS = (1 << 12) + _ASKEW
"""Combinations for which there always is room."""
_MOST_KEPT_COMBINATIONS = 1 << 19
"""Combinations beyond which room is given back as soon as a push is done."""


class Workspace(threading.local):
    """Room for what an order makes on its way; every thread has its own."""

    def __init__(self) -> None:
        self.room = 0
        self.reserve(_FEWEST_COMBINATIONS)

    def reserve(self, room: int) -> None:
        """Make room for ``room`` combinations."""
        keys, found = np.empty(room, np.int64), np.empty((2, room), np.int64)
        self.room, self.keys, self.found = room, keys, found
        self._work: dict[int, NDArray[np.int64]] = {}

    def make_room(self, needed: int) -> None:
        """Make room for at least ``needed`` combinations."""
        self.reserve((1 << (needed - 1).bit_length()) + _ASKEW)

    def give_back(self) -> None:
        """The push is done: give much room back."""
        if self.room > _MOST_KEPT_COMBINATIONS:
            self.reserve(_FEWEST_COMBINATIONS)

    def of(self, width: int) -> NDArray[np.int64]:
        """Two tables of ``width`` numbers for each combination."""
        work = self._work.get(width)
        if work is None:
            work = self._work[width] = np.empty((2, width, self.room), np.int64)
        return work


WORKSPACE = Workspace()
