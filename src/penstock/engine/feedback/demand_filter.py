"""A Bloom filter over the keys of an input (JIT, section IV.A): is there a partner, perhaps?

Two bits per key in a table of about 16 bits per row: a key that is not there passes in about one
case in seventy. Keys cannot be taken out of a filter, so it is made anew from the living rows when
as many keys have been added as it was made for.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from penstock.engine.join.join_step import Input
from penstock.engine.state.composite_state import key_values
from penstock.engine.state.leaf_window import LeafWindow
from penstock.kernels import demand
from penstock.values.wiring import KeyColumn

Int64s = NDArray[np.int64]

_SMALLEST = 256
_BITS = 16


class DemandFilter:
    """The values of ``keys`` in ``target``."""

    def __init__(
        self, target: Input, keys: tuple[KeyColumn, ...], leaves: Mapping[str, LeafWindow]
    ) -> None:
        self._target = target
        self._keys = keys
        self._leaves = leaves
        self._table = np.zeros(1, np.uint64)
        self.place = np.zeros(2, np.int64)
        """The address of the table and its words, for a compiled push."""
        self._room = 0
        self._fill()

    @property
    def nbytes(self) -> int:
        return self._table.nbytes

    def add(self, keys: Int64s) -> None:
        """These have come, and are in the target already."""
        self._room -= len(keys)
        if self._room < 0:
            self._fill()
        else:
            demand.add(self._table, keys)

    def note_added(self, count: int) -> None:
        """So many have come in a compiled push, which added them."""
        self._room -= count

    def get_ready(self) -> None:
        """Make it anew if it has got more than it was made for."""
        if self._room < 0:
            self._fill()

    def may_contain(self, keys: Int64s, found: NDArray[np.bool_]) -> int:
        """Set ``found`` where the key may be there; how many may."""
        number: int = demand.may_contain(self._table, keys, found)
        return number

    def _fill(self) -> None:
        ring = self._target.rows
        rows = np.arange(ring.tail, ring.head, dtype=np.int64)
        room = max(_SMALLEST, 2 * len(rows))
        words = _BITS * room // 64
        self._table = np.zeros(1 << (words - 1).bit_length(), np.uint64)
        self.place[:] = self._table.ctypes.data, len(self._table)
        self._room = room - len(rows)
        if len(rows):
            values = key_values(self._keys, self._target.resolve(rows), self._leaves)
            demand.add(self._table, values)
