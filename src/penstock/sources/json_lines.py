"""JSON texts, one object each, as columns: in bulk by Arrow, by Spark's rules where that fails.

Arrow's parser takes all texts or none. So where it fails, texts are halved until the blocks that it
cannot take are small, and only these are read value by value, as Spark's reader does in its usual
mode (``PERMISSIVE``): a value that does not fit its column is NULL, and the text of its row goes to
one more column, :data:`~penstock.query.unreadable.CORRUPT`; so does a text that is no object, of
which all columns are NULL. Some values fit that Arrow does not take: anything is a text, a number
is a time in seconds, fractions of a second have any number of digits, and decimals are rounded.
Times without a zone are UTC.

Where only some rows are wanted and a few columns say which (:func:`read_chosen`), these columns are
read of all texts and the others of the chosen ones. That splits lines by their ends, so it is done
only if each line is one object.
"""

from __future__ import annotations

import datetime
import decimal
import io
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.json as pa_json
from numpy.typing import NDArray

from penstock.query.unreadable import CORRUPT

_BLOCK = 256
"""Texts that are read value by value if Arrow takes not all of them: parsing some hundreds at once
costs about as much as parsing one."""
_NUMBERS = {
    **dict.fromkeys(("Infinity", "+Infinity", "INF", "+INF"), float("inf")),
    **dict.fromkeys(("-Infinity", "-INF"), float("-inf")),
    "NaN": float("nan"),
}
"""Texts that are numbers, as in Spark."""
_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"


_ROOM = 64
"""Bytes of a block beside the texts in it."""
Choice: TypeAlias = Callable[[pa.Table], NDArray[np.int64]]
"""The numbers of the rows that are wanted, by the columns that say so."""


class _MisfitError(ValueError):
    """A value that does not fit its column."""


def read_objects(texts: Sequence[bytes | None], wanted: pa.Schema) -> pa.Table:
    """The columns ``wanted`` of the objects in ``texts``, one row for each; CORRUPT behind them if
    some could not be read. None is a row of NULLs."""
    if not wanted.names:
        return pa.table({CORRUPT: pa.nulls(len(texts), pa.string())})
    blocks = _blocks(texts, wanted)
    return pa.concat_tables(blocks, promote_options="default") if blocks else wanted.empty_table()


def bulk(file: Any, size: int, wanted: pa.Schema, across_lines: bool = False) -> pa.Table | None:
    """All objects of ``file`` by Arrow; None if it cannot take them."""
    parsed = pa.schema([_parsed_as(field) for field in wanted])
    try:
        table = pa_json.read_json(
            file,
            read_options=pa_json.ReadOptions(use_threads=False, block_size=size),
            parse_options=pa_json.ParseOptions(
                explicit_schema=parsed,
                unexpected_field_behavior="ignore",
                newlines_in_values=across_lines,
            ),
        )
        return table.select(wanted.names).cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def read_chosen(
    content: pa.Buffer, wanted: pa.Schema, first: Sequence[str], choose: Choice
) -> pa.Table | None:
    """The rows of JSON lines that are chosen by their columns ``first``, which are among those
    ``wanted``; None before anything is chosen if Arrow cannot take all of them, or if lines are not
    one object each."""
    size = content.size + _ROOM
    narrow = bulk(pa.BufferReader(content), size, pa.schema([wanted.field(n) for n in first]))
    texts = None if narrow is None else _lines(content, len(narrow))
    if texts is None:
        return None
    rows = pa.array(choose(narrow))
    chosen = texts.take(rows).buffers()[2]
    found = bulk(pa.BufferReader(chosen), chosen.size + _ROOM, wanted) if len(rows) else None
    if found is not None:
        return found
    whole = bulk(pa.BufferReader(content), size, wanted)
    if whole is None:
        whole = read_objects(content.to_pybytes().splitlines(), wanted)
    return whole.take(rows)


def _lines(content: pa.Buffer, objects: int) -> pa.LargeBinaryArray | None:
    """The lines of ``content`` with their ends, which share its memory; None if they are not one
    each of the ``objects`` that Arrow has found in it.

    A line end between ``}`` and ``{`` is between two objects, as inside of one there is a comma. So
    if all are, and there are as many lines as objects, each line is one.
    """
    data = np.frombuffer(content, np.uint8)
    ends = np.flatnonzero(data == ord("\n")) + 1
    offsets = np.unique(np.concatenate([[0], ends, [content.size]])).astype(np.int64)
    last = offsets[1:] - 1
    last -= data[last] == ord("\n")
    returns = data[last] == ord("\r")
    last -= returns
    if (
        len(last) != objects
        or np.any(data[offsets[:-1]] != ord("{"))
        or np.any(data[last] != ord("}"))
        or np.count_nonzero(data == ord("\r")) != np.count_nonzero(returns)
    ):
        return None
    parts = [None, pa.py_buffer(offsets), content]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, parts)


