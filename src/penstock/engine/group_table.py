"""Groups: the distinct values of the GROUP BY expressions, numbered from 0.

Each expression is encoded as int64 (:mod:`penstock.engine.key_encoding`), so that equal integers
mean equal values in Spark's sense. NULL is a value of its own here: a last column has one bit per
expression that says so. The values themselves are kept in Arrow, in the order of the numbers.

Adding a group is not undone when a push fails: a group of which nobody is alive has no row. Such
groups are swept when they may be the majority (:meth:`GroupTable.keep_only`, which renumbers).
With no GROUP BY there is one group, 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.arrow_chunks import ArrowChunks
from penstock.engine.interner import Interner
from penstock.engine.kernels import group_table as kernels
from penstock.engine.key_encoding import encoder_for

Int64s = NDArray[np.int64]

_FEWEST = 16
_BITS = 63


class GroupTable:
    """The groups of values of ``types``."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._types = list(types)
        self._encoders = [encoder_for(t) for t in types]
        self._interners = [Interner() if e.needs_interner else None for e in self._encoders]
        self._values = [ArrowChunks(_plain(t)) for t in types]
        self._null_columns = -(-len(types) // _BITS)
        width = len(types) + self._null_columns
        self._count = 0 if types else 1
        self._keys = np.empty((_FEWEST, width), np.int64)
        self._slots = np.full(2 * _FEWEST, kernels.EMPTY, np.int64)

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        return (
            self._keys.nbytes
            + self._slots.nbytes
            + sum(values.nbytes for values in self._values)
            + sum(interner.nbytes for interner in self._interners if interner is not None)
        )

    def number(self, columns: Sequence[pa.Array], length: int) -> Int64s:
        """The group of each row of ``columns``; new groups are added."""
        if not self._encoders or length == 0:
            return np.zeros(length, np.int64)
        rows = self._encoded(columns, length)
        self._reserve(length)
        groups, firsts = kernels.number(rows, self._keys, self._slots, self._count)
        if len(firsts):
            self._count += len(firsts)
            positions = pa.array(firsts)
            for values, column in zip(self._values, columns, strict=True):
                taken = column if len(firsts) == length else column.take(positions)
                values.append(_decoded(taken))
        found: Int64s = groups
        return found

    def values(self, groups: Int64s) -> list[pa.Array]:
        """The values of the GROUP BY expressions for ``groups``."""
        return [
            _as_type(values.take(groups), type)
            for values, type in zip(self._values, self._types, strict=True)
        ]

    def keep_only(self, groups: Int64s) -> None:
        """Forget all groups but ``groups`` (ascending), which get the numbers from 0 on."""
        if not self._encoders:
            return
        count = len(groups)
        capacity = max(_FEWEST, 1 << max(0, 2 * count - 1).bit_length())
        keys = np.empty((capacity, self._keys.shape[1]), np.int64)
        keys[:count] = self._keys[groups]
        self._keys, self._count = keys, count
        self._enter()
        for position, (values, interner) in enumerate(
            zip(self._values, self._interners, strict=True)
        ):
            values.keep_only(groups, 0)
            if interner is not None:
                interner.sweep(keys[:count, position])

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
            self._keys = keys
            self._enter()

    def _enter(self) -> None:
        self._slots = np.full(2 * len(self._keys), kernels.EMPTY, np.int64)
        kernels.enter(self._keys, self._count, self._slots)


def _plain(type: pa.DataType) -> pa.DataType:
    return type.value_type if pa.types.is_dictionary(type) else type


def _decoded(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _as_type(array: pa.Array, type: pa.DataType) -> pa.Array:
    return array if array.type == type else array.dictionary_encode().cast(type)
