"""A whole push of plain batches in three compiled calls: a look, the windows, the joins.

Kernels sweep through megabytes, and what Python needs next is no longer in the processor's caches:
a call of a Python function costs several times as much between kernels as by itself. Step by step
a push is six hundred calls, and with ten thousand rows half of its time. So a push with nothing out
of the ordinary is made here, straight through. Whoever finds something that is (a batch that is not
plain, a tree that cannot be written down, no room for working space) says so before anything has
changed, and the push is made step by step, which gives the same answer.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.arrival import SLICE
from penstock.engine.compiled_push import CompiledPush
from penstock.engine.composites import Composites
from penstock.engine.intake import Intake, Source
from penstock.engine.join_tree import JoinTree
from penstock.engine.kernels import arrow_struct
from penstock.engine.kernels import window as window_kernel
from penstock.engine.leaf_window import LeafWindow
from penstock.engine.plain_batch import PlainBatches, release

Int64s = NDArray[np.int64]


class _Reader:
    """A window, and how it takes its columns from those of its source."""

    def __init__(self, leaf: LeafWindow, source: Source) -> None:
        assert leaf.plain_columns is not None
        self.leaf = leaf
        self.alias = leaf.stream.alias
        self.append = leaf.append_plain
        self._picks = np.array([source.columns.index(c) for c in leaf.plain_columns], np.int64)
        self._sources = np.empty(len(self._picks), np.int64)
        self.places = (self._picks.ctypes.data, self._sources.ctypes.data)


class _Source:
    """A source, and the place of its numbers in the tables of all."""

    def __init__(self, source: Source, place: int, readers: list[_Reader]) -> None:
        self.source = source
        self.place = place
        self.readers = readers
        self.plain: PlainBatches | None = None
        self.struct = self.found = 0
        """Where Arrow's struct lies, and the addresses that were found in it."""


