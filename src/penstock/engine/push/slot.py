"""Slots: where the new rows of a source or window lie, and which columns go where.

Rows come to a window from a *slot*, a row of the tables of :mod:`penstock.kernels.arrow_struct`. A
source whose columns are what is stored has one slot for all its windows. A window that filters its
rows or computes a key from several columns has a slot of its own, for rows that were prepared step
by step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.engine.push.intake import Layout, Source
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.payload import ChunkColumn
from penstock.kernels.whole_push import ALL_KEYS

Int64s = NDArray[np.int64]


class Reader:
    """A window, and which columns of its slot it takes."""

    def __init__(
        self,
        leaf: LeafWindow,
        keys: Sequence[int],
        payload: Mapping[str, int],
        more: Sequence[int] = (),
    ) -> None:
        """``keys`` are the columns of its keys, ``payload`` those of what lies in rings, ``more``
        what the arrival line needs: which rows may be in results, and their partitions."""
        self.leaf = leaf
        self.alias = leaf.stream.alias
        self.append = leaf.append_plain
        self._keys = list(keys)
        self._payload = payload
        self._more = list(more)
        self.chunked = [
            name for name, each in leaf.payload.columns.items() if isinstance(each, ChunkColumn)
        ]
        """The columns that are kept as Arrow has them."""
        self.kept = np.empty(0, np.int64)
        """Rows of the slot that were taken in, where columns outside of rings need them."""

    @property
    def key_count(self) -> int:
        """Columns that are keys; they come first."""
        return len(self._keys)

    def picks(self) -> Int64s:
        """The columns that are taken, as it is now; -1 - c for the NULLs of column c."""
        flags = [-1 - self._payload[name] for name in self.leaf.payload.flagged]
        return np.array([*self._keys, *self._payload.values(), *self._more, *flags], np.int64)

    @property
    def chosen_column(self) -> int:
        """The column, among those that are taken, of which rows may be in results; -1: all."""
        return len(self._keys) + len(self._payload) if self._more else -1

    @property
    def width(self) -> int:
        """Columns that are taken, at most."""
        return len(self._keys) + 2 * len(self._payload) + len(self._more)

    def needs_flags(self, nulls: int) -> list[str]:
        """Columns without room for NULLs, of those that have any (a bit each)."""
        known = self.leaf.payload.flagged
        return [
            name
            for name, column in self._payload.items()
            if nulls >> column & 1 and name not in known and column not in self._keys
        ]


class Slot:
    """A row of the tables, and the windows that take from it."""

    def __init__(self, place: int, source: Source, readers: list[Reader], columns: int) -> None:
        self.place = place
        self.source = source
        self.readers = readers
        self.columns = columns
        self.is_prepared = False
        """Whether its rows are prepared step by step."""
        self.struct = 0
        """Address of Arrow's struct."""
        self.encoded: list[tuple[int, str, Any, Any]] = []
        """Columns that are encoded first: number, name, encoder, interner."""
        self.native: list[tuple[str, int]] = []
        """Columns that are taken as they lie, in their order, and the bytes of a value."""
        self.layout: Layout | None = None
        """The layout of the batches that the tables are written for."""
        self.positions: dict[str, tuple[int, Any]] = {}
        """Positions of the columns in batches, and the type to cast to if there is one."""


def direct_slot(place: int, source: Source, leaves: Sequence[LeafWindow]) -> Slot | None:
    """A slot for the columns of ``source`` as they lie in its batches."""
    assert source.event_time is not None
    native: dict[str, int] = {source.event_time: 0}
    widths = {source.event_time: 8}
    for leaf in leaves:
        for name, encoder, _ in leaf.direct_keys or ():
            if encoder is None:
                native.setdefault(name, len(native))
                widths[name] = 8
        for name, ring in leaf.payload.in_rings.items():
            native.setdefault(name, len(native))
            widths[name] = ring.dtype.itemsize
    columns = len(native)
    encoded: list[tuple[int, str, Any, Any]] = []
    readers = []
    for leaf in leaves:
        keys = []
        for name, encoder, interner in leaf.direct_keys or ():
            if encoder is None:
                keys.append(native[name])
            else:
                encoded.append((columns, name, encoder, interner))
                keys.append(columns)
                columns += 1
        payload = {name: native[name] for name in leaf.payload.in_rings}
        readers.append(Reader(leaf, keys, payload, [ALL_KEYS] if leaf.by_rows else ()))
    slot = Slot(place, source, readers, columns)
    slot.encoded = encoded
    slot.native = [(name, widths[name]) for name in native]
    return slot


def prepared_slot(place: int, source: Source, leaf: LeafWindow) -> Slot:
    """A slot for the rows of ``leaf``: births, keys, what lies in rings."""
    keys = range(1, 1 + leaf.key_count)
    payload = {name: 1 + leaf.key_count + n for n, name in enumerate(leaf.payload.in_rings)}
    columns = 1 + len(keys) + len(payload)
    more = range(columns, columns + leaf.by_rows + (leaf.lifespan.partition is not None))
    reader = Reader(leaf, keys, payload, more)
    slot = Slot(place, source, [reader], columns + len(more))
    slot.is_prepared = True
    return slot
