"""Packing: rows of one source in, one chunk per cell and batch out.

For each Arrow batch, every cell gets one packed row: the chunk of its rows, if it has any, and the
newest event time of the batch in any case, since all cells share one clock. A chunk that goes to
several cells is made once. ``partition`` and ``sequence`` put the chunks of a micro-batch into one
order, the same whenever a task is run again. Packed rows leave in batches of some megabytes: copies
for a thousand cells would be more than an Arrow column of bytes can hold.

A host may have *masked* rows that a predicate on their stream rejects: then batches have two
columns, the event time of every row, and the row itself as a struct, NULL if it was rejected. Such
rows move the clock and do nothing else.

Rows that have no place on the time line are set aside here (:mod:`penstock.cells.rejected`), so
that each is known once, wherever its copies would have gone. They travel with the packed row of one
cell, and so does the number of rows that were sent at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.cells.delivery import to_chunk
from penstock.cells.placement import Placement
from penstock.cells.rejected import set_aside
from penstock.cells.router import Router
from penstock.errors import InputError
from penstock.query.join_graph import ARRIVAL, JoinGraph

NO_NEWS = -(2**63)
"""The newest event time where there is none: pandas has no integers with NULL."""

_MOST_BYTES = 64 << 20
"""Bytes of the chunks in one batch of packed rows, unless a single one has more."""

PACKED = (
    "cell INT, source INT, partition INT, sequence INT, newest BIGINT, chunk BINARY, "
    "sent BIGINT, rejected BINARY"
)
"""The columns of packed rows, as Spark has them."""

PACKED_SCHEMA = pa.schema(
    [
        ("cell", pa.int32()),
        ("source", pa.int32()),
        ("partition", pa.int32()),
        ("sequence", pa.int32()),
        ("newest", pa.int64()),
        ("chunk", pa.binary()),
        ("sent", pa.int64()),
        ("rejected", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True)
class Packer:
    """Packs the rows of ``source``, whose columns are to be of the types in ``schema``."""

    query: JoinGraph
    placement: Placement
    keys: tuple[int, ...]
    """The key of each cell."""
    source: str
    schema: pa.Schema
    event_time: str | None
    is_masked: bool = False
    """Whether batches are of event times and rows, NULL for rejected ones."""
    values: bool = False
    """Whether rejected rows are wanted, or only their number."""
    retired: tuple[int, ...] = ()
    """Keys of cells that are not used any more, which get the news to let go of their state."""

    def pack(self, batches: Iterable[pa.RecordBatch], partition: int) -> Iterator[pa.RecordBatch]:
        """The packed rows of ``batches``, which are all rows of ``partition``."""
        router = Router(self.query, self.placement)
        number = self.query.sources.index(self.source)
        for sequence, batch in enumerate(batches):
            if not batch.num_rows:
                continue
            newest = NO_NEWS
            if self.is_masked:
                newest = self._newest(batch)
                batch = pa.RecordBatch.from_struct_array(batch.column(1).drop_null())
            batch, rejected = self._readable(batch)
            if not self.is_masked:
                newest = self._newest(batch)
            columns = self._conformed(batch)
            keys = self.keys + self.retired
            chunks: list[bytes | None] = [None] * len(keys)
            whole = pa.RecordBatch.from_arrays(list(columns.values()), schema=self.schema)
            sent = np.zeros(batch.num_rows, np.bool_)
            for share in router.route(self.source, columns, batch.num_rows):
                rows = whole if share.rows is None else whole.take(pa.array(share.rows))
                chunk = to_chunk(rows)
                sent[slice(None) if share.rows is None else share.rows] = True
                for cell in share.cells:
                    chunks[cell] = chunk
            told, count_sent = partition % len(self.keys), int(np.count_nonzero(sent))
            for first, last in _pieces(chunks):
                count = last - first
                yield pa.RecordBatch.from_arrays(
                    [
                        pa.array(keys[first:last], pa.int32()),
                        pa.array([number] * count, pa.int32()),
                        pa.array([partition] * count, pa.int32()),
                        pa.array([sequence] * count, pa.int32()),
                        pa.array([newest] * count, pa.int64()),
                        pa.array(chunks[first:last], pa.binary()),
                        pa.array([count_sent if c == told else 0 for c in range(first, last)]),
                        pa.array(
                            [rejected if c == told else None for c in range(first, last)],
                            pa.binary(),
                        ),
                    ],
                    schema=PACKED_SCHEMA,
                )

    def _readable(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, bytes | None]:
        """The rows that have a place on the time line, and a chunk about the others, if any."""
        in_arrival_order = self.query.by_rows and ARRIVAL in batch.schema.names
        if self.event_time is None or in_arrival_order:
            return batch, None
        found = set_aside(batch, self.event_time, self.schema.names, self.values)
        if found is None:
            return batch, None
        return found[0], to_chunk(found[1])

    def _conformed(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        return {f.name: self._cast(batch.column(f.name), f) for f in self.schema}

    def _cast(self, column: pa.Array, field: pa.Field) -> pa.Array:
        if column.type == field.type:
            return column
        try:
            return column.cast(field.type)
        except pa.ArrowInvalid as problem:
            raise InputError(
                f"column {field.name!r} of {self.source} does not fit its type in the "
                f"query, {field.type}: {problem}"
            ) from None

    def _newest(self, batch: pa.RecordBatch) -> int:
        """The newest event time in ticks."""
        if self.event_time is None or self.query.by_rows:
            return NO_NEWS
        times = batch.column(0 if self.is_masked else self.event_time)
        newest = pc.max(self._cast(times, self.schema.field(self.event_time)))
        if not newest.is_valid:
            return NO_NEWS
        if pa.types.is_timestamp(newest.type):
            return int(newest.cast(pa.timestamp(self.query.time_unit, newest.type.tz)).value)
        return int(newest.as_py()) * self.query.ticks_per_millisecond


def _pieces(chunks: Sequence[bytes | None]) -> Iterator[tuple[int, int]]:
    """The chunks in pieces of at most so many bytes: from where to where."""
    first, size = 0, 0
    for place, chunk in enumerate(chunks):
        more = len(chunk or b"")
        if place > first and size + more > _MOST_BYTES:
            yield first, place
            first, size = place, 0
        size += more
    yield first, len(chunks)
