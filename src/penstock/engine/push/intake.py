"""Intake: from the batches of a push to rows on the time line.

Everything that can be wrong with a push is found here, before anything has changed: unknown
streams, missing columns, other types. Then late rows and rows with no time are set aside and
counted, and the rest is put in order: by event time, or on the arrival line by the column
``arrival`` if there is one, with consecutive places over all sources (docs/notes/answers.md).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.engine.push.dropped import LATE, NO_EVENT_TIME, Dropped
from penstock.engine.push.input_check import InputCheck
from penstock.engine.state.arrival import SourceRows
from penstock.engine.state.clock import START, Clock
from penstock.errors import InputError
from penstock.kernels import ring
from penstock.kernels.held_signals import HELD
from penstock.kernels.lifespan import BEGINNING
from penstock.query.join_graph import ARRIVAL, JoinGraph, Stream
from penstock.values.arrow_layout import numbers_of, validity_of

Int64s = NDArray[np.int64]
Batch: TypeAlias = Any
"""A pyarrow Table or RecordBatch."""

Layout: TypeAlias = list[tuple[str, int, pa.DataType | None]]
"""Name and position of each column that is read, and the type if it has to be cast."""

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}

FARTHEST = 2**62
"""No event time, in ticks, is farther from zero than this."""


@dataclass(slots=True)
class Batches:
    """A push, taken in: rows by source, and what was set aside."""

    rows: dict[str, SourceRows]
    newest: dict[str, int]
    """The newest event time of each source that had a row on time."""
    late: dict[str, int]
    null_time: dict[str, int]
    seen: dict[str, int]
    places: int
    """Places of the arrival line that were used."""
    oldest_late: dict[str, int] = field(default_factory=dict)
    """The oldest of the late event times, by source, in ticks."""
    dropped: list[Dropped] = field(default_factory=list)
    """The rows that were set aside, if they are to be kept."""


@dataclass(frozen=True, slots=True)
class Source:
    """Columns and event time that the query needs of one source."""

    name: str
    schema: pa.Schema
    event_time: str | None
    columns: tuple[str, ...]
    is_static: bool


class Reader(Protocol):
    """A window or state that takes rows of a source in."""

    stream: Stream
    needed: tuple[str, ...]
    """The columns that it reads."""


class Intake:
    """Takes in the batches of a query's sources."""

    def __init__(
        self,
        graph: JoinGraph,
        readers: Sequence[Reader],
        may_be_late: frozenset[str],
        keep_dropped: bool = False,
    ) -> None:
        self._by_rows = graph.by_rows
        self._keep_dropped = keep_dropped
        self._may_be_late = may_be_late
        self._unit = graph.time_unit
        self._ticks = graph.ticks_per_millisecond
        self._layouts: dict[str, tuple[pa.Schema, Layout]] = {}
        self._readers: dict[str, list[Reader]] = {}
        for reader in readers:
            self._readers.setdefault(reader.stream.source, []).append(reader)
        self.sources = {name: _source_of(name, each) for name, each in self._readers.items()}
        self.check = InputCheck(
            {
                name: {column: source.schema.field(column).type for column in source.columns}
                for name, source in self.sources.items()
            }
        ).check

    def take(
        self, batches: Mapping[str, Batch], clock: Clock, place: int, statics_open: bool
    ) -> Batches:
        """Check, decode, set aside and order.

        ``clock`` decides which rows are late, ``place`` is the next free place of the arrival line,
        and ``statics_open`` tells whether static relations may still be loaded.
        """
        if not isinstance(batches, Mapping):
            raise no_dict(batches, self.sources)
        taken = Batches({}, {}, {}, {}, {}, 0)
        found: dict[str, tuple[Source, Batch]] = {}
        for name, batch in batches.items():
            source = self.sources.get(name)
            if source is None:
                raise self._unknown(name)
            found[name] = (source, as_batch(name, batch))
        ordered = [found[name] for name in self.sources if name in found]
        for source, batch in ordered:
            taken.seen[source.name] = len(batch)
            if source.is_static and len(batch) and not statics_open:
                raise InputError(
                    f"the static relation {source.name} is loaded before or together with the "
                    "first stream tuples; it cannot change while the query runs"
                )
        if self._by_rows:
            self.by_arrival(ordered, place, taken)
        else:
            for source, batch in ordered:
                self.by_event_time(source, batch, self.late_before(source, clock), taken)
        return taken

    def late_before(self, source: Source, clock: Clock) -> int:
        """The instant before which rows of ``source`` are late; on the arrival line none is."""
        if self._by_rows:
            return START
        return clock.late if source.name in self._may_be_late else clock.watermark

    def by_event_time(self, source: Source, batch: Batch, watermark: int, taken: Batches) -> None:
        """Take in a batch of one source, in which rows before ``watermark`` are late."""
        columns = self._columns(source, batch)
        if source.is_static:
            taken.rows[source.name] = _static(columns, len(batch))
            return
        times, keep, (lowest, _, rising) = self._times(source, columns, taken)
        order = None
        if keep is not None or lowest < watermark:
            on_time = times >= watermark
            if keep is not None:
                on_time |= ~keep
            late = np.flatnonzero(~on_time)
            if len(late):
                taken.late[source.name] = len(late)
                taken.oldest_late[source.name] = int(times[late].min())
                self._set_aside(taken, source, batch, LATE, late, watermark)
            if keep is not None:
                on_time &= keep
                self._set_aside(taken, source, batch, NO_EVENT_TIME, np.flatnonzero(~keep))
            order = np.flatnonzero(on_time)
            times = times[order]
        if not rising:
            by_time = np.argsort(times, kind="stable")
            times = times[by_time]
            order = by_time if order is None else order[by_time]
        if len(times):
            taken.newest[source.name] = int(times[-1])
        taken.rows[source.name] = SourceRows(times, _arranged(columns, order))

    def dropped_of(
        self, batches: Mapping[str, Batch], sources: Iterable[str], clock: Clock
    ) -> Batches:
        """Rows of ``sources`` that were set aside in a push that was made elsewhere."""
        taken = Batches({}, {}, {}, {}, {}, 0)
        for name in sources:
            source = self.sources[name]
            late = self.late_before(source, clock)
            self.by_event_time(source, as_batch(name, batches[name]), late, taken)
        return taken

    def rows_of(self, name: str, batch: Batch, clock: Clock) -> SourceRows:
        """The rows of a batch of the source ``name`` that are on time by ``clock``, in order."""
        taken = Batches({}, {}, {}, {}, {}, 0)
        source, batch = self.sources[name], as_batch(name, batch)
        if self._by_rows:
            self.by_arrival([(source, batch)], 0, taken)
        else:
            self.by_event_time(source, batch, self.late_before(source, clock), taken)
        return taken.rows[name]

    def event_times(self, name: str, batch: Any) -> Int64s:
        """The event times of a batch of the source ``name``, in ticks; 0 where there is none."""
        source = self.sources[name]
        assert source.event_time is not None
        column = as_batch(name, batch).column(source.event_time)
        if isinstance(column, pa.ChunkedArray):
            column = _in_one_piece(column)
        return self._times(source, {source.event_time: column}, Batches({}, {}, {}, {}, {}, 0))[0]

    def _set_aside(
        self,
        taken: Batches,
        source: Source,
        batch: Batch,
        reason: str,
        rows: Int64s,
        watermark: int | None = None,
    ) -> None:
        """Keep the ``rows`` of ``batch`` that are dropped, if they are to be kept."""
        if self._keep_dropped:
            whole = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
            found = whole.take(pa.array(rows))
            taken.dropped.append(Dropped(source.name, reason, found, watermark))

    def ticks_of(self, source: Source) -> int | None:
        """Ticks for one unit of the event times of ``source``, if they need no cast."""
        if source.event_time is None:
            return None
        type_ = source.schema.field(source.event_time).type
        if type_ == pa.int64():
            return self._ticks
        if pa.types.is_timestamp(type_):
            return _PER_SECOND[self._unit] // _PER_SECOND[type_.unit]
        return None

    def by_arrival(self, ordered: list[tuple[Source, Batch]], place: int, taken: Batches) -> None:
        """Take in the batches of a push on the arrival line, from ``place`` on."""
        moving = [(s, b) for s, b in ordered if not s.is_static and len(b)]
        with_arrival = [ARRIVAL in _names(s, b) for s, b in moving]
        if any(with_arrival) and not all(with_arrival):
            lacking = next(
                s.name for (s, _), has in zip(moving, with_arrival, strict=True) if not has
            )
            raise InputError(
                f"the batch of {lacking} has no column {ARRIVAL!r}, but others of this push do: "
                "give it to all or to none"
            )
        kinds: set[str] = set()
        sort_keys: list[Int64s] = []
        kept: list[tuple[Source, dict[str, pa.Array], Int64s | None]] = []
        for source, batch in ordered:
            columns = self._columns(source, batch)
            if source.is_static:
                taken.rows[source.name] = _static(columns, len(batch))
                continue
            if len(batch) == 0:
                continue
            if any(with_arrival):
                keys, kind = _arrival_numbers(source, batch)
                kinds.add(kind)
                if len(kinds) > 1:
                    raise InputError(
                        f"column {ARRIVAL!r} holds integers in one batch and timestamps in another"
                    )
                keep = None
            else:
                keys, keep, _ = self._times(source, columns, taken)
                if keep is not None:
                    self._set_aside(taken, source, batch, NO_EVENT_TIME, np.flatnonzero(~keep))
            order = None if keep is None else np.flatnonzero(keep)
            sort_keys.append(keys if order is None else keys[order])
            kept.append((source, columns, order))
        if not kept:
            return
        everyone = np.concatenate(sort_keys)
        ranks = np.empty(len(everyone), np.int64)
        ranks[np.argsort(everyone, kind="stable")] = np.arange(len(everyone))
        start = 0
        for (source, columns, order), keys in zip(kept, sort_keys, strict=True):
            births = ranks[start : start + len(keys)] + place
            start += len(keys)
            if not ring.is_sorted(births):
                by_place = np.argsort(births)
                births = births[by_place]
                order = by_place if order is None else order[by_place]
            taken.rows[source.name] = SourceRows(births, _arranged(columns, order))
            if len(births):
                taken.newest[source.name] = int(births[-1])
        taken.places = len(everyone)

    def _times(
        self, source: Source, columns: Mapping[str, pa.Array], taken: Batches
    ) -> tuple[Int64s, NDArray[np.bool_] | None, tuple[int, int, bool]]:
        """Event times in ticks, which rows have one (None: all), and a survey of the times."""
        name = source.event_time
        if name is None:
            raise InputError(
                f"the batch of {source.name} has neither a column {ARRIVAL!r} nor an event time "
                "to put its rows in order"
            )
        column = columns[name]
        keep = None
        if column.null_count:
            keep = validity_of(column)
            taken.null_time[source.name] = column.null_count
            column = column.fill_null(0)
        if pa.types.is_timestamp(column.type):
            if column.type.unit != self._unit:
                column = _cast(source, column, pa.timestamp(self._unit, column.type.tz))
            ticks = 1
        else:
            if column.type != pa.int64():
                column = _cast(source, column, pa.int64())
            ticks = self._ticks
        times = numbers_of(column, np.int64, 8)
        if len(times) == 0:
            return np.array(times), keep, (0, 0, True)
        lowest, highest, rising = ring.survey(times)
        if max(-lowest, highest) > FARTHEST // ticks:
            raise InputError(
                f"an event time of {source.name}.{name} is too far away to be counted in "
                f"{self._unit}, the finest time unit of this query"
            )
        seen = (lowest * ticks, highest * ticks, rising)
        return times * ticks if ticks != 1 else np.array(times), keep, seen

    def _columns(self, source: Source, batch: Batch) -> dict[str, pa.Array]:
        """The columns that the query reads, in one piece and of the declared types."""
        columns = {}
        for name, position, expected in self.layout_of(source, batch):
            column = batch.column(position)
            if isinstance(column, pa.ChunkedArray):
                column = _in_one_piece(column)
            columns[name] = column if expected is None else column.cast(expected)
            HELD.give()
        return columns

    def layout_of(self, source: Source, batch: Batch) -> Layout:
        """Positions in ``batch`` of the columns that are read; the same object for like batches."""
        known = self._layouts.get(source.name)
        if known is None or not (known[0] is batch.schema or known[0].equals(batch.schema)):
            known = self._layouts[source.name] = (batch.schema, self._layout(source, batch))
        return known[1]

    def _layout(self, source: Source, batch: Batch) -> Layout:
        layout = []
        for name in source.columns:
            position = batch.schema.get_field_index(name)
            if position < 0:
                names = _names(source, batch)
                have = ", ".join(names) or "none"
                if names.count(name) > 1:
                    raise InputError(
                        f"the batch of {source.name} has more than one column {name!r}"
                    )
                raise InputError(
                    f"the batch of {source.name} has no column {name!r}; its columns are: {have}"
                )
            found, expected = batch.schema.field(position).type, source.schema.field(name).type
            plain = found.value_type if pa.types.is_dictionary(found) else found
            if found != expected and not (_is_text(expected) and _is_text(plain)):
                raise UnlikeDeclaredError(
                    f"column {name!r} of {source.name} is of type {found}; "
                    f"the query was given {expected}"
                )
            layout.append((name, position, None if found == expected else expected))
        return layout

    def _unknown(self, name: Any) -> InputError:
        known = ", ".join(self.sources)
        close = difflib.get_close_matches(str(name), self.sources, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        return InputError(f"unknown stream {name!r}; the query reads: {known}{hint}")


class UnlikeDeclaredError(InputError):
    """A batch is not a table of the declared types, and might be made one."""


def _source_of(name: str, readers: Sequence[Reader]) -> Source:
    stream = readers[0].stream
    columns = [column for reader in readers for column in reader.needed]
    if stream.event_time is not None:
        columns.append(stream.event_time)
    return Source(
        name,
        stream.schema,
        stream.event_time,
        tuple(dict.fromkeys(columns)),
        all(reader.stream.is_static for reader in readers),
    )


def _names(source: Source, batch: Batch) -> list[str]:
    """The names of the columns of ``batch``."""
    try:
        return list(batch.schema.names)
    except UnicodeDecodeError:
        raise InputError(f"a name of a column of {source.name} is not UTF-8") from None


def no_dict(batches: Any, sources: Iterable[str]) -> InputError:
    """The error for ``batches`` that are not given by source."""
    example = next(iter(sources), "A")
    return InputError(
        f"push takes a dict of stream name to batch, such as {{{example!r}: batch}}; found "
        f"{type(batches).__name__}"
    )


def as_batch(name: str, batch: Any) -> Batch:
    """``batch`` of the stream ``name`` as a pyarrow Table or RecordBatch."""
    if isinstance(batch, pa.Table | pa.RecordBatch):
        return batch
    if hasattr(batch, "__arrow_c_stream__") or hasattr(batch, "__arrow_c_array__"):
        try:
            table = pa.table(batch)
            table.validate(full=True)
            return table
        except (pa.ArrowException, TypeError, ValueError) as problem:
            raise InputError(f"the batch of {name} is not a table: {problem}") from None
    raise UnlikeDeclaredError(
        f"the batch of {name} is {_in_words(batch)}; give a pyarrow Table or RecordBatch, a pandas "
        "or polars DataFrame, a list of dicts, or a dict of columns"
    )


def _in_words(batch: Any) -> str:
    """Name of the type of ``batch``, where it is none that can be taken."""
    if isinstance(batch, list | tuple) and batch:
        other = next((row for row in batch if not isinstance(row, Mapping)), batch[0])
        return f"a {type(batch).__name__} with a value of type {type(other).__name__}"
    lazy = "; collect() it" if hasattr(batch, "collect") else ""
    return f"of type {type(batch).__name__}{lazy}"


def _in_one_piece(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.num_chunks == 0:
        return pa.nulls(0, column.type)
    try:
        return pa.concat_arrays(column.chunks)
    except pa.ArrowInvalid as problem:
        raise InputError(f"the chunks of a column cannot be put together: {problem}") from None


def _is_text(type_: pa.DataType) -> bool:
    """Strings in any layout: they may come in another than declared."""
    is_text = (
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_string_view(type_)
    )
    return bool(is_text)


def _cast(source: Source, column: pa.Array, type_: pa.DataType) -> pa.Array:
    try:
        return column.cast(type_)
    except pa.ArrowInvalid as problem:
        raise InputError(f"an event time of {source.name} is out of range: {problem}") from None


def _arrival_numbers(source: Source, batch: Batch) -> tuple[Int64s, str]:
    """The column ``arrival`` as integers, and what it counts."""
    if _names(source, batch).count(ARRIVAL) > 1:
        raise InputError(f"the batch of {source.name} has more than one column {ARRIVAL!r}")
    column = batch.column(ARRIVAL)
    if isinstance(column, pa.ChunkedArray):
        column = _in_one_piece(column)
    if column.null_count:
        raise InputError(f"column {ARRIVAL!r} of {source.name} must not be NULL")
    try:
        if pa.types.is_timestamp(column.type):
            nanoseconds = column.cast(pa.timestamp("ns", column.type.tz))
            return np.array(numbers_of(nanoseconds, np.int64, 8)), "timestamps"
        if pa.types.is_integer(column.type):
            return np.array(numbers_of(column.cast(pa.int64()), np.int64, 8)), "integers"
    except pa.ArrowInvalid as problem:
        raise InputError(
            f"a value of column {ARRIVAL!r} of {source.name} is out of range: {problem}"
        ) from None
    raise InputError(
        f"column {ARRIVAL!r} of {source.name} is of type {column.type}; "
        "it must be an integer or a timestamp"
    )


def _static(columns: dict[str, pa.Array], count: int) -> SourceRows:
    return SourceRows(np.full(count, BEGINNING, np.int64), columns)


def _arranged(columns: dict[str, pa.Array], order: Int64s | None) -> dict[str, pa.Array]:
    if order is None:
        return columns
    indices = pa.array(order)
    return {name: pc.take(values, indices) for name, values in columns.items()}
