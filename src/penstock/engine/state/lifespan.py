"""When the rows of a window die: one rule for each kind of window.

A lifespan rule is asked for deaths when rows come (:meth:`Lifespan.deaths`), told when they have
been stored (:meth:`Lifespan.stored`), and told when they are taken back. On the event-time line a
death is known at birth; on the arrival line the deaths of older rows are set when the rows that
push them out arrive, before any probe of the push (:mod:`penstock.kernels.lifespan`).

A new kind of window is a class here and a line in :func:`lifespan_of`; its syntax is in
:mod:`penstock.query.window`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.state.address import address_of
from penstock.engine.state.rows import BIRTH, DEATH, Rows
from penstock.kernels import lifespan, probe
from penstock.query.join_graph import Stream
from penstock.query.window import Range
from penstock.query.window import Rows as RowsWindow
from penstock.values.key_rows import KeyRows

Int64s = NDArray[np.int64]


class Lifespan:
    """The rule of UNBOUNDED and of static relations: rows never die."""

    span = int(lifespan.FOREVER)
    """Time that a row lives, at least: ticks, or on the arrival line places."""
    fixed_span: int | None = None
    """Ticks that every row lives, if that is known at its birth."""
    count = 0
    """Rows of the window, or of each partition, that live; 0 if rows do not die by counting."""
    partition: int | None = None
    """The column of the rows that holds the partition of each, if there are partitions."""
    reads: tuple[str, ...] = ()
    """Columns that say when rows die: they are kept with the rows, for a restart."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    @property
    def nbytes(self) -> int:
        """Bytes held besides the columns of the rows."""
        return 0

    def partitions_of(self, columns: Mapping[str, pa.Array], count: int) -> Int64s | None:
        """The partitions of ``count`` new rows, where only rows of one push each other out."""
        return None

    def deaths(self, births: Int64s) -> Int64s:
        """The deaths of new rows, as far as they are known."""
        return np.full(len(births), lifespan.FOREVER, np.int64)

    def stored(self, start: int, stop: int, partitions: Int64s | None) -> None:
        """The rows from ``start`` to ``stop`` are in: older ones may have to die."""

    def take_back(self, head: int) -> None:
        """The rows from ``head`` on are about to be taken back, and the deaths they caused."""

    def packed(self) -> None:
        """All rows have new numbers, and all of them are alive."""

    def lists(self) -> Int64s:
        """The addresses of the lists of partitions, for :mod:`penstock.kernels.window`."""
        return np.empty(0, np.int64)

    def bring_together(self, births: Int64s, deaths: Int64s, rows: Int64s) -> None:
        """Bring ``births`` up and ``deaths`` down to those of ``rows``."""
        own = self.rows
        probe.live_together(births, deaths, rows, own.births, own.deaths, own.mask, own.tail)


class FixedSpan(Lifespan):
    """``[RANGE w]`` and ``[NOW]``: a row lives for ``span`` ticks."""

    def __init__(self, rows: Rows, span: int) -> None:
        super().__init__(rows)
        self.span = self.fixed_span = span

    def deaths(self, births: Int64s) -> Int64s:
        found: Int64s = lifespan.after(births, self.span)
        return found

    def bring_together(self, births: Int64s, deaths: Int64s, rows: Int64s) -> None:
        own = self.rows
        probe.live_together_for(births, deaths, rows, own.births, self.span, own.mask, own.tail)


class LatestRows(Lifespan):
    """``[ROWS n]``: a row dies just before the arrival of the ``count``-th later one."""

    def __init__(self, rows: Rows, count: int) -> None:
        super().__init__(rows)
        self.span = self.count = count

    def stored(self, start: int, stop: int, partitions: Int64s | None) -> None:
        own = self.rows
        lifespan.kill_by_count(own.births, own.deaths, own.mask, own.tail, start, stop, self.count)

    def take_back(self, head: int) -> None:
        own = self.rows
        lifespan.revive_by_count(own.deaths, own.mask, own.tail, head, own.head, self.count)


class LatestByPartition(Lifespan):
    """``[PARTITION BY … ROWS n]``: as above, counted among the rows of its partition.

    The living rows of each partition form a linked list in columns of the window.
    """

    span = 0

    def __init__(self, rows: Rows, stream: Stream, window: RowsWindow) -> None:
        super().__init__(rows)
        self.reads = window.partition_by
        self.count = window.count
        self._numbers = KeyRows([stream.schema.field(name).type for name in self.reads])
        self.partition: int = rows.add_column(np.int64)
        self._later = rows.add_column(np.int64)
        self._earlier = rows.add_column(np.int64)
        self._victims = rows.add_column(np.int64)
        self._oldest = np.full(64, -1, np.int64)
        self._newest = np.full(64, -1, np.int64)
        self._sizes = np.zeros(64, np.int64)

    @property
    def nbytes(self) -> int:
        lists = self._oldest.nbytes + self._newest.nbytes + self._sizes.nbytes
        return lists + self._numbers.nbytes

    def partitions_of(self, columns: Mapping[str, pa.Array], count: int) -> Int64s:
        """The partition of each row; NULLs form one."""
        partitions, _ = self._numbers.number([columns[name] for name in self.reads])
        needed = len(self._numbers)
        if needed > len(self._sizes):
            size = 1 << (needed - 1).bit_length()
            self._oldest = _extended(self._oldest, size, -1)
            self._newest = _extended(self._newest, size, -1)
            self._sizes = _extended(self._sizes, size, 0)
            self.rows.note_moved()
        return partitions

    def lists(self) -> Int64s:
        numbers = (self._later, self._victims, self.partition, self._earlier)
        arrays = [self.rows.columns[number] for number in numbers]
        arrays += (self._oldest, self._newest, self._sizes)
        return np.array([address_of(each) for each in arrays], np.int64)

    def stored(self, start: int, stop: int, partitions: Int64s | None) -> None:
        assert partitions is not None
        self.rows.put(self.partition, start, partitions)
        self._kill(start, stop)

    def _kill(self, start: int, stop: int) -> None:
        columns = self.rows.columns
        lifespan.kill_by_partition(
            columns[BIRTH],
            columns[DEATH],
            columns[self._later],
            columns[self._victims],
            columns[self.partition],
            self.rows.mask,
            start,
            stop,
            self.count,
            self._oldest,
            self._newest,
            columns[self._earlier],
            self._sizes,
        )

    def take_back(self, head: int) -> None:
        columns = self.rows.columns
        lifespan.revive_by_partition(
            columns[DEATH],
            columns[self._later],
            columns[self._victims],
            columns[self.partition],
            self.rows.mask,
            head,
            self.rows.head,
            self._oldest,
            self._newest,
            columns[self._earlier],
            self._sizes,
        )

    def packed(self) -> None:
        self._oldest[:] = -1
        self._newest[:] = -1
        self._sizes[:] = 0
        self._kill(self.rows.tail, self.rows.head)


def lifespan_of(stream: Stream, rows: Rows, ticks_per_millisecond: int) -> Lifespan:
    """The rule by which ``rows`` of ``stream`` die."""
    window = stream.window
    if isinstance(window, Range):
        return FixedSpan(rows, window.milliseconds * ticks_per_millisecond)
    if isinstance(window, RowsWindow):
        if window.partition_by:
            return LatestByPartition(rows, stream, window)
        return LatestRows(rows, window.count)
    return Lifespan(rows)


def _extended(values: Int64s, size: int, fill: int) -> Int64s:
    larger = np.full(size, fill, np.int64)
    larger[: len(values)] = values
    return larger
