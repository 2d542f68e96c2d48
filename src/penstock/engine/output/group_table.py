"""Groups: the distinct values of the GROUP BY expressions, numbered from 0.

Each expression is encoded as int64 (:mod:`penstock.values.key_types`), so that equal integers
mean equal values in Spark's sense. NULL is a value of its own here: a last column has one bit per
expression that says so. Keys of ordered types determine their values. Byte strings have numbers for
keys, so their bytes are kept beside them, in the order of the groups.

Adding a group is not undone when a push fails: a group of which nobody is alive has no row. Such
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
from penstock.values.hash_secret import SECRET
from penstock.values.interner import Interner
from penstock.values.key_types import BytesKey, key_type_of

Int64s = NDArray[np.int64]

_FEWEST = 16
_FEWEST_BYTES = 256
_BITS = 63


class GroupTable:
    """The groups of values of ``types``."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._types = list(types)
        self._encoders = [key_type_of(t) for t in types]
        self._interners = [Interner() if e.needs_interner else None for e in self._encoders]
        self._values = [
            _ByteStrings(key) if isinstance(key, BytesKey) else None
            for key in (key_type_of(_plain(type)) for type in types)
        ]
        self._null_columns = -(-len(types) // _BITS)
        width = len(types) + self._null_columns
        self._count = 0 if types else 1
        self._keys = np.empty((_FEWEST, width), np.int64)
        self._slots = np.full(2 * _FEWEST, kernels.EMPTY, np.int64)
        kernels.forget(self._slots, 0)  # It is loaded now, and not when there is no memory.

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        return (
            self._keys.nbytes
            + self._slots.nbytes
            + sum(values.nbytes for values in self._values if values is not None)
            + sum(interner.nbytes for interner in self._interners if interner is not None)
        )

    def number(self, columns: Sequence[pa.Array], length: int) -> Int64s:
        """The group of each row of ``columns``; new groups are added."""
        if not self._encoders or length == 0:
            return np.zeros(length, np.int64)
        rows = self._encoded(columns, length)
        self._reserve(length)
        groups, firsts = kernels.number(rows, self._keys, self._slots, self._count, SECRET)
        if len(firsts):
            try:
                for values, column in zip(self._values, columns, strict=True):
                    if values is not None:
                        values.append(_decoded(column), firsts)
            except BaseException:
                kernels.forget(self._slots, self._count)
                for values in self._values:
                    if values is not None:
                        values.forget(self._count)
                raise
            self._count += len(firsts)
        found: Int64s = groups
        return found

    def values(self, groups: Int64s) -> list[pa.Array]:
        """The values of the GROUP BY expressions for ``groups``."""
        return [self._values_of(position, groups) for position in range(len(self._types))]

    def _values_of(self, position: int, groups: Int64s) -> pa.Array:
        type = self._types[position]
        # Not ``column.take(groups)``, which would copy all of the column first.
        nulls = self._keys[groups, len(self._types) + position // _BITS]
        valid = nulls & (1 << position % _BITS) == 0
        kept = self._values[position]
        if kept is not None:
            return _as_type(kept.take(groups, valid), type)
        keys = self._keys[groups, position]
        return _as_type(self._encoders[position].decode(keys, valid), type)

    def keep_only(self, groups: Int64s) -> None:
        """Forget all groups but ``groups`` (ascending), which get the numbers from 0 on.

        As a whole or, for lack of memory, not at all.
        """
        if not self._encoders:
            return
        count = len(groups)
        capacity = max(_FEWEST, 1 << max(0, 2 * count - 1).bit_length())
        keys = np.empty((capacity, self._keys.shape[1]), np.int64)
        keys[:count] = self._keys[groups]
        slots = _entered(keys, count)
        kept = [None if values is None else values.kept(groups) for values in self._values]
        self._keys, self._slots, self._count = keys, slots, count
        for values, state in zip(self._values, kept, strict=True):
            if values is not None and state is not None:
                values.adopt(state)

    def sweep(self) -> None:
        """Forget interned values that no group has."""
        for position, interner in enumerate(self._interners):
            if interner is not None:
                interner.sweep(self._keys[: self._count, position])

    def _encoded(self, columns: Sequence[pa.Array], length: int) -> Int64s:
        width = len(columns)
        rows = np.empty((length, width + self._null_columns), np.int64)
        rows[:, width:] = 0
        for i, (column, encoder, interner) in enumerate(
            zip(columns, self._encoders, self._interners, strict=True)
        ):
            values, valid = encoder.encode(column, interner)
            rows[:, i] = values
            if valid is not None:
                null = ~valid
                rows[null, i] = 0
                rows[null, width + i // _BITS] |= 1 << (i % _BITS)
        return rows

    def _reserve(self, more: int) -> None:
        needed = self._count + more
        if needed > len(self._keys):
            keys = np.empty((1 << (needed - 1).bit_length(), self._keys.shape[1]), np.int64)
            keys[: self._count] = self._keys[: self._count]
            self._slots, self._keys = _entered(keys, self._count), keys


def _entered(keys: Int64s, count: int) -> Int64s:
    """Slots of the first ``count`` of ``keys``."""
    slots = np.full(2 * len(keys), kernels.EMPTY, np.int64)
    kernels.enter(keys, count, slots, SECRET)
    return slots


class _ByteStrings:
    """A byte string of each group."""

    def __init__(self, key: BytesKey) -> None:
        self._key = key
        self._count = 0
        self._arena = np.empty(_FEWEST_BYTES, np.uint8)
        self._ends = np.zeros(_FEWEST, np.int64)

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
