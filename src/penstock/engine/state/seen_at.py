"""When the rows of a ring came: the newest event time at the end of the push that brought each.

Rows come in the order of their numbers, so this is a step for each push that brought some. Windows
alone do not tell it, and it decides whether a result was fresh when it was found.
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.clock import START
from penstock.engine.state.rows import Rows

Int64s = NDArray[np.int64]

_FEWEST_STEPS = 64
"""Steps for which nobody looks whether their rows are gone."""


class SeenAt:
    """When each of the ``rows`` came; ``START`` for those that are there already."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._starts = array("q", [rows.tail])
        """The first row of each step."""
        self._instants = array("q", [START])
        self._stop = rows.head
        """The first row that nothing is known of."""
        self._most = _FEWEST_STEPS
        rows.followers.append(self._follow)

    @property
    def nbytes(self) -> int:
        return 2 * self._starts.itemsize * len(self._starts)

    def note(self, instant: int) -> None:
        """The rows that nothing is known of came at ``instant``."""
        if self._rows.head > self._stop and instant != self._instants[-1]:
            self._starts.append(self._stop)
            self._instants.append(instant)
        self._stop = self._rows.head
        if len(self._starts) > self._most:
            gone = int(np.searchsorted(np.array(self._starts), self._rows.tail, "right")) - 1
            if gone > 0:
                del self._starts[:gone], self._instants[:gone]
            self._most = max(_FEWEST_STEPS, 2 * len(self._starts))

    def note_each(self, instants: Int64s) -> None:
        """The rows that nothing is known of came at these ``instants``, one of each."""
        if len(instants):
            steps = np.append(0, np.flatnonzero(np.diff(instants)) + 1)
            self._starts.extend((self._stop + steps).tolist())
            self._instants.extend(instants[steps].tolist())
        self._stop = self._rows.head

    def of(self, rows: Int64s) -> Int64s:
        """When ``rows`` came."""
        steps = np.searchsorted(np.array(self._starts), rows, "right") - 1
        found: Int64s = np.array(self._instants)[steps]
        return found

    def _follow(self, kept: Int64s, first: int) -> None:
        starts = array("q", (first + np.searchsorted(kept, np.array(self._starts))).tolist())
        self._stop = first + int(np.searchsorted(kept, self._stop))
        self._starts = starts
