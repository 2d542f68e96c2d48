"""Predicates on one stream, as filters in Spark's plan.

A row that a predicate on its own stream rejects is in no result. The sooner it goes, the less is
read, handed to Python, packed and shuffled. So such predicates are written as Spark's expressions
and put in front of the packing, where Spark's optimizer takes them on, into the scan if it can.

**Only what means the same in Spark.** Our expressions are typed, with every conversion explicit,
and follow Spark SQL: three-valued logic, NaN equal to NaN and greater than any number. A node is
translated if Spark's node has the same value for every input, without a chance of an error. So
there is no integer arithmetic that could overflow (bounds are known from types and constants), no
division but by a constant, no cast that rounds or parses, no LOWER and UPPER (Java's tables of
characters are not Arrow's), no LIKE with an escape, no column whose type in the DataFrame is not
the one that the query was parsed with, and no string with a collation or of fixed length, which
Spark compares in a way of its own. A predicate with any other node stays in the packing. Floating
point columns are compared as ``x + 0.0``, which changes no comparison and keeps it out of the scan:
statistics of Parquet files leave NaN out, so a reader would skip files with rows that match.

**What it does to the clock.** A row moves the clock of its source, whether a predicate rejects it
or not (docs/notes/answers.md), so rejected rows may not vanish where the clock matters. There they
are *masked*: all of a row but its event time becomes one NULL, in the projection that computes the
predicate. That costs 0.6 of handing whole rows to Python if one row in a hundred passes, and 1.2 of
it if nearly all do (six columns, one of them a string), so it is done only for predicates that are
likely to be selective. Where the clock does not matter rejected rows are filtered out for good:
with static relations, with batch DataFrames, and for a source that has no watermark in a query
whose answer leaves at birth.

Rows without an event time always pass, whatever the predicate: they are counted where rows are
packed, and nothing vanishes uncounted.

On the arrival line every row counts for its window, so nothing is pushed at all.
"""

from __future__ import annotations

import datetime
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType

from penstock.query import expression as tree
from penstock.query.expression import Expression
from penstock.query.join_graph import JoinGraph, Predicate
from penstock.query.types import plain
from penstock.spark.rows.arrow_types import arrow_schema

_FIXED_LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
"""Metadata of columns of type CHAR and VARCHAR, by Spark's name."""

_WHOLE = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
_NUMBERS = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
}
_PLAIN = (pa.bool_(), pa.string(), pa.date32())
_SELECTIVE = 0.5
"""The share of rows up to which masking the others pays; at this share it costs what it saves."""

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class _StaysError(Exception):
    """An expression has no equal in Spark, or might not have."""


@dataclass(frozen=True, slots=True)
class Pushdown:
    """What Spark does to the rows of one source before they are packed."""

    condition: Column | None
    """True for rows that may be in a result, or have no event time; None if there is nothing."""
    pushed: tuple[str, ...]
    """The predicates of ``condition``, as a person reads them."""
    kept: tuple[str, ...]
    """Those that Spark is not told."""
    is_masked: bool
    """Whether rejected rows stay, with their event time alone."""

    def apply(
        self,
        frame: DataFrame,
        columns: Sequence[str],
        event_time: str | None,
        but: Column | None = None,
        ahead: Column | None = None,
    ) -> DataFrame:
        """``columns`` of ``frame`` as they go to the packing.

        Rows for which ``but`` is true are never rejected. Where ``ahead`` is, the event time of a
        row does not count.
        """
        quoted = [quote(name) for name in columns]
        if self.condition is None:
            return frame.select(*quoted)
        condition = self.condition if but is None else self.condition | but
        if not self.is_masked:
            return frame.where(condition).select(*quoted)
        assert event_time is not None
        row = sql.when(condition, sql.struct(*quoted))
        time = sql.col(quote(event_time))
        if ahead is not None:
            time = sql.when(~sql.coalesce(ahead, sql.lit(False)), time)
        return frame.select(time.alias("time"), row.alias("row"))


