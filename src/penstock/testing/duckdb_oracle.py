"""DuckDB as a second oracle, for ISTREAM and DSTREAM queries over event time.

The predicates and the lifespans of a block become one SQL query over the whole input; DuckDB gives
back which rows are together, and the select list is evaluated on them. It agrees with Spark that
NaN equals NaN and is greatest. Timestamps and durations go in as integers in the unit of their
type, since DuckDB has no time zones beyond microseconds.

For runs in which no tuple is late: it sees all tuples at once. The answer is that of all pushes and
of ``finish``, by which every result has left whose life ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.query.expression import (
    And,
    Arithmetic,
    Case,
    Cast,
    Column,
    Comparison,
    Constant,
    Expression,
    Function,
    IsNull,
    Like,
    Negative,
    Not,
    Or,
    columns_of,
)
from penstock.query.join_graph import JoinGraph, Stream
from penstock.query.window import Range
from penstock.testing.evaluate_row import constant_value, evaluate
from penstock.testing.python_values import canonical, python_values

BEGINNING, END = -(2**62), 2**62
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


class NotTranslatable(Exception):  # noqa: N818 - says what the query is
    """A query or a type that has no counterpart in DuckDB."""


def duckdb_answer(
    graph: JoinGraph, batches_list: Iterable[Mapping[str, pa.Table | pa.RecordBatch]]
) -> Counter[Hashable]:
    """The whole answer to ``batches_list`` as a multiset of canonical rows."""
    import duckdb

    if graph.by_rows or graph.minus or graph.is_grouped or graph.emission == "rstream":
        raise NotTranslatable("only ISTREAM and DSTREAM over event time, without EXCEPT, GROUP BY")
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    pushed = list(batches_list)
    rows: dict[str, list[dict[str, Any]]] = {}
    for stream in graph.streams:
        mine = [batches[stream.source] for batches in pushed if stream.source in batches]
        columns = _columns(stream, mine)
        rows[stream.alias] = [
            dict(zip(columns, values, strict=True))
            for values in zip(*(python_values(c) for c in columns.values()), strict=True)
        ]
        connection.register(f"in_{stream.alias}", _registered(graph, stream, columns))
    found = connection.execute(to_sql(graph)).fetchall()
    connection.close()
    answer: Counter[Hashable] = Counter()
    for numbers in found:
        row = {a: rows[a][n] for a, n in zip(graph.aliases, numbers, strict=True)}
        answer[canonical([evaluate(item.expression, row) for item in graph.select])] += 1
    return answer


def to_sql(graph: JoinGraph) -> str:
    """The query whose rows are the numbers of the tuples of each result, in order of FROM."""
    names = {alias: _quoted(alias) for alias in graph.aliases}
    births = ", ".join(f"{name}.birth" for name in names.values())
    deaths = ", ".join(f"{name}.death" for name in names.values())
    conditions = [f"greatest({births}) <= least({deaths})"]
    if graph.emission == "dstream":
        conditions.append(f"least({deaths}) < {END}")
    conditions += [f"({sql(p.expression)})" for p in graph.predicates]
    tables = ", ".join(f"{_quoted('in_' + alias)} AS {name}" for alias, name in names.items())
    numbers = ", ".join(f"{name}.number" for name in names.values())
    return f"SELECT {numbers} FROM {tables} WHERE {' AND '.join(conditions)}"


def sql(expression: Expression) -> str:
    """``expression`` in DuckDB's SQL."""
    match expression:
        case Column():
            return f"{_quoted(expression.stream)}.{_quoted('c_' + expression.name)}"
        case Constant():
            return _literal(constant_value(expression.value, expression.type), expression.type)
        case Cast():
            return _cast(expression)
        case Arithmetic():
            return f"({sql(expression.left)} {expression.operator} {sql(expression.right)})"
        case Negative():
            return f"(-{sql(expression.operand)})"
        case Comparison():
            return f"({sql(expression.left)} {expression.operator} {sql(expression.right)})"
        case And():
            return f"({' AND '.join(map(sql, expression.operands))})"
        case Or():
            return f"({' OR '.join(map(sql, expression.operands))})"
        case Not():
            return f"(NOT {sql(expression.operand)})"
        case IsNull():
            return f"({sql(expression.operand)} IS NULL)"
        case Like():
            pattern = _literal(expression.pattern, pa.string())
            return f"({sql(expression.operand)} LIKE {pattern} ESCAPE '\\')"
        case Case():
            branches = zip(expression.conditions, expression.values, strict=False)
            written = " ".join(f"WHEN {sql(test)} THEN {sql(value)}" for test, value in branches)
            return f"(CASE {written} ELSE {sql(expression.values[-1])} END)"
        case Function(name="abs" | "coalesce" | "length" | "lower" | "upper"):
            return f"{expression.name}({', '.join(map(sql, expression.arguments))})"
        case _:
            raise NotTranslatable(type(expression).__name__)


