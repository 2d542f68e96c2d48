"""A cell: one engine that sees its share of the tuples and the clock of the whole query.

On event time an engine tells late from on time by the newest event times it has seen. A cell sees
only some of the tuples, so before each push it is told the newest event times of the whole batch.
Its clock is then the one of a single engine that sees everything: late tuples, deaths and what
leaves are the same in every placement. It needs a push for every batch, also one without rows.

On the arrival line there is one cell, which sees everything anyway.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from penstock.cells.delivery import Delivery, from_chunk, to_chunk
from penstock.cells.placement import Placement
from penstock.cells.router import Router
from penstock.engine.engine import Engine
from penstock.engine.state.spill_files import is_in_memory
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
        return Engine(self.query, plan=self.plan, lateness=self.lateness, **self.engine_options)

    @property
    def engine_options(self) -> dict[str, Any]:
        """The options of an engine in this process."""
        return {"spill_folder": local_folder(), **self.options, "keep_dropped": True}

    @property
    def lateness(self) -> dict[str, int] | None:
        """The lateness of each source in milliseconds, None on the arrival line."""
        return None if self.query.by_rows else dict(self.delays)


def local_folder() -> str | None:
    """Spark's folder for local files, for rows beyond memory; None if it is not to be used."""
    first = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    return first if os.path.isdir(first) and not is_in_memory(first) else None


class Delivered(Protocol):
    """What reaches a cell in one push."""

    @property
    def newest(self) -> Mapping[str, int]:
        """The newest event time of each source in the whole batch, in ticks."""
        ...

    @property
    def watermark(self) -> int | None:
        """The watermark that is promised, if one is, in milliseconds."""
        ...

    def tables(self) -> Mapping[str, pa.Table]:
        """The rows of the cell, by source."""
        ...


class Cell:
    """An engine that is told the time of the whole query."""

    def __init__(self, settings: CellSettings, engine: Engine) -> None:
        self.engine = engine
        self._by_rows = settings.query.by_rows
        self._static = settings.static.keys()

    @classmethod
    def restore(
        cls, settings: CellSettings, blob: bytes | memoryview, keep_plan: bool = False
    ) -> Cell:
        """The cell that :meth:`checkpoint` wrote down, with the options and lateness of now.

        Its plan is that of ``settings``; with ``keep_plan`` it stays as it was.
        """
        plan = None if keep_plan else settings.plan
        options = {
            "max_results": None,  # Who leaves it out now wants none.
            "max_halt": None,
            **settings.engine_options,
            "lateness": settings.lateness,
        }
        return cls(settings, Engine.restore(settings.query, blob, plan, **options))

    def checkpoint(self) -> bytes:
        return self.engine.checkpoint()

    def checkpoint_parts(self) -> Iterator[bytes | memoryview]:
        """The same, part by part."""
        return self.engine.checkpoint_parts()

    @property
    def plan(self) -> str:
        """The plan; it may not run yet."""
        return str(self.engine.plan)

    def runs(self, plan: str) -> bool:
        """Whether ``plan`` is the one that runs."""
        return plan == self.plan and not self.engine.is_changing

    def follow(self, plan: str) -> None:
        """Run ``plan`` from now on, if that is another, pinned or not as it was."""
        if plan != self.plan:
            self.engine.change_plan(plan, "moving-state")

    def push(
        self, delivery: Delivered, seconds: float | None = None, again: bool = False
    ) -> pa.Table:
        """Take in what was delivered; the results that leave now.

        ``seconds`` is how long it may take, if the engine is not to decide. ``again`` if it was
        delivered before, and its results have left. A static relation that comes once more is
        refreshed first.
        """
        # What was not owed at the end of a batch was made in it.
        probes = math.inf if again and self.engine.options.overload.policy == "defer" else None
        tables = delivery.tables()
        if self.engine.pushes:
            refreshed = {name: rows for name, rows in tables.items() if name in self._static}
            if refreshed:
                self.engine.refresh(refreshed)
                tables = {name: rows for name, rows in tables.items() if name not in refreshed}
        newest = None if self._by_rows else delivery.newest
        return self.engine.push(tables, delivery.watermark, newest, probes, seconds, again)

    def finish(self) -> pa.Table:
        return self.engine.finish()


def with_static(settings: CellSettings, number: int, delivery: Delivery) -> Delivery:
    """``delivery`` as the first one of cell ``number``: static relations that are not in it come
    with it."""
    first = Delivery(dict(delivery.newest), dict(delivery.chunks))
    for source, chunk in settings.static.items():
        if source not in delivery.chunks:
            first.add(source, None, static_share(settings, number, source, from_chunk(chunk)))
    return first


def static_share(settings: CellSettings, number: int, source: str, rows: pa.Table) -> bytes:
    """The share of cell ``number`` in the ``rows`` of the static relation ``source``."""
    rows = rows.combine_chunks()
    columns = {name: _whole(rows.column(name)) for name in rows.column_names}
    shares = Router(settings.query, settings.placement).route(source, columns, len(rows))
    mine = [share.rows for share in shares if number in share.cells]
    if not any(each is None for each in mine):  # Else all rows are its own.
        rows = rows.take(pa.array(np.concatenate([np.empty(0, np.int64), *mine])))
    return to_chunk(rows)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
