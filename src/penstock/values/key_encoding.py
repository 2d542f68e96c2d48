"""Keys: the values of a column as int64, so that equal integers mean equal values.

The engine hashes, compares and stores nothing but int64. A :class:`KeyEncoder` turns an Arrow array
of one type into such integers, and it is *injective up to Spark's equality*: two values of the type
are equal in the sense of Spark SQL if and only if their integers are. No hash is involved, so no
answer ever rests on the absence of a collision.

- Integers, booleans, dates, times, timestamps and durations are themselves. An unsigned 64-bit
  integer has its top bit flipped, which shifts it by -2^63 and keeps the order.
- A float is widened to a double (exact). Read as integers, IEEE 754 has non-negative doubles in
  their order, while a negative one is ``-2^63 + m`` if its opposite is ``m``; it becomes ``-m``.
  That is the order of the values, and gives -0.0 and 0.0 one key. All NaNs become one NaN, which
  comes after infinity, as Spark has it.
- A decimal of precision 18 or less is its unscaled integer: both sides of a comparison have one
  type, hence one scale, and ``10^18 < 2^63``.
- Strings, binaries and wider decimals go through an :class:`~penstock.values.interner.Interner`,
  which numbers their bytes. Byte equality is Spark's equality for strings (``UTF8_BINARY``), and a
  wide decimal has exactly one two's complement form. Numbers are given in the order of first
  appearance, so these keys serve equality alone (``ordered`` is false).

NULL has no key. ``encode`` returns a validity beside the values, which are arbitrary where the
validity is false.

The values may be a read-only view of the Arrow buffer (int64-like types: nothing is copied).
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.errors import InputError, InvariantBroken
from penstock.values.interner import Interner

Int64s = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Keys = tuple[Int64s, Booleans | None]
"""Values, and which of them are not NULL (None: all of them)."""

WIDEST_INTEGER_DECIMAL = 18
"""Decimals up to this precision fit an int64."""

_TOP_BIT = np.int64(-(2**63))
_NAN = np.int64(0x7FF8_0000_0000_0000)

assert sys.byteorder == "little", "Arrow's native layout is read as little-endian"


class KeyEncoder(ABC):
    """Turns arrays of ``type`` into int64 keys."""

    ordered: ClassVar[bool] = True
    """Whether the order of the keys is the order of the values."""
    needs_interner: ClassVar[bool] = False

    def __init__(self, type: pa.DataType) -> None:
        self.type = type

    @abstractmethod
    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        """The keys of ``array`` and their validity."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.type})"


class _Int64Encoder(KeyEncoder):
    """Types that are stored as signed 64-bit integers: the buffer itself."""

    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        return numbers_of(array, np.int64, 8), validity_of(array)


class _IntegerEncoder(KeyEncoder):
    """Narrower integers."""

    def __init__(self, type: pa.DataType, dtype: Any) -> None:
        super().__init__(type)
        self._dtype = dtype
        self._width: int = np.dtype(dtype).itemsize

    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        narrow = numbers_of(array, self._dtype, self._width)
        return narrow.astype(np.int64), validity_of(array)


class _UInt64Encoder(KeyEncoder):
    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        return numbers_of(array, np.int64, 8) ^ _TOP_BIT, validity_of(array)


class _BooleanEncoder(KeyEncoder):
    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        return booleans_of(array).astype(np.int64), validity_of(array)


class _FloatEncoder(KeyEncoder):
    def __init__(self, type: pa.DataType, dtype: Any) -> None:
        super().__init__(type)
        self._dtype = dtype
        self._width: int = np.dtype(dtype).itemsize

    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        doubles = numbers_of(array, self._dtype, self._width).astype(np.float64)
        keys = doubles.view(np.int64)
        is_nan = doubles != doubles
        np.subtract(_TOP_BIT, keys, out=keys, where=keys < 0)
        keys[is_nan] = _NAN
        return keys, validity_of(array)