def _columns(stream: Stream, batches: list[Any]) -> dict[str, pa.ChunkedArray]:
    """All tuples of ``stream``; those without event time are dropped."""
    names = stream.schema.names
    table = pa.concat_tables(
        [stream.schema.empty_table(), *(_table(b).select(names) for b in batches)]
    )
    if stream.event_time is not None:
        table = table.filter(table.column(stream.event_time).is_valid())
    return {name: table.column(name) for name in names}


def _registered(
    graph: JoinGraph, stream: Stream, columns: Mapping[str, pa.ChunkedArray]
) -> pa.Table:
    """The columns that predicates read, with the number and the lifespan of each tuple."""
    count = len(next(iter(columns.values())))
    read = {
        c.name
        for p in graph.predicates
        for c in columns_of(p.expression)
        if c.stream == stream.alias
    }
    births: list[int] = [BEGINNING] * count
    deaths: list[int] = [END] * count
    if stream.event_time is not None:
        kind = stream.schema.field(stream.event_time).type
        unit = kind.unit if pa.types.is_timestamp(kind) else "ms"
        ticks = 1_000 * graph.ticks_per_millisecond // PER_SECOND[unit]
        births = [time * ticks for time in python_values(columns[stream.event_time])]
        if isinstance(stream.window, Range):
            length = stream.window.milliseconds * graph.ticks_per_millisecond
            deaths = [birth + length for birth in births]
    arrays = {
        "number": pa.array(range(count), pa.int64()),
        "birth": pa.array(births, pa.int64()),
        "death": pa.array(deaths, pa.int64()),
    }
    for name in sorted(read):
        arrays[f"c_{name}"] = _plain(columns[name])
    return pa.table(arrays)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_decimal256(kind) or pa.types.is_nested(kind):
        raise NotTranslatable(f"columns of {kind}")
    if pa.types.is_dictionary(kind):
        return column.cast(kind.value_type)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time64(kind):
        return column.cast(pa.int64())
    return column


def _table(batch: Any) -> pa.Table:
    return batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Any, kind: pa.DataType) -> str:
    if value is None:
        return f"CAST(NULL AS {_type(kind)})"
    if isinstance(value, bytes):
        text = "".join(f"\\x{byte:02X}" for byte in value)
        return f"'{text}'::BLOB"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, Decimal):
        return f"CAST('{value:f}' AS {_type(kind)})"
    text = str(value).replace("'", "''")
    return f"CAST('{text}' AS {_type(kind)})"


def _cast(expression: Cast) -> str:
    source, target = expression.operand.type, expression.type
    inner = sql(expression.operand)
    if _is_time(source) and _is_time(target):
        up, down = PER_SECOND[target.unit], PER_SECOND[source.unit]
        if up < down:
            raise NotTranslatable(f"a cast of {source} to {target}")
        return f"({inner} * {up // down})"
    if pa.types.is_date(source) and pa.types.is_timestamp(target):
        days = f"date_diff('day', DATE '1970-01-01', {inner})"
        return f"({days} * {86_400 * PER_SECOND[target.unit]})"
    if _is_time(source) or _is_time(target):
        raise NotTranslatable(f"a cast of {source} to {target}")
    return f"CAST({inner} AS {_type(target)})"


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_duration(kind))


def _type(kind: pa.DataType) -> str:
    if _is_time(kind):
        return "BIGINT"
    if pa.types.is_decimal128(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    names = {
        pa.bool_(): "BOOLEAN",
        pa.int8(): "TINYINT",
        pa.int16(): "SMALLINT",
        pa.int32(): "INTEGER",
        pa.int64(): "BIGINT",
        pa.uint8(): "UTINYINT",
        pa.uint16(): "USMALLINT",
        pa.uint32(): "UINTEGER",
        pa.uint64(): "UBIGINT",
        pa.float32(): "FLOAT",
        pa.float64(): "DOUBLE",
        pa.string(): "VARCHAR",
        pa.binary(): "BLOB",
        pa.date32(): "DATE",
        pa.null(): "INTEGER",
    }
    if kind not in names:
        raise NotTranslatable(f"the type {kind}")
    return names[kind]
