"""Columns with types as SQL writes them: ``id BIGINT, ts TIMESTAMP, tags ARRAY<STRING>``.

The types are Spark's, and become what Spark makes of them in Arrow: ``TIMESTAMP`` is an instant,
``TIMESTAMP_NTZ`` a clock reading.
"""

from __future__ import annotations

import pyarrow as pa

from penstock.errors import OptionError

_SIMPLE = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "TEXT": pa.string(),
    "VARCHAR": pa.string(),
    "CHAR": pa.string(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMPLTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMPNTZ": pa.timestamp("us"),
}
_EXAMPLE = "expected columns with types, such as 'id BIGINT, ts TIMESTAMP'"


def read_columns(text: str) -> pa.Schema:
    """The columns that ``text`` lists."""
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        table = parse_one(f"CREATE TABLE t ({text}\n)", dialect="spark")
    except SqlglotError as problem:
        first = str(problem).splitlines()[0]
        raise OptionError(f"schema {text!r} cannot be read: {first}; {_EXAMPLE}") from None
    listed = table.this.expressions if isinstance(table.this, exp.Schema) else []
    if not listed or not all(isinstance(column, exp.ColumnDef) for column in listed):
        raise OptionError(f"schema {text!r} cannot be read; {_EXAMPLE}")
    return pa.schema([(column.name, _type(column.args.get("kind"), text)) for column in listed])


def _type(kind: object, text: str) -> pa.DataType:
    from sqlglot import exp

    if isinstance(kind, exp.DataType):
        name = str(kind.this.value)
        inner = kind.expressions
        if name in _SIMPLE:
            return _SIMPLE[name]
        if name == "DECIMAL":
            numbers = [int(each.name) for each in inner]
            precision, scale = (*numbers, *(10, 0)[len(numbers) :])
            return pa.decimal128(precision, scale)
        if name == "ARRAY":
            return pa.list_(_type(inner[0], text))
        if name == "MAP":
            return pa.map_(_type(inner[0], text), _type(inner[1], text))
        if name == "STRUCT":
            return pa.struct([(each.name, _type(each.args.get("kind"), text)) for each in inner])
    raise OptionError(
        f"schema {text!r} has the type {kind or 'of nothing'}, which is not read here"
    )


def source_names(text: str) -> tuple[str, ...]:
    """The sources that a query reads, in the order of its text."""
    from penstock.query.dialect import read

    found = read(text)
    return tuple(dict.fromkeys(item.source.text for b in found.blocks for item in b.streams))
