"""The columns of a stream that results, residual predicates and aggregates read.

Fixed-width values live in rings beside the keys and are taken by compiled kernels; a second ring
of flags appears with the first NULL. Every other type is kept in Arrow chunks. When a limit on
memory binds, the oldest rows of both are in files alone
(:mod:`penstock.engine.state.spill_files`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.state.ring_files import PAYLOAD
from penstock.engine.state.rows import Rows
from penstock.engine.state.spill_files import SpillFiles, let_go
from penstock.kernels import ring
from penstock.values.arrow_chunks import ArrowChunks
from penstock.values.arrow_layout import validity_of

Int64s = NDArray[np.int64]


def ring_dtype(type_: pa.DataType) -> Any | None:
    """The numpy type whose ring can hold ``type_`` bit for bit, None if there is none."""
    if pa.types.is_integer(type_) or pa.types.is_floating(type_):
        return np.dtype(type_.to_pandas_dtype()) if type_ != pa.float16() else np.dtype(np.int16)
    if pa.types.is_temporal(type_) and not pa.types.is_interval(type_):
        return np.dtype(np.int32 if type_.bit_width == 32 else np.int64)
    return None


class RingColumn:
    """A fixed-width column in a ring of ``rows``."""

    def __init__(self, rows: Rows, type_: pa.DataType, dtype: Any) -> None:
        self.rows = rows
        self.type = type_
        self.dtype = np.dtype(dtype)
        self.column = rows.add_column(self.dtype, is_payload=True)
        self.flags: int | None = None

    def make_flags(self) -> None:
        """Have room for NULLs; up to now there was none."""
        self.flags = self.rows.add_column(np.bool_, is_payload=True)
        self.rows.columns[self.flags][:] = True

    @property
    def is_in_file(self) -> bool:
        """Whether it lies in a file."""
        return self.rows.is_in_file(PAYLOAD)

    @property
    def cold(self) -> int:
        """Rows before this one are on disk."""
        return self.rows.cold(PAYLOAD)

    def append(self, start: int, values: pa.Array) -> None:
        """Add the rows from ``start`` on; there is room for NULLs if they have any."""
        buffers = values.buffers()
        n, offset = len(values), values.offset
        if n == 0:
            return
        data = np.frombuffer(buffers[1], self.dtype, n, offset * self.dtype.itemsize)
        ring.put(self.rows.columns[self.column], self.rows.mask, start, data)
        if self.flags is None:
            return
        valid = validity_of(values)
        if valid is None:
            valid = np.ones(n, np.bool_)
        ring.put(self.rows.columns[self.flags], self.rows.mask, start, valid)

    def take(self, rows: Int64s) -> pa.Array:
        data = ring.take(self.rows.columns[self.column], self.rows.mask, rows)
        validity = None
        if self.flags is not None:
            valid = ring.take(self.rows.columns[self.flags], self.rows.mask, rows)
            if not valid.all():
                validity = pa.py_buffer(np.packbits(valid, bitorder="little"))
        return pa.Array.from_buffers(self.type, len(rows), [validity, pa.py_buffer(data)])


class ChunkColumn:
    """A column of any other type."""

    def __init__(self, rows: Rows, type_: pa.DataType) -> None:
        self.type = type_
        self.chunks = ArrowChunks(type_, rows.head)

    @property
    def cold(self) -> int:
        """Rows before this one are on disk."""
        return self.chunks.cold

    def append(self, start: int, values: pa.Array) -> None:
        del start
        self.chunks.append(values)

    def take(self, rows: Int64s) -> pa.Array:
        return self.chunks.take(rows)


class Payload:
    """The payload columns of one leaf, by name."""

    def __init__(self, rows: Rows, schema: pa.Schema, names: list[str]) -> None:
        self._rows = rows
        self._files: SpillFiles | None = None
        """The files that the oldest rows are in, if there are any."""
        self.columns: dict[str, RingColumn | ChunkColumn] = {}
        for name in names:
            type_ = schema.field(name).type
            dtype = ring_dtype(type_)
            self.columns[name] = (
                ChunkColumn(rows, type_) if dtype is None else RingColumn(rows, type_, dtype)
            )
        self.chunked = [c.chunks for c in self.columns.values() if isinstance(c, ChunkColumn)]
        """The columns of any other type."""
        self.in_rings = {n: c for n, c in self.columns.items() if isinstance(c, RingColumn)}
        """The columns of fixed width."""
        self.flagged: list[str] = [n for n, c in self.in_rings.items() if c.flags is not None]
        """Columns that have had a NULL, in the order in which that was seen."""

    def make_flags(self, name: str) -> None:
        """Column ``name`` may have NULLs from now on."""
        if name not in self.flagged:
            self.in_rings[name].make_flags()
            self.flagged.append(name)

    @property
    def nbytes(self) -> int:
        """Bytes of Arrow chunks in memory; rings count with their rows."""
        return sum(chunks.nbytes for chunks in self.chunked)

    def bytes_of_value(self, name: str) -> float:
        """Bytes of a value of column ``name`` beside its place, on average."""
        column = self.columns[name]
        if isinstance(column, RingColumn):
            return 0.0
        held = column.chunks.nbytes + column.chunks.bytes_away
        return held / max(1, sum(map(len, column.chunks.chunks)))

    @property
    def cold(self) -> int:
        """All columns of the rows before this one are on disk."""
        return min((column.cold for column in self.columns.values()), default=self._rows.head)

    @property
    def bytes_away(self) -> int:
        """Bytes of Arrow chunks in files."""
        return sum(chunks.bytes_away for chunks in self.chunked)

    def spill(self, before: int, files: SpillFiles) -> bool:
        """Keep the rows before ``before`` in ``files`` alone, or more where that is simpler; False
        if there is not enough room."""
        self._files = files
        in_files = not self.in_rings or self._rows.spill(PAYLOAD, before, files)
        return all([in_files, *(chunks.spill(before, files.array) for chunks in self.chunked)])

    def let_go(self) -> None:
        """Let memory go that was read of rows in files."""
        if self._files is not None:
            for chunks in self.chunked:
                chunks.let_go(let_go)

    def append(self, start: int, values: dict[str, pa.Array]) -> None:
        """Add the rows from ``start`` on."""
        for name, column in self.columns.items():
            if name in self.in_rings and values[name].null_count:
                self.make_flags(name)
            column.append(start, values[name])

    def take(self, name: str, rows: Int64s) -> pa.Array:
        """Column ``name`` in ``rows``."""
        column = self.columns[name]
        if self._files is not None:
            self._files.rows_back += int(np.count_nonzero(rows < column.cold))
        return column.take(rows)

    def truncate(self, head: int) -> None:
        for chunks in self.chunked:
            chunks.truncate(head)

    def drop_before(self, tail: int) -> None:
        for chunks in self.chunked:
            chunks.drop_before(tail)

    def kept(self, rows: Int64s) -> list[pa.Array | pa.ChunkedArray]:
        """Columns that lie in no ring, of ``rows`` alone: to be adopted."""
        return [chunks.kept(rows) for chunks in self.chunked]

    def adopt(self, kept: list[pa.Array | pa.ChunkedArray], start: int) -> None:
        """Go on with what :meth:`kept` has made, as the rows from ``start`` on."""
        for chunks, values in zip(self.chunked, kept, strict=True):
            chunks.adopt(values, start)
