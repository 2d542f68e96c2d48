"""Rows that were dropped, as they leave a cell beside the answers.

A *late* row is known only in the cells that it was sent to, and is late in all of them, since they
share one clock. The first of these cells tells it, so that it is counted once and leaves once; the
router says which one that is. One that is sent nowhere, since its own values keep it out of every
result, is not late: nothing is lost with it. That is so with one cell, too. A *rejected* row is
known before, and one cell is told of it (:mod:`penstock.cells.packing`).

They leave with the answers of the same batch, in the same output, so what becomes of a batch
becomes of both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from penstock.cells.rejected import texts_of
from penstock.cells.router import Router
from penstock.engine.push.dropped import LATE, Dropped
from penstock.query.unreadable import CORRUPT
from penstock.spark.cells.cell import CellSettings

COLUMNS = "source STRING, reason STRING, event_time TIMESTAMP, watermark TIMESTAMP, value STRING"
"""The fields of a dropped row, as Spark has them."""
AS_TEXT = "source STRING, reason STRING, event_time BIGINT, watermark BIGINT, value STRING"
"""The same as JSON, with times in microseconds."""


@dataclass(frozen=True, slots=True)
class SideRow:
    """A dropped row, or the number of those with one source and reason."""

    source: str
    reason: str
    event_time: int | None = None
    """In microseconds since 1970."""
    watermark: int | None = None
    """In microseconds: what a late row was too late for."""
    value: str | None = None
    """The row as it came: JSON of its columns, or the text that could not be read."""
    count: int = 1

    def to_json(self) -> str:
        names = ("source", "reason", "event_time", "watermark", "value")
        return json.dumps({name: getattr(self, name) for name in names}, ensure_ascii=False)


def counted(rows: Iterable[SideRow]) -> dict[str, dict[str, int]]:
    """The number of rows by source and reason."""
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        reasons = found.setdefault(row.source, {})
        reasons[row.reason] = reasons.get(row.reason, 0) + row.count
    return found


def told_once(settings: CellSettings, number: int, dropped: Iterable[Dropped]) -> list[Dropped]:
    """Those rows of ``dropped`` that cell ``number`` tells, of all cells that got them."""
    dropped = list(dropped)
    if not dropped:
        return dropped
    router = Router(settings.query, settings.placement)
    found = []
    for each in dropped:
        if settings.placement.cells == 1 and each.reason != LATE:
            found.append(each)
            continue
        rows = each.rows.combine_chunks()
        columns = {name: _whole(rows.column(name)) for name in rows.column_names}
        first = router.first_cells(each.source, columns, len(rows))
        mine = rows.filter(pa.array(first == number))
        if len(mine):
            found.append(Dropped(each.source, each.reason, mine, each.watermark))
    return found


def side_rows(settings: CellSettings, dropped: Iterable[Dropped], values: bool) -> list[SideRow]:
    """``dropped`` row by row; without ``values`` only their numbers."""
    found: list[SideRow] = []
    for each in dropped:
        if not values:
            found.append(SideRow(each.source, each.reason, count=len(each.rows)))
            continue
        streams = [s for block in settings.query.blocks for s in block.streams]
        name = next(s.event_time for s in streams if s.source == each.source)
        times = [None] * len(each.rows) if name is None else _microseconds(each.rows.column(name))
        ticks = settings.query.ticks_per_millisecond
        watermark = None if each.watermark is None else each.watermark * 1000 // ticks
        found += [
            SideRow(each.source, each.reason, time, watermark, text)
            for time, text in zip(times, _texts(each.rows), strict=True)
        ]
    return found


def _texts(rows: pa.Table) -> list[str]:
    """Each row as it came, if that text could not be read, else as JSON."""
    if CORRUPT not in rows.column_names:
        return texts_of(rows)
    came = rows.column(CORRUPT).to_pylist()
    return [text or written for text, written in zip(came, texts_of(rows), strict=True)]


def _microseconds(times: pa.ChunkedArray) -> list[int | None]:
    """Event times; integers are milliseconds."""
    kind = times.type
    if pa.types.is_timestamp(kind):
        times = times.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
        found: list[int | None] = times.to_pylist()
        return found
    return [None if time is None else time * 1000 for time in times.to_pylist()]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