def push_down(query: JoinGraph, frame: DataFrame, source: str, needs_clock: bool) -> Pushdown:
    """What can be pushed of the predicates on ``source``.

    ``needs_clock`` tells whether the event times of rejected rows matter. A source that is read
    more than once loses the rows that all of its roles reject.
    """
    roles = [
        [p for p in block.predicates if p.streams == {stream.alias}]
        for block in query.blocks
        for stream in block.streams
        if stream.source == source
    ]
    every = tuple(dict.fromkeys(str(p) for role in roles for p in role))
    nothing = Pushdown(None, (), every, False)
    if query.by_rows or not all(roles):
        return nothing
    columns = _columns(frame)
    conditions, pushed, share = [], [], 0.0
    for role in roles:
        translated = [(p, t) for p in role if (t := _translated(p, columns)) is not None]
        if not translated:
            return nothing
        conditions.append(functools.reduce(Column.__and__, (t for _, t in translated)))
        pushed += [str(p) for p, _ in translated]
        share += math.prod(_share(p.expression) for p, _ in translated)
    if needs_clock and share > _SELECTIVE:
        return nothing
    condition = functools.reduce(Column.__or__, conditions)
    time = next(s.event_time for b in query.blocks for s in b.streams if s.source == source)
    if time is not None:
        condition = condition | sql.col(quote(time)).isNull()
    kept = tuple(each for each in every if each not in pushed)
    return Pushdown(condition, tuple(dict.fromkeys(pushed)), kept, needs_clock)


def needs_clock(query: JoinGraph, source: str, streaming: bool, delays: Mapping[str, int]) -> bool:
    """Whether the answer depends on the event times of rows of ``source`` that are in no result.

    ``delays`` has the sources with a watermark. A batch is one push, in which nothing is late.
    """
    freshness = any(s.freshness is not None for block in query.blocks for s in block.streams)
    if freshness or query.emission == "rstream":
        return True
    if not streaming:
        return False
    at_birth = query.emission == "istream" and not query.is_grouped and not query.minus
    return source in delays or not at_birth


