"""A state: the stored composites of a set of streams, indexed by what their consumer probes.

A composite is the leaf rows that it is made of: 28 bytes for two streams with one index. It lives
as long as all of them do, so it needs no lifespan of its own: what is found is dated from the leaf
windows, whose deaths are always up to date, also on the arrival line (ROWS), where a death becomes
known only when it happens. Composites do not die in the order in which they were made: the tail
waits for the oldest, and when many are dead the rest is packed together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.compiled_state import CompiledState
from penstock.engine.state.composites import Composites
from penstock.engine.state.hash_factor import SEED
from penstock.engine.state.incomplete import Incomplete
from penstock.engine.state.indexed_rows import IndexedRows
from penstock.engine.state.leaf_window import LeafWindow, Lull, date
from penstock.engine.state.rows import LEAP, Rows
from penstock.kernels import pairs, ring
from penstock.plan.stream_set import StreamSet
from penstock.values.wiring import KeyColumn

Int64s = NDArray[np.int64]

_PIECE_ROWS = 1 << 14
"""Rows that are dated at a time: their dates stay in the cache."""
_FEWEST_ROWS_TO_COMPLETE = 1 << 10
"""Rows that a state has room for while it is being completed, at least: more will come soon, and
whenever it moves, the compiled push has to be written down anew."""
_FIRST_ROWS_TO_COMPLETE = 1 << 12
"""Rows that it has room for from the change of plan on: some pushes of a thousand rows."""
_FEW_OF_ALL = 8
"""Times as many rows as it holds that a state makes room for ahead of time, at least."""
_SMALL_SHARE = 0.1
"""The share of its combinations with which a state must get its room: where a push brings more, to
move all of it later takes as long as a push or two."""
_SAMPLE_ROWS = 1 << 10
"""Rows of a large state that are looked at before all of them are."""
_MOSTLY_ALIVE = 0.4
"""The share of a sample alive from which on nothing is packed: less than a third alive is, and a
sample is some hundredths off."""


class CompositeState(IndexedRows):
    """Composites over ``streams``, with their indexes."""

    def __init__(self, streams: StreamSet, leaves: Mapping[str, LeafWindow]) -> None:
        self.streams = streams
        self.missing: Incomplete | None = None
        """Combinations that are not there since a change of plan."""
        super().__init__(Rows(dated=False))
        self._leaves = {alias: leaf for alias, leaf in leaves.items() if alias in streams}
        self.id_columns = {alias: self.rows.add_column(np.int64) for alias in self._leaves}
        self._lows: list[int] = []
        """The tails of the leaves when the rows of which a part is gone were last let go of."""
        self._compiled = CompiledState(
            self.rows, list(self.id_columns.values()), self._leaves, self._indexes
        )

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self._compiled.nbytes

    def _entries(self, keys: tuple[KeyColumn, ...], rows: Int64s) -> tuple[Int64s, Int64s | None]:
        return key_values(keys, self.resolve(rows), self._leaves), None

    def append(self, new: Composites) -> None:
        """Store ``new`` and put it into every index."""
        self.append_ids(new.ids)

    def append_ids(self, ids: Mapping[str, Int64s]) -> None:
        """Store the composites ``ids`` and put them into every index."""
        count = len(next(iter(ids.values())))
        self.make_room(count)
        self._compiled.append(ids, count)

    def make_room(self, count: int) -> None:
        """Make room for ``count`` more composites."""
        if not self.rows.has_room(count):
            self._grow(count)
        self.rows.reserve(count)

    def table(self) -> list[int]:
        """Addresses of columns and indexes: for appending in a compiled call."""
        return self._compiled.table()

    def make_room_to_complete(self) -> None:
        """Make room for the first rows that are completed: all states together, since whenever one
        moves in a push, the compiled push has to be written down anew."""
        self.rows.reserve(_FIRST_ROWS_TO_COMPLETE)

    def make_room_ahead(self) -> None:
        """Make room for all rows that there will be, while those that have to move are few, and few
        of them dead, so that it can be told: to be called between pushes, while combinations are
        missing."""
        rows = self.rows
        if len(rows) < _FIRST_ROWS_TO_COMPLETE:
            return
        ahead = self._rows_ahead(len(rows))
        if rows.capacity < ahead > _FEW_OF_ALL * len(rows):
            with suppress(MemoryError):  # Then it grows when it has to.
                rows.reserve(rows.capacity - len(rows) + 1, ahead, 2 * LEAP)

    def _rows_ahead(self, rows: int) -> int:
        """Rows that the ring will hold, if it holds so many ``rows`` now.

        While both windows fill, their combinations become more with the square of the time; and
        half of the rows of a full state are dead as a rule. What is completed stands behind new
        rows that outlive it, so that it is held, dead or not, until a window has passed: as many
        rows once more as are alive.
        """
        if self.missing is None:
            return 2 * rows
        return int(3 * rows / self.missing.share_there)

    def _grow(self, count: int) -> None:
        """Make room for ``count`` more rows, and those that may follow."""
        if self.missing is None:
            self.rows.reserve(count, self._rows_ahead(len(self.rows) + count))
            return
        count = max(count, _FEWEST_ROWS_TO_COMPLETE)
        expected = self._rows_ahead(len(self.rows) + count)
        if self.missing.share_there < _SMALL_SHARE:
            # In the middle of a push windows have all of its rows, and this state does not yet.
            expected = expected * 4 // 3
        self.rows.reserve(count, expected, 2 * LEAP)

    def resolve(self, rows: Int64s) -> dict[str, Int64s]:
        """The leaf rows that the composites in ``rows`` are made of."""
        return {alias: self.rows.take(column, rows) for alias, column in self.id_columns.items()}

    def resolve_whole(self, rows: Int64s) -> tuple[dict[str, Int64s], Int64s | None]:
        """The same for those of which no part is hidden in its leaf, and their positions among
        ``rows``; None if these are all.

        A composite of many streams dies long before it is cleared away. To join it would make more
        that is dead, and so on with every join above.
        """
        count = len(rows)
        whole, hidden = np.ones(count, np.bool_), 0
        ids = {}
        for alias, column in self.id_columns.items():
            ids[alias] = np.empty(count, np.int64)
            low = self._leaves[alias].rows.low
            hidden += ring.take_since(
                self.rows.columns[column], self.rows.mask, rows, low, ids[alias], whole
            )
        if hidden == 0:
            return ids, None
        positions = np.flatnonzero(whole)
        return {alias: ring.pick(each, positions) for alias, each in ids.items()}, positions

    def visible(self, bound: int) -> Int64s:
        """The rows that a probe up to ``bound`` may see."""
        return np.arange(self.rows.low, bound, dtype=np.int64)

    def lifespans(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Births and deaths of the composites in ``rows``; those that are gone have none."""
        found = date(self.resolve(rows), self._leaves)
        return found.births, found.deaths

    def hide(self) -> None:
        """Let probes skip the oldest rows of which a part is hidden in its leaf."""
        lows = [leaf.rows.low for leaf in self._leaves.values()]
        if lows != self._lows:  # Else all that is hidden in a leaf is gone.
            self.rows.low = self._compiled.first_whole(self.rows.low, lows)

    def expire(self, before: int, lull: Lull | None = None) -> None:
        """Let go of rows of which a part is gone; the leaf windows have been seen to already.

        The ``lull`` is as for these.
        """
        rows = self.rows
        tails = [leaf.rows.tail for leaf in self._leaves.values()]
        if tails != self._lows:
            rows.advance(self._compiled.first_whole(rows.tail, tails))
            self._lows = tails
        is_due = lull is not None or rows.is_worth_a_check()
        if is_due and not self._are_mostly_wanted(before, lull):
            alive = np.concatenate(list(self._wanted(before, lull)))
            if rows.is_worth_packing(alive):
                rows.pack(alive)
        rows.fit()

    def forget_made_of(self, alias: str, marked: NDArray[np.uint8]) -> int:
        """Forget the composites, as if a part were gone, of which the row of ``alias`` is
        ``marked``, by its place in the ring of the leaf; how many."""
        rows, own = self.rows, self._leaves[alias].rows
        column = rows.columns[self.id_columns[alias]]
        count: int = ring.forget_marked(
            column, rows.mask, rows.tail, rows.head, own.tail, marked, own.mask
        )
        return count

    def forget(self, rows: Int64s) -> None:
        """Forget the composites in ``rows``, as if a part of each were gone."""
        column = next(iter(self.id_columns.values()))
        self.rows.columns[column][rows & self.rows.mask] = -1

    def whole_rows(self) -> Int64s:
        """The rows of which no part is gone."""
        rows = np.arange(self.rows.tail, self.rows.head, dtype=np.int64)
        whole = np.ones(len(rows), np.bool_)
        for alias, ids in self.resolve(rows).items():
            whole &= ids >= self._leaves[alias].rows.tail
        return rows if whole.all() else rows[whole]

    def pack_forgotten(self) -> None:
        """Give the memory of rows back of which a part is gone, if most are such rows."""
        rows = self.rows
        tails = [leaf.rows.tail for leaf in self._leaves.values()]
        rows.advance(self._compiled.first_whole(rows.tail, tails))
        alive = self.whole_rows()
        rows.note_alive(len(alive))
        if 2 * len(alive) < len(rows):
            rows.pack(alive)
        rows.fit()

    def _wanted(self, before: int, lull: Lull | None) -> Iterator[Int64s]:
        """The rows that are wanted, a piece at a time: new memory for a million dates takes longer
        than to look at them."""
        rows = self.rows
        yield np.empty(0, np.int64)
        for start in range(rows.tail, rows.head, _PIECE_ROWS):
            piece = np.arange(start, min(start + _PIECE_ROWS, rows.head), dtype=np.int64)
            yield piece[self._are_wanted(piece, before, lull)]

    def _are_mostly_wanted(self, before: int, lull: Lull | None) -> bool:
        """Whether a sample says that so many rows are alive that packing is out of the question:
        to look at a million takes as long as many a push."""
        rows = self.rows
        if len(rows) < _PIECE_ROWS:
            return False
        sample = np.arange(rows.tail, rows.head, len(rows) // _SAMPLE_ROWS, dtype=np.int64)
        share = float(np.mean(self._are_wanted(sample, before, lull)))
        if share < _MOSTLY_ALIVE:
            return False
        rows.note_alive(int(share * len(rows)))
        return True

    def _are_wanted(
        self, living: Int64s, before: int, lull: Lull | None = None
    ) -> NDArray[np.bool_]:
        births, deaths = self.lifespans(living)
        wanted: NDArray[np.bool_] = (deaths >= before) & (births <= deaths)
        if lull is not None:
            wanted &= (births <= lull[0]) | (deaths >= lull[1])
        return wanted

    def renumber(self, alias: str, mapping: Int64s, first: int) -> None:
        """Leaf row ``r`` of ``alias`` is now ``mapping[r - first]``; -1 where it is gone."""
        renumber(self.rows, self.id_columns[alias], mapping, first)


def renumber(rows: Rows, column: int, mapping: Int64s, first: int) -> None:
    """Leaf rows in a column of ids have new numbers; those that are gone become -1."""
    living = np.arange(rows.tail, rows.head, dtype=np.int64)
    old = rows.take(column, living)
    new = np.full(len(old), -1, np.int64)
    known = (old >= first) & (old < first + len(mapping))
    new[known] = mapping[old[known] - first]
    rows.put(column, rows.tail, new)


def key_values(
    keys: tuple[KeyColumn, ...], ids: Mapping[str, Int64s], leaves: Mapping[str, LeafWindow]
) -> Int64s:
    """The value of one key column, or the hash of several, for composites given by ``ids``.

    The values of consecutive rows are not gathered but read where they lie.
    """
    if len(keys) == 1:
        (key,) = keys
        leaf, rows = leaves[key.stream], ids[key.stream]
        own = leaf.rows
        column = own.columns[leaf.key_column(key.position)]
        if is_run(rows):
            slot = int(rows[0]) & own.mask
            if slot + len(rows) <= own.capacity:
                return column[slot : slot + len(rows)]
        values: Int64s = ring.take(column, own.mask, rows)
        return values
    hashes = np.full(len(ids[keys[0].stream]), SEED)
    for key in keys:
        leaf = leaves[key.stream]
        column = leaf.rows.columns[leaf.key_column(key.position)]
        pairs.mix_into(hashes, column, leaf.rows.mask, ids[key.stream])
    return hashes


def is_run(rows: Int64s) -> bool:
    """Whether ``rows`` are consecutive, as the new rows of a leaf are if none was left out."""
    count = len(rows)
    if count == 0 or rows[-1] - rows[0] != count - 1:
        return False
    return count <= 2 or ring.is_run(rows)
