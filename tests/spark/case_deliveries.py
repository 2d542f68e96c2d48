"""Test cases as deliveries to cells, with no Spark: what the packing stage would send."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.cells.delivery import Delivery, to_chunk
from penstock.cells.packing import NO_NEWS, Packer
from penstock.cells.placement import Placement
from penstock.query.join_graph import JoinGraph
from penstock.spark.cells.cell import CellSettings
from penstock.testing import Case, Oracle


def settings_of(case: Case, graph: JoinGraph, placement: Placement) -> CellSettings:
    """The settings of the cells that run ``case``; its static relations are in its first pushes."""
    streams = {s.source: s for block in graph.blocks for s in block.streams}
    moving = [s for s in graph.sources if not streams[s].is_static]
    delays = spark_lateness(case)
    if isinstance(delays, int):
        delays = dict.fromkeys(moving, delays)
    static = {
        name: to_chunk(table)
        for batches in case.pushes[:2]
        for name, table in batches.items()
        if streams[name].is_static
    }
    options = {"idle": case.idle, "watermark_policy": case.policy}
    return CellSettings(graph, placement, delays=delays, static=static, options=options)


def spark_lateness(case: Case) -> int | Mapping[str, int]:
    """Where no lateness is given, nothing is late on Spark."""
    return {} if case.lateness is None else case.lateness


def spark_oracle(case: Case, graph: JoinGraph) -> Oracle:
    """The answer of Spark."""
    return Oracle(graph, spark_lateness(case), case.idle, case.policy)


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
