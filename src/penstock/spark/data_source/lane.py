"""All that a reader of the data source needs to know: query, sources, ledger, cells, options.

It is made once, where the data source is loaded, and travels to the tasks as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.cells.placement import Placement
from penstock.engine.recovery.fingerprint import fingerprint as query_fingerprint
from penstock.query.expression import Expression
from penstock.query.join_graph import ARRIVAL, JoinGraph, Stream
from penstock.sources.file_source import FileSource
from penstock.sources.ledger import Ledger
from penstock.sources.portion import Source
from penstock.sources.row_groups import NeededRows, needed_rows
from penstock.spark.cells.cell import CellSettings
from penstock.spark.data_source.text_time_source import as_files
from penstock.spark.rows.envelope import report_column
from penstock.spark.state.checkpoint_files import CheckpointFiles
from penstock.values.value_hash import VERSION
from penstock.values.wiring import wire

STATICS = "statics"
"""The name in the ledger of the portions of static relations."""
WAITING = "waiting"
"""The key, in what Spark is told of the newest offset, of rows that wait, by source."""


@dataclass(frozen=True)
class Lane:
    """One query over sources that tasks read themselves."""

    settings: CellSettings
    """Query, placement, plan, delays and options; its ``static`` is empty."""
    sources: Mapping[str, Source]
    columns: Mapping[str, tuple[str, ...]]
    """The columns that are read of each source."""
    ledger: Ledger | None = None
    """None where the answer is bounded."""
    orders: CheckpointFiles | None = None
    """The folder with the file in which people say what they want of the plan."""
    interval: float | None = None
    """Seconds between triggers, if there is such a trigger."""
    reports: bool = False
    """Whether each cell adds a row with its report (:mod:`penstock.spark.rows.envelope`)."""
    cache_bytes: int = 0
    """Bytes of snapshots that may be on a local disk; 0 if there are to be none."""
    durable_seconds: float | None = None
    """Seconds between two snapshots in the checkpoint folder; None where sources keep what windows
    need."""

    dropped: str | None = None
    """The column in which dropped rows leave beside answers, as JSON; None: they are counted."""
    ahead: Mapping[str, int] = field(default_factory=dict)
    """Milliseconds that rows of each source may be ahead of the planning of their batch; sources
    that are not in it have no bound."""
    flushes: bool = False
    """Whether a run that takes what there is and ends waits for no more rows at its end."""
    aligned: frozenset[str] = frozenset()
    """Sources of whose partitions each belongs to some of the cells
    (:mod:`penstock.spark.data_source.partitioned_cells`)."""
    relayed: bool = False
    """Whether cells learn of the clocks of others' partitions in the next batch."""
    unaligned: Mapping[str, str] = field(default_factory=dict)
    """Why sources that say that they are partitioned are read by all cells."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """Rows per second of sources, where they are given."""

    @property
    def query(self) -> JoinGraph:
        return self.settings.query

    @property
    def emitted(self) -> pa.Schema:
        """The columns of the answer, and those of dropped rows and of reports, if there are any."""
        schema = self.query.schema
        if self.dropped is not None:
            schema = schema.append(pa.field(self.dropped, pa.string()))
        if self.reports:
            schema = schema.append(pa.field(report_column(schema), pa.string()))
        return schema

    @property
    def placement(self) -> Placement:
        return self.settings.placement

    @cached_property
    def streams(self) -> Mapping[str, Stream]:
        """A stream of each source: what they say about time is the same in all of them."""
        return {s.source: s for block in self.query.blocks for s in block.streams}

    @cached_property
    def moving(self) -> tuple[str, ...]:
        """The sources that are streams."""
        return tuple(n for n in self.query.sources if not self.streams[n].is_static)

    @cached_property
    def fixed(self) -> tuple[str, ...]:
        """The sources that are static relations."""
        return tuple(n for n in self.query.sources if self.streams[n].is_static)

    @cached_property
    def files(self) -> Mapping[str, FileSource]:
        """The sources that are files."""
        found = {name: as_files(source) for name, source in self.sources.items()}
        return {name: files for name, files in found.items() if files is not None}

    @property
    def skips(self) -> bool:
        """Whether files may be left out."""
        return any(file.skip_missing or file.skip_corrupt for file in self.files.values())

    @cached_property
    def clocks(self) -> Mapping[str, str]:
        """The event-time column of each stream that has one."""
        found = {name: self.streams[name].event_time for name in self.moving}
        return {name: column for name, column in found.items() if column is not None}

    @cached_property
    def needed(self) -> Mapping[str, NeededRows]:
        """What predicates on single streams say about the rows of each source, where that is
        something. With ROWS windows every row counts, and where dropped rows are wanted, each is
        read."""
        if self.query.by_rows or self.dropped is not None:
            return {}
        roles: dict[str, list[list[Expression]]] = {}
        for block in self.query.blocks:
            filters = wire(block).filters
            for stream in block.streams:
                own = [each.expression for each in filters[stream.alias]]
                roles.setdefault(stream.source, []).append(own)
        found = {n: needed_rows(each, self.clocks.get(n)) for n, each in roles.items()}
        return {name: each for name, each in found.items() if each}

    @property
    def by_arrival(self) -> bool:
        """Whether rows are in the order of a column for it."""
        return self.query.by_rows and any(ARRIVAL in self.columns[name] for name in self.moving)

    @property
    def nanoseconds(self) -> int:
        """Of one tick of the query."""
        return 1_000_000 // self.query.ticks_per_millisecond

    def state_fingerprint(self, with_place: bool) -> str:
        """Tells apart what engines hold, whatever their plan; ``with_place``: and whose ledger it
        is, and which rows its static relations have."""
        settings = self.settings
        clock = [settings.options.get(name) for name in ("idle", "watermark_policy", "max_ahead")]
        parts: list[Any] = [query_fingerprint(self.query), VERSION, self._grid, clock]
        parts += [sorted(settings.delays.items()), sorted(self.columns.items())]
        if with_place and self.ledger is not None:
            parts += [self.ledger.address, self.ledger.value(STATICS)]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]

    @cached_property
    def _grid(self) -> list[Any]:
        grid: list[Any] = [
            (d.share, str(d), *([] if d.partitioner is None else [d.partitioner]))
            for d in self.placement.dimensions
        ]
        grid += [(g.hash, [(d.share, str(d)) for d in g.dimensions]) for g in self.placement.hot]
        return grid

    @cached_property
    def relay(self) -> str:
        """Tells parts of notes apart that do not make one note together."""
        parts = [self._grid, sorted(self.aligned), sorted(self.clocks.items())]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]

    @cached_property
    def fingerprint(self) -> str:
        """Tells engines apart that may not stand in for each other."""
        settings = self.settings
        where = None if self.ledger is None else self.ledger.address
        options = sorted((name, str(value)) for name, value in settings.options.items())
        parts = [query_fingerprint(self.query), VERSION, self._grid, settings.plan, where, options]
        parts += [sorted(settings.delays.items()), sorted(self.columns.items())]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
