"""What a state does in every push, as compiled calls: to take composites in, to find the dead.

Written down as a table of addresses whenever a ring has moved or an index has come or gone, as for
:mod:`penstock.engine.join.compiled_order`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.address import address_of
from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.rows import Rows
from penstock.kernels import composites as kernel
from penstock.values.wiring import KeyColumn

Int64s = NDArray[np.int64]


class CompiledState:
    """Works on ``rows``, whose ``columns`` hold ids of ``leaves``, in the same order."""

    def __init__(
        self,
        rows: Rows,
        columns: Sequence[int],
        leaves: Mapping[str, LeafWindow],
        indexes: Mapping[tuple[KeyColumn, ...], HashIndex],
    ) -> None:
        self._rows = rows
        self._columns = columns
        self._leaves = leaves
        self._slots = {alias: slot for slot, alias in enumerate(leaves)}
        self._indexes = indexes
        self._known: list[int] = []
        """What the table is of: generations, and how many indexes lack no row. They remain whole,
        so their number tells which."""
        self._code = np.empty(0, np.int64)
        self._keys = np.empty(0, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of the working space that is kept for the next rows."""
        return self._keys.nbytes

    def append(self, ids: Mapping[str, Int64s], count: int) -> None:
        """Put ``count`` composites in, for which there is room."""
        rows, start = self._rows, self._rows.head
        whole = [index for index in self._indexes.values() if index.stop == start]
        self._look()
        if len(self._keys) < count:
            self._keys = np.empty(count + (count >> 1), np.int64)
        held = [np.ascontiguousarray(ids[alias]) for alias in self._leaves]
        sources = np.array([each.__array_interface__["data"][0] for each in held], np.int64)
        wide = kernel.append(self._code, start, rows.tail, count, sources, self._keys)
        rows.head = start + count
        for number, index in enumerate(whole):
            index.stop = start + count
            if wide >> number & 1:
                index.narrow = False

    def first_whole(self, row: int, lowest: Sequence[int]) -> int:
        """The first row from ``row`` on, or the head, with no id below its leaf's ``lowest``."""
        self._look()
        first: int = kernel.first_whole(
            self._code, row, self._rows.head, np.array(lowest, np.int64)
        )
        return first

    def table(self) -> list[int]:
        """The table of addresses, for other kernels."""
        self._look()
        code: list[int] = self._code.tolist()
        return code

    def _look(self) -> None:
        """Write down the table anew if anything has moved, or an index has been filled."""
        rows = self._rows
        whole = {keys: index for keys, index in self._indexes.items() if index.stop == rows.head}
        known = [rows.generation, len(whole)]
        known += [leaf.rows.generation for leaf in self._leaves.values()]
        if known == self._known:
            return
        code = [rows.mask, len(self._columns), len(whole)]
        code += [address_of(rows.columns[column]) for column in self._columns]
        for keys, index in whole.items():
            code += (address_of(index.heads), address_of(index.entries), index.shift, len(keys))
            for key in keys:
                leaf = self._leaves[key.stream]
                column = leaf.rows.columns[leaf.key_column(key.position)]
                code += (address_of(column), leaf.rows.mask, self._slots[key.stream])
        self._code = np.array(code, np.int64)
        self._known = known  # Last: if there was no memory for the table, it is still the old one.