class _NarrowDecimalEncoder(KeyEncoder):
    """Decimals whose unscaled value fits the low eight of their 16 or 32 bytes."""

    def __init__(self, type: pa.DataType) -> None:
        super().__init__(type)
        self._words: int = type.byte_width // 8

    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        words = self._words
        length = len(array)
        buffer = array.buffers()[1]
        if length == 0 or buffer is None:
            return np.zeros(length, np.int64), validity_of(array)
        raw = np.frombuffer(buffer, np.int64, length * words, array.offset * words * 8)
        return raw[::words].copy(), validity_of(array)


class _BytesEncoder(KeyEncoder):
    """Everything that is told apart by its bytes."""

    ordered = False
    needs_interner = True

    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        if interner is None:
            raise InvariantBroken(f"keys of type {self.type} need an interner")
        data, offsets = bytes_of(array)
        validity = validity_of(array)
        return interner.intern(data, offsets, validity), validity


class _TextEncoder(_BytesEncoder):
    """Plain strings and binaries: as :func:`bytes_of`, with nothing left to find out."""

    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        length = len(array)
        _, starts, values = array.buffers()
        if interner is None or length == 0 or values is None or values.size == 0:
            return super().encode(array, interner)
        data = np.frombuffer(values, np.uint8)
        offsets = np.frombuffer(starts, np.int32, length + 1, array.offset * 4).astype(np.int64)
        validity = validity_of(array)
        return interner.intern(data, offsets, validity), validity


class _DictionaryEncoder(KeyEncoder):
    """A dictionary column means what it stands for, whatever the dictionary of its batch."""

    def __init__(self, type: pa.DictionaryType) -> None:
        super().__init__(type)
        self._inner = encoder_for(type.value_type)
        # Not class attributes here: they are those of the value type.
        self.ordered = self._inner.ordered  # type: ignore[misc]
        self.needs_interner = self._inner.needs_interner  # type: ignore[misc]

    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        if len(array.dictionary) > len(array):
            return self._inner.encode(array.dictionary_decode(), interner)
        keys, known = self._inner.encode(array.dictionary, interner)
        validity = validity_of(array)
        if len(keys) == 0:
            return np.zeros(len(array), np.int64), validity
        indices = array.indices.fill_null(0)
        width = indices.type.bit_width // 8
        codes = numbers_of(indices, indices.type.to_pandas_dtype(), width)
        if known is not None:
            validity = known[codes] if validity is None else known[codes] & validity
        return keys[codes], validity


class _NullEncoder(KeyEncoder):
    """The type of columns that hold NULL only."""

    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        return np.zeros(len(array), np.int64), np.zeros(len(array), np.bool_)


def encoder_for(type: pa.DataType) -> KeyEncoder:
    """The encoder for values of ``type``; InputError if they cannot be keys."""
    types = pa.types
    if types.is_dictionary(type):
        return _DictionaryEncoder(type)
    if types.is_null(type):
        return _NullEncoder(type)
    if types.is_boolean(type):
        return _BooleanEncoder(type)
    if types.is_uint64(type):
        return _UInt64Encoder(type)
    if types.is_integer(type):
        dtype = type.to_pandas_dtype()
        return _Int64Encoder(type) if dtype is np.int64 else _IntegerEncoder(type, dtype)
    if types.is_floating(type):
        return _FloatEncoder(type, type.to_pandas_dtype())
    if types.is_date32(type) or types.is_time32(type):
        return _IntegerEncoder(type, np.int32)
    if types.is_temporal(type) and type.bit_width == 64 and not types.is_interval(type):
        return _Int64Encoder(type)
    if types.is_decimal(type):
        if type.bit_width == 32:
            return _IntegerEncoder(type, np.int32)
        if type.bit_width == 64:
            return _Int64Encoder(type)
        if type.precision <= WIDEST_INTEGER_DECIMAL:
            return _NarrowDecimalEncoder(type)
        return _BytesEncoder(type)
    if types.is_string(type) or types.is_binary(type):
        return _TextEncoder(type)
    if _is_bytes(type):
        return _BytesEncoder(type)
    raise InputError(f"values of type {type} cannot be compared, so they cannot be a join key")


