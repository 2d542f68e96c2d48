"""Statistics of the first batch, before any of it is joined.

A plan that knows nothing may take minutes for its first push: an mjoin in the order of ``FROM``
visits whatever comes first. So the first rows of each stream are put into windows that serve for
nothing else, and what these say about pairs holds for the batch as well. Rates are those of the
batch by its event times; if all of it has one event time, it is taken for a window's worth of rows.
Windows are as full as the rates make them in the long run, which a plan is for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.engine.control.observed_statistics import SeenWindows
from penstock.engine.push.intake import Intake, UnlikeDeclaredError
from penstock.engine.state.clock import Clock
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.windows import Windows
from penstock.errors import PenstockError
from penstock.planning.statistics import Statistics
from penstock.query.join_graph import JoinGraph
from penstock.values.wiring import Wiring

SAMPLE = 1 << 12
"""Rows of a source that are looked at, at most."""


def first_statistics(
    query: JoinGraph, wirings: Sequence[Wiring], intake: Intake, batches: Mapping[str, Any]
) -> Statistics | None:
    """What ``batches`` say about the streams of ``query``; None if a stream is not among them, or
    if something is wrong with them, which the push will tell."""
    counts = {name: len(batch) for name, batch in batches.items()}
    if not all(counts.get(source) for source in query.sources):
        return None
    sample = {name: batch.slice(0, SAMPLE) for name, batch in batches.items()}
    found = SeenWindows()
    try:
        taken = intake.take(sample, Clock(), 0, statics_open=True)
        blocks = []
        for block, wiring in zip(query.blocks, wirings, strict=True):
            windows = Windows(block, wiring, query.by_rows, query.ticks_per_millisecond)
            for leaf in windows.leaves.values():
                leaf.append(leaf.prepare(taken.rows[leaf.stream.source]))
            if not all(len(leaf.rows) for leaf in windows.leaves.values()):
                return None
            blocks.append((windows.leaves, wiring))
    except (PenstockError, UnlikeDeclaredError):
        return None
    span = max(
        _span(leaf, counts[leaf.stream.source]) for leaves, _ in blocks for leaf in leaves.values()
    )
    for leaves, wiring in blocks:
        rates = {
            alias: _rate(leaf, query, counts, span)
            for alias, leaf in leaves.items()
            if not leaf.stream.is_static
        }
        found.look_at(leaves, wiring, rates, brief=True)
    sizes = {
        leaf.streams: float(counts[leaf.stream.source])
        for leaves, _ in blocks
        for leaf in leaves.values()
        if leaf.stream.is_static
    }
    ticks = 1000 * query.ticks_per_millisecond
    pushes = ticks / span if span and not query.by_rows else 0.0
    return Statistics(
        found.rates,
        found.selectivities,
        found.observed,
        sizes,
        widths=found.widths,
        pushes=pushes,
    )


def _span(leaf: LeafWindow, count: int) -> float:
    """Ticks between the first and the last of ``count`` rows of which the window has the first."""
    rows = leaf.rows
    if leaf.stream.is_static:
        return 0.0
    births = rows.births[rows.tail : rows.head]
    return float(births.max() - births.min()) * count / min(count, SAMPLE)


def _rate(leaf: LeafWindow, query: JoinGraph, counts: Mapping[str, int], span: float) -> float:
    """Rows per second of event time; per arrival on the arrival line. Those that pass the
    predicates on the stream alone, where only these are in its window."""
    source = leaf.stream.source
    if query.by_rows:
        return counts[source] / sum(counts.values())
    window = leaf.fixed_span
    ticks = span or (1.0 if window is None else float(window)) or 1.0
    share = len(leaf.rows) / min(counts[source], SAMPLE)
    return share * counts[source] * 1000 * query.ticks_per_millisecond / ticks
