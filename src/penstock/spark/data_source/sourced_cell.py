"""A cell whose state is what its sources still have.

A batch is a step from one position of the ledger to the next. The cell needs an engine that stands
at the first, and gets it in the cheapest way that there is:

- the engine in memory stands there: it goes on (``live``);
- it stands at an earlier entry of the same chain: it takes in what it lacks (``replayed``);
- there is none, or it is ahead, or in another branch, or has rows of a file that its batch was done
  without later: a new one takes in the entries whose rows can still be alive
  (:mod:`penstock.spark.cells.reach`), answers dropped (``restored``). If one of these has a
  snapshot (:mod:`penstock.spark.data_source.cell_snapshots`), it begins there.

All give the same engine as far as answers go, since an engine is a function of what it took in and
in which batches: late decisions of a batch are made by the watermark before it, which is a function
of the newest event times before it, which the notes of the ledger have, and which rows are too far
ahead is a function of the entry. Nothing was laid out for a
number of cells, a plan or a query, so all of these may change from one start to the next.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.engine.control.plan_event import PlanEvent
from penstock.engine.overload.overload import Overload
from penstock.engine.push.dropped import LATE
from penstock.errors import CheckpointError, InputError, InvariantBroken
from penstock.sources.ledger import Entry, Ledger, Note, Position, Skipped, joined_skips
from penstock.spark.cells.cell import Cell
from penstock.spark.cells.cell_report import (
    CellReport,
    Origin,
    in_milliseconds,
    newest_times,
    ways_between,
)
from penstock.spark.cells.reach import Reach
from penstock.spark.cells.trigger_budget import seconds_until_due
from penstock.spark.data_source import engine_cache
from penstock.spark.data_source.batch_rows import BatchReader, Reading
from penstock.spark.data_source.cell_snapshots import CellSnapshots
from penstock.spark.data_source.engine_cache import LiveCell
from penstock.spark.data_source.lane import STATICS, Lane
from penstock.spark.data_source.skipped_files import obeyed, unreadable
from penstock.spark.rows.side_rows import SideRow, side_rows, told_once
from penstock.spark.rows.side_rows import counted as counted_rows
from penstock.spark.state.plan_orders import PlanOrders, obey
from penstock.telemetry.operator_batch import operator_batches

_NOTHING: Skipped = {}


@dataclass(frozen=True, slots=True)
class Taken:
    """What a batch led to in a cell."""

    results: pa.Table
    report: CellReport
    dropped: Sequence[SideRow] = ()
    """Rows that were dropped, where they are wanted."""


class _Needed(NamedTuple):
    """An entry that an engine has to read, and the sources whose rows are alive."""

    at: Position
    entry: Entry
    note: Note
    alive: set[str]


class SourcedCell:
    """Cell ``number`` of ``lane``."""

    def __init__(self, lane: Lane, number: int) -> None:
        self._lane = lane
        self._number = number
        self._reader = BatchReader(lane, number)
        self._reach = Reach.of(lane.query)
        self._snapshots = CellSnapshots(lane, number)
        self._lacking: Skipped = {}
        """Files that windows had to be read again without, in this batch."""
        self._skips: dict[Position, Skipped] = {}
        """Files that batches were done without, as far as it was looked up."""

    @cached_property
    def _ledger(self) -> Ledger:
        if self._lane.ledger is None:
            raise InvariantBroken("a bounded answer has no ledger")
        return self._lane.ledger

    def take(
        self,
        start: Position,
        end: Position,
        batch: int = -1,
        told: int = 0,
        skipped: Skipped = _NOTHING,
    ) -> Taken:
        """Do the batch that leads from ``start`` to ``end``, without the files that are
        ``skipped``.

        Orders up to the number ``told`` have been obeyed in earlier batches, and told of.
        """
        began = time.perf_counter()
        self._lacking = {}
        self._skips = {end: skipped}
        entry = self._ledger.entry(end)
        if entry.parent != start:
            raise CheckpointError(
                f"the ledger has batch {end.number} behind another batch than Spark's log has; "
                "was the checkpoint folder copied while its query was running?"
            )
        before = self.note(start)
        live, origin = self._current(start)
        engine = live.cell.engine
        counted = engine.metrics()
        self._obey(live, told)
        engine.drain_events()  # Those of earlier batches have been told.
        engine.drain_dropped()
        refused = self._obey(live)
        self._advance(live, before)
        noted = self._noted(end) or self._own_part(end)
        again, sizes = noted is not None, {} if noted is None else noted.sizes
        entry = entry.as_read(noted).without(skipped)
        opened = time.perf_counter()
        reading = self._reader.read(entry, before, again=again)
        ready = time.perf_counter()
        live.read_seconds += ready - opened
        live.read_rows += sum(map(len, reading.rows.values()))
        results = self._push(live, reading, seconds=self._seconds(began))
        pushed = time.perf_counter()
        note = replace(reading.note, sizes={**sizes, **reading.note.sizes}, skipped=skipped)
        if self._lane.relayed:
            self._ledger.add_part_of_note(end, self._owner(self._number, end), note)
        elif self._number == 0:
            self._ledger.add_note(end, note)
        after = engine.metrics()
        live.position, live.skipped = end, skipped
        live.size = int(after["state"]["bytes"])
        is_new = origin in ("new", "restored")
        held = sum(int(window["rows"]) for window in after["state"]["windows"].values())
        self._snapshots.keep(live, time.perf_counter() - began, is_new, held)
        engine_cache.put(self._lane.fingerprint, self._number, live)
        then, now = counted["sources"], after["sources"]
        overload = after["overload"] if "budget" in after["overload"] else {}
        settings = self._lane.settings
        late = told_once(settings, self._number, engine.drain_dropped())
        late += reading.refused
        dropped = side_rows(settings, late, values=self._lane.dropped is not None)
        ways, reasons = ways_between(counted, after)
        report = CellReport(
            batch=batch,
            cell=self._number,
            rows={source: each["rows"] - then[source]["rows"] for source, each in now.items()},
            results=len(results),
            state_bytes=live.size,
            stored_bytes=0,
            engine_seconds=pushed - ready,
            total_seconds=time.perf_counter() - began,
            origin=origin,
            plan=str(engine.running_plan),
            watermark=engine.watermark,
            dropped=counted_rows(dropped),
            silent=engine.silent(),
            operators=operator_batches(str(engine.running_plan), counted, after),
            decisions=tuple(e.to_json() for e in (*refused, *engine.drain_events())),
            read={
                name: reading.note.rows.get(name, 0) if self._tells else 0
                for name in self._lane.moving
            },
            filtered=self._filtered(reading, then, now, dropped),
            event_clock=in_milliseconds(settings.query, engine.watermark),
            newest=newest_times(settings.query, engine.newest),
            ways=ways,
            reasons=reasons,
            overload={n: v for n, v in overload.items() if n not in ("allocation", "shares")},
            skipped=joined_skips(skipped if self._number == 0 else {}, self._lacking),
        )
        return Taken(results, report, dropped)

    def _filtered(
        self,
        reading: Reading,
        then: Mapping[str, Any],
        now: Mapping[str, Any],
        dropped: Sequence[SideRow],
    ) -> dict[str, int]:
        """Rows of a batch that can be in no result, by source, as far as this cell tells it.

        A single cell has all rows that are read, and its engine counts them, those that are late
        beside as late; else they are sent to no cell.
        """
        if self._lane.placement.cells > 1:
            return dict(reading.unrouted)
        told = counted_rows(dropped)
        return {
            source: sum(now[source][name] - then[source][name] for name in ("filtered", LATE))
            - told.get(source, {}).get(LATE, 0)
            + reading.unrouted.get(source, 0)
            for source in now
        }

    def everything(self, portions: Mapping[str, object]) -> pa.Table:
        """The answer to a bounded input: one push of all there is, and the end of time."""
        cell = Cell(self._lane.settings, self._lane.settings.engine())
        reading = self._reader.read(Entry(Position(), portions), Note())
        first = cell.push(self._reader.batch(reading.note, reading.rows))
        return pa.concat_tables([first, cell.finish()])

    def note(self, position: Position) -> Note:
        """The note of an entry; made now if it was never written or is about other columns."""
        chain: list[tuple[Position, Entry]] = []
        found = self._noted(position)
        while found is None or not self._is_ours(found):
            entry = self._ledger.entry(position).as_read(found)
            chain.append((position, entry.without(self._skipped(position))))
            position = entry.parent
            found = self._noted(position)
        for at, entry in reversed(chain):
            note = self._for_window(entry, found, whole=True).note
            found = replace(note, skipped=self._skipped(at))
            self._ledger.add_note(at, found)
        return found

    def _noted(self, position: Position) -> Note | None:
        """The note of an entry, put together of those of all cells if these relay their clocks.

        Those of cells that did the batch with files that it is done without by now are none.
        """
        found = self._ledger.note(position)
        if not self._lane.relayed:
            return found
        if found is not None and found.skipped == self._skipped(position):
            return found
        owners = [self._owner(number, position) for number in range(self._lane.placement.cells)]
        parts = self._ledger.parts_of_note(position, owners)
        if parts is None:
            return None
        found = Note.joined(parts)
        self._ledger.add_note(position, found)
        return found

    def _own_part(self, position: Position) -> Note | None:
        """What this cell has noted of an entry, if cells relay their clocks."""
        if not self._lane.relayed:
            return None
        parts = self._ledger.parts_of_note(position, [self._owner(self._number, position)])
        return None if parts is None else parts[0]

    def _owner(self, number: int, position: Position) -> str:
        """The name of a cell among those that a note is put together of: those that did the batch
        without the same files."""
        name, skipped = f"{self._lane.relay}-{number}", self._skipped(position)
        if not skipped:
            return name
        told = json.dumps(skipped, sort_keys=True).encode()
        return f"{name}-{hashlib.sha256(told).hexdigest()[:12]}"

    def _skipped(self, position: Position) -> Skipped:
        """The files that the batch at ``position`` is done without."""
        if position not in self._skips:
            self._skips[position] = obeyed(self._lane, position)
        return self._skips[position]

    @property
    def _tells(self) -> bool:
        """Whether the rows that this cell has noted are told of by no other."""
        return self._lane.relayed or self._number == 0

    def _advance(self, live: LiveCell, before: Note) -> None:
        """Move the clock of an engine to what all cells have seen up to the batch ``before``, if it
        does not know."""
        if self._lane.relayed and before.newest:
            live.cell.push(self._reader.batch(before))

    def _is_ours(self, note: Note) -> bool:
        """Whether the times in a note are those of this query's event-time columns."""
        clocks = self._lane.clocks
        return all(clocks.get(name) == column for name, column in note.clocks.items())

    # -- the engine --------------------------------------------------------------------------

    def _current(self, position: Position) -> tuple[LiveCell, Origin]:
        """An engine that stands at ``position``."""
        live = engine_cache.take(self._lane.fingerprint, self._number)
        if live is not None and (self._lane.skips or live.skipped):
            live = live if live.skipped == self._skipped(live.position) else None
        if live is not None and live.position == position:
            return live, "live"
        if live is not None and live.position.number < position.number:
            missed: list[tuple[Position, Entry]] = []
            for at, entry in self._ledger.back_from(position):
                missed.append((at, entry))
                if entry.parent.number <= live.position.number:
                    break
            if missed[-1][1].parent == live.position:
                self._catch_up(live, missed)
                return live, "replayed"
        if position.number == 0:
            return self._new(Note(), is_first=True), "new"
        return self._rebuilt(position), "restored"

    def _catch_up(self, live: LiveCell, missed: list[tuple[Position, Entry]]) -> None:
        """Take in the ``missed`` entries, the newest first in the list; answers are dropped."""
        before = self.note(live.position)
        for at, entry in reversed(missed):
            self._advance(live, before)
            noted = self._noted(at)
            entry = entry.as_read(noted).without(self._skipped(at))
            reading = self._for_window(entry, before, noted, again=True)
            self._push(live, reading, again=True)
            live.position, live.skipped = at, self._skipped(at)
            before = self.note(at) if self._lane.relayed else reading.note

    def first_needed(self, position: Position) -> int | None:
        """The number of the oldest entry that an engine at ``position`` reads; None if windows may
        reach back to the first."""
        if not self._reach.is_bounded:
            return None
        needed = list(self._needed(position))
        if needed and needed[-1].at.number == 1:
            return None
        return needed[-1].at.number - 1 if needed else position.number  # With the note before.

    def _needed(self, position: Position) -> Iterator[_Needed]:
        """The entries whose rows may still be alive at ``position``, the newest first."""
        watermark = self._watermark(self.note(position))
        newer: dict[str, int] = {}
        for at, entry in self._ledger.back_from(position):
            note = self.note(at)
            if not self._reach.goes_on(note, watermark, newer):
                break
            alive = self._reach.alive(note, watermark, newer)
            yield _Needed(at, entry, note, alive)
            for name, count in note.rows.items():
                newer[name] = newer.get(name, 0) + count

    def _rebuilt(self, position: Position) -> LiveCell:
        """An engine that has taken in what is still alive at ``position``."""
        known = self._snapshots.known()
        needed: list[_Needed] = []
        for each in self._needed(position):
            live = self._snapshots.near(known, each.at, self._skipped(each.at))
            if live is not None:
                self._catch_up(live, [(missed.at, missed.entry) for missed in needed])
                break
            needed.append(each)
        else:
            live = self._new(self.note(needed[-1].entry.parent if needed else position))
            for each in reversed(needed):
                entry = each.entry.as_read(each.note).without(self._skipped(each.at))
                again = self._for_window(entry, each.note, only=each.alive, again=True)
                self._push(live, Reading(again.rows, each.note), again=True)
            live.position, live.skipped = position, self._skipped(position)
        return live

    def _for_window(
        self, entry: Entry, before: Note, noted: Note | None = None, **how: Any
    ) -> Reading:
        """What was read before, with the times that were ``noted``; without files that are gone or
        corrupt by now, where that is asked for."""
        try:
            return self._reader.read(entry, before, **how)
        except InputError:
            lacking = unreadable(self._lane, entry.portions)
            if not lacking:
                raise
            told = {
                name: {file: f"{why} since it was read" for file, why in files.items()}
                for name, files in lacking.items()
            }
            self._lacking = joined_skips(self._lacking, told)
            reading = self._reader.read(entry.without(lacking), before, **how)
            return reading if noted is None else Reading(reading.rows, noted)

    def _new(self, before: Note, is_first: bool = False) -> LiveCell:
        """An engine with the clock of ``before`` and the static relations, and nothing else.
        ``is_first`` if nobody has read these before."""
        settings = self._lane.settings
        live = LiveCell(Position(), Cell(settings, settings.engine()))
        rows: Mapping[str, pa.Table] = {}
        if self._lane.fixed:
            start = Position()
            fixed = Entry(start, self._ledger.value(STATICS) or {})
            fixed = fixed.without(self._ledger.skipped(start))
            read = self._reader.read if is_first else self._for_window
            rows = read(fixed, Note()).rows
        if rows or before.newest:
            live.cell.push(self._reader.batch(before, rows))
        return live

    def _watermark(self, note: Note) -> int | None:
        """The watermark behind the entry of ``note``, in nanoseconds."""
        cell = Cell(self._lane.settings, self._lane.settings.engine())
        cell.push(self._reader.batch(note))
        watermark = cell.engine.watermark
        return None if watermark is None else watermark * self._lane.nanoseconds

    def _push(
        self,
        live: LiveCell,
        reading: Reading,
        seconds: float | None = None,
        again: bool = False,
    ) -> pa.Table:
        return live.cell.push(self._reader.batch(reading.note, reading.rows), seconds, again)

    # -- people ------------------------------------------------------------------------------

    def _obey(self, live: LiveCell, upto: int | None = None) -> list[PlanEvent]:
        """Obey what was ordered since, ``upto`` a number if given; the orders that could not be."""
        given = PlanOrders.read(self._lane.orders).given(self._lane.settings.plan)
        found = [obey(live.cell.engine, order) for order in given.between(live.obeyed, upto)]
        live.obeyed = max(live.obeyed, given.last if upto is None else upto)
        return [event for event in found if event is not None]

    def _seconds(self, began: float) -> float | None:
        """Seconds that the push may take, if an overload policy has a budget of time."""
        option = self._lane.settings.options.get("overload")
        if not isinstance(option, Overload) or option.seconds is None:
            return None
        used = time.perf_counter() - began
        if self._lane.interval is None:
            return option.seconds - used
        return seconds_until_due(self._lane.interval, option.seconds, time.time())
