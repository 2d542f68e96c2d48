"""The rows of a batch as one cell sees them: read from the sources, routed, with the news of all.

Every cell reads what its placement and its clock need of all rows, and keeps its own. So each of
them knows the newest event times of the whole batch, and no rows are sent from one to another.
Of JSON these columns are parsed first, and the others of a cell's own rows alone, where that pays.

Where the names of folders tell the values that rows are placed by (``x=17/part-0.parquet``), a cell
reads its own files; of the others it looks at statistics, and reads event times where there are
none. The same where the source is partitioned as the cells are, by topic partitions or buckets
(:mod:`penstock.spark.data_source.partitioned_cells`); there cells may also relay their clocks, and
read nothing of the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.cells.rejected import UNREADABLE
from penstock.cells.router import Router
from penstock.engine.push.ahead import Ahead
from penstock.engine.push.dropped import NO_EVENT_TIME, Dropped
from penstock.query.unreadable import CORRUPT
from penstock.sources.file_source import FileSource
from penstock.sources.kafka_source import KafkaSource
from penstock.sources.ledger import Entry, Note
from penstock.sources.portion import Brief, Portion, in_nanoseconds
from penstock.sources.row_groups import NOTHING
from penstock.spark.data_source.lane import Lane

_ROW = "number of the row"
_LEAST_CELLS, _LEAST_OTHERS = 4, 12
"""Cells, and columns that are read of own rows alone, from which JSON is parsed in two steps. To
parse two columns of all texts takes half of what parsing all of many columns takes, since each text
is gone through (measured in ``docs/notes/spark.md``)."""


@dataclass(slots=True)
class BatchRows:
    """What a cell takes in with one push."""

    newest: Mapping[str, int] = field(default_factory=dict)
    """The newest event time of each source so far, in ticks."""
    rows: Mapping[str, pa.Table] = field(default_factory=dict)
    watermark: int | None = None
    """The watermark that was promised, if one was, in milliseconds."""

    def tables(self) -> Mapping[str, pa.Table]:
        return self.rows


@dataclass(frozen=True, slots=True)
class Reading:
    """The rows of one entry for one cell, and what was seen of all of them."""

    rows: Mapping[str, pa.Table]
    note: Note
    unrouted: Mapping[str, int] = field(default_factory=dict)
    """Rows that belong to no cell, by source, as far as this cell tells them."""
    refused: Sequence[Dropped] = ()
    """Rows that no engine gets, as far as this cell tells them: those that cannot be read, those
    too far ahead and, where there are several cells, those without an event time, which a single
    cell leaves to its engine."""


@dataclass(slots=True)
class _Seen:
    """What a cell has seen of the rows of an entry so far, by source."""

    ahead: Ahead
    again: bool
    """Whether somebody has read these rows before."""
    newest: dict[str, int] = field(default_factory=dict)
    """The newest event time in nanoseconds."""
    rows: dict[str, int] = field(default_factory=dict)
    unrouted: dict[str, int] = field(default_factory=dict)
    """Rows that belong to no cell, as far as this cell tells them."""
    refused: list[Dropped] = field(default_factory=list)

    def note(self, name: str, brief: Brief, counts: bool) -> None:
        """Rows of which no more is known, and which this cell counts or not."""
        self.rows[name] += brief.rows if counts else 0
        newest = None if brief.newest is None else in_nanoseconds(brief.newest)
        _note_newest(self.newest, name, newest)


class _CellPart(NamedTuple):
    """A part of a portion as one cell sees it."""

    portion: Portion
    is_read: bool
    """Whether some of its rows may be the cell's own; else only event times are read."""
    is_told: bool
    """Whether the cell tells which of its rows no cell gets."""


