"""Checkpoints: the leaf windows and the clock, and nothing that can be computed from them.

A result that may still matter is made of tuples that are all still alive, so the leaf windows give
back every state, every held result and every living result of an aggregate. The exceptions are set
difference (which results a partner removed that has died since cannot be computed again, so the
results that it holds are written down) and owed probes (:mod:`penstock.engine.tree.saved_tree`).

This module knows the container alone; every part of the engine saves and loads itself, next to the
state that it saves, as JSON for the header and as tables. Row numbers are written from zero: row
``i`` of a window's table is row ``i`` after a restart. Nothing in a checkpoint is followed before
it has been verified (:mod:`penstock.engine.recovery.verify`).

Layout: magic, length and text of a JSON header, Arrow IPC streams, BLAKE2 of all that. Formats, all
of which are read; ``tests/engine/recovery/formats`` has checkpoints of each:

== ===================================
1  another magic, and CRC-32 at the end
2  as above
== ===================================
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.recovery.fingerprint import fingerprint, fingerprint_1
from penstock.engine.recovery.verify import verified_header, verified_table
from penstock.errors import CheckpointError, PenstockError
from penstock.query.join_graph import JoinGraph

_MAGIC = b"PENSTCK2"
_FORMAT = 2
_MAGIC_1 = b"PENSTOCK"
_DIGEST = 32
"""Bytes of the checksum."""


@dataclass(slots=True)
class Checkpoint:
    """A header and its tables, in the order in which the parts of the engine have written them."""

    header: dict[str, Any]
    tables: list[pa.Table]
    query: JoinGraph

    @classmethod
    def of(cls, query: JoinGraph, header: Mapping[str, Any], tables: list[pa.Table]) -> Checkpoint:
        """The checkpoint of an engine of ``query`` that says ``header`` and ``tables``."""
        container = {
            "format": _FORMAT,
            "query": fingerprint(query),
            "text": query.text,
            "tables": len(tables),
        }
        return cls(container | dict(header), tables, query)

    def to_bytes(self) -> bytes:
        """The checkpoint as it is stored."""
        text = json.dumps(self.header).encode()
        parts = [_MAGIC, struct.pack("<I", len(text)), text]
        for table in self.tables:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            blob = sink.getvalue().to_pybytes()
            parts += [struct.pack("<Q", len(blob)), blob]
        return b"".join([*parts, _checksum(*parts)])

    @classmethod
    def from_bytes(cls, blob: bytes | memoryview, query: JoinGraph) -> Checkpoint:
        """Read ``blob``; raises :class:`CheckpointError` if it is damaged or of another query."""
        if not isinstance(blob, bytes | bytearray | memoryview):
            raise CheckpointError(f"a checkpoint is bytes, not {type(blob).__name__}")
        data = memoryview(blob).cast("B")  # Slices of it are not copies.
        if len(data) < 16 or data[:8] not in (_MAGIC, _MAGIC_1):
            raise CheckpointError("this is not a Penstock checkpoint")
        format_ = 1 if data[:8] == _MAGIC_1 else 2
        end = len(data) - (4 if format_ == 1 else _DIGEST)
        body = data[: max(0, end)]
        expected = struct.pack("<I", zlib.crc32(body)) if format_ == 1 else _checksum(body)
        if data[end:] != expected:
            raise CheckpointError("the checkpoint is damaged or was cut off")
        (length,) = struct.unpack_from("<I", data, 8)
        header = verified_header(bytes(_part(body, 12, length)))
        if header.get("format") != format_:
            raise CheckpointError(
                f"the checkpoint has format {header.get('format')!r}; this version reads 1 to "
                f"{_FORMAT}"
            )
        of_query = [fingerprint(query)] + ([fingerprint_1(query)] if format_ == 1 else [])
        if header.get("query") not in of_query:
            raise CheckpointError(
                "the checkpoint belongs to another query (or to columns of other types); it was "
                f"made for:\n{header.get('text')}"
            )
        position = 12 + length
        tables = []
        while position < end:
            (size,) = struct.unpack("<Q", _part(body, position, 8))
            tables.append(verified_table(_part(body, position + 8, size)))
            position += 8 + size
        if len(tables) != header.get("tables"):
            raise CheckpointError("the checkpoint is damaged: it has too many tables, or too few")
        return cls(header, tables, query)

    def up_to(self, instant: int) -> Checkpoint:
        """The same without rows born after ``instant``, and with the clock there at the latest.

        What has expired by a clock that ran ahead is gone: only what comes is right again.
        """
        header = dict(self.header)
        if self.query.by_rows or len(self.query.blocks) > 1 or "tree" in header["overload"]:
            raise CheckpointError(
                "a checkpoint with windows of ROWS, EXCEPT or owed probes cannot be cut at a time"
            )
        windows = len(self.query.blocks[0].streams)
        statics = [stream.is_static for stream in self.query.blocks[0].streams]
        tables = list(self.tables)
        for place in range(windows):
            table = tables[place]
            if not statics[place] and "birth" in table.column_names:
                tables[place] = table.filter(pc.less_equal(table.column("birth"), instant))
        lateness = header["options"].get("lateness") or 0
        delays = lateness.values() if isinstance(lateness, Mapping) else [lateness]
        slack = max(delays, default=0) * self.query.ticks_per_millisecond
        for name, latest in (("now", instant), ("watermark", instant - slack)):
            header[name] = min(header[name], latest)
        if "late" in header:
            header["late"] = min(header["late"], instant - slack)
        header["newest"] = {name: min(at, instant) for name, at in header["newest"].items()}
        return Checkpoint(header, tables, self.query)


@contextmanager
def loading(asks_for_more: bool) -> Iterator[None]:
    """Load a checkpoint inside: whatever goes wrong is a :class:`CheckpointError`.

    Except for want of memory, and for what the caller ``asks_for``, which may not be possible.
    """
    try:
        yield
    except (CheckpointError, MemoryError):
        raise
    except Exception as problem:
        if isinstance(problem, PenstockError) and asks_for_more:
            raise
        raise CheckpointError(
            f"the checkpoint is damaged: {type(problem).__name__}: {problem}"
        ) from problem


def _checksum(*parts: bytes | memoryview) -> bytes:
    """The digest that tells whether a checkpoint is whole; it is no signature."""
    found = hashlib.blake2b(digest_size=_DIGEST)
    for part in parts:
        found.update(part)
    return found.digest()


def _part(data: memoryview, start: int, size: int) -> memoryview:
    """``size`` bytes from ``start``, which have to be there."""
    if start + size > len(data):
        raise CheckpointError("the checkpoint is damaged: a part is longer than all of it")
    return data[start : start + size]
