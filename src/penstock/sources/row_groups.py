"""Row groups of parquet files of which a query needs no row.

A parquet file tells the least and the greatest value of each column of each of its row groups.
Where these refute a comparison of a column with a constant that every row of a result fulfils, the
group is not read: a row that fails a predicate on its stream alone is in no result. A source with
several roles in a query loses the groups that all of its roles reject.

Rows move the clock of their source whether they are in a result or not, and are counted. So a group
of a stream is left out only if it tells its greatest event time, and that none is missing: then
what is known without reading it (:class:`~penstock.sources.portion.Brief`) stands in for its rows.

Only what the statistics surely mean is used: signed integers, dates, timestamps in the unit that
the file has, and texts, whose bounds may be shortened by the writer but remain bounds. NaN is in no
statistics, so floating point is left alone; NULL fulfils no comparison. A column that has another
type in the file than in the query, or that the names of folders have too, is not asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.query.expression import And, Cast, Column, Comparison, Constant, Expression
from penstock.query.types import plain
from penstock.sources.portion import Brief

PARQUET_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
"""Units of timestamps, in the words of the format."""
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
NOTHING = Brief(0, None)


@dataclass(frozen=True, slots=True)
class Bound:
    """``column operator value``, which a row must fulfil to be in a result."""

    column: str
    type: pa.DataType
    """Of the column."""
    operator: str
    value: int | str
    """In the way that statistics have it: of timestamps and dates the number in their unit."""

    def is_refuted(self, least: int | str, greatest: int | str) -> bool:
        """Whether no value from ``least`` to ``greatest`` fulfils it."""
        low: Any = least
        high: Any = greatest
        match self.operator:
            case "=":
                return bool(self.value < low or self.value > high)
            case "<>":
                return bool(low == high == self.value)
            case "<":
                return bool(low >= self.value)
            case "<=":
                return bool(low > self.value)
            case ">":
                return bool(high <= self.value)
            case _:
                return bool(high < self.value)


@dataclass(frozen=True, slots=True)
class NeededRows:
    """Which rows of a source a query may need: those that fulfil all bounds of one of its roles."""

    roles: tuple[tuple[Bound, ...], ...]
    clock: str | None
    """The event-time column, None if there is none."""

    def __bool__(self) -> bool:
        return all(self.roles)

    def within(self, known: Mapping[str, pa.Array]) -> NeededRows:
        """The same for rows whose columns have the one value in ``known``: only roles that these
        values do not refute."""
        values = {name: _raw(each[0].as_py(), each.type) for name, each in known.items()}
        roles = []
        for role in self.roles:
            told = [b for b in role if b.column in values and b.type == known[b.column].type]
            told = [b for b in told if type(values[b.column]) is type(b.value)]
            if not any(b.is_refuted(values[b.column], values[b.column]) for b in told):  # type: ignore[arg-type]
                roles.append(tuple(b for b in role if b.column not in values))
        return NeededRows(tuple(roles), self.clock)


def needed_rows(roles: Iterable[Iterable[Expression]], clock: str | None) -> NeededRows:
    """What the predicates on single streams, by role of the source, say about its rows."""
    found = tuple(tuple(b for each in role for b in _bounds(each)) for role in roles)
    return NeededRows(found, clock)


def _bounds(predicate: Expression) -> Iterator[Bound]:
    """The comparisons with constants that ``predicate`` is made of."""
    if isinstance(predicate, And):
        for each in predicate.operands:
            yield from _bounds(each)
    if not isinstance(predicate, Comparison):
        return
    left, right, operator = predicate.left, predicate.right, str(predicate.operator)
    if isinstance(left, Constant):
        left, right, operator = right, left, _MIRRORED[operator]
    if isinstance(left, Cast) and _is_wider(left.operand.type, left.type):
        left = left.operand
    if isinstance(left, Column) and isinstance(right, Constant):
        kind = plain(left.type)
        value = _raw(right.value, kind)
        if value is not None:
            yield Bound(left.name, kind, operator, value)


def _is_wider(narrow: pa.DataType, wide: pa.DataType) -> bool:
    """Whether a cast from ``narrow`` to ``wide`` changes no value."""
    signed = pa.types.is_signed_integer
    return bool(signed(narrow) and signed(wide) and narrow.bit_width <= wide.bit_width)


def _raw(value: Any, kind: pa.DataType) -> int | str | None:
    """``value`` as statistics of a column of type ``kind`` have it; None if they do not."""
    if pa.types.is_signed_integer(kind):
        return value if type(value) is int else None
    if pa.types.is_string(kind):
        return value if isinstance(value, str) else None
    if pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        try:
            found = pa.scalar(value, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return None
        whole = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        raw = found.cast(whole).as_py() if found.is_valid else None
        return None if raw is None or found.as_py() != value else int(raw)
    return None


def needed_groups(file: pq.ParquetFile, needed: NeededRows) -> tuple[list[int], Brief]:
    """The numbers of the row groups that are read, and what stands in for the others."""
    about = file.metadata
    types = {field.name: plain(field.type) for field in file.schema_arrow}
    places = {about.schema.column(i).path: i for i in range(about.num_columns)}
    usable = {
        b.column: places[b.column]
        for role in needed.roles
        for b in role
        if types.get(b.column) == b.type
        and b.column in places
        and _is_plain(about, places[b.column], b.type)
    }
    clock = places.get(needed.clock or "")
    kind = None if clock is None else clock_type(about, clock)
    kept, rows = [], 0
    newest: int | None = None
    for number in range(about.num_row_groups):
        group = about.row_group(number)
        latest = None if clock is None or kind is None else _latest(group, clock)
        tells = needed.clock is None or latest is not None
        if not tells or not all(_is_refuted(role, group, usable) for role in needed.roles):
            kept.append(number)
            continue
        rows += group.num_rows
        if latest is not None:
            newest = latest if newest is None else max(latest, newest)
    return kept, Brief(rows, None if newest is None else pa.scalar(newest, kind))


def _is_refuted(
    role: tuple[Bound, ...], group: pq.RowGroupMetaData, usable: dict[str, int]
) -> bool:
    """Whether statistics show that no row of ``group`` fulfils all bounds of ``role``."""
    for bound in role:
        if bound.column not in usable:
            continue
        statistics = group.column(usable[bound.column]).statistics
        if statistics is None:
            continue
        if statistics.has_null_count and statistics.null_count == group.num_rows:
            return True
        if not statistics.has_min_max:
            continue
        try:
            is_text = isinstance(bound.value, str)
            least = statistics.min if is_text else statistics.min_raw
            greatest = statistics.max if is_text else statistics.max_raw
        except UnicodeDecodeError:  # Shortened within a character.
            continue
        if bound.is_refuted(least, greatest):
            return True
    return False


def _is_plain(about: pq.FileMetaData, place: int, kind: pa.DataType) -> bool:
    """Whether the raw values of a column are those of ``kind``, in its unit and order."""
    column = about.schema.column(place)
    logical = json.loads(column.logical_type.to_json())
    if pa.types.is_string(kind):
        return bool(column.physical_type == "BYTE_ARRAY" and logical["Type"] == "String")
    if column.physical_type not in ("INT32", "INT64"):
        return False
    if pa.types.is_timestamp(kind):
        unit = PARQUET_UNITS.get(logical.get("timeUnit", ""))
        return bool(logical["Type"] == "Timestamp" and unit == kind.unit)
    if pa.types.is_date32(kind):
        return bool(logical["Type"] == "Date")
    return logical["Type"] == "None" or (logical["Type"] == "Int" and bool(logical["isSigned"]))


def clock_type(about: pq.FileMetaData, place: int) -> pa.DataType | None:
    """The type of a column of event times, if its raw values are these."""
    column = about.schema.column(place)
    if column.physical_type != "INT64":
        return None
    logical = json.loads(column.logical_type.to_json())
    if logical["Type"] == "Timestamp":
        return pa.timestamp(PARQUET_UNITS[logical["timeUnit"]])
    return pa.int64() if logical["Type"] in ("None", "Int") else None


def _latest(group: pq.RowGroupMetaData, place: int) -> int | None:
    """The greatest event time of ``group``, if it tells it and none is missing."""
    statistics = group.column(place).statistics
    if statistics is None or not statistics.has_null_count or not statistics.has_min_max:
        return None
    return None if statistics.null_count else int(statistics.max_raw)
