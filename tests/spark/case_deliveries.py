"""Test cases as deliveries to cells, with no Spark: what the packing stage would send."""

from __future__ import annotations

from penstock.cells.delivery import Delivery, to_chunk
from penstock.cells.packing import NO_NEWS, Packer
from penstock.cells.placement import Placement
from penstock.query.join_graph import JoinGraph
from penstock.spark.cell import CellSettings
from penstock.testing import Case


def settings_of(case: Case, graph: JoinGraph, placement: Placement) -> CellSettings:
    """The settings of the cells that run ``case``; its static relations are in its first pushes."""
    streams = {s.source: s for block in graph.blocks for s in block.streams}
    delays = {s: case.lateness or 0 for s in graph.sources if not streams[s].is_static}
    static = {
        name: to_chunk(table)
        for batches in case.pushes[:2]
        for name, table in batches.items()
        if streams[name].is_static
    }
    strict = case.lateness is not None and not graph.by_rows
    return CellSettings(graph, placement, delays=delays if strict else {}, static=static)


def deliveries_of(case: Case, graph: JoinGraph, placement: Placement) -> list[list[Delivery]]:
    """For each push the delivery to each cell."""
    streams = {s.source: s for block in graph.blocks for s in block.streams}
    keys = tuple(range(placement.cells))
    found = []
    for batches in case.pushes:
        deliveries = [Delivery() for _ in keys]
        for name in graph.sources:
            if name not in batches or streams[name].is_static:
                continue
            table = batches[name].combine_chunks()
            packer = Packer(graph, placement, keys, name, table.schema, streams[name].event_time)
            for packed in packer.pack(table.to_batches(), 0):
                for row in packed.to_pylist():
                    newest = None if row["newest"] == NO_NEWS else row["newest"]
                    deliveries[row["cell"]].add(name, newest, row["chunk"])
        found.append(deliveries)
    return found
