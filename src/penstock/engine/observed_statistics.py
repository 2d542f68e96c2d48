"""Statistics of a running engine: one immutable snapshot for the planners.

Nothing is counted for this while data flows; the windows themselves are a sample of the streams,
weighted by recency as the query weighs it.

- *Rates*: living rows over the time since the oldest of them was born. On the arrival line time is
  counted in arrivals.
- *Selectivities*: the share of all pairs that match, from samples of both windows: with p(v) and
  q(v) the shares of the values of the compared columns, an equality matches Σ p(v) q(v) of all
  pairs. Further comparisons are tried on a smaller sample of pairs. Predicates that need their
  columns decoded (residuals) are left out, and the planner says what it assumes.
- *Observed* selectivities: a complete state has as many rows as its windows have combinations,
  times this. They know about correlation.
- *Sizes and widths*: as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.engine.clock import Clock
from penstock.engine.composite_state import CompositeState, key_values
from penstock.engine.join_tree import JoinTree
from penstock.engine.leaf_window import LeafWindow
from penstock.engine.pair_shares import compare_all, equal_share
from penstock.engine.wiring import Condition, Linking, Wiring
from penstock.plan.stream_set import StreamSet
from penstock.planning.statistics import Statistics
from penstock.query.join_graph import JoinGraph

Int64s = NDArray[np.int64]

_SAMPLE = 1 << 15
_PAIRS = 512


def observed_statistics(
    graph: JoinGraph,
    trees: Sequence[JoinTree],
    wirings: Sequence[Wiring],
    clock: Clock,
    thin: bool = False,
) -> Statistics:
    """What the windows and states of an engine say about its streams.

    States that are ``thin``, since probes were skipped, say nothing.
    """
    second = 1.0 if graph.by_rows else 1000.0 * graph.ticks_per_millisecond
    rates: dict[str, float] = {}
    sizes: dict[StreamSet, float] = {}
    widths: dict[str, float] = {}
    selectivities: dict[StreamSet, float] = {}
    observed: dict[StreamSet, float] = {}
    for tree, wiring in zip(trees, wirings, strict=True):
        for alias, leaf in tree.leaves.items():
            sizes[leaf.streams] = len(leaf.rows)
            if len(leaf.rows):
                widths[alias] = leaf.nbytes / len(leaf.rows)
            if not leaf.stream.is_static:
                rates[alias] = _rate(leaf, clock, second)
        aliases = list(tree.leaves)
        for i, one in enumerate(aliases):
            for other in aliases[i + 1 :]:
                left, right = tree.leaves[one], tree.leaves[other]
                linking = wiring.between(left.streams, right.streams)
                found = _selectivity(linking, left, right, tree.leaves)
                if found is not None:
                    selectivities[left.streams | right.streams] = found
        for streams, state in ({} if thin else tree.complete_states()).items():
            combinations = float(np.prod([len(tree.leaves[s].rows) for s in streams]))
            sizes[streams] = _living(state, clock)
            if combinations:
                observed[streams] = min(1.0, sizes[streams] / combinations)
    return Statistics(rates, selectivities, observed, sizes, widths=widths)


def _living(state: CompositeState, clock: Clock) -> float:
    """Rows of a state that are alive: those that have died in between are cleared away in bulk."""
    rows = state.rows
    step = max(1, len(rows) // _SAMPLE)
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
    linking: Linking, left: LeafWindow, right: LeafWindow, leaves: dict[str, LeafWindow]
) -> float | None:
    if not linking.keys and not linking.conditions:
        return None
    mine, theirs = _latest(left, _SAMPLE), _latest(right, _SAMPLE)
    if len(mine) == 0 or len(theirs) == 0:
        return None
    share = 1.0
    if linking.keys:
        one = key_values(tuple(k for k, _ in linking.keys), left.resolve(mine), leaves)
        two = key_values(tuple(k for _, k in linking.keys), right.resolve(theirs), leaves)
        share = equal_share(one, two)
    if linking.conditions:
        share *= _compared_share(linking.conditions, left, right)
    return share


def _latest(leaf: LeafWindow, most: int) -> Int64s:
    rows = leaf.delta_of_all().ids[leaf.stream.alias]
    return rows[-most:]


def _compared_share(
    conditions: tuple[Condition, ...], left: LeafWindow, right: LeafWindow
) -> float:
    mine, theirs = _latest(left, _PAIRS), _latest(right, _PAIRS)
    good = np.ones((len(mine), len(theirs)), np.bool_)
    for condition in conditions:
        seen = condition.seen_from(left.streams)
        one = left.rows.take(left.key_column(seen.left.position), mine)
        two = right.rows.take(right.key_column(seen.right.position), theirs)
        good &= compare_all(seen.operator, one, two)
    return float(good.mean())
