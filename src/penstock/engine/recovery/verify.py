"""A checkpoint is verified before anything in it is followed.

A checkpoint may have been cut, mixed up, or made by somebody who means harm; its checksum only
tells accidents. Kernels follow row numbers and lengths without looking. So everything that they
will follow is looked at here first, and whatever is wrong is a :class:`CheckpointError`:

* the header is JSON of a bounded depth, with numbers that fit into 64 bits;
* a table is an Arrow stream without compression (Penstock writes none, and some kilobytes of it
  could become gigabytes), whose arrays pass Arrow's full validation;
* a table has exactly the columns that this query writes, of their types, NULLs only in payload;
* row numbers lie in the window that they speak of.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import CheckpointError

Int64s = NDArray[np.int64]

DEEPEST = 24
"""Objects and lists inside each other in a header; plans of states have the most, six."""
LARGEST = 2**63 - 1
"""No number of a header is farther from zero: times and row numbers are of 64 bits."""

_DICTIONARY, _RECORDS = 2, 3
"""Kinds of messages of Arrow's format that have a body."""


def verified_header(text: bytes) -> dict[str, Any]:
    """The header in ``text``."""
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise CheckpointError("the checkpoint is damaged: its header is not JSON") from None
    if not isinstance(header, dict):
        raise CheckpointError("the checkpoint is damaged: its header is no object")
    _look_at(header, 0)
    return header


def _look_at(value: Any, depth: int) -> None:
    if depth > DEEPEST:
        raise CheckpointError("the checkpoint is damaged: its header is too deep")
    if isinstance(value, int | float):
        if not (-LARGEST <= value <= LARGEST or math.isinf(value)):
            raise CheckpointError("the checkpoint is damaged: a number in it is too large")
    elif isinstance(value, Mapping):
        for each in value.values():
            _look_at(each, depth + 1)
    elif isinstance(value, list):
        for each in value:
            _look_at(each, depth + 1)


def verified_table(data: memoryview) -> pa.Table:
    """The table in ``data``, an Arrow stream."""
    try:
        for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(data)):
            if _is_compressed(message.metadata.to_pybytes()):
                raise CheckpointError("the checkpoint is damaged: a table is compressed")
        table = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, struct.error, ValueError, KeyError) as problem:
        raise CheckpointError(f"the checkpoint is damaged: {_first_line(problem)}") from None
    return table


def check_columns(table: pa.Table, expected: Mapping[str, pa.DataType], what: str) -> None:
    """``table`` has the ``expected`` columns; NULLs only where names begin with ``payload``."""
    found = dict(zip(table.schema.names, table.schema.types, strict=True))
    if len(found) != table.num_columns or found != dict(expected):
        raise CheckpointError(
            f"the checkpoint is damaged: {what} has the columns {_named(found)}, expected "
            f"{_named(expected)}"
        )
    for name in found:
        if not name.startswith("payload ") and table.column(name).null_count:
            raise CheckpointError(f"the checkpoint is damaged: {name} of {what} has NULLs")


def check_rows(rows: Int64s, count: int, what: str, lowest: int = -1) -> None:
    """All ``rows`` are numbers from ``lowest`` (-1: dead) to ``count``, exclusively."""
    if len(rows) and not (lowest <= int(rows.min()) and int(rows.max()) < count):
        raise CheckpointError(f"the checkpoint is damaged: {what} names rows that are not there")


def _is_compressed(message: bytes) -> bool:
    """Whether the flatbuffer ``message`` describes a body that is compressed.

    Message: version, kind of header, header, length of the body. RecordBatch: length, nodes,
    buffers, compression. DictionaryBatch: id, RecordBatch, is delta.
    """
    root = struct.unpack_from("<I", message, 0)[0]
    kind_at = _field(message, root, 1)
    header = _table(message, root, 2)
    kind = 0 if kind_at is None else message[kind_at]
    if kind == _DICTIONARY and header is not None:
        header = _table(message, header, 1)
    elif kind != _RECORDS:
        return False
    return header is None or _field(message, header, 3) is not None


def _field(message: bytes, table: int, number: int) -> int | None:
    """Place of field ``number`` of the flatbuffer table at ``table``."""
    fields = table - struct.unpack_from("<i", message, table)[0]
    if fields < 0:
        raise ValueError("a message of Arrow is damaged")
    place = 4 + 2 * number
    if place + 2 > struct.unpack_from("<H", message, fields)[0]:
        return None
    offset = int(struct.unpack_from("<H", message, fields + place)[0])
    return table + offset if offset else None


def _table(message: bytes, table: int, number: int) -> int | None:
    at = _field(message, table, number)
    return None if at is None else at + int(struct.unpack_from("<I", message, at)[0])


def _named(columns: Mapping[str, pa.DataType]) -> str:
    text = ", ".join(f"{name} {type_}" for name, type_ in columns.items())
    return text if len(text) <= 200 else f"{text[:199]}…"


def _first_line(problem: BaseException) -> str:
    lines = str(problem).splitlines()
    return lines[0][:200] if lines else type(problem).__name__
