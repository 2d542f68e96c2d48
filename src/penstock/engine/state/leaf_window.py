"""The window of one stream: its living tuples in arrival order.

A tuple that can be in no result (:mod:`penstock.engine.state.row_encoder`) is not kept. On the
arrival line all tuples count for the window, so there they are kept, but in no index and in no
delta.

On the arrival line, birth is the tuple's place. When tuples die is the rule of the kind of window
(:mod:`penstock.engine.state.lifespan`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.state.arrival import Arrival, SourceRows
from penstock.engine.state.asleep import Asleep
from penstock.engine.state.composites import Composites
from penstock.engine.state.hash_factor import SEED
from penstock.engine.state.indexed_rows import IndexedRows
from penstock.engine.state.lifespan import lifespan_of
from penstock.engine.state.payload import Payload
from penstock.engine.state.plain_append import PlainAppend
from penstock.engine.state.ring_files import PAYLOAD
from penstock.engine.state.row_encoder import RowEncoder
from penstock.engine.state.rows import BIRTH, DEATH, Rows
from penstock.engine.state.seen_at import SeenAt
from penstock.engine.state.spill_files import SpillFiles
from penstock.kernels import lifespan, pairs, ring
from penstock.plan.stream_set import StreamSet
from penstock.query.expression import Expression
from penstock.query.join_graph import Stream
from penstock.values.interner import Interner
from penstock.values.wiring import KeyColumn, Wiring

Int64s = NDArray[np.int64]
Lull = tuple[int, int]
"""Two instants: rows that were born after the first and died before the second are not needed."""
Bools = NDArray[np.bool_]


def date(ids: Mapping[str, Int64s], leaves: Mapping[str, LeafWindow]) -> Composites:
    """Composites with the lifespans that their rows have by now; empty ones are not removed."""
    count = len(next(iter(ids.values())))
    births, deaths = np.empty((2, count), np.int64)
    births.fill(lifespan.BEGINNING)
    deaths.fill(lifespan.FOREVER)
    for stream, rows in ids.items():
        leaves[stream].bring_together(births, deaths, rows)
    return Composites(ids, births, deaths)


class LeafWindow(IndexedRows):
    """The living tuples of ``stream``."""

    missing: None = None
    """A window lacks nothing."""

    def __init__(
        self,
        stream: Stream,
        wiring: Wiring,
        payload: Sequence[str],
        interners: Mapping[int, Interner],
        by_rows: bool,
        ticks_per_millisecond: int,
    ) -> None:
        self.stream = stream
        self.streams = StreamSet.of(stream.alias)
        self.by_rows = by_rows
        super().__init__(Rows())
        self.encoder = RowEncoder(stream, wiring, interners)
        """The part that chooses rows and makes their keys."""
        self.key_count = len(self.encoder.expressions)
        """Number of encoded columns."""
        self._key_columns = [self.rows.add_column(np.int64) for _ in range(self.key_count)]
        self.lifespan = lifespan_of(stream, self.rows, ticks_per_millisecond)
        """The rule by which its tuples die."""
        self.span = self.lifespan.span
        """Time that a tuple lives, at least: ticks, or on the arrival line places."""
        kept = list(dict.fromkeys([*payload, *self.lifespan.reads]))
        self.payload = Payload(self.rows, stream.schema, kept)
        self._chosen = self.rows.add_column(np.bool_) if by_rows else None
        self.needed = tuple(dict.fromkeys([*self.encoder.columns, *self.payload.columns]))
        """Names of the columns that are read."""
        is_plain = not stream.is_static and self.lifespan.partition is None
        self.direct_keys = self.encoder.direct_keys if is_plain else None
        """The columns that are keys, if rows need not be prepared (:meth:`prepare`)."""
        self.append_plain = PlainAppend(
            self.rows,
            self._key_columns,
            self.payload,
            self._indexes,
            self.lifespan,
            self._chosen,
        )
        self._asleep: Asleep | None = None
        self.seen_at: SeenAt | None = None
        """When its rows came, if somebody needs to know."""

    @property
    def asleep(self) -> Asleep:
        """The rows that are asleep; none is before this is first used."""
        if self._asleep is None:
            self._asleep = Asleep(self.rows)
        return self._asleep

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        seen_at = 0 if self.seen_at is None else self.seen_at.nbytes
        return self.rows.nbytes + self.payload.nbytes + self.lifespan.nbytes + seen_at

    # -- on disk -----------------------------------------------------------------------------

    def bytes_of(self, kind: int) -> int:
        """Bytes in memory that can go to disk, of a kind
        (:mod:`penstock.engine.state.ring_files`)."""
        return self.rows.bytes_of(kind) + (self.payload.nbytes if kind == PAYLOAD else 0)

    @property
    def bytes_away(self) -> int:
        """Bytes that are in files, not in memory."""
        return self.rows.bytes_away + self.payload.bytes_away

    def spill(self, kind: int, share: float, files: SpillFiles) -> bool:
        """Move the oldest ``share`` of the rows of which that kind is in memory to ``files``; False
        if there is not enough room in them."""
        if kind == PAYLOAD:
            return self.payload.spill(self.rows.row_after(share, self.payload.cold), files)
        return self.rows.spill_share(kind, share, files)

    def let_go(self) -> None:
        """Let memory go that the push has read or written of rows that are on disk."""
        self.rows.let_go()
        self.payload.let_go()

    @property
    def fixed_span(self) -> int | None:
        """Ticks that every tuple lives, if that is known at its birth."""
        return self.lifespan.fixed_span

    @property
    def is_unbounded(self) -> bool:
        """Whether tuples come and never die."""
        return self.span == lifespan.FOREVER and not self.stream.is_static

    @property
    def flags(self) -> Bools | None:
        """On the arrival line: which rows may be in results, in a ring."""
        return None if self._chosen is None else self.rows.columns[self._chosen]

    def chosen(self, rows: Int64s) -> Bools | None:
        """On the arrival line: which of ``rows`` may be in results."""
        return None if self._chosen is None else self.rows.take(self._chosen, rows)

    def number_chosen(self, start: int, stop: int) -> int:
        """Rows from ``start`` to ``stop`` that may be in results."""
        flags = self.flags
        if flags is None or start == stop:
            return stop - start
        return sum([int(np.count_nonzero(each)) for each in self._between(flags, start, stop)])

    def chosen_until(self, stop: int) -> Bools | None:
        """Mask of the rows from the tail to ``stop`` that may be in results; None if all."""
        flags = self.flags
        return None if flags is None else np.concatenate(self._between(flags, self.rows.tail, stop))

    def _between(self, flags: Bools, start: int, stop: int) -> tuple[Bools, Bools]:
        """The flags of rows, up to the end of the ring and from its beginning."""
        first = start & self.rows.mask
        end = first + stop - start
        return flags[first:end], flags[: max(0, end - len(flags))]

    def key_column(self, position: int) -> int:
        """The column of ``rows`` that holds encoded column ``position``."""
        return self._key_columns[position]

    def key_expression(self, position: int) -> Expression:
        """The expression whose keys encoded column ``position`` holds."""
        return self.encoder.expressions[position]

    def key_name(self, position: int) -> str:
        """Encoded column ``position`` as it stands in the query."""
        return str(self.encoder.expressions[position])

    def _entries(self, keys: tuple[KeyColumn, ...], rows: Int64s) -> tuple[Int64s, Int64s | None]:
        own = self.rows
        columns = {k.position: own.take(self.key_column(k.position), rows) for k in keys}
        flags = self.chosen(rows)
        chosen = None if flags is None or flags.all() else np.flatnonzero(flags)
        return _key_of(keys, columns), chosen

    # -- a push ------------------------------------------------------------------------------

    def prepare(self, source: SourceRows) -> Arrival:
        """Filter and encode the rows of a push, changing nothing but interners."""
        count = len(source)
        births, columns = source.births, source.columns
        payload = {name: columns[name] for name in self.payload.columns}
        partitions = self.lifespan.partitions_of(columns, count)
        chosen, keys = self.encoder.encode(columns, count)
        if chosen is None:
            return Arrival(births, keys, payload, None, partitions)
        if self.by_rows:
            spread = []
            for values in keys:
                everyone = np.zeros(count, np.int64)
                everyone[chosen] = values
                spread.append(everyone)
            return Arrival(births, spread, payload, chosen, partitions)
        indices = pa.array(chosen)
        return Arrival(
            ring.pick(births, chosen),
            keys,
            {name: values.take(indices) for name, values in payload.items()},
            None,
            None,
        )

    def append(self, new: Arrival) -> Composites:
        """Add the rows of a push; the delta: those that may be in results."""
        rows, start, count = self.rows, self.rows.head, len(new)
        if count:
            self.make_room(count, new.births[0], new.births[-1])
        stop = start + count
        deaths = self.lifespan.deaths(new.births)
        rows.put(BIRTH, start, new.births)
        rows.put(DEATH, start, deaths)
        for column, values in zip(self._key_columns, new.keys, strict=True):
            rows.put(column, start, values)
        ids = np.arange(start, stop, dtype=np.int64)
        self.payload.append(start, new.payload)
        chosen = None if new.chosen is None else new.chosen + start
        if self._chosen is not None:
            flags = rows.columns[self._chosen]
            ring.put(flags, rows.mask, start, np.full(count, chosen is None))
            if chosen is not None:
                flags[chosen & rows.mask] = True
        rows.head = stop
        for keys, index in self._indexes.items():
            if index.stop == start:
                rows.insert(index, start, _key_of(keys, new.keys), new.chosen)
        self.lifespan.stored(start, stop, new.partitions)
        if self._asleep is not None and self.by_rows:
            self._asleep.wake_run(start, count)  # Also those that are in no delta.
        if self.by_rows:
            ids = ids if chosen is None else chosen
            deaths = rows.take(DEATH, ids)
            if chosen is None:
                return Composites({self.stream.alias: ids}, new.births, deaths, True, start)
            births = rows.take(BIRTH, ids)
            return Composites({self.stream.alias: ids}, births, deaths)
        return Composites({self.stream.alias: ids}, new.births, deaths, True, start)

    @property
    def newest(self) -> int | None:
        """The latest birth that it holds, of the last row; None if it is empty."""
        rows = self.rows
        return int(rows.births[(rows.head - 1) & rows.mask]) if len(rows) else None

    def filling(self, now: int) -> float:
        """How many times more rows there will be when the window is full, if at the instant ``now``
        it is not yet."""
        rows = self.rows
        span = self.fixed_span
        if span is None or rows.tail > 0 or rows.head == 0:
            return 1.0
        return max(1.0, span / (now - int(rows.births[0]) + 1))

    def make_room(self, count: int, first: int, last: int) -> None:
        """For ``count`` more rows, the first and the last of which are born then."""
        rows = self.rows
        rows.reserve(count, 0 if rows.has_room(count) else self._expected(count, first, last))

    def _expected(self, count: int, first: int, last: int) -> int:
        """How many rows there will be when the window is full, if new ones go on as they do.

        Rows expire after a push, so those of a push come on top; and a 16th of a window may have
        passed before anybody looks.
        """
        rows, span = self.rows, self.fixed_span
        if span is None:
            return 0
        oldest = rows.births[rows.tail & rows.mask] if len(rows) else first
        elapsed = int(last) - int(oldest) + 1
        if not 0 < elapsed < span:
            return 0
        full = (len(rows) + count) * span // elapsed
        return full + (full >> 4) + count

    def undo(self, head: int) -> None:
        """Take back all rows from ``head`` on, and the deaths that they caused."""
        rows = self.rows
        self.lifespan.take_back(head)
        rows.truncate(head)
        self.payload.truncate(head)

    # -- what probes need --------------------------------------------------------------------

    def resolve(self, rows: Int64s) -> dict[str, Int64s]:
        """The leaf rows that ``rows`` are made of: themselves."""
        return {self.stream.alias: rows}

    def resolve_whole(self, rows: Int64s) -> tuple[dict[str, Int64s], None]:
        """The same: a probe finds no row that is hidden."""
        return {self.stream.alias: rows}, None

    def visible(self, bound: int) -> Int64s:
        """The rows that a probe up to ``bound`` may see."""
        seen = np.arange(self.rows.low, bound, dtype=np.int64)
        if self._chosen is None:
            return seen
        flags: Bools = self.rows.take(self._chosen, seen)
        return seen if flags.all() else seen[flags]

    def lifespans(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Births and deaths of ``rows``."""
        return self.rows.take(BIRTH, rows), self.rows.take(DEATH, rows)

    def bring_together(self, births: Int64s, deaths: Int64s, rows: Int64s) -> None:
        """Bring ``births`` up and ``deaths`` down to those of ``rows``."""
        self.lifespan.bring_together(births, deaths, rows)

    def shorten_by_id(self, found: Composites) -> None:
        """Bring deaths of ``found`` down to the present deaths of its rows of this stream."""
        rows = self.rows
        ids = found.ids[self.stream.alias]
        pairs.shorten(found.deaths, ids, rows.deaths, rows.mask, rows.tail)

    def delta_of_all(self) -> Composites:
        """All living rows that may be in results, as one delta."""
        ids = np.arange(self.rows.tail, self.rows.head, dtype=np.int64)
        flags = self.chosen(ids)
        if flags is not None:
            ids = ids[flags]
        return Composites(
            {self.stream.alias: ids}, self.rows.take(BIRTH, ids), self.rows.take(DEATH, ids)
        )

    # -- expiry ------------------------------------------------------------------------------

    def expire(self, before: int, lull: Lull | None = None) -> tuple[Int64s, int] | None:
        """Let go of rows whose death is before ``before``, and of those that lived in the ``lull``.

        When rows had to be renumbered: the new number of each old row from the returned first one
        on, -1 for those that are gone.
        """
        rows = self.rows
        rows.expire(before)
        renumbered = None
        if lull is not None or rows.is_worth_a_check():
            first, stop = rows.tail, rows.head
            alive = ring.alive_rows(rows.deaths, rows.mask, first, stop, before)
            if lull is not None:
                births, deaths = self.lifespans(alive)
                alive = alive[(births <= lull[0]) | (deaths >= lull[1])]
            if rows.is_worth_packing(alive):
                renumbered = self._pack(alive, first, stop)
        self.payload.drop_before(rows.tail)
        with suppress(MemoryError):  # The new numbers matter to others, whatever happens here.
            rows.fit()
        return renumbered

    def keep_only(self, rows: Int64s) -> tuple[Int64s, int]:
        """Let go of all rows but ``rows``; the new numbers, as for :meth:`expire`."""
        renumbered = self._pack(rows, self.rows.tail, self.rows.head)
        self.rows.note_alive(len(rows))
        return renumbered

    def _pack(self, alive: Int64s, first: int, stop: int) -> tuple[Int64s, int]:
        """Keep only the rows ``alive``, or for lack of memory all; the new numbers."""
        mapping = np.full(stop - first, -1, np.int64)
        mapping[alive - first] = np.arange(stop, stop + len(alive))
        payload = self.payload.kept(alive)
        self.rows.pack(alive)
        self.payload.adopt(payload, stop)
        self.lifespan.packed()
        return mapping, first


def _key_of(
    keys: tuple[KeyColumn, ...], columns: Sequence[Int64s] | Mapping[int, Int64s]
) -> Int64s:
    """The one key column, or the hash of several."""
    first = columns[keys[0].position]
    if len(keys) == 1:
        return first
    hashes = np.full(len(first), SEED)
    everyone = np.arange(len(hashes), dtype=np.int64)
    for key in keys:
        pairs.mix_into(hashes, columns[key.position], -1, everyone)
    return hashes
