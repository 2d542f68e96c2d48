"""Values in Avro as columns, by fastavro.

Each value is decoded by itself, in C: a value says nothing about its length, so behind each other a
bad one would shift all that follow. To have a mark between them, and to read all as one block of a
container file, is slower (269,000 records of four fields in a CPU second, and 342,000 one by one,
in one run): it makes one more object for each. Columns are made of the records in bulk, and times
stay numbers until then: 439,000 records where 373,000 became dictionaries with times first.

What cannot be read is a row of NULLs whose bytes, in hexadecimal digits, are in one more column
(:data:`~penstock.query.unreadable.CORRUPT`).

A value that begins with a zero may have the heading of a schema registry, or a first field that is
zero, NULL or empty. It has a heading if all that is behind one is a record.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.errors import InputError, OptionError
from penstock.query.unreadable import CORRUPT

_REGISTRY = 5
"""Bytes of the heading of a schema registry: a zero and the number of the schema."""
_UNITS = {
    f"{local}timestamp-{long}": unit
    for local in ("", "local-")
    for long, unit in (("millis", "ms"), ("micros", "us"), ("nanos", "ns"))
}
"""Units of times, in the words of the format."""
_BAD = (EOFError, ValueError, LookupError, TypeError, ArithmeticError, StopIteration)


def read_values(
    values: Sequence[bytes | None], wanted: pa.Schema, avro_schema: str | None
) -> pa.Table:
    """The columns ``wanted`` of ``values``, with the heading of a schema registry or without, one
    row for each; CORRUPT behind them if some could not be read. None is a row of NULLs."""
    reader = _Reader(avro_schema, wanted)
    empty: dict[str, Any] = {}
    rows = [empty if value is None else reader.record(value) for value in values]
    read = [empty if row is None else row for row in rows]
    try:
        columns = [
            pa.array(
                [row.get(field.name) for row in read], reader.times.get(field.name, field.type)
            )
            for field in wanted
        ]
        table = pa.table(dict(zip(wanted.names, columns, strict=True))).cast(wanted, safe=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as problem:
        raise InputError(f"values do not fit the schema: {problem}") from None
    if None not in rows:
        return table
    pairs = zip(values, rows, strict=True)
    texts = [v.hex() if row is None and v is not None else None for v, row in pairs]
    return table.append_column(CORRUPT, pa.array(texts, pa.string()))


class _Reader:
    """Reads values that were written with one schema."""

    def __init__(self, avro_schema: str | None, wanted: pa.Schema) -> None:
        try:
            import fastavro
        except ImportError:
            raise OptionError(
                'decode "avro" needs the package fastavro: pip install fastavro'
            ) from None
        if avro_schema is None:
            raise OptionError(
                "avroSchema is missing: the schema that values were written with, as JSON"
            )
        self._read = fastavro.schemaless_reader
        self.times: dict[str, pa.DataType] = {}
        """The types of times that are read as numbers, by column."""
        try:
            plain = json.loads(avro_schema)
            if isinstance(plain, dict) and isinstance(plain.get("fields"), list):
                fields = [self._without_times(field, wanted) for field in plain["fields"]]
                plain = plain | {"fields": fields}
            self._schema = fastavro.parse_schema(plain)
        except (ValueError, fastavro.schema.SchemaParseException) as problem:
            raise OptionError(f"avroSchema is not a schema of Avro: {problem}") from None
        if not isinstance(plain, dict) or plain.get("type") != "record":
            raise OptionError("avroSchema is not that of a record, whose fields are the columns")

    def _without_times(self, field: Any, wanted: pa.Schema) -> Any:
        """A field whose value is a number if it is a time, or may be one, and a time is wanted."""
        place = wanted.get_field_index(str(field.get("name"))) if isinstance(field, dict) else -1
        if place < 0 or not pa.types.is_timestamp(wanted.field(place).type):
            return field
        kind = field["type"]
        others = [each for each in kind if each != "null"] if isinstance(kind, list) else [kind]
        unit = _unit_of(others[0]) if len(others) == 1 else None
        if unit is None:
            return field
        self.times[field["name"]] = pa.timestamp(unit, wanted.field(place).type.tz)
        number = [each if each == "null" else "long" for each in kind]
        return field | {"type": number if isinstance(kind, list) else "long"}

    def record(self, value: bytes) -> dict[str, Any] | None:
        """The record behind a heading or at the beginning of ``value``: that which takes all of
        its bytes, if one does; None if there is none."""
        if value[:1] != b"\0" or len(value) <= _REGISTRY:
            return self._record(value)[0]
        behind, left = self._record(value[_REGISTRY:])
        if behind is not None and not left:
            return behind
        whole, left = self._record(value)
        return whole if behind is None or (whole is not None and not left) else behind

    def _record(self, value: bytes) -> tuple[dict[str, Any] | None, int]:
        """The record at the beginning of ``value``, None if there is none; the bytes behind it."""
        file = io.BytesIO(value)
        try:
            return self._read(file, self._schema, None), len(value) - file.tell()
        except _BAD:
            return None, 0


def _unit_of(kind: Any) -> str | None:
    """The unit of a type of times, None of other types."""
    is_long = isinstance(kind, dict) and kind.get("type") == "long"
    return _UNITS.get(str(kind.get("logicalType"))) if is_long else None
