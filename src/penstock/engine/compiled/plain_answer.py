"""The answer of a plain push: columns of fixed width without NULLs, taken out in one call.

Results are rows of the windows. If every column of the answer is a column of a stream that lies in
a ring, one kernel puts the results in the order of their births and copies the values out. Anything
else (computed columns, text, NULLs, rows on disk, which are counted when they are read) is the
general way's, :mod:`penstock.engine.output.projection`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.payload import RingColumn
from penstock.kernels import answer as kernel
from penstock.query.expression import Column
from penstock.query.join_graph import JoinGraph

Int64s = NDArray[np.int64]

_SPARE_RESULTS = 8
"""Results more than expected for which there is room, at least."""
_LARGE_ANSWER = 1 << 15
"""Results beyond which working space is given back at once."""


class PlainAnswer:
    """Makes the answer's table of a table of results."""

    def __init__(self, schema: pa.Schema, columns: Sequence[tuple[str, RingColumn]]) -> None:
        """``columns`` have the stream of each, besides."""
        self._schema = schema
        self._types = schema.types
        self._columns = columns
        self._written: list[int] = []
        self._streams: list[str] = []
        self._code = np.empty(0, np.int64)
        self._order = np.empty((2, 0), np.int64)
        self._out = self._none = np.empty((len(columns), 0), np.int64)
        self._likely = 0
        """Results that a push is expected to make."""

    @classmethod
    def of(cls, graph: JoinGraph, leaves: Mapping[str, LeafWindow]) -> PlainAnswer | None:
        """For results of ``graph``, unless its answer is something else than columns in rings."""
        columns = []
        for item in graph.select:
            column = item.expression
            if graph.is_grouped or not isinstance(column, Column):
                return None
            ring = leaves[column.stream].payload.columns[column.name]
            if not isinstance(ring, RingColumn):
                return None
            columns.append((column.stream, ring))
        return cls(graph.schema, columns)

    def __call__(self, results: NDArray[np.int64], streams: list[str], by: int) -> pa.Table | None:
        """The table of ``results``: rows of ``streams``, then births and deaths, in the order of
        row ``by``.

        None if a column has had a NULL or lies in a file, or they lie too far apart to be put in
        order here.
        """
        count = self._likely = results.shape[1]
        code, order, out = self.get_ready(streams)
        if not len(code) or not kernel.answer(code, results, by, order, out):
            return None
        return self.table(count)

    def get_ready(self, streams: list[str]) -> tuple[Int64s, Int64s, Int64s]:
        """What the kernel needs for as many results as are likely: code, working space, columns.

        There is no code if a column has had a NULL, or lies in a file.
        """
        written = [ring.rows.generation for _, ring in self._columns]
        if written != self._written or streams != self._streams:
            self._write_down(streams)
            self._written, self._streams = written, streams
        if self._order.shape[1] < self._likely:
            self._order = np.empty((2, 2 * self._likely), np.int64)
        if self._out.shape[1] != self._likely:  # Else no push has used it.
            self._out = np.empty((len(self._types), self._likely), np.int64)
        return self._code, self._order, self._out

    def table(self, count: int) -> pa.Table:
        """The answer: the first ``count`` values of the columns that have been filled."""
        out, self._out = self._out, self._none
        if 2 * count < out.shape[1]:
            out = out[:, :count].copy()
        if self._order.shape[1] > _LARGE_ANSWER:
            self._order = np.empty((2, 0), np.int64)
        arrays = [
            pa.Array.from_buffers(type_, count, [None, pa.py_buffer(column)])
            for type_, column in zip(self._types, out, strict=True)
        ]
        self._likely = count + (count >> 3) + _SPARE_RESULTS
        return pa.Table.from_arrays(arrays, schema=self._schema)

    def _write_down(self, streams: list[str]) -> None:
        code: list[int] = []
        self._code = np.empty(0, np.int64)
        if any(ring.flags is not None or ring.is_in_file for _, ring in self._columns):
            return
        for stream, ring in self._columns:
            column = ring.rows.columns[ring.column]
            code += (streams.index(stream), column.ctypes.data, ring.rows.mask, column.itemsize)
        self._code = np.array(code, np.int64)
