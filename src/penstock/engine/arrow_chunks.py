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

    def append(self, values: pa.Array) -> None:
        """Add rows at the end."""
        if len(values) == 0:
            return
        self.chunks.append(values)
        self.starts.append(self.stop)
        self.stop += len(values)
        limit = max(_FLOOR, (self.stop - self.starts[0]) // _SHARE)
        while len(self.chunks) > 1:
            last, before = len(self.chunks[-1]), len(self.chunks[-2])
            if before > 2 * last or before + last > limit:
                break
            self.chunks[-2:] = [_join(self.chunks[-2:])]
            self.starts.pop()

    def truncate(self, stop: int) -> None:
        """Forget the rows from ``stop`` on."""
        while self.chunks and self.starts[-1] >= stop:
            self.chunks.pop()
            self.starts.pop()
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

    def take(self, rows: Int64s) -> pa.Array:
        """The values in ``rows``."""
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
            return _join(taken.chunks)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            whole = _join(chunks)
            return _join([whole.slice(int(p), 1) for p in positions])

    def keep_only(self, rows: Int64s, start: int) -> None:
        """Renumber: the values in ``rows`` become the rows from ``start`` on."""
        values = self.take(rows)
        self.chunks, self.starts = [], []
        self.stop = start
        self.append(values)


def _join(chunks: list[pa.Array]) -> pa.Array:
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
