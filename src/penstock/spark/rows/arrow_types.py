"""Types on the way from Spark to the engine and back.

A query is best parsed with :func:`arrow_schema` of its DataFrames. If it was given schemas of its
own, their types may differ from Spark's in width or unit, as long as values fit; a timestamp is
either an instant (Spark's TIMESTAMP, Arrow's with a time zone) or a clock reading (TIMESTAMP_NTZ,
without one) on both sides. Answers come in Spark's types: what Spark has not gets the next wider
one.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from penstock.errors import InputError, OptionError
from penstock.query.left_out import leaving_out
from penstock.query.types import Family, family, plain


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """The Arrow schema of ``frame``, for ``penstock.parse``.

    >>> schemas = {"A": arrow_schema(a), "B": arrow_schema(b)}   # doctest: +SKIP

    Columns of types that Arrow has not (intervals of months, for one) are left out; a query that
    reads one is told so when it is parsed.
    """
    fields: list[pa.Field] = []
    strange: dict[str, str] = {}
    for field in frame.schema:
        try:
            fields += to_arrow_schema(StructType([field]), timezone="UTC")
        except PySparkException:
            strange[field.name] = field.dataType.simpleString()
    return leaving_out(pa.schema(fields), strange)


def check_type(source: str, name: str, found: pa.DataType, declared: pa.DataType) -> None:
    """:class:`InputError` unless values of ``found`` can be taken for ``declared``."""
    same = family(found) is family(declared)
    if same and pa.types.is_timestamp(found):
        same = (found.tz is None) == (declared.tz is None)
    if same and family(found) is Family.OTHER:
        same = found == declared
    if not same:
        raise InputError(
            f"column {name!r} of the DataFrame of {source} is of type {found}, and the query was "
            f"given {declared}; parse the query with penstock.spark.arrow_schema of the DataFrames"
        )


def answer_schema(schema: pa.Schema) -> tuple[pa.Schema, StructType]:
    """The answer's schema with types that Spark has: in Arrow, and in Spark."""
    fields = [pa.field(f.name, _spark_type(f.name, f.type)) for f in schema]
    arrow = pa.schema(fields)
    return arrow, from_arrow_schema(arrow)


def _spark_type(name: str, kind: pa.DataType) -> pa.DataType:
    types = pa.types
    kind = plain(kind)
    if types.is_unsigned_integer(kind):
        wider = {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.decimal128(20, 0)}
        return wider[kind.bit_width]
    if types.is_timestamp(kind) and kind.unit in ("s", "ms"):
        return pa.timestamp("us", kind.tz)
    if types.is_duration(kind) and kind.unit in ("s", "ms"):
        return pa.duration("us")
    if types.is_decimal256(kind) or getattr(kind, "unit", "us") == "ns":
        raise OptionError(f"column {name!r} of the answer is of type {kind}, which Spark has not")
    return kind
