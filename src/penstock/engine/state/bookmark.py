"""Where rows ended at some moment: a row number that stays right when rows get new numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.rows import Rows

Int64s = NDArray[np.int64]


class Bookmark:
    """The rows that are in ``rows`` now have smaller numbers than ``row``; later ones have not."""

    def __init__(self, rows: Rows) -> None:
        self.row = rows.head
        self._rows = rows
        rows.followers.append(self._follow)

    def _follow(self, kept: Int64s, first: int) -> None:
        self.row = first + int(np.searchsorted(kept, self.row))

    @property
    def is_past(self) -> bool:
        """Whether all the rows before it are gone."""
        return self._rows.tail >= self.row

    @property
    def share_before(self) -> float:
        """Share of the rows that are there now which lies before it."""
        rows = self._rows
        return max(0, self.row - rows.tail) / max(1, len(rows))

    def dispose(self) -> None:
        self._rows.followers.remove(self._follow)
