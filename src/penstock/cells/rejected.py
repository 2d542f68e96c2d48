"""Rejected rows: those with no place on the time line, or one that cannot be right, and why.

A row without an event time can be in no result. Neither can one of which nothing could be read:
Spark's readers of JSON and CSV, ``from_json`` too, then give NULL in every column and the text in a
column of their own (:mod:`penstock.query.unreadable`), where the schema has one. If that text is
there, the reason is that the row is *unreadable*; a row of which something was read, its event time
included, is taken as Spark has read it, with NULLs.

A row whose event time is later than its arrival by more than was allowed would move the clock of
the query there, and every row after it would be late. The host marks such rows in a column of its
own, :data:`AHEAD`: it knows when they arrived, and says the same when a batch is done again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.query.unreadable import CORRUPT

AHEAD = "_penstock_too_far_ahead"
"""The column that is true for rows too far ahead of their arrival, where the host tells them."""
UNREADABLE = "unreadable"
TOO_FAR_AHEAD = "too far ahead"
NO_EVENT_TIME = "no event time"

SCHEMA = pa.schema([("reason", pa.string()), ("value", pa.string()), ("count", pa.int64())])
"""One row for each rejected row, or for each reason where only numbers are wanted."""


def set_aside(
    batch: pa.RecordBatch, event_time: str, read: Iterable[str], values: bool
) -> tuple[pa.RecordBatch, pa.Table] | None:
    """The rows of ``batch`` to go on with, and the rejected ones; None if there are none.

    ``read`` are the columns that the query reads. Rejected rows come with their ``values``, or as
    one row for each reason with their number.
    """
    corrupt = batch.column(CORRUPT) if CORRUPT in batch.schema.names else None
    refused = batch.column(event_time).is_null()
    ahead = None
    if AHEAD in batch.schema.names:
        ahead = pc.fill_null(batch.column(AHEAD), False)
        refused = pc.or_(refused, ahead)
    if refused.true_count == 0 and (corrupt is None or corrupt.null_count == len(corrupt)):
        return None
    unreadable = pa.array(np.zeros(len(batch), np.bool_))
    if corrupt is not None:
        nothing = corrupt.is_valid()
        for name in read:
            nothing = pc.and_(nothing, batch.column(name).is_null())
        refused = pc.or_(refused, nothing)
        unreadable = pc.and_(refused, corrupt.is_valid())
    if refused.true_count == 0:
        return None
    reasons = pc.if_else(unreadable, UNREADABLE, NO_EVENT_TIME)
    if ahead is not None:
        reasons = pc.if_else(ahead, TOO_FAR_AHEAD, reasons)
    reasons = reasons.filter(refused)
    texts = pa.nulls(len(reasons), pa.string())
    if values:
        left = batch.filter(refused)
        written = pa.array(texts_of(pa.Table.from_batches([left])), pa.string())
        texts = written if corrupt is None else pc.coalesce(left.column(CORRUPT), written)
    table = pa.table([reasons, texts, np.ones(len(reasons), np.int64)], schema=SCHEMA)
    if not values:
        counts = table.group_by("reason").aggregate([("count", "sum")])
        columns = [counts.column("reason"), pa.nulls(len(counts), pa.string())]
        table = pa.table([*columns, counts.column("count_sum")], schema=SCHEMA)
    return batch.filter(pc.invert(refused)), table


def texts_of(rows: pa.Table) -> list[str]:
    """Each row as JSON."""
    names = [name for name in rows.column_names if name not in (CORRUPT, AHEAD)]
    return [json.dumps(row, default=_plain, ensure_ascii=False) for row in _dicts(rows, names)]


def _dicts(rows: pa.Table, names: list[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.select(names).to_pylist()
    return found


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