class WholePush:
    """Pushes plain batches of the sources of a query."""

    def __init__(self, intake: Intake, leaves: Mapping[str, LeafWindow]) -> None:
        self._intake = intake
        self._sources: dict[str, _Source] = {}
        for name, source in intake.sources.items():
            own = [leaf for leaf in leaves.values() if leaf.stream.source == name]
            if all(leaf.plain_columns is not None for leaf in own):
                readers = [_Reader(leaf, source) for leaf in own]
                self._sources[name] = _Source(source, len(self._sources), readers)
        count = len(self._sources)
        width = max((len(each.source.columns) for each in self._sources.values()), default=0)
        self._structs = np.zeros((count, arrow_struct.WORDS), np.int64)
        self._positions, self._widths = np.zeros((2, count, width), np.int64)
        self._found = np.zeros((count, width), np.int64)
        self._facts = np.zeros((count, arrow_struct.FACTS), np.int64)
        self._spans = np.zeros((count, 2), np.int64)
        for each in self._sources.values():
            each.struct = self._structs[each.place].ctypes.data
            each.found = self._found[each.place].ctypes.data
        self._hashes = np.empty(0, np.int64)
        # Of the push at hand:
        self._known: list[_Source] = []
        self._batches: list[pa.RecordBatch] = []
        """What has rows of each of them; kept while their addresses are used."""
        self._times: list[list[int]] = []
        """The first and the last event time of each."""
        self._filled: list[tuple[_Reader, int, int]] = []
        """The windows, with their first new row, and how many."""
        self._windows = np.empty((0, window_kernel.WINDOW), np.int64)
        self.rows = 0
        self.first = self._last = 0
        """The first and the last event time of all, in ticks."""

    # -- a look ------------------------------------------------------------------------------

    def look(self, batches: Any, earliest: int) -> bool:
        """Whether ``batches`` are plain, and no row is before ``earliest``; nothing has changed."""
        known, kept = self._known, self._batches
        if type(batches) is not dict:
            return False
        self._facts[:, arrow_struct.COUNT] = 0
        try:
            for name, batch in batches.items():
                each = self._sources.get(name)
                if type(batch) is pa.Table and batch.num_rows:
                    parts = batch.to_batches()
                    batch = parts[0] if len(parts) == 1 else None
                if each is None or type(batch) is not pa.RecordBatch:
                    return False
                if not self._knows(each, batch):
                    return False
                if batch.num_rows:
                    batch._export_to_c(each.struct)
                    known.append(each)
                    kept.append(batch)
                    self._facts[each.place, arrow_struct.COUNT] = batch.num_rows
            return bool(kept) and self._are_plain(earliest)
        finally:
            for each in known:
                release(self._structs.item(each.place, arrow_struct.RELEASE), each.struct)

    def _are_plain(self, earliest: int) -> bool:
        plain: bool = arrow_struct.look_at_all(
            self._structs,
            self._positions,
            self._widths,
            self._facts,
            earliest,
            self._found,
            self._spans,
        )
        return plain

    def _knows(self, each: _Source, batch: pa.RecordBatch) -> bool:
        """Whether the tables say where to look in batches like this one."""
        plain = self._intake.plain_batches(each.source, batch)
        if plain is None or not all(reader.leaf.is_plain for reader in each.readers):
            return False
        if plain is not each.plain:
            columns = len(plain.columns)
            self._positions[each.place, :columns] = plain.positions
            self._widths[each.place, :columns] = plain.widths
            self._facts[each.place] = (columns, plain.time, plain.ticks, plain.farthest, 0)
            each.plain = plain
        return True

    def newest(self) -> dict[str, int]:
        """The newest event time of each source, in ticks."""
        spans = self._spans.tolist()
        self._times = [spans[each.place] for each in self._known]
        self.rows = sum([batch.num_rows for batch in self._batches])
        self.first = min([first for first, _ in self._times])
        self._last = max([last for _, last in self._times])
        return {
            each.source.name: last for each, (_, last) in zip(self._known, self._times, strict=True)
        }

    @property
    def seen(self) -> dict[str, int]:
        """Rows of each source in the push at hand."""
        return {
            each.source.name: batch.num_rows
            for each, batch in zip(self._known, self._batches, strict=True)
        }

    # -- a push ------------------------------------------------------------------------------

    def get_ready(self, tree: JoinTree, watermark: int) -> CompiledPush | None:
        """What can join the rows at hand, if they need not be cut into slices; there is room."""
        if self.rows > 2 * SLICE or tree.elders is not None:
            return None
        tree.begin_slice(self.first, self._last, self.rows, watermark)
        numbers: list[int] = []
        filled = self._filled
        filled.clear()
        for each, batch, (first, last) in zip(self._known, self._batches, self._times, strict=True):
            assert each.plain is not None
            count = batch.num_rows
            if len(self._hashes) < count:
                self._hashes = np.empty(2 * count, np.int64)
            for reader in each.readers:
                rows = reader.leaf.rows
                reader.leaf.make_room(count, first, last)
                code = reader.append.code
                numbers += (reader.append.address, len(code), rows.head, rows.tail, count)
                numbers += (each.plain.time, each.plain.ticks, each.found, *reader.places, 0)
                filled.append((reader, rows.head, count))
        packed = bytearray(struct.pack(f"={len(numbers)}q", *numbers))
        self._windows = np.frombuffer(packed, np.int64).reshape(-1, window_kernel.WINDOW)
        return tree.in_one_call()

    def append(self) -> None:
        """Put the rows into their windows. Who is interrupted in this cannot go back."""
        window_kernel.append_all(self._windows, self._hashes)
        wide = self._windows[:, window_kernel.WIDE].tolist()
        for (reader, _, count), each_wide in zip(self._filled, wide, strict=True):
            reader.append.done(count, each_wide)

    def join(
        self, tree: JoinTree, compiled: CompiledPush, seconds: float, lasting: bool
    ) -> Composites:
        """The results of the rows, which took ``seconds`` to append: for good, or for now."""
        share = seconds / sum([count for _, _, count in self._filled])
        for reader, _, count in self._filled:
            tree.stopwatch.add(reader.leaf.streams, share * count)
        news = {reader.alias: (first, count) for reader, first, count in self._filled}
        return tree.run_compiled(compiled, news, lasting)

    def forget(self) -> None:
        """The push is over, or made step by step: its batches are nobody's business here."""
        self._known.clear()
        self._batches.clear()
