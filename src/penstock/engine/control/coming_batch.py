"""Statistics of a batch that comes next, before any of it is joined.

A plan that knows nothing may take minutes for its first push: an mjoin in the order of ``FROM``
visits whatever comes first. The same goes for a push that is much larger than what a plan was
chosen for. So a sample of the rows that come, and of those that the windows hold, is put into
windows that serve for nothing else; what these say about pairs holds for the push as well. The
share that is sampled is the same for both, so that pairs of old and new rows have their weight.

Rates are those of the batch by its event times; if all of it has one event time, it is taken for a
window's worth of rows. A stream of which no row comes has the rate that its window tells. Windows
are as full as the rates make them in the long run, which a plan is for. Rows are drawn from the
whole batch: where keys follow time and a batch lasts many windows, fewer pairs seem to match than
do, which the first look after the push puts right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.control.observed_statistics import SeenWindows
from penstock.engine.control.stream_sample import drawn
from penstock.engine.push.intake import Intake, UnlikeDeclaredError
from penstock.engine.state.arrival import Arrival
from penstock.engine.state.clock import Clock
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.rows import BIRTH
from penstock.engine.state.windows import Windows
from penstock.errors import PenstockError
from penstock.planning.statistics import Statistics
from penstock.query.join_graph import JoinGraph
from penstock.values.wiring import Wiring

Int64s = NDArray[np.int64]

SAMPLE = 1 << 12
"""Rows of a stream that are looked at, at most: those of its window and those that come."""


class Coming(NamedTuple):
    """What is known of a batch before it is joined."""

    statistics: Statistics
    seconds: float
    """Event time from its first to its last row; on the arrival line, rows."""


def coming_statistics(
    query: JoinGraph,
    wirings: Sequence[Wiring],
    intake: Intake,
    windows: Sequence[Windows],
    batches: Mapping[str, Any],
) -> Coming | None:
    """What ``batches``, and the rows in the ``windows`` of each block, say about the streams of
    ``query``; None if of some stream there is none, or if something is wrong with the batches,
    which the push will tell."""
    counts = {name: len(batch) for name, batch in batches.items()}
    held = {leaf.stream.source: leaf for each in windows for leaf in each.leaves.values()}
    if not counts.keys() <= held.keys() or not all(
        counts.get(name) or len(leaf.rows) for name, leaf in held.items()
    ):
        return None
    share = {
        name: min(1.0, SAMPLE / max(1, counts.get(name, 0) + len(leaf.rows)))
        for name, leaf in held.items()
    }
    found = SeenWindows()
    try:
        sample = {
            name: batch.take(pa.array(drawn(0, len(batch), math.ceil(share[name] * len(batch)))))
            for name, batch in batches.items()
        }
        taken = intake.take(sample, Clock(), 0, statics_open=True)
        blocks = []
        for block, wiring, real in zip(query.blocks, wirings, windows, strict=True):
            made = Windows(block, wiring, query.by_rows, query.ticks_per_millisecond, real)
            for alias, leaf in made.leaves.items():
                name = leaf.stream.source
                _copy_sample(real.leaves[alias], leaf, share[name])
                if name in taken.rows:
                    leaf.append(leaf.prepare(taken.rows[name]))
            if not all(len(leaf.rows) for leaf in made.leaves.values()):
                return None
            blocks.append((block, made.leaves, real.leaves, wiring))
    except (PenstockError, UnlikeDeclaredError, pa.ArrowException):
        return None
    moving = [name for name in taken.rows if not held[name].stream.is_static]
    times = [taken.rows[name].births for name in moving if len(taken.rows[name])]
    span = float(max((each[-1] - each[0] for each in times), default=0))
    second = 1000.0 * query.ticks_per_millisecond
    for block, leaves, real_leaves, wiring in blocks:
        rates = {
            alias: _rate(leaf, real_leaves[alias], query, counts, share, span)
            for alias, leaf in leaves.items()
            if not leaf.stream.is_static
        }
        found.look_at(block, leaves, wiring, rates, brief=True)
    sizes = {
        leaf.streams: len(leaf.rows) / share[leaf.stream.source]
        for _, leaves, *_ in blocks
        for leaf in leaves.values()
        if leaf.stream.is_static
    }
    statistics = Statistics(
        found.rates,
        found.selectivities,
        found.observed,
        sizes,
        found.distinct,
        found.widths,
        pushes=second / span if span and not query.by_rows else 0.0,
    )
    if query.by_rows:
        return Coming(statistics, float(sum(map(counts.__getitem__, moving))))
    window = max((held[name].fixed_span or 0 for name in moving), default=0)
    return Coming(statistics, (span or window) / second)


def _copy_sample(real: LeafWindow, made: LeafWindow, share: float) -> None:
    """Put a ``share`` of the rows of a window into one that is ``made`` for a sample.

    Windows that keep rows by partition need to know these, so there new rows must do.
    """
    rows = real.rows
    if not len(rows) or real.lifespan.partition is not None:
        return
    ids = drawn(rows.tail, rows.head, math.ceil(share * len(rows)))
    flags = real.chosen(ids)
    births = np.arange(-len(ids), 0, dtype=np.int64) if real.by_rows else rows.take(BIRTH, ids)
    made.append(
        Arrival(
            births,
            [rows.take(real.key_column(place), ids) for place in range(real.key_count)],
            {name: real.payload.take(name, ids) for name in real.payload.columns},
            None if flags is None or flags.all() else np.flatnonzero(flags),
            None,
        )
    )


def _rate(
    leaf: LeafWindow,
    real: LeafWindow,
    query: JoinGraph,
    counts: Mapping[str, int],
    share: Mapping[str, float],
    span: float,
) -> float:
    """Rows per second of event time; per arrival on the arrival line. Those that pass the
    predicates on the stream alone, where only these are in its window."""
    source = leaf.stream.source
    count = counts.get(source, 0)
    if query.by_rows:
        return max(count, 1) / sum(counts.values())
    second, window = 1000 * query.ticks_per_millisecond, leaf.fixed_span
    whole = 1.0 if window is None else float(window)
    if not count:
        return len(real.rows) * second / (whole or 1.0)
    old = 0 if real.lifespan.partition is not None else math.ceil(share[source] * len(real.rows))
    passing = (len(leaf.rows) - min(old, len(leaf.rows))) / share[source]
    return max(passing, 1.0) * second / (span or whole or 1.0)
