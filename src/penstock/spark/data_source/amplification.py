"""How often the cells together read what there is: the price of having no shuffle.

A cell reads the files and offsets of a batch itself and keeps its own rows. Of a source whose
folders tell which cells rows go to, it reads its own files, and statistics of the others; of one
that is partitioned as the cells are, its own partitions, and event times of the others where it
must know them; of any other source, everything. So what is read of such a source is multiplied by
the number of cells. Decoding is cheaper than sending by some factor, not by any: with many cells
the other lane, which sends each row once, is the better one (:mod:`penstock.spark.jobs.job_lane`).
"""

from __future__ import annotations

from penstock.cells.reading import amplification
from penstock.sources.kafka_source import KafkaSource
from penstock.spark.data_source.lane import Lane
from penstock.spark.data_source.partitioned_cells import parted_streams, stream_rates


def read_by_cells(lane: Lane) -> list[str]:
    """What each cell reads of the streams, in lines; none if there is one cell."""
    cells = lane.placement.cells
    if cells == 1:
        return []
    cut: dict[str, list[str]] = {}
    parted: dict[str, list[str]] = {}
    whole = []
    parts = parted_streams(lane.query, lane.sources)
    for name in lane.moving:
        source, alias = lane.sources[name], lane.streams[name].alias
        needed = lane.placement.placed_by(alias)
        folders = parts[alias].columns if alias in parts and parts[alias].by is None else None
        if name in lane.aligned and source.partitioned is not None:
            told = f"by {source.partitioned.column} ({source.partitioned.by})"
            if isinstance(source, KafkaSource) and not lane.relayed:
                told += f", and event times of all: {lane.unaligned['event times']}"
            parted.setdefault(told, []).append(name)
        elif folders is not None and needed and needed <= folders:
            cut.setdefault(", ".join(sorted(needed)), []).append(name)
        else:
            whole.append(name)
    lines = [
        f"each cell reads its own files of {', '.join(names)}, by folders of {columns}"
        for columns, names in cut.items()
    ]
    lines += [
        f"each cell reads its own partitions of {', '.join(names)}, {how}"
        for how, names in parted.items()
    ]
    lines += [
        f"partitions of {name} are of no use: {why}"
        for name, why in lane.unaligned.items()
        if name in lane.sources
    ]
    if whole:
        lines.append(f"each cell reads all of {', '.join(whole)}: {cells} times what there is")
    own = frozenset(lane.streams[name].alias for name in lane.moving if name not in whole)
    rates = stream_rates(lane.query, lane.rates)
    times = amplification(lane.placement.replicas, cells, own, rates)
    lines.append(f"together the cells read {times:.3g} times what there is of all streams")
    return lines
