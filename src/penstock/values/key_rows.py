"""Key rows: exact, dense numbers for rows of any number of key columns.

Each column is encoded as int64 (:mod:`penstock.values.key_types`), so that equal integers mean
equal values in Spark's sense. NULL is a value of its own here, since GROUP BY and PARTITION BY put
NULLs together: last columns have one bit per column that says so. Rows are numbered 0, 1, 2, … in
the order of their first appearance, so that the state of a group lives in plain arrays. All columns
decide; nothing rests on a hash.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.kernels import group_table as kernels
from penstock.values.hash_secret import SECRET
from penstock.values.interner import Interner
from penstock.values.key_types import key_type_of

Int64s = NDArray[np.int64]

_FEWEST_KEY_ROWS = 16
"""Key rows that there is always room for."""
_BITS = 63
"""Columns whose NULLs one number tells."""


class KeyRows:
    """Numbers rows of values of ``types``.

    >>> rows = KeyRows([pa.string()])
    >>> rows.number([pa.array(["b", "a", None, "b"])])[0].tolist()
    [0, 1, 2, 0]
    """

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._encoders = [key_type_of(each) for each in types]
        self._interners = [Interner() if each.needs_interner else None for each in self._encoders]
        self._count = 0
        self._keys = np.empty((_FEWEST_KEY_ROWS, len(types) + -(-len(types) // _BITS)), np.int64)
        self._slots = np.full(2 * _FEWEST_KEY_ROWS, kernels.EMPTY, np.int64)
        kernels.forget(self._slots, 0)  # It is loaded now, and not when there is no memory.

    def __len__(self) -> int:
        """How many distinct rows there are."""
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        interned = sum(each.nbytes for each in self._interners if each is not None)
        return self._keys.nbytes + self._slots.nbytes + interned

    def number(self, columns: Sequence[pa.Array]) -> tuple[Int64s, Int64s]:
        """The number of each row of ``columns``, of which there is one at least, and the rows that
        are the first with a new number."""
        rows = self._encoded(columns)
        needed = self._count + len(rows)
        if needed > len(self._keys):
            keys = np.empty((1 << (needed - 1).bit_length(), self._keys.shape[1]), np.int64)
            keys[: self._count] = self._keys[: self._count]
            self._slots, self._keys = _entered(keys, self._count), keys
        numbers, firsts = kernels.number(rows, self._keys, self._slots, self._count, SECRET)
        self._count += len(firsts)
        return numbers, firsts

    def forget(self, count: int) -> None:
        """Take back all rows but the first ``count``."""
        kernels.forget(self._slots, count)
        self._count = count

    def values(self, position: int, numbers: Int64s) -> pa.Array:
        """Column ``position`` of the rows with these numbers; not of byte strings."""
        # Not ``column.take(numbers)``, which would copy all of the column first.
        keys = self._keys[numbers, position]
        return self._encoders[position].decode(keys, self.valid(position, numbers))

    def valid(self, position: int, numbers: Int64s) -> NDArray[np.bool_]:
        """Where column ``position`` of these rows is not NULL."""
        nulls = self._keys[numbers, len(self._encoders) + position // _BITS]
        valid: NDArray[np.bool_] = nulls & (1 << position % _BITS) == 0
        return valid

    def keep_only(self, numbers: Int64s) -> None:
        """Forget all rows but these (ascending), which get the numbers from 0 on. As a whole or,
        for lack of memory, not at all."""
        count = len(numbers)
        capacity = max(_FEWEST_KEY_ROWS, 1 << max(0, 2 * count - 1).bit_length())
        keys = np.empty((capacity, self._keys.shape[1]), np.int64)
        keys[:count] = self._keys[numbers]
        self._slots, self._keys, self._count = _entered(keys, count), keys, count

    def sweep(self) -> None:
        """Forget interned values that no row has."""
        for position, interner in enumerate(self._interners):
            if interner is not None:
                interner.sweep(self._keys[: self._count, position])

    def _encoded(self, columns: Sequence[pa.Array]) -> Int64s:
        width = len(columns)
        rows = np.empty((len(columns[0]), self._keys.shape[1]), np.int64)
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


def _entered(keys: Int64s, count: int) -> Int64s:
    """Slots of the first ``count`` of ``keys``."""
    slots = np.full(2 * len(keys), kernels.EMPTY, np.int64)
    kernels.enter(keys, count, slots, SECRET)
    return slots
