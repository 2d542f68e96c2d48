"""COUNT, SUM and AVG of one argument, for all groups: exact, and able to take values back.

Per group there is the number of values that are not NULL and their sum in 64-bit limbs (see
:mod:`penstock.kernels.aggregate`), so that every answer is a function of the values that
are alive. SUM of doubles is the exact sum rounded once; AVG divides that by the count. AVG of
integers is the exact quotient rounded once; decimals are rounded half up to the answer's scale.

COUNT of an argument needs no sum, and has no limbs.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.output.group_rows import GroupRows
from penstock.errors import InputError
from penstock.kernels import aggregate as kernels
from penstock.kernels.aggregate import MASK
from penstock.query.expression import Aggregate
from penstock.values.arrow_layout import fixed_width, validity_of
from penstock.values.key_types import WIDEST_INTEGER_DECIMAL, key_type_of

Int64s = NDArray[np.int64]
Limbs = NDArray[np.uint64]
Doubles = NDArray[np.float64]

Kind = Literal["count", "integer", "double", "decimal"]

_EXACT_IN_DOUBLE = 2**53
_WORD = 2**64


def summed_type(type: pa.DataType) -> pa.DataType:
    """The type in which values of ``type`` are added up."""
    if pa.types.is_uint64(type):
        return pa.decimal128(20, 0)
    if pa.types.is_floating(type):
        return pa.float64()
    if pa.types.is_decimal(type) and type.bit_width < 128:
        return pa.decimal128(type.precision, type.scale)
    return type


class ExactSum:
    """Counts, and unless ``counts_only`` sums, of values of ``type``, for every group."""

    def __init__(self, type: pa.DataType, counts_only: bool) -> None:
        self.type = type if counts_only else summed_type(type)
        self.kind: Kind = _kind(self.type, counts_only)
        self.words = self._words()
        """Rows of an entry that its value needs."""
        self._first_row = 0
        self._mask_row = MASK
        self._bit = 0
        self._first_limb = 0
        width = {"count": 0, "integer": 2, "double": 0, "decimal": self._decimal_limbs()}[self.kind]
        self._known = np.zeros(0, np.int64)
        self._limbs = np.zeros((0, width), np.uint64)
        self._special = np.zeros((0, 3), np.int64)
        self._encoder = key_type_of(self.type) if self.kind == "integer" else None
        self._counts = np.empty(0, np.int64)
        self._sums: NDArray[Any] = np.empty(0, np.float64)
        self._after: tuple[Int64s, Limbs, Int64s | None] | None = None
        """Counts, limbs and special values of the touched groups after the push."""

    @property
    def nbytes(self) -> int:
        return self._known.nbytes + self._limbs.nbytes + self._special.nbytes

    def place(self, mask_row: int, bit: int, first_row: int) -> None:
        """Set where the value is in an entry: ``words`` rows, and a bit: it is not NULL."""
        self._mask_row, self._bit, self._first_row = mask_row, bit, first_row

    def reserve(self, capacity: int) -> None:
        """Have state for groups below ``capacity``."""
        special = self._special
        if self.kind == "double":
            special = _extended(special, capacity)
        known, limbs = _extended(self._known, capacity), _extended(self._limbs, capacity)
        self._known, self._limbs, self._special = known, limbs, special

    def encode(self, array: pa.Array, entries: Int64s) -> None:
        """Write the values of ``array`` into ``entries``."""
        valid = validity_of(array)
        if valid is None:
            entries[self._mask_row] |= 1 << self._bit
        else:
            entries[self._mask_row] |= valid.astype(np.int64) << self._bit
        if self.words == 0 or array.null_count == len(array):
            return
        if array.type != self.type:
            array = array.cast(self.type)
        row = self._first_row
        if self._encoder is not None:
            entries[row] = self._encoder.encode(array)[0]
        else:
            stored = self.type.byte_width // 8
            offset = 8 * stored * array.offset
            raw = np.frombuffer(array.buffers()[1], np.int64, len(array) * stored, offset)
            entries[row : row + self.words] = raw.reshape(-1, stored)[:, : self.words].T
        if self.kind == "double":
            low, high = kernels.limbs_of_doubles(entries[row], entries[self._mask_row], self._bit)
            if low <= high:
                self._widen(low, high)

    def stage(self, rows: GroupRows) -> None:
        """Compute counts and sums along ``rows``; the state stays as it is."""
        where = (rows.owner, rows.stops, rows.order, rows.entering, rows.events)
        if self.kind == "double":
            self._counts, self._sums, limbs, special = kernels.sum_doubles(
                *where,
                self._mask_row,
                self._bit,
                self._first_row,
                rows.touched,
                self._known,
                self._limbs,
                self._first_limb,
                self._special,
            )
            self._after = self._counts[rows.last], limbs, special
        else:
            self._counts, self._sums = kernels.sum_words(
                *where,
                self._mask_row,
                self._bit,
                self._first_row,
                self.words,
                rows.touched,
                self._known,
                self._limbs,
            )
            self._after = self._counts[rows.last], self._sums[rows.last], None

    def commit(self, rows: GroupRows) -> None:
        """Make the last of ``rows`` the state of each group."""
        assert self._after is not None
        known, limbs, special = self._after
        self._known[rows.touched] = known
        self._limbs[rows.touched] = limbs
        if special is not None:
            self._special[rows.touched] = special
        self.rollback()

    def rollback(self) -> None:
        self._counts = self._counts[:0]
        self._sums = self._sums[:0]
        self._after = None

    def kept(self, groups: Int64s, capacity: int) -> tuple[NDArray[Any], ...]:
        """The state if that of ``groups`` becomes that of the groups from 0 on: to be adopted."""
        limbs, special = self._limbs[groups], self._special
        if self.kind == "double":
            if len(groups) == 0:  # Nobody is held: the width may start anew.
                limbs = limbs[:, :0]
            special = _extended(special[groups], capacity)
        return _extended(self._known[groups], capacity), _extended(limbs, capacity), special

    def adopt(self, state: tuple[NDArray[Any], ...]) -> None:
        """Go on with what :meth:`kept` has made."""
        self._known, self._limbs, self._special = state

    # -- answers -------------------------------------------------------------------------------

    def answer(self, aggregate: Aggregate, rows: Int64s) -> pa.Array:
        """The values of ``aggregate`` in ``rows`` of the push that is staged."""
        counts = self._counts[rows]
        if aggregate.function == "count":
            return fixed_width(aggregate.type, counts, None)
        known = counts > 0
        sums = self._sums[rows]
        if self.kind == "double":
            if aggregate.function == "avg":
                sums = sums / np.maximum(counts, 1)
            return _as_type(fixed_width(pa.float64(), sums, known), aggregate.type)
        if aggregate.function == "avg":
            return self._average(aggregate, sums, counts, known)
        if self.kind == "decimal":
            return self._decimals(aggregate, [*_integers(sums)], known)
        low, high = sums[:, 0].view(np.int64), sums[:, 1].view(np.int64)
        if (high != low >> 63).any():
            raise _overflow(aggregate)
        return _as_type(fixed_width(pa.int64(), low.copy(), known), aggregate.type)

    def _average(
        self, aggregate: Aggregate, sums: Limbs, counts: Int64s, known: NDArray[np.bool_]
    ) -> pa.Array:
        if pa.types.is_decimal(aggregate.type):
            scale = aggregate.type.scale - (self.type.scale if self.kind == "decimal" else 0)
            ratio = [
                _rounded_ratio(total, max(int(count), 1), scale)
                for total, count in zip(_integers(sums), counts, strict=True)
            ]
            return self._decimals(aggregate, ratio, known, aggregate.type.scale)
        low = sums[:, 0].view(np.int64)
        if self.kind == "integer":
            averages = low / np.maximum(counts, 1)
            high = sums[:, 1].view(np.int64)
            odd = np.flatnonzero((high != low >> 63) | (abs(low) >= _EXACT_IN_DOUBLE))
        else:
            averages = np.zeros(len(low))
            odd = np.flatnonzero(known)
        scale = self.type.scale if self.kind == "decimal" else 0
        for i, total in zip(odd, _integers(sums[odd]), strict=True):
            averages[i] = total / (int(counts[i]) * 10**scale)
        return _as_type(fixed_width(pa.float64(), averages, known), aggregate.type)

    def _decimals(
        self,
        aggregate: Aggregate,
        unscaled: list[int],
        known: NDArray[np.bool_],
        scale: int | None = None,
    ) -> pa.Array:
        """Decimals from unscaled integers of ``scale`` (by default that of the argument)."""
        type = aggregate.type
        if not pa.types.is_decimal(type):
            raise InputError(f"{aggregate} gives decimals and not {type}")
        if scale is None:
            shift = type.scale - self.type.scale
            if shift:
                unscaled = [_rounded_ratio(value, 1, shift) for value in unscaled]
        if any(abs(value) >= 10**type.precision for value in unscaled):
            raise _overflow(aggregate)
        words = type.byte_width
        data = b"".join(v.to_bytes(words, "little", signed=True) for v in unscaled)
        raw = np.frombuffer(data, np.uint8).reshape(-1, words)
        return fixed_width(type, raw, known)

    # -- limbs ---------------------------------------------------------------------------------

    def _words(self) -> int:
        if self.kind == "count":
            return 0
        if self.kind == "decimal" and self.type.precision > WIDEST_INTEGER_DECIMAL:
            return int(self.type.byte_width) // 8
        return 1

    def _decimal_limbs(self) -> int:
        return self.words + 1 if self.kind == "decimal" else 0

    def _widen(self, low: int, high: int) -> None:
        """Have limbs for doubles that touch the limbs ``low`` to ``high``."""
        width = self._limbs.shape[1]
        first, stop = low, high + 2
        if width:
            first, stop = min(first, self._first_limb), max(stop, self._first_limb + width)
        if stop - first == width:
            return
        limbs = np.zeros((len(self._limbs), stop - first), np.uint64)
        if width:
            place = self._first_limb - first
            limbs[:, place : place + width] = self._limbs
            negative = self._limbs[:, -1] >> np.uint64(63) != 0
            limbs[negative, place + width :] = np.uint64(_WORD - 1)
        self._limbs, self._first_limb = limbs, first


def _kind(type: pa.DataType, counts_only: bool) -> Kind:
    if counts_only:
        return "count"
    if pa.types.is_floating(type):
        return "double"
    return "decimal" if pa.types.is_decimal(type) else "integer"


def _integers(limbs: Limbs) -> list[int]:
    """Two's complement limbs, low limb first, as Python integers."""
    width = limbs.shape[1]
    data = np.ascontiguousarray(limbs).tobytes()
    size = 8 * width
    return [
        int.from_bytes(data[i * size : (i + 1) * size], "little", signed=True)
        for i in range(len(limbs))
    ]


def _rounded_ratio(total: int, count: int, scale: int) -> int:
    """``total * 10^scale / count``, rounded half away from zero."""
    if scale >= 0:
        total *= 10**scale
    else:
        count *= 10**-scale
    magnitude = (2 * abs(total) + count) // (2 * count)
    return magnitude if total >= 0 else -magnitude


def _as_type(array: pa.Array, type: pa.DataType) -> pa.Array:
    return array if array.type == type else array.cast(type)


def _overflow(aggregate: Aggregate) -> InputError:
    return InputError(
        f"{aggregate} overflows: the sum does not fit {aggregate.type}; CAST the argument to a "
        "wider type, such as DECIMAL(38, 0) or DOUBLE"
    )


def _extended(state: NDArray[Any], capacity: int) -> NDArray[Any]:
    """``state`` with zeros behind it, up to ``capacity`` groups."""
    grown = np.zeros((capacity, *state.shape[1:]), state.dtype)
    grown[: len(state)] = state
    return grown
