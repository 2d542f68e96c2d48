"""A column of any Arrow type, in arrival order, kept as a few chunks.

Numbers live in rings; everything else (strings, lists, structs, …) passes through here untouched.
Small chunks are merged as in a binary counter, so that even a window filled by single tuples has a
logarithmic number of chunks; a chunk goes when all of its rows are gone. Merged chunks stay at
a fraction of the window, so that one living row never pins much more than itself.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Int64s = NDArray[np.int64]

_FLOOR = 1024
_SHARE = 8


class ArrowChunks:
    """Rows ``start`` to ``stop`` of one column."""

    def __init__(self, type_: pa.DataType, start: int = 0) -> None:
        self.type = type_
        self.chunks: list[pa.Array] = []
        self.starts: list[int] = []
        self.stop = start

    @property
    def nbytes(self) -> int:
        return sum(chunk.get_total_buffer_size() for chunk in self.chunks)

    def append(self, values: pa.Array | pa.ChunkedArray) -> None:
        """Add rows at the end."""
        if isinstance(values, pa.ChunkedArray):
            for chunk in values.chunks:
                self.append(chunk)
            return
        if len(values) == 0:
            return
        self.starts.append(self.stop)
        self.chunks.append(_own(values))
        self.stop += len(values)
        limit = max(_FLOOR, (self.stop - self.starts[0]) // _SHARE)
        while len(self.chunks) > 1:
            last, before = len(self.chunks[-1]), len(self.chunks[-2])
            if before > 2 * last or before + last > limit:
                break
            merged = _join(self.chunks[-2:], self.type)
            if isinstance(merged, pa.ChunkedArray):
                break  # Dictionaries that do not fit into one: they stay apart.
            self.chunks[-2:] = [merged]
            self.starts.pop()

    def truncate(self, stop: int) -> None:
        """Forget the rows from ``stop`` on."""
        while self.starts and self.starts[-1] >= stop:
            self.starts.pop()
        del self.chunks[len(self.starts) :]
        if self.chunks:
            self.chunks[-1] = self.chunks[-1].slice(0, stop - self.starts[-1])
        self.stop = stop

    def drop_before(self, tail: int) -> None:
        """Let go of chunks that lie wholly before ``tail``."""
        gone = 0
        while gone < len(self.chunks) and self.starts[gone] + len(self.chunks[gone]) <= tail:
            gone += 1
        if gone:
            del self.chunks[:gone]
            del self.starts[:gone]

    def take(self, rows: Int64s) -> pa.Array | pa.ChunkedArray:
        """The values in ``rows``; in several pieces only if they cannot be in one."""
        if len(rows) == 0:
            return pa.nulls(0, self.type)
        first, last = int(rows.min()), int(rows.max())
        low = int(np.searchsorted(self.starts, first, side="right")) - 1
        high = int(np.searchsorted(self.starts, last, side="right"))
        chunks = self.chunks[low:high]
        positions = rows - self.starts[low]
        try:
            if len(chunks) == 1:
                return chunks[0].take(pa.array(positions))
            taken = pa.chunked_array(chunks, self.type).take(pa.array(positions))
            return _join(taken.chunks, self.type)
        except pa.ArrowNotImplementedError:
            return _join([self._one(int(r)) for r in rows], self.type)
        except pa.ArrowInvalid:
            return pa.chunked_array([self._one(int(r)) for r in rows], self.type)

    def _one(self, row: int) -> pa.Array:
        chunk = int(np.searchsorted(self.starts, row, side="right")) - 1
        return self.chunks[chunk].slice(row - self.starts[chunk], 1)

    def kept(self, rows: Int64s) -> pa.Array | pa.ChunkedArray:
        """The values in ``rows`` by themselves: to be adopted."""
        values = self.take(rows)
        if pa.types.is_dictionary(self.type):
            values = _with_small_dictionary(values, self.type)
        return values

    def adopt(self, values: pa.Array | pa.ChunkedArray, start: int) -> None:
        """Go on with what :meth:`kept` has made, as the rows from ``start`` on."""
        self.chunks, self.starts = [], []
        self.stop = start
        self.append(values)


def _join(chunks: list[pa.Array], type_: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """One array, or the chunks as they are when they cannot be one."""
    if len(chunks) == 1:
        return chunks[0]
    try:
        return pa.concat_arrays(chunks)
    except pa.ArrowInvalid:
        return pa.chunked_array(chunks, type_)


def _own(values: pa.Array) -> pa.Array:
    """``values``, copied if they are a small part of memory that they would keep alive."""
    if values.get_total_buffer_size() <= 2 * values.nbytes + 4096:
        return values
    half = len(values) // 2
    try:
        return pa.concat_arrays([values.slice(0, half), values.slice(half)])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return values


def _with_small_dictionary(
    values: pa.Array | pa.ChunkedArray, type_: pa.DataType
) -> pa.Array | pa.ChunkedArray:
    """The same values with a dictionary of only what they use."""
    try:
        if isinstance(values, pa.ChunkedArray):
            values = pa.concat_arrays([chunk.dictionary_decode() for chunk in values.chunks])
        else:
            values = values.dictionary_decode()
        small = values.dictionary_encode()
        indices = small.indices.cast(type_.index_type)
        return pa.DictionaryArray.from_arrays(indices, small.dictionary, ordered=type_.ordered)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return values
