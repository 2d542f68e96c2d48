"""Which rows of a window are asleep, and at which guard: a byte for each row.

Every guard on the way from the window to a join has a number as long as anybody may wait at it; 0
stands for rows that are awake. A row is asleep at one guard at most.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.rows import Rows

Int64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]


class Asleep:
    """The sleepers among ``rows``."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._column = rows.add_column(np.uint8)
        self._taken: set[int] = set()

    @property
    def bytes(self) -> Bytes:
        """The byte of each row, in a ring."""
        column: Bytes = self._rows.columns[self._column]
        return column

    def take_number(self) -> int:
        """A number for one more guard. From now on, :meth:`wake_run` or
        :meth:`wake_rows` gets all new rows."""
        if not self._taken:
            self.bytes[:] = 0
        number = next(each for each in range(1, 256) if each not in self._taken)
        self._taken.add(number)
        return number

    def wake_run(self, first: int, count: int) -> None:
        """The ``count`` new rows from ``first`` on are awake."""
        column, mask = self.bytes, self._rows.mask
        slot, stop = first & mask, (first & mask) + count
        column[slot:stop] = 0
        if stop > len(column):
            column[: stop - len(column)] = 0

    def wake_rows(self, rows: Int64s) -> None:
        """These new ``rows`` are awake."""
        self.bytes[rows & self._rows.mask] = 0

    def give_back(self, number: int) -> None:
        """Wake all rows at guard ``number``, and give the number back."""
        column = self.bytes
        column[column == number] = 0
        self._taken.remove(number)

    def at(self, number: int) -> Int64s:
        """The rows that are asleep at guard ``number``, in ascending order."""
        rows = np.arange(self._rows.tail, self._rows.head, dtype=np.int64)
        asleep: Int64s = rows[self.bytes[rows & self._rows.mask] == number]
        return asleep
