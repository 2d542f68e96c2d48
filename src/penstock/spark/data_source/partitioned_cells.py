"""Cells that read their own partitions alone: the placement follows that of the sources.

A cell may be any function of the join key, so where sources are partitioned by it, the function is
theirs: partition ``p`` belongs to cell ``p`` modulo the share. Sources that are not partitioned so
are routed by the same function, and each cell reads all of them. It is right under conditions that
are checked here, when a query is loaded:

- cells are cut by the column that the source is partitioned by, and by nothing else that the source
  has: then the partition alone says which cells its rows go to. Hot values have cells of their own,
  so with them it does not;
- values that are equal in the query have one partition: keys are integers or texts on all sides, or
  of one type where Spark has made the buckets;
- the sources agree on the function and the number of partitions. If they do not, those go together
  that are most.

That rows are where the function says is checked for each row that is read
(:mod:`penstock.sources.partitioned`).

**The clock.** A cell that reads some partitions does not know the newest event times of the others.
Buckets of parquet files tell them (statistics). For topics there are two phases: each cell writes
down what it has seen in its partitions (a part of the note of the batch, in the ledger), and in the
next batch, which begins when all cells are done, every cell first puts together the parts and moves
its clock. A row is late by the clock before its batch, so what is late is decided by the clock of
all, as ever. Within a batch a clock may be behind that of all and never ahead: windows keep some
rows longer, and a join finds its partners by their times. So this is done where results leave when
they are found, and nothing else asks the clock: not with aggregates, EXCEPT, DSTREAM, RSTREAM, ROWS
windows or ``idle``, and where all streams are partitioned so. Else cells read event times of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.cells.placement import Dimension, Placement, place
from penstock.cells.reading import Parted, PartedStreams, amplification, own_streams
from penstock.query.expression import Column
from penstock.query.join_graph import JoinGraph
from penstock.sources.kafka_source import KafkaSource
from penstock.sources.portion import Source
from penstock.spark.data_source.text_time_source import TextTimeSource, as_files
from penstock.values.partitioner import Partitioner

_MOST_FOR_AUTO = 1.25
"""Times that several cells may together read what there is where their number is not given: one
cell takes in millions of rows a second, so what more of them gain is soon less than what reading
again costs."""


@dataclass(frozen=True, slots=True)
class PartitionedCells:
    """A placement that follows the partitions of some sources."""

    placement: Placement
    aligned: frozenset[str] = frozenset()
    """Sources of whose partitions each belongs to some of the cells."""
    relayed: bool = False
    """Whether cells learn of the others' clocks in the next batch, and read nothing of their
    partitions."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why sources that say that they are partitioned are read by all cells, and why event times
    are."""


def parted_streams(query: JoinGraph, sources: Mapping[str, Source]) -> PartedStreams:
    """How the sources of streams can be read in parts, by one of their aliases."""
    found: dict[str, Parted] = {}
    streams = {s.source: s for block in query.blocks for s in block.streams}
    for name, stream in streams.items():
        source, files = sources[name], as_files(sources[name])
        if stream.is_static:
            continue
        if source.partitioned is not None:
            column = frozenset({source.partitioned.column})
            found[stream.alias] = Parted(column, source.partitioned.by)
        elif files is not None and (columns := files.folder_columns):
            found[stream.alias] = Parted(columns - _text_times(source))
    return found


def _text_times(source: Source) -> frozenset[str]:
    """The column whose texts in the names of folders are not what it holds."""
    return frozenset({source.column} if isinstance(source, TextTimeSource) else ())


def stream_rates(query: JoinGraph, rates: Mapping[str, float]) -> dict[str, float]:
    """Rows of the source of each stream, by one of its aliases; 1 where nothing is known."""
    streams = {s.source: s for block in query.blocks for s in block.streams if not s.is_static}
    return {s.alias: rates.get(name, 1.0) for name, s in streams.items()}


def auto_cells(
    query: JoinGraph,
    cores: int,
    rates: Mapping[str, float],
    sources: Mapping[str, Source],
    options: Mapping[str, Any],
) -> PartitionedCells:
    """A cell for each of ``cores`` if these read hardly more than one would, else one."""
    parted = parted_streams(query, sources)
    many = place(query, cores, rates or None, None, parted)
    found = follow_partitions(query, many, sources, options)
    names = {s.alias: s.source for block in query.blocks for s in block.streams}
    own = frozenset(
        alias
        for alias in own_streams(found.placement.dimensions, parted)
        if parted[alias].by is None
        or (names[alias] in found.aligned and (found.relayed or names[alias] in _files(sources)))
    )
    times = amplification(many.replicas, many.cells, own, stream_rates(query, rates))
    return found if times <= _MOST_FOR_AUTO else PartitionedCells(place(query, 1))


def _files(sources: Mapping[str, Source]) -> frozenset[str]:
    """The sources that tell event times of what a cell does not read."""
    return frozenset(name for name, source in sources.items() if as_files(source) is not None)


def follow_partitions(
    query: JoinGraph,
    placement: Placement,
    sources: Mapping[str, Source],
    options: Mapping[str, Any],
) -> PartitionedCells:
    """``placement``, cut by the partitions of ``sources`` where that is exact."""
    said = {name: each.partitioned for name, each in sources.items() if each.partitioned}
    if not said or placement.cells == 1:
        return PartitionedCells(placement)
    if placement.hot:
        why = "hot values have cells of their own"
        return PartitionedCells(placement, reasons=dict.fromkeys(said, why))
    aliases: dict[str, list[str]] = {}
    for block in query.blocks:
        for stream in block.streams:
            aliases.setdefault(stream.source, []).append(stream.alias)
    reasons: dict[str, str] = {}
    groups: dict[tuple[int, Partitioner], list[str]] = {}
    for name, partitioned in said.items():
        place = _dimension_of(placement, aliases[name], partitioned.column)
        if place is None:
            reasons[name] = f"cells are not cut by {name}.{partitioned.column} alone"
            continue
        kinds = {each.type for each in placement.dimensions[place].columns.values()}
        problem = partitioned.by.why_not(kinds)
        if problem is not None:
            reasons[name] = problem
            continue
        groups.setdefault((place, partitioned.by), []).append(name)
    if not groups:
        return PartitionedCells(placement, reasons=reasons)
    (place, by), aligned = max(groups.items(), key=lambda each: len(each[1]))
    for (_, other), names in groups.items():
        for name in names:
            if name not in aligned:
                reasons[name] = f"it is partitioned by {other}, and {', '.join(aligned)} by {by}"
    dimensions = [*placement.dimensions]
    dimensions[place] = replace(dimensions[place], partitioner=by)
    obstacle = _why_not_relayed(query, sources, aligned, options)
    if obstacle is not None and any(isinstance(sources[name], KafkaSource) for name in aligned):
        reasons["event times"] = obstacle
    return PartitionedCells(
        replace(placement, dimensions=tuple(dimensions)),
        frozenset(aligned),
        obstacle is None,
        reasons,
    )


def _dimension_of(placement: Placement, aliases: list[str], column: str) -> int | None:
    """The dimension whose coordinate is ``column`` in all roles of a source, if they have no
    other."""
    found: set[int] = set()
    for alias in aliases:
        own = [(i, d) for i, d in enumerate(placement.dimensions) if alias in d.owners]
        if len(own) != 1 or not _is_column(own[0][1], alias, column):
            return None
        found.add(own[0][0])
    return found.pop() if len(found) == 1 else None


def _is_column(dimension: Dimension, alias: str, column: str) -> bool:
    value = dimension.columns.get(alias)
    return isinstance(value, Column) and value.name == column and not dimension.with_null


def _why_not_relayed(
    query: JoinGraph, sources: Mapping[str, Source], aligned: list[str], options: Mapping[str, Any]
) -> str | None:
    """Why cells must know the clocks of all in the same batch; None if the next one is enough."""
    moving = {s.source for block in query.blocks for s in block.streams if not s.is_static}
    others = sorted(moving - {*aligned})
    if others:
        return f"{', '.join(others)} is not partitioned so"
    if query.by_rows:
        return "ROWS windows count rows in their order"
    if query.emission != "istream" or query.minus or query.is_grouped:
        return "what leaves waits for the clock of all"
    asks = [name for name in ("idle", "watermark_policy") if options.get(name) is not None]
    return f"{asks[0]} looks at the clock of all" if asks else None