def with_texts(rows: pa.Table, read: pa.Table) -> pa.Table:
    """``rows`` with the texts that ``read``, which they are from, has of those not read wholly."""
    if CORRUPT not in read.column_names or CORRUPT in rows.column_names:
        return rows
    return rows.append_column(CORRUPT, read.column(CORRUPT))


def _parsed_as(field: pa.Field) -> pa.Field:
    """Arrow's parser has no dates; it makes them of texts."""
    return field.with_type(pa.string()) if pa.types.is_date(field.type) else field


def _blocks(texts: Sequence[bytes | None], wanted: pa.Schema) -> list[pa.Table]:
    if not texts:
        return []
    joined = b"\n".join(text or b"{}" for text in texts)
    whole = bulk(io.BytesIO(joined), len(joined) + _ROOM, wanted, across_lines=True)
    if whole is not None and len(whole) == len(texts):
        return [whole]
    if len(texts) <= _BLOCK:
        return [_one_by_one(texts, wanted)]
    half = len(texts) // 2
    return _blocks(texts[:half], wanted) + _blocks(texts[half:], wanted)


def _one_by_one(texts: Sequence[bytes | None], wanted: pa.Schema) -> pa.Table:
    columns: list[list[Any]] = [[] for _ in wanted]
    corrupt: list[str | None] = []
    for text in texts:
        row = _object(text)
        is_whole = row is not None
        for field, column in zip(wanted, columns, strict=True):
            try:
                column.append(_value((row or {}).get(field.name, _ABSENT), field.type))
            except (
                _MisfitError,
                ValueError,
                OverflowError,
                decimal.DecimalException,
                pa.ArrowException,
            ):
                column.append(None)
                is_whole = False
        corrupt.append(None if is_whole or text is None else text.decode(errors="replace"))
    arrays = [pa.array(c, field.type) for c, field in zip(columns, wanted, strict=True)]
    found = pa.Table.from_arrays(arrays, schema=wanted)
    return found.append_column(CORRUPT, pa.array(corrupt, pa.string()))


class _Member(NamedTuple):
    """A value of an object, and its text."""

    value: Any = None
    text: str = ""


_ABSENT = _Member()


def _object(text: bytes | None) -> dict[str, _Member] | None:
    """The object in ``text`` by its names; None if there is none."""
    try:
        rest = (text or b"").decode().strip()
        if not rest:
            return {}
        return _members(rest)
    except (ValueError, IndexError):  # Also of bytes that are no UTF-8, and of an end too early.
        return None


def _members(text: str) -> dict[str, _Member]:
    """The values of the object that is all of ``text``; ValueError or IndexError if it is none."""
    found: dict[str, _Member] = {}
    at = _after(text, 0, "{")
    while text[at] != "}":
        if found:
            at = _after(text, at, ",")
        name, at = _DECODER.raw_decode(text, at)
        if not isinstance(name, str):
            raise _MisfitError
        start = _after(text, at, ":")
        value, end = _DECODER.raw_decode(text, start)
        found[name] = _Member(value, text[start:end])
        at = _after(text, end)
    if at != len(text) - 1:
        raise _MisfitError
    return found


def _after(text: str, at: int, mark: str = "") -> int:
    """The place behind white space, ``mark`` and white space."""
    while text[at] in _SPACE:
        at += 1
    if not text.startswith(mark, at):
        raise _MisfitError
    at += len(mark)
    while mark and text[at] in _SPACE:
        at += 1
    return at


def _value(member: _Member, kind: pa.DataType) -> Any:
    """The value of ``member`` in a column of ``kind``; :class:`_MisfitError` or another ValueError
    if it does not fit."""
    value = member.value
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return value if isinstance(value, str) else member.text
    if pa.types.is_floating(kind) and (is_number or value in _NUMBERS):
        return float(_NUMBERS.get(value, value))
    if pa.types.is_timestamp(kind):
        return _moment(value, kind)
    if pa.types.is_date(kind) and isinstance(value, str):
        return datetime.date.fromisoformat(value)
    if pa.types.is_decimal(kind) and (is_number or isinstance(value, str)):
        step = decimal.Decimal(1).scaleb(-kind.scale)
        rounded = decimal.Decimal(str(value)).quantize(step, decimal.ROUND_HALF_UP)
        return pa.scalar(rounded, kind).as_py()
    if pa.types.is_boolean(kind) and isinstance(value, bool):
        return value
    if pa.types.is_integer(kind) and is_number and isinstance(value, int):
        return pa.scalar(value, kind).as_py()
    if pa.types.is_nested(kind) and isinstance(value, list | dict):
        return pa.scalar(value, kind).as_py()
    raise _MisfitError


def _moment(value: Any, kind: pa.TimestampType) -> datetime.datetime:
    if isinstance(value, str):
        moment = datetime.datetime.fromisoformat(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        moment = moment.astimezone(datetime.UTC)
    elif isinstance(value, int) and not isinstance(value, bool) and kind.tz is not None:
        moment = datetime.datetime.fromtimestamp(value, datetime.UTC)
    else:
        raise _MisfitError
    return moment if kind.tz is not None else moment.replace(tzinfo=None)
