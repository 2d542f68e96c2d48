"""Groups: the distinct values of the GROUP BY expressions, numbered from 0.

Numbers and values are those of :mod:`penstock.values.key_rows`. Keys of ordered types determine
their values. Byte strings have numbers for keys, so their bytes are kept beside them, in the order
of the groups.

Adding a group is not undone when a push fails: a group without living results has no row. Such
groups are swept when they may be the majority (:meth:`GroupTable.keep_only`, which renumbers).
With no GROUP BY there is one group, 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.kernels import group_table as kernels
from penstock.values.arrow_layout import read_only
from penstock.values.key_rows import KeyRows
from penstock.values.key_types import BytesKey, key_type_of

Int64s = NDArray[np.int64]

_FEWEST_GROUPS = 16
_FEWEST_BYTES = 256
"""Groups, and bytes of their values, for which there always is room."""


class GroupTable:
    """The groups of values of ``types``."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._types = list(types)
        self._rows = KeyRows(types)
        self._values = [
            _ByteStrings(key) if isinstance(key, BytesKey) else None
            for key in (key_type_of(_plain(type)) for type in types)
        ]

    def __len__(self) -> int:
        return len(self._rows) if self._types else 1

    @property
    def nbytes(self) -> int:
        kept = sum(values.nbytes for values in self._values if values is not None)
        return self._rows.nbytes + kept

    def number(self, columns: Sequence[pa.Array], length: int) -> Int64s:
        """The group of each row of ``columns``; new groups are added."""
        if not self._types or length == 0:
            return np.zeros(length, np.int64)
        count = len(self._rows)
        groups, firsts = self._rows.number(columns)
        if len(firsts):
            try:
                for values, column in zip(self._values, columns, strict=True):
                    if values is not None:
                        values.append(_decoded(column), firsts)
            except BaseException:
                self._rows.forget(count)
                for values in self._values:
                    if values is not None:
                        values.forget(count)
                raise
        return groups

    def values(self, groups: Int64s) -> list[pa.Array]:
        """The values of the GROUP BY expressions for ``groups``."""
        found = []
        for position, (type, kept) in enumerate(zip(self._types, self._values, strict=True)):
            if kept is not None:
                values = kept.take(groups, self._rows.valid(position, groups))
            else:
                values = self._rows.values(position, groups)
            found.append(_as_type(values, type))
        return found

    def keep_only(self, groups: Int64s) -> None:
        """Forget all groups but ``groups`` (ascending), which get the numbers from 0 on.

        As a whole or, for lack of memory, not at all.
        """
        if not self._types:
            return
        kept = [None if values is None else values.kept(groups) for values in self._values]
        self._rows.keep_only(groups)
        for values, state in zip(self._values, kept, strict=True):
            if values is not None and state is not None:
                values.adopt(state)

    def sweep(self) -> None:
        """Forget interned values that no group has."""
        self._rows.sweep()


class _ByteStrings:
    """A byte string of each group."""

    def __init__(self, key: BytesKey) -> None:
        self._key = key
        self._count = 0
        self._arena = np.empty(_FEWEST_BYTES, np.uint8)
        self._ends = np.zeros(_FEWEST_GROUPS, np.int64)

    @property
    def nbytes(self) -> int:
        return self._arena.nbytes + self._ends.nbytes

    def append(self, array: pa.Array, rows: Int64s) -> None:
        """Add the values in ``rows`` of ``array``."""
        data, offsets = self._key.ordered_bytes(array)
        size = int(self._ends[self._count]) + kernels.size_of(offsets, rows)
        if size > len(self._arena):
            arena = np.empty(max(size, 2 * len(self._arena)), np.uint8)
            arena[: len(self._arena)] = self._arena
            self._arena = arena
        count = self._count + len(rows)
        if count >= len(self._ends):
            ends = np.zeros(max(count + 1, 2 * len(self._ends)), np.int64)
            ends[: len(self._ends)] = self._ends
            self._ends = ends
        kernels.copy_bytes(read_only(data), offsets, rows, self._arena, self._ends, self._count)
        self._count = count

    def forget(self, count: int) -> None:
        """Take back all values but the first ``count``."""
        self._count = count

    def take(self, groups: Int64s, valid: NDArray[np.bool_]) -> pa.Array:
        """The values of ``groups``."""
        data, ends = self._copied(groups)
        return self._key.from_bytes(data, ends, valid)

    def kept(self, groups: Int64s) -> tuple[NDArray[np.uint8], Int64s]:
        """The values of ``groups`` alone: to be adopted."""
        return self._copied(groups)

    def adopt(self, state: tuple[NDArray[np.uint8], Int64s]) -> None:
        """Go on with what :meth:`kept` has made."""
        self._arena, self._ends = state
        self._count = len(self._ends) - 1

    def _copied(self, groups: Int64s) -> tuple[NDArray[np.uint8], Int64s]:
        data = np.empty(kernels.size_of(self._ends, groups), np.uint8)
        ends = np.zeros(len(groups) + 1, np.int64)
        kernels.copy_bytes(read_only(self._arena), self._ends, groups, data, ends, 0)
        return data, ends


def _plain(type: pa.DataType) -> pa.DataType:
    return type.value_type if pa.types.is_dictionary(type) else type


def _decoded(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _as_type(array: pa.Array, type: pa.DataType) -> pa.Array:
    return array if array.type == type else array.dictionary_encode().cast(type)