def is_its_own_key(type: pa.DataType) -> bool:
    """Whether the buffer of a column of ``type`` is what is compared, eight bytes a value."""
    return isinstance(encoder_for(type), _Int64Encoder)


def bytes_of(array: pa.Array) -> tuple[NDArray[np.uint8], Int64s]:
    """The bytes of a string, binary or decimal array, as kernels take them.

    Value ``i`` is ``data[offsets[i]:offsets[i + 1]]``. ``data`` may hold more than that: the buffer
    of a slice is not cut. NULLs have any extent, inside ``data``.
    """
    type = array.type
    length = len(array)
    if _is_view(type):
        array = pc.cast(array, pa.large_binary())
        type = array.type
    buffers = array.buffers()
    data = _bytes_in(buffers[-1])
    if _is_fixed_width(type):
        width = type.byte_width
        if len(data) == 0:
            return data, np.zeros(length + 1, np.int64)
        return data, np.arange(array.offset, array.offset + length + 1, dtype=np.int64) * width
    if length == 0 or buffers[1] is None or buffers[1].size == 0:
        return data, np.zeros(length + 1, np.int64)
    if pa.types.is_large_string(type) or pa.types.is_large_binary(type):
        return data, _aligned(np.frombuffer(buffers[1], np.int64, length + 1, array.offset * 8))
    narrow = np.frombuffer(buffers[1], np.int32, length + 1, array.offset * 4)
    return data, narrow.astype(np.int64)


def validity_of(array: pa.Array) -> Booleans | None:
    """Which values of ``array`` are not NULL; None if all of them are not."""
    if array.null_count == 0:
        return None
    bitmap = array.buffers()[0]
    if bitmap is None:
        return np.zeros(len(array), np.bool_)
    return _bits(bitmap, array.offset, len(array))


def booleans_of(array: pa.BooleanArray) -> Booleans:
    """The values of a boolean array, arbitrary where it is NULL."""
    length = len(array)
    buffer = array.buffers()[1]
    if length == 0 or buffer is None:
        return np.zeros(length, np.bool_)
    return _bits(buffer, array.offset, length)


def numbers_of(array: pa.Array, dtype: Any, width: int) -> NDArray[Any]:
    """The values of ``array`` as they lie in its buffer, ``width`` bytes each.

    (Arrow's own conversion ends the process if numpy has no memory.)
    """
    length = len(array)
    buffer = array.buffers()[1]
    if length == 0 or buffer is None:
        return np.zeros(length, dtype)
    return _aligned(np.frombuffer(buffer, dtype, length, array.offset * width))


def _bits(buffer: pa.Buffer, offset: int, length: int) -> Booleans:
    first = offset >> 3
    raw = np.frombuffer(buffer, np.uint8, ((offset + length + 7) >> 3) - first, first)
    skip = offset & 7
    return np.unpackbits(raw, bitorder="little")[skip : skip + length].view(np.bool_)


def _aligned(values: NDArray[Any]) -> NDArray[Any]:
    """``values``, copied if their producer has put them at an odd address."""
    return values if values.flags.aligned else values.copy()


def _bytes_in(buffer: pa.Buffer | None) -> NDArray[np.uint8]:
    if buffer is None or buffer.size == 0:
        return np.zeros(0, np.uint8)
    return np.frombuffer(buffer, np.uint8)


def _is_view(type: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(type) or pa.types.is_binary_view(type))


def _is_fixed_width(type: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_binary(type) or pa.types.is_decimal(type))


def _is_bytes(type: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_large_string(type)
        or types.is_large_binary(type)
        or types.is_fixed_size_binary(type)
        or _is_view(type)
    )
