"""The reader of the stream: the ledger grows in the driver, cells work in tasks.

``latestOffset``, ``partitions`` and ``commit`` run in one Python process of the driver, ``read`` in
the workers. An offset is a position of the ledger. The entry of a batch is written before Spark
hears of it, so when Spark has the offset in its log, all that the batch needs is written down.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from penstock.errors import InvariantBroken
from penstock.sources.ledger import Entry, Ledger, Position, Skipped
from penstock.sources.portion import UNLIMITED, Portions, Progress
from penstock.spark.data_source.cell_snapshots import durable_snapshots
from penstock.spark.data_source.lane import STATICS, WAITING, Lane
from penstock.spark.data_source.plain_errors import plain_errors
from penstock.spark.data_source.skipped_files import decided
from penstock.spark.data_source.sourced_cell import SourcedCell
from penstock.spark.private_spark import batch_number
from penstock.spark.state.plan_orders import PlanOrders

TIDY_EVERY = 64
"""Batches between two times that the ledger is made shorter: its folder has a few files for each of
so many batches more than are needed."""
RETAINED = 128
"""Batches that Spark may go back to. It retains 100 by default; more are kept, since an option of
the session is not known here."""
_ORDERED = "ordered"
"""The name in the ledger of the number of the last order that a batch was planned with."""
_TIDIED = "tidied"
"""The name in the ledger of the number of the last batch behind which it was made shorter."""
_ROWS = 1 << 17
"""Rows of a record batch that is handed to Spark."""


@dataclass
class CellPartition(InputPartition):
    """The part of a batch that one cell does."""

    cell: int
    start: Position
    end: Position
    told: int = 0
    """The number of the last order about the plan that earlier batches have obeyed."""
    skipped: Skipped = field(default_factory=dict)
    """Files that the batch leaves out."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the answer of ``lane`` as a stream."""

    def __init__(
        self, lane: Lane, schema: pa.Schema, clock: Callable[[], float] = time.time
    ) -> None:
        self._lane = lane
        self._schema = schema
        self._clock = clock
        self._progress: dict[str, Progress] | None = None
        """What was taken of each source up to ``_tip``."""
        self._tip = Position()
        self._is_tip_last = False
        """Whether the ledger is known to have nothing behind ``_tip``."""
        self._available: dict[str, Any] = {}
        """What batches are held to, by source; empty if they are not."""
        self._waiting: dict[str, int] = {}
        """Rows that each source had behind the last batch that was planned, if it counts them."""

    @property
    def _ledger(self) -> Ledger:
        if self._lane.ledger is None:
            raise InvariantBroken("a stream without a ledger")
        return self._lane.ledger

    # -- in the driver -----------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names
        return Position().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        admissions = [self._lane.sources[name].admission for name in self._lane.moving]
        limited = [a.files or 1 for a in admissions if a.is_limited]
        return ReadMaxFiles(max(limited)) if limited else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._available = {n: self._lane.sources[n].available() for n in self._lane.moving}

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any], limit: ReadLimit
    ) -> dict[str, Any]:
        with plain_errors():
            return self._next(
                Position.of_json(start), isinstance(limit, ReadAllAvailable)
            ).to_json()

    def _next(self, position: Position, everything: bool) -> Position:
        """Where the batch behind ``position`` leads to."""
        progress = self._taken_up_to(position)
        if not self._is_tip_last:
            found = self._ledger.child(position)
            if found is not None:  # Of an earlier run that did not get to it, or was rolled back.
                return found
            self._is_tip_last = True
        portions = {}
        for name in self._lane.moving:
            source = self._lane.sources[name]
            admission = UNLIMITED if everything else source.admission
            there = self._available[name] if name in self._available else source.available()
            is_last = bool(self._available)
            portion = source.next_portion(progress[name], admission, there, is_last)
            if portion is not None:
                portions[name] = portion
            waiting = source.waiting(progress[name], portion, there)
            if waiting is not None:
                self._waiting[name] = waiting
        if not portions:
            return self._settled(position)
        if position.number == 0:
            self._note_statics()
        return self._ledger.add(Entry(position, portions, self._latest(portions)))

    def _settled(self, position: Position) -> Position:
        """Where the batch leads to that ends a run: it takes nothing and waits for nothing older
        than the newest, if that is wanted and was not done yet."""
        ends = bool(self._available) and self._lane.flushes and position.number > 0
        if not ends or self._ledger.entry(position).settles:
            return position
        return self._ledger.add(Entry(position, {}, settles=True))

    def _latest(self, portions: Portions) -> dict[str, int]:
        """The latest event time of rows that arrive now, by source, in milliseconds since 1970."""
        now = int(1000 * self._clock())
        return {name: now + most for name, most in self._lane.ahead.items() if name in portions}

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """What is left for later batches: rows by source, for the progress of the query."""
        return {WAITING: dict(self._waiting)} if self._waiting else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[CellPartition]:
        first, last = Position.of_json(start), Position.of_json(end)
        if first == last:
            return []
        cells = range(self._lane.placement.cells)
        told = self._told_of_orders()
        with plain_errors():
            skipped = decided(self._lane, last)
        return [CellPartition(number, first, last, told, skipped) for number in cells]

    def _told_of_orders(self) -> int:
        """The last order that batches before this one could know of; from now on, it is the last
        that there is."""
        if self._lane.orders is None:
            return 0
        told = int(self._ledger.value(_ORDERED) or 0)
        last = PlanOrders.read(self._lane.orders).last
        if last != told:
            self._ledger.put_value(_ORDERED, last)
        return told

    def commit(self, end: dict[str, Any]) -> None:
        position = Position.of_json(end)
        if position.number % TIDY_EVERY == 0 and position.number > 0:
            with plain_errors():
                self._tidy(position)

    def _tidy(self, position: Position) -> None:
        """Write down what was taken up to ``position``, and forget what nobody can need.

        Spark can go back to a batch that it retains, and start from there with what was taken then.
        Who has gone back, or is told of an older batch, finds the ledger shorter already than this
        batch would make it: entries that it would look at are gone.
        """
        progress = self._taken_up_to(position)
        for name in self._lane.moving:
            progress[name].forget(self._lane.sources[name].available())
        self._ledger.add_taken(position, {n: each.to_json() for n, each in progress.items()})
        if position.number < int(self._ledger.value(_TIDIED) or 0):
            return
        self._ledger.put_value(_TIDIED, position.number)
        oldest = position
        for _ in range(RETAINED):
            if oldest.number > 0:
                oldest = self._ledger.entry(oldest).parent
        while oldest.number > 0 and self._ledger.taken(oldest) is None:
            oldest = self._ledger.entry(oldest).parent
        if oldest.number > 0:
            durable = durable_snapshots(self._lane)
            if durable is not None:
                durable.forget_before(oldest.number)
            first = SourcedCell(self._lane, 0).first_needed(oldest)
            if first is not None:
                self._ledger.forget_before(min(first, oldest.number))

    def _taken_up_to(self, position: Position) -> dict[str, Progress]:
        """What was taken of each source up to ``position``."""
        if self._progress is None or not self._go_on_to(position):
            entries = []
            at, taken = position, self._ledger.taken(position)
            while taken is None:
                entries.append(self._ledger.entry(at))
                at = entries[-1].parent
                taken = self._ledger.taken(at)
            self._progress = {
                name: self._lane.sources[name].progress(taken.get(name))
                for name in self._lane.moving
            }
            for entry in reversed(entries):
                self._add(entry)
            self._tip, self._is_tip_last = position, False
        return self._progress

    def _go_on_to(self, position: Position) -> bool:
        """Whether the tip is ``position``, or could be moved to it by one entry."""
        if position == self._tip:
            return True
        if position.number != self._tip.number + 1:
            return False
        entry = self._ledger.entry(position)
        if entry.parent != self._tip:
            return False
        self._add(entry)
        self._tip = position
        return True

    def _add(self, entry: Entry) -> None:
        assert self._progress is not None
        for name, portion in entry.portions.items():
            if name in self._progress:
                self._progress[name].add(portion)

    def _note_statics(self) -> None:
        """Write down which rows the static relations have: those of now, for good."""
        if self._lane.fixed and self._ledger.value(STATICS) is None:
            portions = {name: self._lane.sources[name].everything() for name in self._lane.fixed}
            self._ledger.put_value(STATICS, portions)

    # -- in the workers ----------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, CellPartition)
        with plain_errors():
            cell = SourcedCell(self._lane, partition.cell)
            at, skipped = _batch(partition.end), partition.skipped
            taken = cell.take(partition.start, partition.end, at, partition.told, skipped)
        if self._lane.reports:
            yield self._aside(self._schema.names[-1], [taken.report.to_json()])
        if self._lane.dropped is not None and taken.dropped:
            yield self._aside(self._lane.dropped, [row.to_json() for row in taken.dropped])
        results = taken.results
        for name in self._schema.names[results.num_columns :]:
            results = results.append_column(name, pa.nulls(len(results), pa.string()))
        yield from results.cast(self._schema).to_batches(_ROWS)

    def _aside(self, column: str, texts: list[str]) -> pa.RecordBatch:
        """Rows with ``texts`` in one column and nothing in the others."""
        arrays = [
            pa.array(texts, pa.string())
            if field.name == column
            else pa.nulls(len(texts), field.type)
            for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _batch(end: Position) -> int:
    """Spark's number of the batch that a task belongs to."""
    told = batch_number()
    return end.number - 1 if told is None else told
