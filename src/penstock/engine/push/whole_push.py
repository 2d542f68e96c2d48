"""The compiled push: a look at the batches, windows and joins in one call, the answer.

Kernels sweep through megabytes, and what Python needs next is no longer in the processor's caches:
a call of a Python function costs several times as much between kernels as by itself. Step by step
a push is six hundred calls, and with ten thousand rows half of its time. So a push is made here,
straight through, wherever it can be. Whatever cannot (plans side by side, a static relation that is
loaded) is said before anything has changed, and the push is made step by step, which gives the same
answer. Many rows are taken in part by part (:meth:`WholePush.parts_of`): what is touched for a part
fits the cache.

Rows come to a window from a slot (:mod:`penstock.engine.push.slot`). Where the columns of a source
lie is read from Arrow's struct, keys that have to be encoded are encoded first, and late rows,
NULLs and disorder are seen to by the kernel; the rows of other sources are prepared step by step.
On the arrival line the rows of all sources have places among each other, so there either all
sources are read as they lie, or all are prepared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.compiled.compiled_push import CompiledPush
from penstock.engine.output.output import Output
from penstock.engine.overload.door import Selection
from penstock.engine.push.intake import FARTHEST, Batches, Intake, Layout, as_batch
from penstock.engine.push.slot import Slot, direct_slot, prepared_slot
from penstock.engine.push.slot_tables import BlockArrivals, SlotTables, WrittenArrivals
from penstock.engine.state.arrival import SLICE, Arrival, SourceRows
from penstock.engine.state.clock import START, Clock
from penstock.engine.state.composites import Composites
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.working_memory import WORKING
from penstock.engine.tree.join_tree import JoinTree
from penstock.kernels import arrow_struct, door
from penstock.kernels.arrow_struct import (
    CHOSEN,
    COLUMNS,
    COUNT,
    EARLIEST,
    IS_KNOWN,
    LATE,
    LEFT,
    MOST_COLUMNS,
    NULLS,
    TICKS,
    TIME,
    WITHOUT_TIME,
)
from penstock.kernels.held_signals import HELD
from penstock.kernels.whole_push import KEPT
from penstock.query.join_graph import ARRIVAL

Int64s = NDArray[np.int64]
Control = Callable[[Composites], Composites]
Freshness = Callable[[Sequence[int]], bool]
"""Whether all results are fresh whose oldest rows, by stream, were born then."""

_NO_DOORS: Mapping[str, Selection] = {}

_SPARE_NUMBERS = 1 << 20
"""Numbers of working space that are kept for the next push: 8 MiB."""


class WholePush:
    """Pushes batches of the sources of a query."""

    def __init__(self, intake: Intake, blocks: Sequence[Mapping[str, LeafWindow]]) -> None:
        """``blocks`` are the windows of each block of the query; no two have the same alias."""
        self._intake = intake
        leaves = {alias: leaf for block in blocks for alias, leaf in block.items()}
        self._direct: dict[str, Slot] = {}
        self._prepared: dict[str, list[Slot]] = {}
        slots: list[Slot] = []
        self._by_rows = any(leaf.by_rows for leaf in leaves.values())
        moving = [leaf for leaf in leaves.values() if not leaf.stream.is_static]
        all_direct = all(
            leaf.direct_keys is not None
            and intake.ticks_of(intake.sources[leaf.stream.source]) is not None
            for leaf in moving
        )
        for name, source in intake.sources.items():
            own = [leaf for leaf in leaves.values() if leaf.stream.source == name]
            ticks = intake.ticks_of(source)
            if source.is_static:
                continue
            slot = None
            if self._by_rows and not all_direct:
                pass
            elif ticks is not None and all(leaf.direct_keys is not None for leaf in own):
                slot = direct_slot(len(slots), source, own)
            if slot is not None:
                self._direct[name] = slot
                slots.append(slot)
                continue
            self._prepared[name] = []
            for leaf in own:
                self._prepared[name].append(prepared_slot(len(slots), source, leaf))
                slots.append(self._prepared[name][-1])
        self.most_rows = 2 * SLICE
        """Rows above which a push is taken in part by part."""
        self.part_rows = SLICE
        """Rows of a part, of all sources."""
        self._slots = slots
        self._readers = [reader for slot in slots for reader in slot.readers]
        self._chunked = [reader for reader in self._readers if reader.chunked]
        self.why_never = ""
        """Why no push can be compiled, if there is a reason."""
        if any(slot.columns > MOST_COLUMNS for slot in slots):
            self.why_never = f"a source with more than {MOST_COLUMNS} columns in use"
        width = max((slot.columns for slot in slots), default=1)
        self._tables = SlotTables(len(slots), width)
        for slot in slots:
            slot.struct = self._tables.structs[slot.place].ctypes.data
            facts = self._tables.facts[slot.place]
            facts[COLUMNS] = slot.columns
            if not slot.is_prepared:
                ticks = intake.ticks_of(slot.source)
                assert ticks is not None
                facts[TICKS], facts[arrow_struct.FARTHEST] = ticks, FARTHEST // ticks
                facts[TIME] = 0
            else:
                facts[TICKS], facts[IS_KNOWN], facts[CHOSEN] = 1, 1, -1
        self._take_space(0)
        self._blocks = [
            BlockArrivals(
                [(slot, each) for slot in slots for each in slot.readers if each.alias in block],
                self._tables.facts,
            )
            for block in blocks
        ]
        # Of the push at hand:
        self._kept: list[Any] = []
        """Batches and arrays made of them that must live while their addresses are in use."""
        self._coming: list[tuple[Slot, int, Any]] = []
        """The slots that get rows, how many, and the batch or the prepared rows."""
        self._spans: list[tuple[str, int, int]] = []
        """Sources with rows on time, and their first and last event time in ticks."""
        self.seen: dict[str, int] = {}
        """Rows of each source."""
        self.late: dict[str, int] = {}
        self.without_time: dict[str, int] = {}
        """Rows of each source that were set aside: late, and without an event time."""
        self.left_out: dict[str, int] = {}
        """Rows of each source that were left at the door, and not counted as seen."""
        self.are_whole = False
        """Whether no row has a NULL, nor was looked at step by step: windows take all that are on
        time, and all may be in results."""
        self.has_let_go = False
        """Whether what has passed is gone with the push, from all windows and states."""
        self.let_go_before = START
        """The instant before which it had died, in ticks."""
        self.why_not = ""
        """Why the push at hand cannot be compiled after all."""
        self.rows = 0
        self.places = 0
        """Places of the arrival line that the rows take."""
        self._births = np.empty(0, np.int64)
        self.first = self._last = START
        """The first and the last event time of all, in ticks."""

    # -- many rows ---------------------------------------------------------------------------

    def is_large(self, batches: Any) -> bool:
        """Whether there are so many rows that parts of them are faster."""
        if not isinstance(batches, Mapping):
            return False
        rows = 0
        for batch in batches.values():
            if isinstance(batch, pa.RecordBatch | pa.Table):
                rows += batch.num_rows
        return rows > self.most_rows

    def parts_of(self, batches: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The same share of the rows of each source in each part, so that streams which go on at
        the same pace are together; if they do not, the answer is the same."""
        tables = {name: as_batch(name, batch) for name, batch in batches.items()}
        parts = -(-sum([each.num_rows for each in tables.values()]) // self.part_rows)
        for part in range(parts):
            cut = {}
            for name, table in tables.items():
                start = part * table.num_rows // parts
                cut[name] = table.slice(start, (part + 1) * table.num_rows // parts - start)
            yield cut

    # -- a look ------------------------------------------------------------------------------

    def can_choose(self, source: str, columns: Sequence[str]) -> bool:
        """Whether a look can choose rows of ``source`` by their keys in ``columns``."""
        slot = self._direct.get(source)
        if slot is None or slot.encoded or self._by_rows or len(columns) > door.MOST_KEYS:
            return False
        return all((name, 8) in slot.native for name in columns)

    def look(
        self,
        batches: Any,
        clock: Clock,
        place: int,
        doors: Mapping[str, Selection] = _NO_DOORS,
    ) -> str:
        """Read ``batches``; why they cannot be read. The ``clock`` tells which rows are late, and
        ``place`` is the next one of the arrival line. Of sources with ``doors`` that it can choose
        from, rows are left out.

        Nothing has changed but interners.
        """
        if batches.__class__ is not dict and not isinstance(batches, Mapping):
            return "batches that are not in a dict"
        tables, most = self._tables, 0
        is_new = False
        self.places = 0
        if self._by_rows and self._prepared:
            return self._look_in_order(batches, place)
        for name, batch in batches.items():
            slot = self._direct.get(name)
            if slot is None and name not in self._prepared:
                return "a static relation that is loaded"
            kind = type(batch)
            if kind is not pa.RecordBatch:
                batch = as_batch(name, batch)
            if slot is None:
                self._prepare(name, batch, clock)
                continue
            if self._by_rows and ARRIVAL in batch.schema.names:
                return f"a column {ARRIVAL!r}"
            layout = self._intake.layout_of(slot.source, batch)
            count = self.seen[name] = batch.num_rows
            if count == 0:
                continue
            if kind is not pa.RecordBatch and type(batch) is pa.Table:
                parts = batch.to_batches()
                if len(parts) > 1:
                    parts = batch.combine_chunks().to_batches()
                    if len(parts) > 1:
                        return "a column that cannot be in one piece"
                (batch,) = parts
            if layout is not slot.layout:
                self._lay_out(slot, layout)
            if slot.encoded:
                self._encode(slot, batch)
            self._shut(slot, doors.get(name))
            self._coming.append((slot, count, batch))
            most = max(most, count)
            is_new = True
        if is_new:
            tables.make_room(most)
            facts = tables.facts
            for slot, count, batch in self._coming:
                if not slot.is_prepared:
                    batch._export_to_c(slot.struct)
                    facts[slot.place, COUNT] = count
                    facts[slot.place, EARLIEST] = self._intake.late_before(slot.source, clock)
            found = tables.look()
            if found != arrow_struct.READY:
                return "columns that are laid out oddly, or a time that is out of reach"
            if self._by_rows:
                self._number_arrivals(place)
        self._note_found()
        return ""

    def _shut(self, slot: Slot, selection: Selection | None) -> None:
        """Choose from the rows of ``slot`` as ``selection`` has it, from all if there is none."""
        if selection is None:
            self._tables.doors[slot.place, door.KIND] = door.ALL
            return
        places = {name: place for place, (name, _) in enumerate(slot.native)}
        keys = [(places[name], factor) for name, factor in selection.keys]
        self._tables.choose(slot.place, selection.start, selection.limit, keys)

    def _number_arrivals(self, place: int) -> None:
        """Find the places of the rows on the arrival line, from ``place`` on."""
        tables, rows = self._tables, sum(self.seen.values())
        if len(self._births) < rows:
            self._births = np.empty(2 * rows, np.int64)
        self.places = arrow_struct.number_arrivals(tables.facts, tables.found, place, self._births)

    def _look_in_order(self, batches: Mapping[str, Any], place: int) -> str:
        """Take the rows of all sources in step by step, in the order of their arrival."""
        taken = Batches({}, {}, {}, {}, {}, 0)
        found = {name: as_batch(name, batch) for name, batch in batches.items()}
        if not found.keys() <= self._prepared.keys():
            return "a static relation that is loaded"
        ordered = [
            (self._intake.sources[name], found[name]) for name in self._prepared if name in found
        ]
        self._intake.by_arrival(ordered, place, taken)
        self.places, self.without_time = taken.places, taken.null_time
        for name, batch in found.items():
            self.seen[name] = len(batch)
            if name in taken.rows:
                self._put_rows(name, taken.rows[name])
        self._note_found()
        return ""

    def _lay_out(self, slot: Slot, layout: Layout) -> None:
        """Write down where the columns of batches like this one are."""
        slot.layout = layout
        slot.positions = {name: (position, cast) for name, position, cast in layout}
        for column, (name, width) in enumerate(slot.native):
            self._tables.positions[slot.place, column] = slot.positions[name][0]
            self._tables.widths[slot.place, column] = width

    def _column(self, slot: Slot, batch: pa.RecordBatch, name: str) -> pa.Array:
        position, cast_to = slot.positions[name]
        column = batch.column(position)
        return column if cast_to is None else column.cast(cast_to)

    def _encode(self, slot: Slot, batch: pa.RecordBatch) -> None:
        """Encode the keys that are not what is compared."""
        for column, name, encoder, interner in slot.encoded:
            values, valid = encoder.encode(self._column(slot, batch, name), interner)
            self._tables.put(slot.place, column, values, valid)
            self._kept += (values, valid)
            HELD.give()

    def _prepare(self, name: str, batch: Any, clock: Clock) -> None:
        """Take rows in step by step, as far as to what goes into the windows."""
        taken = Batches({}, {}, {}, {}, {}, 0)
        source = self._intake.sources[name]
        self._intake.by_event_time(source, batch, self._intake.late_before(source, clock), taken)
        rows = taken.rows[name]
        self.seen[name] = len(batch)
        if taken.late:
            self.late[name] = taken.late[name]
        if taken.null_time:
            self.without_time[name] = taken.null_time[name]
        self._put_rows(name, rows)

    def _put_rows(self, name: str, rows: SourceRows) -> None:
        """Prepare ``rows`` of a source for its windows."""
        if len(rows):
            self._spans.append((name, int(rows.births[0]), int(rows.births[-1])))
        for slot in self._prepared[name]:
            (reader,) = slot.readers
            arrival = reader.leaf.prepare(rows)
            if len(arrival):
                self._put_prepared(slot, arrival)
                self._coming.append((slot, len(arrival), arrival))
                self._kept.append(arrival)

    def _put_prepared(self, slot: Slot, arrival: Arrival) -> None:
        tables, (reader,) = self._tables, slot.readers
        tables.put(slot.place, 0, arrival.births, None)
        column, nulls = 1, 0
        for values in arrival.keys:
            values = np.ascontiguousarray(values)
            self._kept.append(values)
            tables.put(slot.place, column, values, None)
            column += 1
        for name, ring in reader.leaf.payload.in_rings.items():
            values = arrival.payload[name]
            bitmap, data = values.buffers()
            tables.found[slot.place, column] = data.address + ring.dtype.itemsize * values.offset
            tables.valid[slot.place, column] = 0
            if values.null_count:
                tables.valid[slot.place, column] = bitmap.address
                tables.offsets[slot.place, column] = values.offset
                nulls |= 1 << column
            column += 1
        if reader.leaf.by_rows:
            flags = np.full(len(arrival), arrival.chosen is None)
            if arrival.chosen is not None:
                flags[arrival.chosen] = True
            for more in (flags, arrival.partitions):
                if more is not None:
                    tables.put(slot.place, column, more, None)
                    self._kept.append(more)
                    column += 1
        facts = tables.facts[slot.place]
        facts[COUNT], facts[NULLS] = len(arrival), nulls

    def _note_found(self) -> None:
        """Note what the look has found: times, rows that were set aside, NULLs."""
        is_arranged, rows, width = self._by_rows, 0, 0
        self.are_whole = True
        for slot, count, _ in self._coming:
            fact = self._tables.facts[slot.place].tolist()
            rows = max(rows, count)
            name = slot.source.name
            if not slot.is_prepared:
                if fact[CHOSEN]:
                    self._spans.append((name, fact[arrow_struct.FIRST], fact[arrow_struct.LAST]))
                if fact[LATE]:
                    self.late[name] = fact[LATE]
                if fact[WITHOUT_TIME]:
                    self.without_time[name] = fact[WITHOUT_TIME]
                if fact[LEFT]:
                    self.left_out[name] = fact[LEFT]
                    self.seen[name] -= fact[LEFT]
            self.are_whole &= not slot.is_prepared and fact[NULLS] == 0
            is_as_it_lies = fact[CHOSEN] < 0 and fact[NULLS] == 0
            for reader in slot.readers:
                if is_as_it_lies and not reader.leaf.payload.flagged and not self._by_rows:
                    continue
                is_arranged = True
                width = max(width, reader.width)
                if fact[NULLS]:
                    for column in reader.needs_flags(fact[NULLS]):
                        reader.leaf.payload.make_flags(column)
        if is_arranged and len(self._space) < (width + 2) * rows:
            self._take_space(2 * (width + 2) * rows)

    def _take_space(self, numbers: int) -> None:
        """Working space for so many ``numbers``, instead of what there was."""
        space = np.empty(numbers, np.int64)
        self._space, self._space_at = space, space.ctypes.data

    def newest(self, before: Mapping[str, int]) -> dict[str, int]:
        """The newest event time of each source, in ticks; up to now it was ``before``."""
        spans = self._spans
        self.rows = sum(self.seen.values())
        self.first = min([first for _, first, _ in spans]) if spans else START
        self._last = max([last for _, _, last in spans]) if spans else START
        newest = dict(before)
        for name, _, last in spans:
            if last > newest.get(name, START):
                newest[name] = last
        return newest

    @property
    def on_time(self) -> dict[str, int]:
        """Rows of each source that were not set aside."""
        late, timeless = self.late, self.without_time
        return {
            name: count - late.get(name, 0) - timeless.get(name, 0)
            for name, count in self.seen.items()
        }

    @property
    def has_rows(self) -> bool:
        """Whether any row is on time."""
        return bool(self._spans)

    # -- a push ------------------------------------------------------------------------------

    def get_ready(
        self, trees: Sequence[JoinTree], watermark: int, before: int
    ) -> list[CompiledPush]:
        """What can join the rows at hand in each of ``trees``; there is room. Nothing if any
        cannot (:attr:`why_not`).

        What died before ``before`` is gone then: the new rows will not see it.
        """
        for tree in trees:
            if tree.older is not None:
                self.why_not = "plans side by side"
                return []
        since = [START] * len(trees)
        if self._spans:
            since = [
                tree.expect_slice(self.first, self._last, self.rows, watermark, before)
                for tree in trees
            ]
        for slot, count, _ in self._coming:
            coming = self._taken_of(slot, count)
            for reader in slot.readers:
                if reader.leaf.rows.room < coming:
                    reader.leaf.make_room(coming, self.first, self._last)
        found: list[CompiledPush] = []
        for tree in trees:
            compiled = tree.in_one_call()
            if compiled is None:
                for each, instant in zip(trees, since, strict=True):
                    if instant > START:
                        each.hidden.hide_before(instant)
                self.why_not = tree.why_not_in_one_call
                return []
            found.append(compiled)
        self.let_go_before = before
        self.has_let_go = before > START
        for compiled, tree in zip(found, trees, strict=True):
            self.has_let_go &= compiled.has_all(tree.kept)
        hashes = self._blocks[0].arrivals.hashes
        if len(hashes) < self.rows:
            hashes = np.empty(2 * self.rows, np.int64)
        for block, compiled, instant in zip(self._blocks, found, since, strict=True):
            block.arrivals.before = before if self.has_let_go else START
            block.arrivals.since, block.arrivals.hashes = instant, hashes
            block.arrivals.are_whole = self.are_whole
            written = block.written_for(compiled, self._tables, self._space_at)
            if self._chunked:
                self._note_kept(written)
        return found

    def _note_kept(self, written: WrittenArrivals) -> None:
        """Find out which rows are taken in by windows that keep something else than numbers."""
        for slot, count, _ in self._coming:
            for reader in slot.readers:
                if reader.chunked and reader.alias in written.rows:
                    if len(reader.kept) < count:
                        reader.kept = np.empty(count + (count >> 1), np.int64)
                    written.rows[reader.alias][KEPT] = reader.kept.ctypes.data

    def priced(self, prices: Mapping[str, float]) -> float:
        """Cost of the rows at most, at these prices of a row of each window."""
        cost = 0.0
        for slot, count, _ in self._coming:
            for reader in slot.readers:
                cost += count * prices.get(reader.alias, 0.0)
        return cost

    def counts(self, leaves: Mapping[str, LeafWindow]) -> dict[str, int]:
        """Rows that come to each of ``leaves``, at most."""
        counts = {}
        for slot, count, _ in self._coming:
            taken = self._taken_of(slot, count)
            for reader in slot.readers:
                if reader.alias in leaves:
                    counts[reader.alias] = taken
        return counts

    def _taken_of(self, slot: Slot, count: int) -> int:
        """How many of the ``count`` rows of ``slot`` windows take in, at most."""
        chosen: int = self._tables.facts.item(slot.place, CHOSEN)
        return count if chosen < 0 else chosen

    def join(
        self,
        trees: Sequence[JoinTree],
        compiled: Sequence[CompiledPush],
        output: Output,
        clock: Clock,
        control: Control | None,
        are_fresh: Freshness | None,
        asks_age: bool,
    ) -> pa.Table:
        """What leaves, of the results of the rows that ``control`` lets pass.

        If it is known what is fresh, it lets pass all without a look if their oldest rows are;
        what these are is noted if it ``asks_age``. All are about the first block.
        """
        found = [
            self._results(number, trees[number], compiled[number], output.keeps)
            for number in range(1, len(trees))
        ]
        block, tree, first = self._blocks[0], trees[0], compiled[0]
        if self._comes_first(first):
            results = self._results(0, tree, first, output.keeps)
            return output.stage([results if control is None else control(results), *found], clock)
        block.arrivals.answer = output.plainly
        block.arrivals.asks_age = asks_age
        tree.run_whole(first, block.arrivals, self.rows)
        self._put_chunks(0)
        if WORKING.max_results is not None:
            WORKING.note_results(first.made)
        if are_fresh is not None and are_fresh(first.oldest() if asks_age else ()):
            control = None
        own = None
        if control is not None:
            own = tree.found(first, output.keeps)
            results = control(own)
            if results is not own:
                return output.stage([results, *found], clock)
        filled = first.answered()
        if filled:
            return output.stage((), clock, filled)
        return output.stage([own or tree.found(first, output.keeps), *found], clock)

    def results(
        self, trees: Sequence[JoinTree], compiled: Sequence[CompiledPush]
    ) -> list[Composites]:
        """The results of the rows in each block, for good, if no answer is made of them yet."""
        first = self._blocks[0].arrivals
        first.answer, first.asks_age = None, False
        return [
            self._results(number, tree, compiled[number], True) for number, tree in enumerate(trees)
        ]

    def _comes_first(self, compiled: CompiledPush) -> bool:
        """Whether rows have to be in their windows before they are joined: a predicate may read
        what lies in no ring."""
        return compiled.asks and bool(self._chunked)

    def _results(
        self, number: int, tree: JoinTree, compiled: CompiledPush, lasting: bool
    ) -> Composites:
        """The results of the rows in block ``number``, for good or until the next ones."""
        arrivals = self._blocks[number].arrivals
        if not self._comes_first(compiled):
            tree.run_whole(compiled, arrivals, self.rows)
            self._put_chunks(number)
            results = tree.found(compiled, lasting)
            WORKING.note_results(len(results))
            return results
        heads = {
            reader.alias: reader.leaf.rows.head
            for slot, _, _ in self._coming
            for reader in slot.readers
            if reader.alias in tree.leaves
        }
        compiled.take_in(arrivals)
        self._put_chunks(number)
        news = {
            alias: (head, tree.leaves[alias].rows.head - head)
            for alias, head in heads.items()
            if tree.leaves[alias].rows.head > head
        }
        results = tree.run_compiled(compiled, news, lasting)
        WORKING.note_results(len(results))
        return results

    def _put_chunks(self, number: int) -> None:
        """Keep what lies in no ring, of the rows that block ``number`` has just taken in."""
        block = self._blocks[number]
        for slot, _, rows in self._coming if self._chunked else ():
            for reader in slot.readers:
                if not reader.chunked or not block.has(reader.alias):
                    continue
                payload = reader.leaf.payload
                places = None
                if block.is_arranged(reader.alias):
                    (chunks, *_) = payload.chunked
                    kept = reader.leaf.rows.head - chunks.stop
                    places = pa.array(reader.kept[:kept])
                for name in reader.chunked:
                    if isinstance(rows, Arrival):
                        values = rows.payload[name]
                    else:
                        values = self._column(slot, rows, name)
                    payload.columns[name].append(
                        0, values if places is None else values.take(places)
                    )

    def drop_passed(self) -> None:
        """Let go of what lies in no ring, of rows that windows have let go of."""
        for reader in self._chunked:
            reader.leaf.payload.drop_before(reader.leaf.rows.tail)

    def forget(self) -> None:
        """The push is over, or made step by step: its batches are let go of."""
        facts = self._tables.facts
        for slot, _, _ in self._coming:
            facts[slot.place, COUNT] = 0
        self._kept.clear()
        self._coming.clear()
        self._spans.clear()
        self.seen, self.late, self.without_time, self.left_out = {}, {}, {}, {}
        if len(self._space) > _SPARE_NUMBERS:
            self._take_space(0)