class BatchReader:
    """Reads the portions of batches for cell ``number`` of ``lane``."""

    def __init__(self, lane: Lane, number: int) -> None:
        self._lane = lane
        self._number = number
        self._router = Router(lane.query, lane.placement)

    def read(
        self,
        entry: Entry,
        before: Note,
        only: Collection[str] | None = None,
        again: bool = False,
        whole: bool = False,
    ) -> Reading:
        """The rows of ``entry``, of the sources in ``only`` if given; ``before`` is the note of the
        entry before, which the new note goes on from. ``again`` if they were read before. Where
        cells relay their clocks, the note is of this cell's part, unless it is to be ``whole``."""
        lane, portions = self._lane, entry.portions
        seen = _Seen(Ahead({} if lane.query.by_rows else entry.latest, lane.clocks), again)
        rows = {}
        for name in lane.query.sources:
            if portions.get(name) is None or (only is not None and name not in only):
                continue
            tables, seen.rows[name], seen.unrouted[name] = [], 0, 0
            for part in self._parts(name, portions[name]):
                if lane.relayed and not part.is_read and not whole:
                    continue
                brief = None if part.is_read else self._brief(name, part.portion, entry)
                if brief is not None:
                    seen.note(name, brief, self._counts(part))
                    continue
                found = self._part(name, part, seen, entry)
                if part.is_read:
                    tables.append(found)
            if not tables:
                schema = lane.sources[name].schema
                tables = [pa.schema([schema.field(c) for c in lane.columns[name]]).empty_table()]
            rows[name] = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
        newest = dict(before.newest)
        for name, at in seen.newest.items():
            newest[name] = max(at, newest.get(name, at))
        settled = max(newest.values(), default=None) if entry.settles else before.settled
        sizes = {name: found for name in rows if (found := self._mended(name, portions[name]))}
        note = Note(newest, seen.newest, seen.rows, dict(lane.clocks), sizes, settled=settled)
        return Reading(rows, note, seen.unrouted, seen.refused)

    def _counts(self, part: _CellPart) -> bool:
        """Whether this cell counts the rows of a part, if no other does."""
        return part.is_told or not self._lane.relayed

    def _part(self, name: str, part: _CellPart, seen: _Seen, entry: Entry) -> pa.Table:
        """The cell's rows of a part."""
        columns = self._lane.columns[name] if part.is_read else self._few(name)
        first, source = self._first(name), self._lane.sources[name]
        if part.is_read and first and isinstance(source, FileSource | KafkaSource):
            choose = partial(self._choose, name, part, seen)
            return source.read_chosen(part.portion, columns, first, choose, seen.again)
        table, rest = self._needed(name, part, columns, entry, seen.again)
        seen.note(name, rest, self._counts(part))
        return self._own_rows(name, part, seen, table, rest.rows)

    def _choose(
        self, name: str, part: _CellPart, seen: _Seen, table: pa.Table
    ) -> NDArray[np.int64]:
        """The numbers of the cell's rows, by the columns that are read first."""
        numbered = table.append_column(_ROW, pa.array(np.arange(len(table))))
        found = self._own_rows(name, part, seen, numbered)
        return np.asarray(found.column(_ROW).to_numpy())

    def _own_rows(
        self, name: str, part: _CellPart, seen: _Seen, table: pa.Table, unread: int = 0
    ) -> pa.Table:
        """The cell's rows of a part; what all of its rows tell goes to ``seen``. ``unread`` are
        those that were left out, since they are in no result."""
        lane = self._lane
        seen.rows[name] += _counted(lane, name, table) if self._counts(part) else 0
        told: list[Dropped] = []
        split = seen.ahead.split({name: self._readable(name, table, told)}, arrived=0)
        told += split.dropped
        table = split.batches[name]
        _note_newest(seen.newest, name, _newest(lane, name, table))
        if part.is_read:
            table = self._timed(name, table, told)
        if part.is_told:
            seen.refused += told
            seen.unrouted[name] += 0 if seen.again else unread + self._unrouted(name, table)
        return self._own(name, table) if part.is_read else table

    def _first(self, name: str) -> tuple[str, ...] | None:
        """The columns of a source that are read of all rows before the others are of the cell's
        own; None where it does not pay, or all columns of other rows may be wanted."""
        lane, source = self._lane, self._lane.sources[name]
        clock = lane.clocks.get(name)
        if lane.placement.cells < _LEAST_CELLS or lane.dropped is not None or clock is None:
            return None
        chooses = isinstance(source, FileSource | KafkaSource) and source.can_choose
        needed = self._router.needed(name)
        if not chooses or needed is None or lane.query.by_rows or name in lane.aligned:
            return None
        first = tuple(c for c in lane.columns[name] if c in needed or c == clock)
        return None if len(lane.columns[name]) - len(first) < _LEAST_OTHERS else first

    def _mended(self, name: str, portion: Portion) -> dict[str, int]:
        """Bytes of the files of ``portion`` that were mended before they were read."""
        source = self._lane.files.get(name)
        if source is None or not source.mended:
            return {}
        sizes = {file[0]: file[1] for file in portion}
        found = ((each, source.mended[each]) for each in sizes.keys() & source.mended.keys())
        return {each: size for each, size in found if size != sizes[each]}

    def _parts(self, name: str, portion: Portion) -> Iterator[_CellPart]:
        """What this cell has to do with each part of a portion."""
        if self._lane.placement.cells == 1:
            yield _CellPart(portion, True, True)
            return
        together: dict[tuple[bool, bool], list[Any]] = {}
        for part in self._lane.sources[name].parts(portion):
            reached = self._router.reached(name, part.known) if part.known else None
            is_partition = part.partition is not None and name in self._lane.aligned
            if reached is None and is_partition and part.partition is not None:
                reached = self._router.holding(name, part.partition)
            teller = min(reached or {0})
            is_own = reached is None or self._number in reached
            is_told = teller == self._number
            if is_partition:
                together.setdefault((is_own or is_told, is_told), []).extend(part.portion)
            else:
                yield _CellPart(part.portion, is_own or is_told, is_told)
        for (is_read, is_told), portions in together.items():
            yield _CellPart(portions, is_read, is_told)

    def _brief(self, name: str, portion: Portion, entry: Entry) -> Brief | None:
        """What files tell of rows that are not this cell's, if no row is too far ahead."""
        column = self._lane.clocks.get(name)
        if column is None or self._lane.query.by_rows:
            return None
        brief = self._lane.sources[name].brief(portion, column)
        if brief is None or brief.newest is None or name not in entry.latest:
            return brief
        return None if in_nanoseconds(brief.newest) > entry.latest[name] * 10**6 else brief

    def _needed(
        self, name: str, part: _CellPart, columns: Sequence[str], entry: Entry, again: bool
    ) -> tuple[pa.Table, Brief]:
        """The rows of a part without those that statistics show to be in no result, and what is
        known of these; all rows, if some of those may be too far ahead."""
        source, needed = self._lane.sources[name], self._lane.needed.get(name)
        if isinstance(source, FileSource) and needed is not None and part.is_read:
            table, rest = source.read_needed(part.portion, columns, again, needed)
            latest = entry.latest.get(name)
            if latest is None or rest.newest is None:
                return table, rest
            if in_nanoseconds(rest.newest) <= latest * 10**6:
                return table, rest
        return source.read(part.portion, columns, again), NOTHING

    def _few(self, name: str) -> tuple[str, ...]:
        """The columns that a cell needs of rows that are not its own: their event times, which
        also tell how many there are."""
        clock = self._lane.clocks.get(name)
        return self._lane.columns[name][:1] if clock is None else (clock,)

    def batch(self, note: Note, rows: Mapping[str, pa.Table] | None = None) -> BatchRows:
        """``rows`` with what ``note`` tells of time."""
        newest = {name: at // self._lane.nanoseconds for name, at in note.newest.items()}
        watermark = None if note.settled is None else note.settled // 10**6 + 1
        return BatchRows(newest, rows or {}, watermark)

    def _unrouted(self, name: str, table: pa.Table) -> int:
        """Rows that belong to no cell, if there are several."""
        if self._lane.placement.cells == 1 or not len(table):
            return 0
        whole = table.combine_chunks()
        columns = {c: whole.column(c).chunk(0) for c in whole.column_names}
        return int(np.count_nonzero(self._router.first_cells(name, columns, len(whole)) < 0))

    def _readable(self, name: str, table: pa.Table, refused: list[Dropped]) -> pa.Table:
        """The rows of ``table`` of which something was read, their event time included; the others
        go to ``refused``, with their texts."""
        if CORRUPT not in table.column_names:
            return table
        found = table.drop_columns(CORRUPT)
        if name in self._lane.fixed:
            return found  # Rows of NULLs, as Spark has them.
        clock = None if self._lane.query.by_rows else self._lane.clocks.get(name)
        needed = found.column_names if clock is None else [clock]
        nothing = pc.is_valid(table.column(CORRUPT))
        for column in needed:
            nothing = pc.and_(nothing, pc.is_null(found.column(column)))
        if pc.any(nothing).as_py():
            refused.append(Dropped(name, UNREADABLE, table.filter(nothing)))
            found = found.filter(pc.invert(nothing))
        return found

    def _timed(self, name: str, table: pa.Table, refused: list[Dropped]) -> pa.Table:
        """The rows of ``table`` that have an event time, if there are several cells; the others go
        to ``refused``."""
        column = self._lane.clocks.get(name)
        if column is None or self._lane.placement.cells == 1 or self._lane.query.by_rows:
            return table
        if not table.column(column).null_count:
            return table
        timed = pc.is_valid(table.column(column))
        refused.append(Dropped(name, NO_EVENT_TIME, table.filter(pc.invert(timed))))
        return table.filter(timed)

    def _own(self, name: str, table: pa.Table) -> pa.Table:
        """The rows of this cell."""
        if self._lane.placement.cells == 1 or not len(table):
            return table
        whole = table.combine_chunks()
        columns = {c: whole.column(c).chunk(0) for c in whole.column_names}
        mine = [
            share.rows
            for share in self._router.route(name, columns, len(whole))
            if self._number in share.cells
        ]
        if not mine:
            return whole.slice(0, 0)
        (chosen,) = mine
        return whole if chosen is None else whole.take(pa.array(np.sort(chosen)))


def _note_newest(times: dict[str, int], name: str, newest: int | None) -> None:
    """Let ``times`` have the newest event time of a source, in nanoseconds."""
    if newest is not None:
        times[name] = max(newest, times.get(name, newest))


def _newest(lane: Lane, name: str, table: pa.Table) -> int | None:
    """The newest event time in nanoseconds."""
    column = lane.clocks.get(name)
    if column is None or lane.query.by_rows:
        return None
    newest = pc.max(table.column(column))
    return in_nanoseconds(newest) if newest.is_valid else None


def _counted(lane: Lane, name: str, table: pa.Table) -> int:
    """Rows that have a place on the time line."""
    column = lane.clocks.get(name)
    if not lane.query.by_rows or lane.by_arrival or column is None:
        return len(table)
    return len(table) - int(table.column(column).null_count)
