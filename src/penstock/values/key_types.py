"""Key types: the values of a column as int64, so that equal integers mean equal values.

The engine hashes, compares and stores nothing but int64. A :class:`KeyType` turns an Arrow array of
one type into such integers and back, and it is *injective up to Spark's equality*: two values of
the type are equal in the sense of Spark SQL if and only if their integers are. No hash is involved,
so no answer ever rests on the absence of a collision.

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
  appearance, so these keys serve equality alone (``ordered`` is false). For MIN, MAX and groups
  their bytes are kept, in the order of the values (:meth:`BytesKey.ordered_bytes`): of a wide
  decimal the highest byte first, with the sign bit flipped.

NULL has no key. ``encode`` returns a validity beside the values, which are arbitrary where the
validity is false.

The values may be a read-only view of the Arrow buffer (int64-like types: nothing is copied).

:data:`KEY_TYPES` is the registry. A key type that is added is a class here and a line there; what
can be compared with what is a rule of :mod:`penstock.query.types`. Hashes of cells, the rehearsal
of kernels and checkpoints need not be told.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import InputError, InvariantBroken
from penstock.values.arrow_layout import (
    bitmap_of,
    booleans_of,
    buffer_of,
    bytes_of,
    fixed_width,
    numbers_of,
    validity_of,
)
from penstock.values.interner import Interner

Int64s = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Keys = tuple[Int64s, Booleans | None]
"""Values, and which of them are not NULL (None: all of them)."""

WIDEST_INTEGER_DECIMAL = 18
"""Digits of the widest decimals that fit an int64."""

_TOP_BIT = np.int64(-(2**63))
_NAN = np.int64(0x7FF8_0000_0000_0000)
_SIGN = np.uint8(0x80)
_KNOWN_TYPES = 1024
"""Types whose key type is remembered: a query reads tens of columns, each asked for many times."""


class KeyType(ABC):
    """Keys of values of ``type``."""

    ordered: ClassVar[bool] = True
    """Whether the order of the keys is the order of the values."""
    needs_interner: ClassVar[bool] = False
    """Whether an interner numbers the values: no key without one."""
    is_its_own_key: ClassVar[bool] = False
    """Whether the buffer of a column is what is compared, eight bytes a value."""

    def __init__(self, type: pa.DataType) -> None:
        self.type = type

    @classmethod
    @abstractmethod
    def takes(cls, type: pa.DataType) -> bool:
        """Whether values of ``type`` have keys of this kind."""

    @abstractmethod
    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        """The keys of ``array`` and their validity."""

    @abstractmethod
    def decode(self, keys: Int64s, valid: Booleans | None) -> pa.Array:
        """The values with these ``keys``; NULL where ``valid`` is false (None: nowhere).

        Up to Spark's equality: -0.0 comes back as 0.0. Only for ``ordered`` keys.
        """

    def sample(self, numbers: Int64s) -> pa.Array:
        """A value for each of ``numbers``, which are small and not negative: equal for equal ones,
        and as a rule for no others."""
        return self.decode(numbers, None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.type})"


class NullKey(KeyType):
    """The type of columns that hold NULL only."""

    @classmethod
    def takes(cls, type: pa.DataType) -> bool:
        return bool(pa.types.is_null(type))

    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        return np.zeros(len(array), np.int64), np.zeros(len(array), np.bool_)

    def decode(self, keys: Int64s, valid: Booleans | None) -> pa.Array:
        return pa.nulls(len(keys), self.type)


class BooleanKey(KeyType):
    """Booleans: 0 and 1."""

    @classmethod
    def takes(cls, type: pa.DataType) -> bool:
        return bool(pa.types.is_boolean(type))

    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        return booleans_of(array).astype(np.int64), validity_of(array)

    def decode(self, keys: Int64s, valid: Booleans | None) -> pa.Array:
        bits = np.packbits(keys != 0, bitorder="little")
        return pa.Array.from_buffers(self.type, len(keys), [bitmap_of(valid), buffer_of(bits)])

    def sample(self, numbers: Int64s) -> pa.Array:
        return self.decode(numbers & 1, None)


class UnsignedKey(KeyType):
    """64-bit integers without a sign, shifted by -2^63."""

    @classmethod
    def takes(cls, type: pa.DataType) -> bool:
        return bool(pa.types.is_uint64(type))

    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        return numbers_of(array, np.int64, 8) ^ _TOP_BIT, validity_of(array)

    def decode(self, keys: Int64s, valid: Booleans | None) -> pa.Array:
        return fixed_width(self.type, keys ^ _TOP_BIT, valid)

    def sample(self, numbers: Int64s) -> pa.Array:
        return self.decode(numbers ^ _TOP_BIT, None)


class Int64Key(KeyType):
    """Types that are stored as signed 64-bit integers: the buffer itself."""

    is_its_own_key = True

    @classmethod
    def takes(cls, type: pa.DataType) -> bool:
        types = pa.types
        return bool(
            types.is_int64(type)
            or (types.is_temporal(type) and not types.is_interval(type) and type.bit_width == 64)
            or (types.is_decimal(type) and type.bit_width == 64)
        )

    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        return numbers_of(array, np.int64, 8), validity_of(array)

    def decode(self, keys: Int64s, valid: Booleans | None) -> pa.Array:
        return fixed_width(self.type, keys, valid)

    def sample(self, numbers: Int64s) -> pa.Array:
        is_days = pa.types.is_date64(self.type)
        return self.decode(numbers * _MILLISECONDS_OF_A_DAY if is_days else numbers, None)


_MILLISECONDS_OF_A_DAY = 86_400_000


class NarrowKey(KeyType):
    """Narrower integers, and types that are stored as 32-bit integers."""

    def __init__(self, type: pa.DataType) -> None:
        super().__init__(type)
        is_integer = pa.types.is_integer(type)
        self._dtype: np.dtype[Any] = np.dtype(type.to_pandas_dtype() if is_integer else np.int32)

    @classmethod
    def takes(cls, type: pa.DataType) -> bool:
        types = pa.types
        return bool(
            types.is_integer(type)
            or types.is_date32(type)
            or types.is_time32(type)
            or (types.is_decimal(type) and type.bit_width == 32)
        )

    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        narrow = numbers_of(array, self._dtype, self._dtype.itemsize)
        return narrow.astype(np.int64), validity_of(array)

    def decode(self, keys: Int64s, valid: Booleans | None) -> pa.Array:
        return fixed_width(self.type, keys.astype(self._dtype), valid)

    def sample(self, numbers: Int64s) -> pa.Array:
        return self.decode(numbers & (2 ** (8 * self._dtype.itemsize - 1) - 1), None)


class FloatKey(KeyType):
    """Floating-point numbers, as integers in the order of the values."""

    def __init__(self, type: pa.DataType) -> None:
        super().__init__(type)
        self._dtype: np.dtype[Any] = np.dtype(type.to_pandas_dtype())

    @classmethod
    def takes(cls, type: pa.DataType) -> bool:
        return bool(pa.types.is_floating(type))

    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        doubles = numbers_of(array, self._dtype, self._dtype.itemsize).astype(np.float64)
        keys = doubles.view(np.int64)
        is_nan = doubles != doubles
        np.subtract(_TOP_BIT, keys, out=keys, where=keys < 0)
        keys[is_nan] = _NAN
        return keys, validity_of(array)

    def decode(self, keys: Int64s, valid: Booleans | None) -> pa.Array:
        doubles = np.where(keys < 0, _TOP_BIT - keys, keys).view(np.float64)
        return fixed_width(self.type, doubles.astype(self._dtype), valid)

    def sample(self, numbers: Int64s) -> pa.Array:
        return fixed_width(self.type, (numbers / 4).astype(self._dtype), None)


class DecimalKey(KeyType):
    """Decimals whose unscaled value fits the low eight of their 16 or 32 bytes."""

    def __init__(self, type: pa.DataType) -> None:
        super().__init__(type)
        self._words: int = type.byte_width // 8

    @classmethod
    def takes(cls, type: pa.DataType) -> bool:
        return bool(pa.types.is_decimal(type)) and type.precision <= WIDEST_INTEGER_DECIMAL

    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        words = self._words
        length = len(array)
        buffer = array.buffers()[1]
        if length == 0 or buffer is None:
            return np.zeros(length, np.int64), validity_of(array)
        raw = np.frombuffer(buffer, np.int64, length * words, array.offset * words * 8)
        return raw[::words].copy(), validity_of(array)

    def decode(self, keys: Int64s, valid: Booleans | None) -> pa.Array:
        wide = np.empty((len(keys), self._words), np.int64)
        wide[:, 0] = keys
        wide[:, 1:] = (keys >> 63)[:, None]
        return fixed_width(self.type, wide, valid)


class BytesKey(KeyType):
    """Everything that is told apart by its bytes."""

    ordered = False
    needs_interner = True

    @classmethod
    def takes(cls, type: pa.DataType) -> bool:
        types = pa.types
        return bool(
            types.is_large_string(type)
            or types.is_large_binary(type)
            or types.is_string_view(type)
            or types.is_binary_view(type)
            or types.is_fixed_size_binary(type)
            or types.is_decimal(type)
        )

    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        if interner is None:
            raise InvariantBroken(f"keys of type {self.type} need an interner")
        data, offsets = bytes_of(array)
        validity = validity_of(array)
        return interner.intern(data, offsets, validity), validity

    def decode(self, keys: Int64s, valid: Booleans | None) -> pa.Array:
        raise InvariantBroken(f"the numbers of an interner do not tell values of type {self.type}")

    def ordered_bytes(self, array: pa.Array) -> tuple[Bytes, Int64s]:
        """The bytes of ``array``, so that their order is that of the values: data and offsets."""
        data, offsets = bytes_of(array)
        if not pa.types.is_decimal(self.type) or len(data) == 0:
            return data, offsets if offsets.flags.writeable else offsets.copy()
        values = data[offsets[0] : offsets[-1]].reshape(-1, self.type.byte_width)[:, ::-1].copy()
        values[:, 0] ^= _SIGN
        return values.reshape(-1), offsets - offsets[0]

    def from_bytes(self, data: Bytes, offsets: Int64s, valid: Booleans | None) -> pa.Array:
        """The values that :meth:`ordered_bytes` gave; NULL where ``valid`` is false."""
        return _from_bytes(self.type, data, offsets, valid)

    def sample(self, numbers: Int64s) -> pa.Array:
        if pa.types.is_decimal(self.type):
            return DecimalKey(self.type).decode(numbers, None)
        width = self.type.byte_width if pa.types.is_fixed_size_binary(self.type) else 0
        # Short texts and longer ones are numbered in tables of their own.
        texts = [f"{number}" if number % 2 else f"{number} value" for number in numbers]
        samples = [text.encode().ljust(width)[: width or None] for text in texts]
        return pa.array(samples, pa.binary(width or -1)).cast(self.type)


class TextKey(BytesKey):
    """Plain strings and binaries: as their bytes, with nothing left to find out."""

    @classmethod
    def takes(cls, type: pa.DataType) -> bool:
        return bool(pa.types.is_string(type) or pa.types.is_binary(type))

    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        length = len(array)
        _, starts, values = array.buffers()
        if interner is None or length == 0 or values is None or values.size == 0:
            return super().encode(array, interner)
        data = np.frombuffer(values, np.uint8)
        offsets = np.frombuffer(starts, np.int32, length + 1, array.offset * 4).astype(np.int64)
        validity = validity_of(array)
        return interner.intern(data, offsets, validity), validity


class DictionaryKey(KeyType):
    """A dictionary column means what it stands for, whatever the dictionary of its batch."""

    def __init__(self, type: pa.DictionaryType) -> None:
        super().__init__(type)
        self.inner = key_type_of(type.value_type)
        # Not class attributes here: they are those of the value type.
        self.ordered = self.inner.ordered  # type: ignore[misc]
        self.needs_interner = self.inner.needs_interner  # type: ignore[misc]

    @classmethod
    def takes(cls, type: pa.DataType) -> bool:
        return bool(pa.types.is_dictionary(type))

    def encode(self, array: pa.Array, interner: Interner | None = None) -> Keys:
        if len(array.dictionary) > len(array):
            return self.inner.encode(array.dictionary_decode(), interner)
        keys, known = self.inner.encode(array.dictionary, interner)
        validity = validity_of(array)
        if len(keys) == 0:
            return np.zeros(len(array), np.int64), validity
        indices = array.indices.fill_null(0)
        width = indices.type.bit_width // 8
        codes = numbers_of(indices, indices.type.to_pandas_dtype(), width)
        if known is not None:
            validity = known[codes] if validity is None else known[codes] & validity
        return keys[codes], validity

    def decode(self, keys: Int64s, valid: Booleans | None) -> pa.Array:
        """Values of the plain type: a dictionary is a matter of the batch."""
        return self.inner.decode(keys, valid)

    def sample(self, numbers: Int64s) -> pa.Array:
        return self.inner.sample(numbers).dictionary_encode().cast(self.type)


KEY_TYPES: tuple[type[KeyType], ...] = (
    DictionaryKey,
    NullKey,
    BooleanKey,
    UnsignedKey,
    Int64Key,
    NarrowKey,
    FloatKey,
    DecimalKey,
    TextKey,
    BytesKey,
)
"""Kinds of keys, each for the types that none before it takes."""


@lru_cache(_KNOWN_TYPES)
def key_type_of(type: pa.DataType) -> KeyType:
    """The keys of values of ``type``; InputError if they cannot be keys."""
    for kind in KEY_TYPES:
        if kind.takes(type):
            return kind(type)
    raise InputError(f"values of type {type} cannot be compared, so they cannot be a join key")


def _from_bytes(
    type: pa.DataType, data: Bytes, offsets: Int64s, valid: Booleans | None
) -> pa.Array:
    types = pa.types
    length = len(offsets) - 1
    if types.is_decimal(type) or types.is_fixed_size_binary(type):
        width = type.byte_width
        values = np.zeros((length, width), np.uint8)
        values[np.diff(offsets) > 0] = data.reshape(-1, width)
        if types.is_decimal(type):
            values[:, 0] ^= _SIGN
            values = values[:, ::-1]
        return fixed_width(type, values, valid)
    if types.is_large_string(type) or types.is_large_binary(type):
        buffers = [bitmap_of(valid), buffer_of(offsets), buffer_of(data)]
        return pa.Array.from_buffers(type, length, buffers)
    if (types.is_string(type) or types.is_binary(type)) and offsets[-1] < 2**31:
        buffers = [bitmap_of(valid), buffer_of(offsets.astype(np.int32)), buffer_of(data)]
        return pa.Array.from_buffers(type, length, buffers)
    is_text = types.is_string(type) or types.is_string_view(type)
    large = pa.large_string() if is_text else pa.large_binary()
    return _from_bytes(large, data, offsets, valid).cast(type)
