"""A cell: one engine that sees its share of the tuples and the clock of the whole query.

On event time an engine tells late from on time by the newest event times it has seen. A cell sees
only some of the tuples, so before each push it is told the newest event times of the whole batch.
Its clock is then the one of a single engine that sees everything: late tuples, deaths and what
leaves are the same in every placement. It needs a push for every batch, also one without rows.

On the arrival line there is one cell, which sees everything anyway.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from penstock.cells.delivery import Delivery, from_chunk, to_chunk
from penstock.cells.placement import Placement
from penstock.cells.router import Router
from penstock.engine.engine import Engine
from penstock.query.join_graph import JoinGraph


@dataclass(frozen=True, slots=True)
class CellSettings:
    """What all cells of a query have in common.

    ``delays`` is the lateness in milliseconds of each source that has one; the others are never
    late. ``static`` has the rows of each static relation as a chunk.
    """

    query: JoinGraph
    placement: Placement
    plan: str = "auto"
    delays: Mapping[str, int] = field(default_factory=dict)
    static: Mapping[str, bytes] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def engine(self) -> Engine:
        """A new engine."""
        options = {**self.options, "keep_dropped": True}
        return Engine(self.query, plan=self.plan, lateness=self.lateness, **options)

    @property
    def lateness(self) -> dict[str, int] | None:
        """The lateness of each source in milliseconds, None on the arrival line."""
        return None if self.query.by_rows else dict(self.delays)


class Delivered(Protocol):
    """What reaches a cell in one push."""

    @property
    def newest(self) -> Mapping[str, int]:
        """The newest event time of each source in the whole batch, in ticks."""
        ...

    def tables(self) -> Mapping[str, pa.Table]:
        """The rows of the cell, by source."""
        ...


class Cell:
    """An engine that is told the time of the whole query."""

    def __init__(self, settings: CellSettings, engine: Engine) -> None:
        self.engine = engine
        self._by_rows = settings.query.by_rows

    @classmethod
    def restore(cls, settings: CellSettings, blob: bytes, ordered: bool = False) -> Cell:
        """The cell that :meth:`checkpoint` wrote down, with the options and lateness of now.

        Its plan is that of ``settings``, unless somebody has ``ordered`` another since.
        """
        plan = None if ordered else settings.plan
        options = {**settings.options, "keep_dropped": True, "lateness": settings.lateness}
        return cls(settings, Engine.restore(settings.query, blob, plan, **options))

    def checkpoint(self) -> bytes:
        return self.engine.checkpoint()

    def push(
        self, delivery: Delivered, seconds: float | None = None, again: bool = False
    ) -> pa.Table:
        """Take in what was delivered; the results that leave now.

        ``seconds`` is how long it may take, if the engine is not to decide. ``again`` if it was
        delivered before, and its results have left.
        """
        # What was not owed at the end of a batch was made in it.
        probes = math.inf if again and self.engine.options.overload.policy == "defer" else None
        if self._by_rows:
            return self.engine.push(delivery.tables(), None, None, probes, seconds, again)
        return self.engine.push(delivery.tables(), None, delivery.newest, probes, seconds, again)

    def finish(self) -> pa.Table:
        return self.engine.finish()


def with_static(settings: CellSettings, number: int, delivery: Delivery) -> Delivery:
    """``delivery`` as the first one of cell ``number``: static relations come with it."""
    router = Router(settings.query, settings.placement)
    first = Delivery(dict(delivery.newest), dict(delivery.chunks))
    for source, chunk in settings.static.items():
        rows = from_chunk(chunk).combine_chunks()
        columns = {name: _whole(rows.column(name)) for name in rows.column_names}
        for share in router.route(source, columns, len(rows)):
            if number in share.cells:
                mine = rows if share.rows is None else rows.take(pa.array(share.rows))
                first.add(source, None, to_chunk(mine))
    return first


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
