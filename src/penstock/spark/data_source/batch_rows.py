"""The rows of a batch as one cell sees them: read from the sources, routed, with the news of all.

Every cell reads what its placement and its clock need of all rows, and keeps its own. So each of
them knows the newest event times of the whole batch, and no rows are sent from one to another.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.cells.router import Router
from penstock.sources.ledger import Note
from penstock.sources.portion import Portions
from penstock.spark.data_source.lane import Lane


@dataclass(slots=True)
class BatchRows:
    """What a cell takes in with one push."""

    newest: Mapping[str, int] = field(default_factory=dict)
    """The newest event time of each source so far, in ticks."""
    rows: Mapping[str, pa.Table] = field(default_factory=dict)

    def tables(self) -> Mapping[str, pa.Table]:
        return self.rows


@dataclass(frozen=True, slots=True)
class Reading:
    """The rows of one entry for one cell, and what was seen of all of them."""

    rows: Mapping[str, pa.Table]
    note: Note
    unrouted: Mapping[str, int] = field(default_factory=dict)
    """Rows that belong to no cell, by source; cell 0 tells them."""
    timeless: Mapping[str, pa.Table] = field(default_factory=dict)
    """Rows without an event time, where there are several cells: where they would go depends on
    their values, so cell 0 tells them. One cell alone leaves that to its engine."""


class BatchReader:
    """Reads the portions of batches for cell ``number`` of ``lane``."""

    def __init__(self, lane: Lane, number: int) -> None:
        self._lane = lane
        self._number = number
        self._router = Router(lane.query, lane.placement)

    def read(
        self,
        portions: Portions,
        before: Note,
        only: Collection[str] | None = None,
        again: bool = False,
    ) -> Reading:
        """The rows of ``portions``, of the sources in ``only`` if given; ``before`` is the note of
        the entry before, which the new note goes on from. ``again`` if they were read before."""
        lane = self._lane
        rows, own, counts, unrouted = {}, {}, {}, {}
        timeless: dict[str, pa.Table] = {}
        for name in lane.query.sources:
            if portions.get(name) is None or (only is not None and name not in only):
                continue
            table = lane.sources[name].read(portions[name], lane.columns[name], again)
            counts[name] = _counted(lane, name, table)
            newest = _newest(lane, name, table)
            if newest is not None:
                own[name] = newest
            table = self._timed(name, table, timeless)
            rows[name] = self._own(name, table)
            if self._number == 0 and not again:
                unrouted[name] = self._unrouted(name, table)
        cumulative = dict(before.newest)
        for name, newest in own.items():
            cumulative[name] = max(newest, cumulative.get(name, newest))
        return Reading(rows, Note(cumulative, own, counts, dict(lane.clocks)), unrouted, timeless)

    def in_ticks(self, note: Note) -> dict[str, int]:
        """The newest event times of ``note`` in ticks of the query."""
        return {name: at // self._lane.nanoseconds for name, at in note.newest.items()}

    def _unrouted(self, name: str, table: pa.Table) -> int:
        """Rows that belong to no cell, if there are several."""
        if self._lane.placement.cells == 1 or not len(table):
            return 0
        whole = table.combine_chunks()
        columns = {c: whole.column(c).chunk(0) for c in whole.column_names}
        return int(np.count_nonzero(self._router.first_cells(name, columns, len(whole)) < 0))

    def _timed(self, name: str, table: pa.Table, timeless: dict[str, pa.Table]) -> pa.Table:
        """The rows of ``table`` that have an event time, if there are several cells; the others go
        to ``timeless``."""
        column = self._lane.clocks.get(name)
        if column is None or self._lane.placement.cells == 1 or self._lane.query.by_rows:
            return table
        if not table.column(column).null_count:
            return table
        timed = pc.is_valid(table.column(column))
        timeless[name] = table.filter(pc.invert(timed))
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


def _newest(lane: Lane, name: str, table: pa.Table) -> int | None:
    """The newest event time in nanoseconds."""
    column = lane.clocks.get(name)
    if column is None or lane.query.by_rows:
        return None
    newest = pc.max(table.column(column))
    if not newest.is_valid:
        return None
    if pa.types.is_timestamp(newest.type):
        nanoseconds = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[newest.type.unit]
        return int(newest.value) * nanoseconds
    return int(newest.as_py()) * 10**6


def _counted(lane: Lane, name: str, table: pa.Table) -> int:
    """Rows that have a place on the time line."""
    column = lane.clocks.get(name)
    if not lane.query.by_rows or lane.by_arrival or column is None:
        return len(table)
    return len(table) - int(table.column(column).null_count)
