"""The streams that the tests of the query package speak of."""

from __future__ import annotations

import pyarrow as pa

from penstock.errors import QueryError
from penstock.query import JoinGraph, parse

WIDE = pa.schema(
    [
        ("id", pa.int64()),
        ("x", pa.int64()),
        ("y", pa.int32()),
        ("u", pa.uint64()),
        ("z", pa.float64()),
        ("f", pa.float32()),
        ("d", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("big", pa.large_string()),
        ("code", pa.dictionary(pa.int32(), pa.string())),
        ("raw", pa.binary(4)),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("zoned", pa.timestamp("us", tz="UTC")),
        ("clock", pa.time32("s")),
        ("took", pa.duration("ms")),
        ("tags", pa.list_(pa.string())),
        ("ts", pa.timestamp("ms")),
    ]
)
NARROW = pa.schema([("id", pa.int64()), ("x", pa.int64()), ("ts", pa.int64())])
SCHEMAS = {
    "A": WIDE,
    "B": NARROW,
    "C": NARROW,
    "D": pa.schema([("k", pa.int64()), ("name", pa.large_string())]),
    "Clicks": pa.schema([("k", pa.int64()), ("at", pa.timestamp("us"))]),
    "Queue": pa.schema([("k", pa.int64()), ("arrival", pa.int64())]),
}


def accept(text: str, *, cross_products: bool = False) -> JoinGraph:
    """The join graph of ``text``."""
    return parse(text, SCHEMAS, cross_products=cross_products)


def refuse(text: str) -> QueryError:
    """The error that ``text`` meets."""
    try:
        graph = parse(text, SCHEMAS)
    except QueryError as error:
        return error
    raise AssertionError(f"accepted: {graph}")


def pointed_at(error: QueryError) -> str:
    """The characters of the text that the caret is under."""
    assert error.text is not None
    assert error.start is not None
    return error.text[error.start : error.end]
