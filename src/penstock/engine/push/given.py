"""Data as people have it, made into the tables that a query was declared for.

pandas and polars frames and whatever else speaks Arrow's interface, lists of dicts, and tables
whose types are not quite the declared ones: pandas counts nanoseconds, makes integers with a gap
into doubles, and a decimal that was computed has another precision. Where nothing is lost the
column is converted; where something would be, the error names the value's column and the cast.

This is off the way of pushes that need none of it: a push that finds other types than it expects
fails before it changes anything, is made to conform here, and tried again; from then on batches
come here first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.engine.push.intake import Batch, Source, as_batch, no_dict
from penstock.engine.push.text_times import times_of
from penstock.errors import InputError
from penstock.query.time_format import time_format_of
from penstock.query.types import Family, family, plain

_LOSSLESS = {
    Family.INTEGER: (Family.INTEGER, Family.FLOAT, Family.DECIMAL),
    Family.FLOAT: (Family.FLOAT, Family.INTEGER),
    Family.DECIMAL: (Family.DECIMAL,),
    Family.STRING: (Family.STRING,),
    Family.BINARY: (Family.BINARY,),
    Family.TIMESTAMP: (Family.TIMESTAMP,),
    Family.DURATION: (Family.DURATION,),
    Family.TIME: (Family.TIME,),
    Family.DATE: (Family.DATE,),
}
"""Families into which a family is converted, value by value, if the value stays what it is."""
_LARGEST_SCALE = 76
"""Digits that the widest decimal can have."""


def conforming(batches: Mapping[str, Any], sources: Mapping[str, Source]) -> dict[str, Any]:
    """``batches`` as tables of the declared types; those of unknown names stay as they are."""
    if not isinstance(batches, Mapping):
        raise no_dict(batches, sources)
    return {
        name: _conforming(sources[name], batch) if name in sources else batch
        for name, batch in batches.items()
    }


def _conforming(source: Source, batch: Any) -> Batch:
    if isinstance(batch, Sequence) and all(isinstance(row, Mapping) for row in batch):
        return _from_rows(source, batch)
    if isinstance(batch, Mapping):
        return _from_rows(source, _rows_of(source.name, batch))
    table = as_batch(source.name, batch)
    for name in source.columns:
        position = table.schema.get_field_index(name)
        wanted = source.schema.field(name).type
        if position < 0 or table.schema.field(position).type == wanted:
            continue  # What is not there, or there twice, is told by whoever reads the table.
        column, text = table.column(position), time_format_of(source.schema.field(name))
        if text is not None and family(plain(column.type)) is Family.STRING:
            column = times_of(column, text, wanted)
        else:
            column = _converted(source, name, column, wanted)
        table = table.set_column(position, name, column)
    return table


def _rows_of(name: str, columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a dict of columns, which are lists or arrays of one length."""
    try:
        lists = [list(column) for column in columns.values() if not isinstance(column, str | bytes)]
        if len(lists) == len(columns):
            return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]
    except (TypeError, ValueError):
        pass
    raise InputError(
        f"the batch of {name} is a dict, and its values are no lists of one length; give a list of "
        "dicts, or a dict of columns"
    )


def _from_rows(source: Source, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows that are dicts; a key that a row lacks is NULL in it."""
    keys = dict.fromkeys(key for row in rows for key in row)
    columns = {}
    for name in source.columns:
        if name not in keys and rows:
            continue
        kind = source.schema.field(name).type
        values = [row.get(name) for row in rows]
        text_found = any(isinstance(value, str) for value in values)
        text = time_format_of(source.schema.field(name))
        try:
            if text is not None and text_found:
                columns[name] = times_of(pa.array(values, pa.string()), text, kind)
            else:
                columns[name] = pa.array(values, kind)
                lost = _lossy(values, columns[name])
                if lost is not None:
                    raise _loss(source, name, lost, kind, "a part of one would be cut off")
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
            line = str(problem).partition("\n")[0]
            raise InputError(
                f"a value of column {name!r} of {source.name} is no {kind}: {line}"
                + _hint(source, name, pa.string() if text_found else pa.null(), kind)
            ) from None
    return pa.table(columns)


def _lossy(values: Sequence[Any], column: pa.Array) -> pa.DataType | None:
    """The type that ``values`` have by themselves if ``column``, made of them, lacks a part: Arrow
    cuts fractions off, and microseconds, without a word."""
    if not (pa.types.is_integer(column.type) or pa.types.is_temporal(column.type)):
        return None
    try:
        found = pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    if found.type == column.type:
        return None
    try:
        there = found.cast(column.type)
    except pa.ArrowInvalid:
        return found.type
    except pa.ArrowNotImplementedError:
        return None
    is_day = pa.types.is_date(column.type) and pa.types.is_timestamp(found.type)
    return found.type if is_day and not there.cast(found.type).equals(found) else None


def _loss(
    source: Source, name: str, found: pa.DataType, wanted: pa.DataType, line: str
) -> InputError:
    return InputError(
        f"column {name!r} of {source.name} is of type {found}; the query was given {wanted}, and "
        f"not every value can be had in it: {line}; declare {name!r} as {found}, or convert it "
        f"with that loss: {_cast(name, wanted)[:-1]}, safe=False)"
    )


def _converted(source: Source, name: str, column: Any, wanted: pa.DataType) -> Any:
    found = column.type
    if pa.types.is_null(found) or _may_be_converted(found, wanted):
        try:
            column.validate(full=True)
            if pa.types.is_dictionary(found):
                column = column.cast(found.value_type)
            return column.cast(wanted)
        except pa.ArrowInvalid as problem:
            line = str(problem).partition("\n")[0]
            raise _loss(source, name, found, wanted, line) from None
    raise InputError(
        f"column {name!r} of {source.name} is of type {found}; the query was given {wanted}"
        + _hint(source, name, found, wanted)
    )


def _may_be_converted(found: pa.DataType, wanted: pa.DataType) -> bool:
    found, wanted = plain(found), plain(wanted)
    if family(wanted) not in _LOSSLESS.get(family(found), ()):
        return False
    if pa.types.is_decimal(found) and abs(found.scale) > _LARGEST_SCALE:
        return False  # Arrow would look beyond the end of its powers of ten.
    if pa.types.is_timestamp(found):
        return (found.tz is None) == (wanted.tz is None)
    # Arrow narrows doubles without a look at what is lost.
    return not (pa.types.is_floating(wanted) and wanted.bit_width < 64)


def _hint(source: Source, name: str, found: pa.DataType, wanted: pa.DataType) -> str:
    if pa.types.is_timestamp(wanted):
        if pa.types.is_timestamp(found):
            zoned, bare = ("the batch", "the schema") if found.tz else ("the schema", "the batch")
            return f"; {zoned} has a time zone and {bare} has none: give both or neither one"
        if family(found) is Family.STRING:
            or_else = ", or give penstock.parse an event_time_format" * (name == source.event_time)
            return f"; parse it first, for example with pyarrow.compute.strptime{or_else}"
    try:
        pa.nulls(0, found).cast(wanted)
    except pa.ArrowException:
        return ""
    return f"; convert it first: {_cast(name, wanted)}"


def _cast(name: str, wanted: pa.DataType) -> str:
    """The cast of the column ``name`` of a table, to be written by the caller."""
    text = str(wanted)
    known = repr(text) if "(" not in text else f"pyarrow.{text}"
    return f"table[{name!r}].cast({known})"
