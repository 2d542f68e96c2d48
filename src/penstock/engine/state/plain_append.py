"""Where the new rows of a window go, for one compiled call.

Written down as a table of addresses whenever a ring has moved or an index has come or gone, as for
:mod:`penstock.engine.join.compiled_order`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.address import address_of
from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.lifespan import Lifespan
from penstock.engine.state.payload import Payload
from penstock.engine.state.rows import Rows
from penstock.values.wiring import KeyColumn

Int64s = NDArray[np.int64]


class PlainAppend:
    """Addresses for new rows in ``rows``: ``keys``, ``payload``; on the arrival line the flags of
    those that may be in results and their partitions; at last the flags of NULLs in the payload."""

    def __init__(
        self,
        rows: Rows,
        keys: Sequence[int],
        payload: Payload,
        indexes: Mapping[tuple[KeyColumn, ...], HashIndex],
        lifespan: Lifespan,
        chosen: int | None,
    ) -> None:
        """Rows die by ``lifespan``. ``chosen`` is the column that tells which may be in results."""
        self._rows = rows
        self._keys = keys
        self._payload = payload
        self._indexes = indexes
        self._lifespan = lifespan
        self._chosen = chosen
        self._lists = np.empty(0, np.int64)
        self._generation = -1
        self._whole = 0
        """Indexes that lack no row. They remain whole, so their number tells which."""
        self.filled: list[HashIndex] = []
        """Indexes that lack no row, in the order of :attr:`code`."""
        self._code = np.empty(0, np.int64)
        self.address = 0
        """The address of :attr:`code`."""

    @property
    def code(self) -> Int64s:
        """The table with all addresses as they are now."""
        rows = self._rows
        self.filled = [index for index in self._indexes.values() if index.stop == rows.head]
        if rows.generation != self._generation or len(self.filled) != self._whole:
            self._write_down()
            self._generation, self._whole = rows.generation, len(self.filled)
        return self._code

    def _write_down(self) -> None:
        rows, lifespan = self._rows, self._lifespan
        whole = {keys: index for keys, index in self._indexes.items() if index.stop == rows.head}
        span = -1 if lifespan.fixed_span is None else lifespan.fixed_span
        code = [rows.mask, address_of(rows.births), address_of(rows.deaths), span]
        rings = self._payload.in_rings
        columns = [*self._keys, *(ring.column for ring in rings.values())]
        if self._chosen is not None:
            columns.append(self._chosen)
        if lifespan.partition is not None:
            columns.append(lifespan.partition)
            self._lists = lifespan.lists()
        columns += [flags for name in self._payload.flagged if (flags := rings[name].flags)]
        code += (len(columns), len(whole), lifespan.count)
        code.append(0 if lifespan.partition is None else address_of(self._lists))
        for number in columns:
            column = rows.columns[number]
            code += (address_of(column), column.itemsize)
        for keys, index in whole.items():
            code += (address_of(index.heads), address_of(index.entries), index.shift)
            code += (len(keys), *(key.position for key in keys))
        self._code = np.array(code, np.int64)
        self.address = self._code.ctypes.data
