"""A whole push of plain batches in three compiled calls: a look, windows and joins, the answer.

Kernels sweep through megabytes, and what Python needs next is no longer in the processor's caches:
a call of a Python function costs several times as much between kernels as by itself. Step by step
a push is six hundred calls, and with ten thousand rows half of its time. So a push with nothing out
of the ordinary is made here, straight through. Whoever finds something that is (a batch that is not
plain, a tree that cannot be written down, no room for working space) says so before anything has
changed, and the push is made step by step, which gives the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.compiled.compiled_push import Arrivals, CompiledPush
from penstock.engine.output.output import Output
from penstock.engine.push.intake import Intake, Source
from penstock.engine.push.plain_batch import PlainBatches
from penstock.engine.state.arrival import SLICE
from penstock.engine.state.clock import START, Clock
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.rows import HashIndex, Rows
from penstock.engine.tree.join_tree import JoinTree
from penstock.kernels import arrow_struct
from penstock.kernels.whole_push import ARRIVAL

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


class _Written:
    """Where the rows of ``readers`` go in pushes by ``compiled``."""

    def __init__(self, compiled: CompiledPush, readers: Sequence[tuple[_Source, _Reader]]) -> None:
        self._compiled = compiled
        self._filled = [reader.leaf.became_whole for _, reader in readers]
        """How often an index of each window had been completed by now."""
        self.table = np.zeros((len(readers), ARRIVAL), np.int64)
        self.indexes: list[tuple[HashIndex, Rows]] = []
        self._held: list[Int64s] = []
        """What the table has the addresses of."""
        for place, (each, reader) in enumerate(readers):
            code = reader.append.code
            indexes = reader.append.filled
            numbers = np.array([compiled.number_of(index) for index in indexes], np.int64)
            self._held += (code, numbers)
            self.indexes += [(index, reader.leaf.rows) for index in indexes]
            self.table[place] = (
                *(reader.append.address, len(code)),
                *(compiled.ring_of(reader.alias), compiled.lap_of(reader.alias), each.place),
                *(each.found, *reader.places, numbers.ctypes.data),
            )

    def is_for(self, compiled: CompiledPush, filled: list[int]) -> bool:
        """Whether nothing has changed for pushes by ``compiled``."""
        return compiled is self._compiled and filled == self._filled


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
        self._readers = [
            (each, reader) for each in self._sources.values() for reader in each.readers
        ]
        self._is_complete = len(self._readers) == len(leaves)
        self._written: _Written | None = None
        self._expected: _Written | None = None
        """For what is going to take over, if anything is."""
        self._arrivals = Arrivals(np.zeros((len(self._readers), ARRIVAL), np.int64), self._facts)
        # Of the push at hand:
        self._known: list[_Source] = []
        self._batches: list[pa.RecordBatch] = []
        """What has rows of each of them; kept while their addresses are used."""
        self._times: list[list[int]] = []
        """The first and the last event time of each."""
        self.has_let_go = False
        """Whether what has passed is gone with the push, from all windows and states."""
        self.why_not = ""
        """Why the push at hand cannot be compiled after all."""
        self.rows = 0
        self.first = self._last = 0
        """The first and the last event time of all, in ticks."""

    # -- a look ------------------------------------------------------------------------------

    def look(self, batches: Any, earliest: int) -> str:
        """Why ``batches`` are not plain, with no row before ``earliest``; empty if they are.

        Nothing has changed.
        """
        if type(batches) is not dict:
            return "batches that are not in a dict"
        known, kept = self._known, self._batches
        for name, batch in batches.items():
            each = self._sources.get(name)
            if type(batch) is pa.Table and batch.num_rows:
                parts = batch.to_batches()
                batch = parts[0] if len(parts) == 1 else None
            if each is None or type(batch) is not pa.RecordBatch or not self._knows(each, batch):
                return "a column or a batch that is not plain"
            if batch.num_rows:
                known.append(each)
                kept.append(batch)
        if not kept:
            return "no rows"
        return "" if self._are_plain(earliest) else "NULLs, late rows or rows out of order"

    def _are_plain(self, earliest: int) -> bool:
        self._facts[:, arrow_struct.COUNT] = 0
        for each, batch in zip(self._known, self._batches, strict=True):
            batch._export_to_c(each.struct)
            self._facts[each.place, arrow_struct.COUNT] = batch.num_rows
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
        if plain is None or False in [reader.leaf.is_plain for reader in each.readers]:
            return False
        if plain is not each.plain:
            columns = len(plain.columns)
            self._positions[each.place, :columns] = plain.positions
            self._widths[each.place, :columns] = plain.widths
            self._facts[each.place] = (columns, plain.time, plain.ticks, plain.farthest, 0)
            each.plain = plain
        return True

    def newest(self, before: Mapping[str, int]) -> dict[str, int]:
        """The newest event time of each source, in ticks; up to now it was ``before``."""
        spans = self._spans.tolist()
        times = self._times = [spans[each.place] for each in self._known]
        self.rows = sum([batch.num_rows for batch in self._batches])
        self.first = min(times)[0]
        self._last = max([last for _, last in times])
        newest = dict(before)
        for each, (_, last) in zip(self._known, times, strict=True):
            name = each.source.name
            if last > newest.get(name, START):
                newest[name] = last
        return newest

    @property
    def seen(self) -> dict[str, int]:
        """Rows of each source in the push at hand."""
        return {
            each.source.name: batch.num_rows
            for each, batch in zip(self._known, self._batches, strict=True)
        }

    # -- a push ------------------------------------------------------------------------------

    def get_ready(self, tree: JoinTree, watermark: int, before: int) -> CompiledPush | None:
        """What can join the rows at hand, if they need not be cut into slices; there is room.

        What died before ``before`` is gone then: the new rows will not see it.
        """
        if self.rows > 2 * SLICE or tree.elders is not None:
            self.why_not = "a large push" if tree.elders is None else "plans side by side"
            return None
        since = tree.expect_slice(self.first, self._last, self.rows, watermark, before)
        for each, batch, (first, last) in zip(self._known, self._batches, self._times, strict=True):
            for reader in each.readers:
                if reader.leaf.rows.room < batch.num_rows:
                    reader.leaf.make_room(batch.num_rows, first, last)
        compiled = tree.in_one_call()
        if compiled is None:
            if since > START:
                tree.hide_before(since)
            self.why_not = tree.why_not_in_one_call
            return None
        arrivals = self._arrivals
        self.has_let_go = self._is_complete and compiled.has_all(tree.kept)
        arrivals.before, arrivals.since = before if self.has_let_go else START, since
        if len(arrivals.hashes) < self.rows:
            arrivals.hashes = np.empty(2 * self.rows, np.int64)
        filled = [reader.leaf.became_whole for _, reader in self._readers]
        if self._written is None or not self._written.is_for(compiled, filled):
            self._write_down(compiled, filled)
        return compiled

    def expect(self, compiled: CompiledPush) -> None:
        """``compiled`` is going to take over: write down now where the rows go then."""
        self._expected = _Written(compiled, self._readers)

    def _write_down(self, compiled: CompiledPush, filled: list[int]) -> None:
        """Where the rows go."""
        expected = self._expected
        if expected is not None and expected.is_for(compiled, filled):
            self._written, self._expected = expected, None
        else:
            self._written = _Written(compiled, self._readers)
        self._arrivals.table, self._arrivals.filled = self._written.table, self._written.indexes

    def join(
        self, tree: JoinTree, compiled: CompiledPush, output: Output, clock: Clock
    ) -> pa.Table:
        """What leaves, of the results of the rows."""
        if tree.missing:  # What they will ask for is completed when they are there.
            news = {
                reader.alias: (reader.leaf.rows.head, batch.num_rows)
                for each, batch in zip(self._known, self._batches, strict=True)
                for reader in each.readers
            }
            compiled.take_in(self._arrivals)
            return output.stage([tree.run_compiled(compiled, news, output.keeps)], clock)
        self._arrivals.answer = output.plainly
        tree.run_whole(compiled, self._arrivals, self.rows)
        filled = compiled.answered()
        if filled:
            return output.stage((), clock, filled)
        return output.stage([tree.found(compiled, output.keeps)], clock)

    def forget(self) -> None:
        """The push is over, or made step by step: its batches are nobody's business here."""
        self._known.clear()
        self._batches.clear()
