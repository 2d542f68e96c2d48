"""Arrow arrays as numpy arrays, and back: how values, offsets and validity lie in buffers."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Booleans = NDArray[np.bool_]

assert sys.byteorder == "little", "Arrow's native layout is read as little-endian"


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


def fixed_width(type: pa.DataType, values: NDArray[Any], valid: Booleans | None) -> pa.Array:
    """An array over ``values``, which are laid out as ``type`` has them."""
    length = len(values)
    return pa.Array.from_buffers(type, length, [bitmap_of(valid), buffer_of(values)])


def read_only(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """``data`` as it often comes from Arrow, so that kernels are compiled in one form only."""
    if data.flags.writeable:
        data = data.view()
        data.flags.writeable = False
    return data


def bitmap_of(valid: Booleans | None) -> pa.Buffer | None:
    """The validity of an array that is NULL where ``valid`` is false (None: nowhere)."""
    if valid is None or np.count_nonzero(valid) == len(valid):
        return None
    return buffer_of(np.packbits(valid, bitorder="little"))


def buffer_of(values: NDArray[Any]) -> pa.Buffer:
    """``values`` as Arrow has them, in one piece."""
    return pa.py_buffer(np.ascontiguousarray(values))
