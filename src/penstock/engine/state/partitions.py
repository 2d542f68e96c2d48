"""``[PARTITION BY … ROWS n]``: the living rows of each partition, as linked lists in columns."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.state.rows import BIRTH, DEATH, Rows
from penstock.kernels import lifespan
from penstock.query.join_graph import Stream
from penstock.query.window import Rows as RowsWindow
from penstock.values.interner import Interner
from penstock.values.key_encoding import encoder_for
from penstock.values.pair_table import PairTable, group_ids

Int64s = NDArray[np.int64]


class Partitions:
    """The living rows of each partition of ``[PARTITION BY … ROWS n]``, as linked lists."""

    def __init__(self, rows: Rows, stream: Stream) -> None:
        assert isinstance(stream.window, RowsWindow)
        self.rows = rows
        self.by = list(stream.window.partition_by)
        self._encoders = [encoder_for(stream.schema.field(name).type) for name in self.by]
        self._interners = [Interner() if e.needs_interner else None for e in self._encoders]
        self._tables = [PairTable() for _ in self.by]
        self._partition = rows.add_column(np.int64)
        self._later = rows.add_column(np.int64)
        self._earlier = rows.add_column(np.int64)
        self._victims = rows.add_column(np.int64)
        self.oldest = np.full(64, -1, np.int64)
        self.newest = np.full(64, -1, np.int64)
        self.sizes = np.zeros(64, np.int64)

    @property
    def nbytes(self) -> int:
        lists = self.oldest.nbytes + self.newest.nbytes + self.sizes.nbytes
        interned = sum(i.nbytes for i in self._interners if i is not None)
        return lists + interned + sum(t.nbytes for t in self._tables)

    def of(self, columns: Mapping[str, pa.Array], count: int) -> Int64s:
        """The partition of each row; NULLs form one."""
        encoded = [
            encoder.encode(columns[name], interner)
            for name, encoder, interner in zip(
                self.by, self._encoders, self._interners, strict=True
            )
        ]
        partitions = group_ids(self._tables, encoded)
        needed = int(partitions.max()) + 1 if count else 0
        if needed > len(self.sizes):
            size = 1 << (needed - 1).bit_length()
            self.oldest = _extended(self.oldest, size, -1)
            self.newest = _extended(self.newest, size, -1)
            self.sizes = _extended(self.sizes, size, 0)
        return partitions

    def put(self, start: int, partitions: Int64s) -> None:
        self.rows.put(self._partition, start, partitions)

    def kill(self, start: int, stop: int, count: int) -> None:
        columns = self.rows.columns
        lifespan.kill_by_partition(
            columns[BIRTH],
            columns[DEATH],
            columns[self._later],
            columns[self._victims],
            columns[self._partition],
            self.rows.mask,
            start,
            stop,
            count,
            self.oldest,
            self.newest,
            columns[self._earlier],
            self.sizes,
        )

    def undo(self, head: int) -> None:
        columns = self.rows.columns
        lifespan.revive_by_partition(
            columns[DEATH],
            columns[self._later],
            columns[self._victims],
            columns[self._partition],
            self.rows.mask,
            head,
            self.rows.head,
            self.oldest,
            self.newest,
            columns[self._earlier],
            self.sizes,
        )

    def rebuild(self, count: int) -> None:
        """Link the rows anew after they were renumbered; all of them are alive."""
        self.oldest[:] = -1
        self.newest[:] = -1
        self.sizes[:] = 0
        self.kill(self.rows.tail, self.rows.head, count)


def _extended(values: Int64s, size: int, fill: int) -> Int64s:
    larger = np.full(size, fill, np.int64)
    larger[: len(values)] = values
    return larger