def quote(name: str) -> str:
    """A column name as Spark takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def _columns(frame: DataFrame) -> dict[str, pa.DataType]:
    """The columns of ``frame`` that are compared as ours are, with their types."""
    types = arrow_schema(frame)
    columns = {}
    for field in frame.schema:
        kind = field.dataType
        collated = isinstance(kind, StringType) and kind != StringType()
        if field.name in types.names and not collated and _FIXED_LENGTH not in field.metadata:
            columns[field.name] = types.field(field.name).type
    return columns


def _translated(predicate: Predicate, columns: Mapping[str, pa.DataType]) -> Column | None:
    try:
        return _condition(predicate.expression, columns)
    except _StaysError:
        return None


def _condition(expression: Expression, columns: Mapping[str, pa.DataType]) -> Column:
    """A truth value."""
    match expression:
        case tree.And():
            return functools.reduce(
                Column.__and__, (_condition(e, columns) for e in expression.operands)
            )
        case tree.Or():
            return functools.reduce(
                Column.__or__, (_condition(e, columns) for e in expression.operands)
            )
        case tree.Not():
            return ~_condition(expression.operand, columns)
        case tree.IsNull():
            return _value(expression.operand, columns).isNull()
        case tree.Like():
            if "\\" in expression.pattern:
                raise _StaysError
            return _value(expression.operand, columns).like(expression.pattern)
        case tree.Comparison():
            left, right = _value(expression.left, columns), _value(expression.right, columns)
            return _COMPARISONS[expression.operator](left, right)
        case tree.Column() | tree.Constant():
            return _value(expression, columns)
        case _:
            raise _StaysError


_COMPARISONS = {
    "=": Column.__eq__,
    "<>": Column.__ne__,
    "<": Column.__lt__,
    "<=": Column.__le__,
    ">": Column.__gt__,
    ">=": Column.__ge__,
}


def _value(expression: Expression, columns: Mapping[str, pa.DataType]) -> Column:
    """A value of the type of ``expression``."""
    match expression:
        case tree.Column():
            kind = plain(expression.type)
            if columns.get(expression.name) != kind or not _is_comparable(kind):
                raise _StaysError
            column = sql.col(quote(expression.name))
            return column + _constant(0.0, kind) if pa.types.is_floating(kind) else column
        case tree.Constant():
            return _constant(expression.value, plain(expression.type))
        case tree.Cast():
            _check_cast(plain(expression.operand.type), plain(expression.type))
            return _value(expression.operand, columns).cast(_name(plain(expression.type)))
        case tree.Arithmetic():
            _check_arithmetic(expression)
            left, right = _value(expression.left, columns), _value(expression.right, columns)
            return _ARITHMETIC[expression.operator](left, right)
        case tree.Negative():
            _bounds(expression)
            return -_value(expression.operand, columns)
        case tree.Function(name="abs"):
            _bounds(expression)
            return sql.abs(_value(expression.arguments[0], columns))
        case tree.Function(name="coalesce"):
            return sql.coalesce(*(_value(a, columns) for a in expression.arguments))
        case tree.Function(name="length"):
            return sql.length(_value(expression.arguments[0], columns))
        case _:
            raise _StaysError


_ARITHMETIC = {
    "+": Column.__add__,
    "-": Column.__sub__,
    "*": Column.__mul__,
    "/": Column.__truediv__,
    "%": Column.__mod__,
}


def _is_comparable(kind: pa.DataType) -> bool:
    types = pa.types
    moment = types.is_timestamp(kind) and kind.unit == "us"
    return bool(kind in _NUMBERS or kind in _PLAIN or moment or types.is_decimal128(kind))


def _name(kind: pa.DataType) -> str:
    """What Spark calls ``kind``, a number."""
    if pa.types.is_decimal128(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _NUMBERS[kind]


def _constant(value: object, kind: pa.DataType) -> Column:
    if not _is_comparable(kind):
        raise _StaysError
    if pa.types.is_timestamp(kind) and isinstance(value, datetime.datetime):
        if kind.tz is None:
            return sql.expr(f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'")
        microseconds = (value - _EPOCH) // datetime.timedelta(microseconds=1)
        return sql.timestamp_micros(sql.lit(microseconds))
    if isinstance(value, bool | str | datetime.date):
        return sql.lit(value)
    if isinstance(value, int | float | Decimal) and math.isfinite(value):
        return sql.lit(value).cast(_name(kind))
    raise _StaysError


def _check_cast(source: pa.DataType, target: pa.DataType) -> None:
    """:class:`_StaysError` unless every value of ``source`` is the same one in ``target``.

    Or, with integers as doubles, is rounded in the one way that there is.
    """
    if source in _WHOLE and target in _WHOLE:
        fits = _WHOLE[source] <= _WHOLE[target]
    elif source in _WHOLE and pa.types.is_decimal128(target):
        fits = target.precision - target.scale >= len(str(2 ** (_WHOLE[source] - 1)))
    elif pa.types.is_decimal128(source) and pa.types.is_decimal128(target):
        whole = target.precision - target.scale >= source.precision - source.scale
        fits = whole and target.scale >= source.scale
    else:
        fits = target == pa.float64() and (source in _WHOLE or source == pa.float32())
    if not fits:
        raise _StaysError


def _check_arithmetic(expression: tree.Arithmetic) -> None:
    if expression.type == pa.float64():
        safe = expression.operator in ("+", "-", "*")
        if not safe and not (expression.operator == "/" and _divisor(expression)):
            raise _StaysError
    else:
        _bounds(expression)


def _divisor(expression: tree.Arithmetic) -> object:
    """What is divided by, if it is a constant."""
    return expression.right.value if isinstance(expression.right, tree.Constant) else None


def _bounds(expression: Expression) -> tuple[int, int]:
    """The least and the greatest value of an integer; :class:`_StaysError` if it may not fit.

    A float has none, and none is needed: it overflows to infinity, here and in Spark.
    """
    if expression.type == pa.float64():
        return 0, 0
    if expression.type not in _WHOLE:
        raise _StaysError
    half = 2 ** (_WHOLE[expression.type] - 1)
    match expression:
        case tree.Constant(value=int() as value):
            return value, value
        case tree.Cast():
            low, high = _bounds(expression.operand)
        case tree.Negative():
            low, high = _bounds(expression.operand)
            low, high = -high, -low
        case tree.Function(name="abs"):
            low, high = _bounds(expression.arguments[0])
            low, high = (0 if low < 0 < high else min(abs(low), abs(high))), max(-low, high)
        case tree.Arithmetic(operator="%"):
            divisor = _divisor(expression)
            _bounds(expression.left)
            if not isinstance(divisor, int) or abs(divisor) < 2:
                raise _StaysError
            low, high = 1 - abs(divisor), abs(divisor) - 1
        case tree.Arithmetic(operator="+" | "-" | "*"):
            (a, b), (c, d) = _bounds(expression.left), _bounds(expression.right)
            if expression.operator == "*":
                products = a * c, a * d, b * c, b * d
                low, high = min(products), max(products)
            elif expression.operator == "+":
                low, high = a + c, b + d
            else:
                low, high = a - d, b - c
        case _:
            return -half, half - 1
    if low < -half or high >= half:
        raise _StaysError
    return low, high


def _share(expression: Expression) -> float:
    """The share of rows for which a predicate holds, as a guess by its kind (System R's)."""
    match expression:
        case tree.And():
            return math.prod(_share(e) for e in expression.operands)
        case tree.Or():
            return min(1.0, sum(_share(e) for e in expression.operands))
        case tree.Comparison(operator="=") | tree.IsNull() | tree.Like():
            return 0.1
        case tree.Comparison(operator="<" | "<=" | ">" | ">="):
            return 1 / 3
        case tree.Column():
            return 0.5
        case _:
            return 0.9
