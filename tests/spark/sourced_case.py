"""Test cases as files and a ledger, for cells that read their sources themselves; no Spark runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from case_deliveries import settings_of

from penstock.cells.placement import place
from penstock.engine.engine import Engine
from penstock.query.join_graph import ARRIVAL, JoinGraph
from penstock.sources.file_source import FileSource
from penstock.sources.file_tree import FileTree
from penstock.sources.ledger import Entry, Ledger, Position
from penstock.sources.portion import UNLIMITED, Progress
from penstock.spark.data_source.lane import STATICS, Lane
from penstock.spark.data_source.sourced_cell import SourcedCell, Taken
from penstock.testing import Case

NO_BOUNDS: Mapping[str, int] = {}


@dataclass
class SourcedCase:
    """A case in a folder: one parquet file per source and push, one entry per push."""

    case: Case
    folder: Path
    cells: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    snapshots: Mapping[str, Any] = field(default_factory=dict)
    """What the lane says about snapshots."""

    def __post_init__(self) -> None:
        self.graph: JoinGraph = self.case.graph()
        self.streams = {s.source: s for block in self.graph.blocks for s in block.streams}
        self.ledger = Ledger(str(self.folder / "checkpoint"))
        self.positions = [Position()]
        """Where the query stands after each push."""
        self.progress: dict[str, Progress] = {}

    def lane(self, cells: int | None = None) -> Lane:
        """The lane of the case, with other cells if asked for."""
        case, graph = self.case, self.graph
        engine = Engine(graph)
        schemas = {
            name: next((p[name].schema for p in case.pushes if name in p), case.schemas[name])
            for name in graph.sources
        }
        columns = {}
        for name in graph.sources:
            more = [ARRIVAL] if ARRIVAL in schemas[name].names else []
            columns[name] = tuple(dict.fromkeys([*engine.columns[name], *more]))
        settings = settings_of(case, graph, place(graph, self.cells if cells is None else cells))
        return Lane(
            replace(settings, static={}, options={**settings.options, **self.options}),
            {
                name: FileSource(name, FileTree(str(self.folder / name)), "parquet", schemas[name])
                for name in graph.sources
            },
            columns,
            self.ledger,
            **self.snapshots,
        )

    def write(self, number: int, latest: Mapping[str, int] = NO_BOUNDS) -> Position:
        """Write push ``number`` as files and as an entry that lets in event times up to those of
        ``latest``."""
        lane = self.lane()
        for name, table in self.case.pushes[number].items():
            file = self.folder / name / f"{number:04}.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, file, row_group_size=2 + number % 3)
            os.utime(file, (1_700_000_000 + 10 * number,) * 2)
        portions = {}
        for name in lane.moving:
            source = lane.sources[name]
            progress = self.progress.setdefault(name, source.progress())
            portion = source.next_portion(progress, UNLIMITED)
            if portion is not None:
                progress.add(portion)
                portions[name] = portion
        if self.ledger.value(STATICS) is None:
            self.ledger.put_value(
                STATICS,
                {
                    name: lane.sources[name].next_portion(lane.sources[name].progress(), UNLIMITED)
                    for name in lane.fixed
                },
            )
        self.positions.append(self.ledger.add(Entry(self.positions[-1], portions, latest)))
        return self.positions[-1]

    def take(self, number: int, cells: int | None = None) -> pa.Table:
        """The answer that leaves in push ``number``, of all cells."""
        return pa.concat_tables([each.results for each in self.taken(number, cells)])

    def taken(self, number: int, cells: int | None = None) -> list[Taken]:
        """What push ``number`` leads to in each cell."""
        lane = self.lane(cells)
        start, end = self.positions[number], self.positions[number + 1]
        return [SourcedCell(lane, n).take(start, end) for n in range(lane.placement.cells)]


def with_statics_first(case: Case) -> Case:
    """``case`` with all static rows in its first push."""
    graph = case.graph()
    static = {s.source for block in graph.blocks for s in block.streams if s.is_static}
    pushes = [dict(push) for push in case.pushes]
    for name in static:
        found = [push.pop(name) for push in pushes if name in push]
        if found:
            pushes[0][name] = pa.concat_tables(found)
    return replace(case, pushes=tuple(pushes))
