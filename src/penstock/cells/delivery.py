"""A delivery: what reaches one cell in one micro-batch, as bytes.

Rows travel and are stored as Arrow IPC streams (*chunks*), since handing rows to stateful Python
one by one costs more than joining them. Beside its rows, a cell is told the newest event time of
every source in the whole batch: so all cells have one clock, and who is late, what has died and
what leaves does not depend on how tuples are spread over cells.

Layout: length and text of a JSON header, then the chunks one after another. The header is filled
up with blanks, since chunks are used where they lie, and Arrow's columns want to be aligned.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

_ALIGNED = 64


def to_chunk(rows: pa.Table | pa.RecordBatch) -> bytes:
    """``rows`` as one chunk."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    return bytes(sink.getvalue())


def from_chunk(chunk: bytes | memoryview) -> pa.Table:
    """The rows of a chunk."""
    return pa.ipc.open_stream(pa.py_buffer(chunk)).read_all()


@dataclass(slots=True)
class Delivery:
    """Chunks by source in the order of their rows, and the newest event times in ticks."""

    newest: dict[str, int] = field(default_factory=dict)
    chunks: dict[str, list[bytes | memoryview]] = field(default_factory=dict)
    watermark: int | None = None
    """The watermark that is promised, if one is, in milliseconds."""

    def add(self, source: str, newest: int | None, chunk: bytes | memoryview | None) -> None:
        """One more chunk of ``source``, or only its news."""
        if newest is not None:
            self.newest[source] = max(newest, self.newest.get(source, newest))
        if chunk is not None:
            self.chunks.setdefault(source, []).append(chunk)

    def tables(self) -> Mapping[str, pa.Table]:
        """The rows, by source."""
        return {
            source: pa.concat_tables([from_chunk(chunk) for chunk in chunks])
            for source, chunks in self.chunks.items()
        }

    def counts(self) -> dict[str, int]:
        """Rows of each source."""
        return {source: len(table) for source, table in self.tables().items()}

    def sorted(self) -> Delivery:
        """The same rows in an order that follows from them alone, as far as types have one."""
        found = Delivery(dict(self.newest))
        for source, rows in self.tables().items():
            try:
                names = [(name, "ascending") for name in rows.column_names]
                found.add(source, None, to_chunk(rows.sort_by(names)))
            except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
                found.chunks[source] = self.chunks[source]
        return found

    def to_parts(self) -> list[bytes | memoryview]:
        """The bytes of the delivery, piece by piece."""
        sizes = {source: [len(c) for c in chunks] for source, chunks in self.chunks.items()}
        header = json.dumps({"newest": self.newest, "sizes": sizes}).encode()
        header += b" " * (-(4 + len(header)) % _ALIGNED)
        chunks = [chunk for each in self.chunks.values() for chunk in each]
        return [struct.pack("<I", len(header)), header, *chunks]

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> Delivery:
        """The delivery with these bytes, which it goes on to use."""
        data = memoryview(data)
        (length,) = struct.unpack_from("<I", data)
        header = json.loads(bytes(data[4 : 4 + length]))
        delivery = cls(header["newest"])
        position = 4 + length
        for source, sizes in header["sizes"].items():
            for size in sizes:
                delivery.add(source, None, data[position : position + size])
                position += size
        return delivery
