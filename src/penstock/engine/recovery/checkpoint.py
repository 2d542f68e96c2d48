"""Checkpoints: the leaf windows and the clock, and nothing that can be computed from them.

A result that may still matter is made of tuples that are all still alive, so the leaf windows give
back every state, every held result and every living result of an aggregate. The exceptions are set
difference (which results a partner removed that has died since cannot be computed again, so the
results that it holds are written down), owed probes (:mod:`penstock.engine.tree.saved_tree`), and
which results were stale when they were found: where that matters, rows are written down with when
they came (:mod:`penstock.engine.state.seen_at`).

This module knows the container alone; every part of the engine saves and loads itself, next to the
state that it saves, as JSON for the header and as tables. Row numbers are written from zero: row
``i`` of a window's table is row ``i`` after a restart. Nothing in a checkpoint is followed before
it has been verified (:mod:`penstock.engine.recovery.verify`).

**Windows may be larger than memory**, so tables are written in pieces, each of which is made when
the one before has been written, and a file is mapped to be read: its pieces are copied one by one,
and the system takes back what has been read.

Layout: magic, length and text of a JSON header, tables, BLAKE2 of all that. A table is its pieces,
each an Arrow IPC stream after its length, and a length of zero. Formats, all of which are read;
``tests/engine/recovery/formats`` has checkpoints of each:

== =========================================================
1  another magic, a table is one piece, and CRC-32 at the end
2  a table is one piece, with no zero behind it
3  as above
== =========================================================
"""

from __future__ import annotations

import hashlib
import io
import json
import mmap
import os
import struct
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.recovery.fingerprint import fingerprint, fingerprint_1
from penstock.engine.recovery.verify import verified_header, verified_table
from penstock.errors import CheckpointError, PenstockError
from penstock.query.join_graph import JoinGraph

_FORMAT = 3
_MAGICS = (b"PENSTOCK", b"PENSTCK2", b"PENSTCK3")
"""First bytes of checkpoints, by format."""
_DIGEST = 32
"""Bytes of the checksum."""
Pieces = Iterable[pa.Table]
"""A table in pieces with the same columns, one at least."""


@dataclass(slots=True)
class Checkpoint:
    """A header and its tables, in the order in which the parts of the engine have written them."""

    header: dict[str, Any]
    tables: Sequence[Pieces]
    query: JoinGraph

    @classmethod
    def of(
        cls, query: JoinGraph, header: Mapping[str, Any], tables: Sequence[Pieces]
    ) -> Checkpoint:
        """The checkpoint of an engine of ``query`` that says ``header`` and ``tables``."""
        container = {
            "format": _FORMAT,
            "query": fingerprint(query),
            "text": query.text,
            "tables": len(tables),
        }
        return cls(container | dict(header), tables, query)

    def parts(self) -> Iterator[bytes | memoryview]:
        """The checkpoint as it is stored, a piece at a time."""
        digest = hashlib.blake2b(digest_size=_DIGEST)
        for part in self._body():
            digest.update(part)
            yield part
        yield digest.digest()

    def _body(self) -> Iterator[bytes | memoryview]:
        text = json.dumps(self.header).encode()
        yield _MAGICS[-1] + struct.pack("<I", len(text)) + text
        for pieces in self.tables:
            for piece in pieces:
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, piece.schema) as writer:
                    writer.write_table(piece)
                written = sink.getvalue()
                yield struct.pack("<Q", len(written))
                yield memoryview(written)
            yield struct.pack("<Q", 0)

    def to_bytes(self) -> bytes:
        """The checkpoint as it is stored."""
        sink = io.BytesIO()
        sink.writelines(self.parts())
        return sink.getvalue()

    def in_file(self, folder: str) -> memoryview:
        """The checkpoint as it is stored, in a file without a name in ``folder``."""
        with tempfile.TemporaryFile(dir=folder) as file:
            file.writelines(self.parts())
            file.flush()
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    @classmethod
    def read(cls, stored: bytes | memoryview | os.PathLike[str], query: JoinGraph) -> Checkpoint:
        """What is ``stored``, in memory or in a file; raises :class:`CheckpointError` if it is
        damaged or of another query."""
        if isinstance(stored, os.PathLike):
            stored = _mapped(stored)
        if not isinstance(stored, bytes | bytearray | memoryview):
            raise CheckpointError(
                f"a checkpoint is bytes or the path of a file, not {type(stored).__name__}"
            )
        data = memoryview(stored).cast("B")  # Slices of it are not copies.
        if len(data) < 16 or data[:8] not in _MAGICS:
            raise CheckpointError("this is not a Penstock checkpoint")
        format_ = 1 + _MAGICS.index(bytes(data[:8]))
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
        tables = _tables(body, 12 + length, format_ >= 3)
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
            if not statics[place]:
                tables[place] = [_born_by(piece, instant) for piece in tables[place]]
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


def _mapped(path: os.PathLike[str]) -> memoryview:
    """The file at ``path``, mapped into memory."""
    try:
        with open(path, "rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as problem:  # A file without a byte cannot be mapped.
        raise CheckpointError(f"{path} cannot be read: {problem}") from None


def _born_by(piece: pa.Table, instant: int) -> pa.Table:
    """The rows that were born at ``instant`` at the latest."""
    if "birth" not in piece.column_names:
        return piece  # It is damaged, which whoever loads it finds.
    return piece.filter(pc.less_equal(piece.column("birth"), instant))


def _tables(body: memoryview, start: int, are_in_pieces: bool) -> list[list[pa.Table]]:
    """The tables that follow the header."""
    tables: list[list[pa.Table]] = []
    pieces: list[pa.Table] = []
    position = start
    while position < len(body):
        (size,) = struct.unpack("<Q", _part(body, position, 8))
        if size:
            pieces.append(verified_table(_part(body, position + 8, size)))
        position += 8 + size
        if not size or not are_in_pieces:
            if not pieces:
                raise CheckpointError("the checkpoint is damaged: a table has no piece")
            tables.append(pieces)
            pieces = []
    if pieces:
        raise CheckpointError("the checkpoint is damaged: its last table has no end")
    return tables


def _checksum(body: memoryview) -> bytes:
    """The digest that tells whether a checkpoint is whole; it is no signature."""
    return hashlib.blake2b(body, digest_size=_DIGEST).digest()


def _part(data: memoryview, start: int, size: int) -> memoryview:
    """``size`` bytes from ``start``, which have to be there."""
    if start + size > len(data):
        raise CheckpointError("the checkpoint is damaged: a part is longer than all of it")
    return data[start : start + size]
