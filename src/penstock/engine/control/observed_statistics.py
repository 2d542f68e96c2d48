"""Statistics of a running engine: one immutable snapshot for the planners.

Nothing is counted for this while data flows; the windows themselves are a sample of the streams,
weighted by recency as the query weighs it.

- *Rates*: living rows over the time since the oldest of them was born. On the arrival line time is
  counted in arrivals. What fails the predicates on its stream alone is in no event-time window, so
  rates are after these, and the share that passes is 1; windows on the arrival line keep such rows,
  and there the share is counted.
- *Selectivities*: the share of all pairs that match, from samples of both windows
  (:mod:`penstock.engine.control.stream_sample`): with p(v) and q(v) the shares of the values of the
  compared columns, an equality matches Σ p(v) q(v) of all pairs. Further comparisons are counted as
  ranges, and predicates that need their columns decoded (residuals) are evaluated on sampled rows
  (:mod:`penstock.engine.control.sampled_pairs`).
- *Observed* selectivities: a complete state has as many rows as its windows have combinations,
  times this. They know about correlation, but look back over whole windows. So for states of three
  and more streams they are told only while the pairs inside are at rest. Of three streams that no
  state covers, samples are joined (:mod:`penstock.engine.control.sampled_triples`).
- *Demand*: where feedback keeps rows of a state from being made, however many streams it covers,
  the share that is made: what the state holds against what the cost model says it would hold.
- *Sizes and widths*: as they are. *Distinct values*: estimated from the samples; of columns that
  groups are made by, of keys that are texts, and of those beside further conditions, as no share of
  pairs tells what these need.
- *Costs* per operation: :mod:`penstock.engine.control.observed_costs`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.engine.control.sampled_pairs import compared_share, residual_share, share_of_many
from penstock.engine.control.sampled_triples import correlated_triples
from penstock.engine.control.stream_sample import StreamSample
from penstock.engine.state.clock import Clock
from penstock.engine.state.composite_state import CompositeState
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.tree.join_tree import JoinTree
from penstock.plan.stream_set import StreamSet
from penstock.planning.equal_columns import equal_columns
from penstock.planning.problem import Problem
from penstock.planning.statistics import Statistics
from penstock.planning.storage import KEY, LIFESPAN, is_number_of_64_bits
from penstock.planning.unit_costs import UnitCosts
from penstock.query.expression import Column, Expression, streams_of
from penstock.query.join_graph import EquiPredicate, JoinGraph
from penstock.values.wiring import Linking, Wiring

Int64s = NDArray[np.int64]

_LIVING = 1 << 11
AT_REST = 1.25
"""Pairs whose recent rows match so many times more or less often than all rows are changing."""


def observed_statistics(
    graph: JoinGraph,
    trees: Sequence[JoinTree],
    wirings: Sequence[Wiring],
    clock: Clock,
    pushes: float = 0.0,
    thin: bool = False,
    costs: UnitCosts | None = None,
    brief: bool = False,
) -> Statistics:
    """What the windows and states of an engine say about its streams.

    ``pushes`` is how many there are per second, 0 if their fixed cost is to be left out. States
    that are ``thin``, since probes were skipped, say nothing. ``brief`` leaves out distinct values
    of keys for which the selectivities of pairs are enough. ``costs`` are passed on.
    """
    second = 1.0 if graph.by_rows else 1000.0 * graph.ticks_per_millisecond
    found = SeenWindows()
    observed = found.observed
    held: dict[StreamSet, float] = {}
    for block, tree, wiring in zip(graph.blocks, trees, wirings, strict=True):
        rates = {
            alias: _rate(leaf, clock, second)
            for alias, leaf in tree.leaves.items()
            if not leaf.stream.is_static
        }
        found.look_at(block, tree.leaves, wiring, rates, brief)
        if not thin:
            held.update(_look_at_states(tree, clock, found.moving, found.sizes, observed))
    demand = {}
    if held:
        seen = Statistics(found.rates, found.selectivities, observed, found.sizes)
        demand = _demand(graph, seen, held)
    return Statistics(
        found.rates,
        found.selectivities,
        observed,
        found.sizes,
        found.distinct,
        found.widths,
        demand,
        costs,
        pushes,
    )


class SeenWindows:
    """What windows say about their streams."""

    def __init__(self) -> None:
        self.rates: dict[str, float] = {}
        self.sizes: dict[StreamSet, float] = {}
        self.widths: dict[str, float] = {}
        self.selectivities: dict[StreamSet, float] = {}
        self.distinct: dict[tuple[str, str], float] = {}
        self.observed: dict[StreamSet, float] = {}
        """Shares of combinations of three streams that pairs do not explain."""
        self.moving: set[StreamSet] = set()
        """Pairs whose recent rows match more or less often than all of them."""

    def look_at(
        self,
        block: JoinGraph,
        leaves: Mapping[str, LeafWindow],
        wiring: Wiring,
        rates: Mapping[str, float],
        brief: bool,
    ) -> None:
        """Add the windows of ``block``, whose streams have ``rates``."""
        self.rates.update(rates)
        samples = {alias: StreamSample(leaf) for alias, leaf in leaves.items()}
        for alias, leaf in leaves.items():
            self.sizes[leaf.streams] = len(leaf.rows)
            self.selectivities[leaf.streams] = _passing(samples[alias])
            if len(leaf.rows):
                self.widths[alias] = _width(leaf)
        for column in _counted_columns(block, brief):
            values = samples[column.stream].distinct(column.name)
            if values is not None:
                self.distinct[column.stream, column.name] = values
        aliases = list(leaves)
        for i, one in enumerate(aliases):
            for other in aliases[i + 1 :]:
                pair = StreamSet.of(one, other)
                linking = wiring.between(StreamSet.of(one), StreamSet.of(other))
                found = _selectivity(linking, samples[one], samples[other], leaves, rates)
                if found is None:
                    continue
                self.selectivities[pair], over_all = found
                if not 1 / AT_REST <= _ratio(self.selectivities[pair], over_all) <= AT_REST:
                    self.moving.add(pair)
        self.observed.update(correlated_triples(samples, wiring, self.selectivities, leaves))
        for predicate in wiring.residuals:
            if len(predicate.streams) > 2:
                share = share_of_many(predicate, samples, leaves)
                if share is not None:
                    many = StreamSet(predicate.streams)
                    self.selectivities[many] = share * self.selectivities.get(many, 1.0)


def _look_at_states(
    tree: JoinTree,
    clock: Clock,
    moving: set[StreamSet],
    sizes: dict[StreamSet, float],
    observed: dict[StreamSet, float],
) -> dict[StreamSet, float]:
    """Fill in ``sizes`` and ``observed`` of complete states; the rows of those that feedback keeps
    small."""
    complete, held = tree.complete_states(), {}
    for state in tree.states:
        streams = state.streams
        combinations = math.prod(float(len(tree.leaves[s].rows)) for s in streams)
        if not combinations or state.missing is not None:
            continue
        living = _living(state, clock)
        if streams in complete:
            sizes[streams] = living
            if not any(pair <= streams for pair in moving):
                # An empty state says that there is less than a row, not that there can be none.
                observed[streams] = min(1.0, max(living, 0.5) / combinations)
        else:
            held[streams] = living
    return held


def _demand(
    graph: JoinGraph, statistics: Statistics, held: Mapping[StreamSet, float]
) -> dict[StreamSet, float]:
    """The share of each state that is made; nothing about states that should be empty anyway."""
    shares = {}
    for block in Problem(graph, statistics).blocks:
        for streams, living in held.items():
            if streams <= set(block.names):
                expected = block.cardinality.size(block.mask_of(streams))
                if expected >= 1:
                    shares[streams] = min(1.0, living / expected)
    return shares


def _counted_columns(block: JoinGraph, brief: bool) -> list[Column]:
    """Columns whose different values are counted. If it is to be ``brief``, those of which a share
    of pairs does not tell enough."""
    found: list[Expression] = list(block.group_by)
    beside = [p.streams for p in block.predicates if not isinstance(p, EquiPredicate)]
    for members in equal_columns(block):
        streams = {stream for each in members for stream in streams_of(each)}
        if (
            not brief
            or not all(is_number_of_64_bits(each.type) for each in members)
            or any(len(streams & each) > 1 for each in beside)
        ):
            found += members
    return [each for each in dict.fromkeys(found) if isinstance(each, Column)]


def _passing(sample: StreamSample) -> float:
    """The share of the rows in the window that pass the predicates on the stream alone."""
    leaf = sample.leaf
    flags = leaf.chosen_until(leaf.rows.head)
    return 1.0 if flags is None or len(flags) == 0 else float(flags.mean())


def _width(leaf: LeafWindow) -> float:
    """Bytes of a row: its lifespan, its keys, its payload."""
    fixed: int = sum(column.dtype.itemsize for column in leaf.payload.in_rings.values())
    other = leaf.payload.nbytes + leaf.payload.bytes_away
    return LIFESPAN + KEY * leaf.key_count + fixed + other / len(leaf.rows)


def _ratio(one: float, other: float) -> float:
    return 1.0 if one == other else one / other if other else math.inf


def _living(state: CompositeState, clock: Clock) -> float:
    """Rows of a state that are alive: those that have died in between are cleared away in bulk."""
    rows = state.rows
    step = max(1, len(rows) // _LIVING)
    sample = np.arange(rows.tail, rows.head, step, dtype=np.int64)
    if len(sample) == 0:
        return 0.0
    births, deaths = state.lifespans(sample)
    return len(rows) * float(((births <= deaths) & (deaths >= clock.now)).mean())


def _rate(leaf: LeafWindow, clock: Clock, second: float) -> float:
    """Rows per second since the oldest that is alive."""
    rows = leaf.rows
    if len(rows) == 0:
        return 0.0
    oldest = int(rows.births[rows.tail & rows.mask])
    return len(rows) * second / max(clock.now - oldest, 1)


def _selectivity(
    linking: Linking,
    left: StreamSample,
    right: StreamSample,
    leaves: Mapping[str, LeafWindow],
    rates: Mapping[str, float],
) -> tuple[float, float] | None:
    """The share of pairs that match: with a recent row in them, and among all."""
    if not linking.keys and not linking.conditions and not linking.residuals:
        return None
    if len(left.recent) == 0 or len(right.recent) == 0:
        return None
    share = over_all = 1.0
    keys = None
    if linking.keys:
        over_all = left.share_equal_to(right, linking.keys, leaves)
        share = over_all
        if not (left.is_recent and right.is_recent):
            share = _mean(
                left.share_equal_to(right, linking.keys, leaves, recent=True),
                _new_pairs(left, right, rates),
                left.share_equal_to(right, linking.keys, leaves, other_recent=True),
                _new_pairs(right, left, rates),
            )
        # Nothing seen among so many pairs is half a match, not none: the sample may be small.
        least = 0.5 / (len(left.all) * len(right.all))
        share, over_all = max(share, least), max(over_all, least)
        keys = left.keys_of(right, linking.keys, leaves)
    if linking.conditions:
        passing = compared_share(linking.conditions, left, right)
        share, over_all = share * passing, over_all * passing
    if linking.residuals:
        found = residual_share(linking.residuals, left, right, keys, leaves)
        if found is None and not linking.keys and not linking.conditions:
            return None
        found = 1.0 if found is None else found
        share, over_all = share * found, over_all * found
    return share, over_all


def _new_pairs(left: StreamSample, right: StreamSample, rates: Mapping[str, float]) -> float:
    """Pairs per second of a new row of ``left`` and any row of ``right``."""
    return rates.get(left.leaf.stream.alias, 0.0) * len(right.leaf.rows)


def _mean(one: float, weight: float, two: float, other_weight: float) -> float:
    total = weight + other_weight
    return (one * weight + two * other_weight) / total if total else (one + two) / 2
