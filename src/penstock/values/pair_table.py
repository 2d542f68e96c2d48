"""Groups: exact, dense numbers for rows of any number of key columns.

A :class:`PairTable` numbers the distinct pairs of int64 that it is shown: 0, 1, 2, … in the order
of their first appearance. :func:`group_ids` folds a row of keys into one number with one table per
column: the group of the first k columns is the number of the pair (group of the first k - 1
columns, value of column k). By induction two rows have one number if and only if they agree on all
columns: nothing rests on a hash. NULL is a value of its own here, since PARTITION BY and GROUP BY
put NULLs together: the first half of a pair is ``2 * group + (1 if the value is NULL else 0)``,
which is injective, and the value of a NULL is taken to be 0.

Numbers are dense, so that the state of a group lives in plain arrays. None is ever dropped: in a
window by partition the newest rows of every partition live on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InvariantBroken
from penstock.kernels import pair_table as kernels
from penstock.values.hash_secret import SECRET

Int64s = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Keys = tuple[Int64s, Booleans | None]
"""The values of a key column, and which of them are not NULL (None: all of them)."""

_FEWEST_SLOTS = 64


class PairTable:
    """Numbers pairs of int64.

    >>> table = PairTable()
    >>> table.ids(np.array([7, 7, 8]), np.array([1, 1, 1])).tolist()
    [0, 0, 1]
    """

    def __init__(self) -> None:
        self._count = 0
        self._slots = _empty_slots(_FEWEST_SLOTS)
        self._pairs = np.empty(_FEWEST_SLOTS, np.int64)

    def __len__(self) -> int:
        """How many distinct pairs there are."""
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._slots.nbytes + self._pairs.nbytes

    @property
    def pairs(self) -> Int64s:
        """The pairs by their numbers, one row each. A view, to be read only."""
        return self._pairs[: 2 * self._count].reshape(-1, 2)

    def ids(self, first: Int64s, second: Int64s) -> Int64s:
        """The numbers of the pairs ``(first[i], second[i])``; new pairs get new numbers."""
        first, second = _writable(first), _writable(second)
        out = np.empty(len(first), np.int64)
        done = 0
        while True:
            done, self._count = kernels.number_pairs(
                first, second, self._slots, self._pairs, self._count, done, out, SECRET
            )
            if done == len(first):
                return out
            self._resize(2 * len(self._slots))

    def _resize(self, slots: int) -> None:
        """Room for ``slots // 2`` pairs, with all of them in a new table."""
        pairs = np.empty(slots, np.int64)
        pairs[: 2 * self._count] = self._pairs[: 2 * self._count]
        table = _empty_slots(slots)
        kernels.enter_pairs(table, pairs, self._count, SECRET)
        self._pairs, self._slots = pairs, table


def group_ids(tables: list[PairTable], columns: Sequence[Keys]) -> Int64s:
    """The group of each row of ``columns``. ``tables`` has one table per column, or is empty."""
    if not columns:
        raise InvariantBroken("groups of no columns")
    if not tables:
        tables.extend(PairTable() for _ in columns)
    groups: Int64s | None = None
    for table, (values, validity) in zip(tables, columns, strict=True):
        before = np.zeros(len(values), np.int64) if groups is None else groups << 1
        if validity is not None:
            before += ~validity
            values = np.where(validity, values, 0)
        groups = table.ids(before, values)
    assert groups is not None
    return groups


def _empty_slots(count: int) -> Int64s:
    return np.full(count, kernels.EMPTY, np.int64)


def _writable(values: Int64s) -> Int64s:
    """``values``, copied if they are Arrow's: one compiled form of the kernel, and not four."""
    return values if values.flags.writeable else values.copy()
