"""The new rows of a plain batch go into their window in one compiled call.

Written down as a table of addresses whenever a ring has moved or an index has come or gone, as for
:mod:`penstock.engine.join.compiled_order`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.address import address_of
from penstock.engine.state.rows import HashIndex, Rows
from penstock.kernels import window as kernel
from penstock.values.wiring import KeyColumn

Int64s = NDArray[np.int64]


class PlainAppend:
    """Appends to ``rows``, whose key columns stand in ``columns`` before all others."""

    def __init__(
        self,
        rows: Rows,
        columns: Sequence[int],
        indexes: Mapping[tuple[KeyColumn, ...], HashIndex],
        span: int | None,
    ) -> None:
        self._rows = rows
        self._columns = columns
        self._indexes = indexes
        self._span = -1 if span is None else span
        self._generation = -1
        self._whole = 0
        """How many indexes lack no row. They remain whole, so their number tells which."""
        self.filled: list[HashIndex] = []
        """Those, in the order of :attr:`code`."""
        self._code = np.empty(0, np.int64)
        self._hashes = np.empty(0, np.int64)
        self.address = 0
        """Where :attr:`code` lies."""

    def __call__(self, births: Int64s, sources: Int64s) -> None:
        """Put in rows born at ``births``, with columns from the addresses ``sources``."""
        rows, start, count = self._rows, self._rows.head, len(births)
        if len(self._hashes) < count:
            self._hashes = np.empty(count, np.int64)
        times = births.ctypes.data
        wide = kernel.append(self.code, start, rows.tail, times, 1, count, sources, self._hashes)
        rows.head += count
        for number, index in enumerate(self.filled):
            index.stop = rows.head
            if wide >> number & 1:
                index.narrow = False

    @property
    def code(self) -> Int64s:
        """Where everything lies now."""
        rows = self._rows
        self.filled = [index for index in self._indexes.values() if index.stop == rows.head]
        if rows.generation != self._generation or len(self.filled) != self._whole:
            self._write_down()
            self._generation, self._whole = rows.generation, len(self.filled)
        return self._code

    def _write_down(self) -> None:
        rows = self._rows
        whole = {keys: index for keys, index in self._indexes.items() if index.stop == rows.head}
        code = [rows.mask, address_of(rows.births), address_of(rows.deaths), self._span]
        code += (len(self._columns), len(whole))
        for number in self._columns:
            column = rows.columns[number]
            code += (address_of(column), column.itemsize)
        for keys, index in whole.items():
            code += (address_of(index.heads), address_of(index.entries), index.shift)
            code += (len(keys), *(key.position for key in keys))
        self._code = np.array(code, np.int64)
        self.address = self._code.ctypes.data
