"""Arrow columns as plain, hashable Python values.

Exact and without surprises: a timestamp, duration or time of day is the integer that Arrow stores
(in the unit of its type), since Python's own types stop at microseconds; a list is a tuple, a
struct the tuple of its fields, a map the tuple of its (key, value) pairs, a dictionary column what
it stands for. Everything else is what ``to_pylist`` gives. NULL is None at every depth.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pyarrow as pa

NAN = ("NaN",)
"""What :func:`canonical` makes of NaN, so that it equals itself."""


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of ``column``, as described above."""
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in python_values(chunk)]
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
        return python_values(column.storage)
    if pa.types.is_dictionary(kind):
        return python_values(column.dictionary_decode())
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time64(kind):
        return list(column.cast(pa.int64()).to_pylist())
    if pa.types.is_time32(kind):
        return list(column.cast(pa.int32()).to_pylist())
    if pa.types.is_struct(kind):
        fields = [python_values(field) for field in _struct_fields(column)]
        valid = column.is_valid().to_pylist()
        return [tuple(f[i] for f in fields) if ok else None for i, ok in enumerate(valid)]
    if pa.types.is_nested(kind):
        return [_items(scalar) for scalar in column]
    return list(column.to_pylist())


def canonical(value: Any) -> Hashable:
    """``value`` so that Python's ``==`` is "not distinct": NaN is NaN, -0.0 is 0.0, None is None.

    >>> canonical(float("nan")) == canonical(float("nan")), canonical(-0.0)
    (True, 0.0)
    """
    if isinstance(value, float):
        return NAN if value != value else value + 0.0
    if isinstance(value, (list, tuple)):
        return tuple(canonical(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, canonical(v)) for k, v in value.items())
    assert isinstance(value, Hashable)
    return value


def _struct_fields(column: pa.StructArray) -> list[pa.Array]:
    return [column.field(i) for i in range(column.type.num_fields)]


def _items(scalar: pa.Scalar) -> tuple[Any, ...] | None:
    """A list-like or map scalar; ``values`` is the slice of items that it holds."""
    if not scalar.is_valid:
        return None
    return tuple(python_values(scalar.values))
