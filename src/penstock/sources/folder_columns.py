"""Columns that are in the names of folders: ``day=2026-01-01/city=Graz/part-0.parquet``.

As in Spark: every file below such folders has these values, a column that is in the file too is
read from the folder, ``__HIVE_DEFAULT_PARTITION__`` is NULL, and types are those that all values
fit: integer, floating point, date, else text.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import unquote

import pyarrow as pa

from penstock.errors import InputError

_NULL = "__HIVE_DEFAULT_PARTITION__"


def folder_values(name: str) -> dict[str, str | None]:
    """The columns in the folders of the file called ``name``, as texts."""
    found: dict[str, str | None] = {}
    for part in name.split("/")[:-1]:
        column, equals, value = part.partition("=")
        if equals and column:
            text = unquote(value)
            found[unquote(column)] = None if text == _NULL else text
    return found


def folder_types(names: Iterable[str]) -> dict[str, pa.DataType]:
    """The columns in the folders of all files, with the narrowest types that their values fit."""
    values: dict[str, set[str]] = {}
    for name in names:
        for column, value in folder_values(name).items():
            values.setdefault(column, set()).update(() if value is None else (value,))
    return {column: _type(each) for column, each in values.items()}


def with_folder_values(
    table: pa.Table, values: Mapping[str, str | None], schema: pa.Schema, where: str
) -> pa.Table:
    """``table`` with ``values`` as columns, in the types of ``schema``, where that has them."""
    for name, text in values.items():
        position = schema.get_field_index(name)
        if position < 0:
            continue
        kind = schema.field(position).type
        try:
            value = pa.scalar(text, pa.string()).cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InputError(
                f"{where}: the folder says {name}={text}, expected a value of type {kind}"
            ) from None
        column = pa.repeat(value, len(table))
        there = table.schema.get_field_index(name)
        if there >= 0:
            table = table.set_column(there, name, column)
        else:
            table = table.append_column(name, column)
    return table


def _type(values: set[str]) -> pa.DataType:
    """The narrowest type that all ``values`` fit."""
    if _fit(values, int):
        numbers = [int(value) for value in values]
        for bits, kind in ((31, pa.int32()), (63, pa.int64())):
            if all(-(1 << bits) <= number < 1 << bits for number in numbers):
                return kind
    if _fit(values, float):
        return pa.float64()
    return pa.date32() if _fit(values, datetime.date.fromisoformat) else pa.string()


def _fit(values: set[str], read: Callable[[str], object]) -> bool:
    try:
        return all(read(value) is not None for value in values)
    except ValueError:
        return False
