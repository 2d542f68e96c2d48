"""Arrow arrays from what the engine computes with: the inverse of ``key_encoding``.

Keys of ordered types determine their values (up to Spark's equality: -0.0 comes back as 0.0). Byte
strings come back from their bytes. Wide decimals are ordered as byte strings too, when written with
the highest byte first and the sign bit flipped (:func:`ordered_bytes`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.values.key_encoding import bytes_of

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Decoder = Callable[[Int64s, Bools | None], pa.Array]

_TOP_BIT = np.int64(-(2**63))
_SIGN = np.uint8(0x80)


def fixed_width(type: pa.DataType, values: NDArray[Any], valid: Bools | None) -> pa.Array:
    """An array over ``values``, which are laid out as ``type`` has them."""
    length = len(values)
    return pa.Array.from_buffers(type, length, [_bitmap(valid), _buffer(values)])


def decoder_for(type: pa.DataType) -> Decoder:
    """A function from the keys of values of ``type`` to an array of them.

    Where its second argument is false (None: nowhere) the value is NULL.
    """
    types = pa.types
    if types.is_null(type):
        return lambda keys, valid: pa.nulls(len(keys), type)
    if types.is_boolean(type):
        return lambda keys, valid: _booleans(type, keys, valid)
    if types.is_floating(type):
        dtype = type.to_pandas_dtype()
        return lambda keys, valid: fixed_width(type, _doubles(keys).astype(dtype), valid)
    if types.is_uint64(type):
        return lambda keys, valid: fixed_width(type, keys ^ _TOP_BIT, valid)
    if types.is_decimal(type) and type.bit_width > 64:
        words = type.byte_width // 8
        return lambda keys, valid: fixed_width(type, _extended(keys, words), valid)
    if type.bit_width == 64:
        return lambda keys, valid: fixed_width(type, keys, valid)
    narrow = np.dtype(f"i{type.bit_width // 8}")
    return lambda keys, valid: fixed_width(type, keys.astype(narrow), valid)


def from_keys(type: pa.DataType, keys: Int64s, valid: Bools | None) -> pa.Array:
    """The values of ``type`` whose keys are ``keys``; NULL where ``valid`` is false."""
    return decoder_for(type)(keys, valid)


def from_bytes(type: pa.DataType, data: Bytes, offsets: Int64s, valid: Bools | None) -> pa.Array:
    """The values of a string or binary ``type``, or of a wide decimal, from their bytes."""
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
        buffers = [_bitmap(valid), _buffer(offsets), _buffer(data)]
        return pa.Array.from_buffers(type, length, buffers)
    if (types.is_string(type) or types.is_binary(type)) and offsets[-1] < 2**31:
        buffers = [_bitmap(valid), _buffer(offsets.astype(np.int32)), _buffer(data)]
        return pa.Array.from_buffers(type, length, buffers)
    is_text = types.is_string(type) or types.is_string_view(type)
    large = pa.large_string() if is_text else pa.large_binary()
    return from_bytes(large, data, offsets, valid).cast(type)


def ordered_bytes(array: pa.Array) -> tuple[Bytes, Int64s]:
    """The bytes of ``array``, so that their order is that of the values."""
    data, offsets = bytes_of(array)
    if not pa.types.is_decimal(array.type) or len(data) == 0:
        return data, offsets if offsets.flags.writeable else offsets.copy()
    width = array.type.byte_width
    values = data[offsets[0] : offsets[-1]].reshape(-1, width)[:, ::-1].copy()
    values[:, 0] ^= _SIGN
    return values.reshape(-1), offsets - offsets[0]


def read_only(data: Bytes) -> Bytes:
    """``data`` as it often comes from Arrow, so that kernels are compiled in one form only."""
    if data.flags.writeable:
        data = data.view()
        data.flags.writeable = False
    return data


def _booleans(type: pa.DataType, keys: Int64s, valid: Bools | None) -> pa.Array:
    bits = np.packbits(keys != 0, bitorder="little")
    return pa.Array.from_buffers(type, len(keys), [_bitmap(valid), _buffer(bits)])


def _doubles(keys: Int64s) -> NDArray[np.float64]:
    return np.where(keys < 0, _TOP_BIT - keys, keys).view(np.float64)


def _extended(keys: Int64s, words: int) -> Int64s:
    """``keys`` as signed integers of ``words`` words."""
    wide = np.empty((len(keys), words), np.int64)
    wide[:, 0] = keys
    wide[:, 1:] = (keys >> 63)[:, None]
    return wide


def _bitmap(valid: Bools | None) -> pa.Buffer | None:
    if valid is None or np.count_nonzero(valid) == len(valid):
        return None
    return _buffer(np.packbits(valid, bitorder="little"))


def _buffer(values: NDArray[Any]) -> pa.Buffer:
    return pa.py_buffer(np.ascontiguousarray(values))
