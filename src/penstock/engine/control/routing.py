"""Where rows should go next: routes by rank, from what was seen lately.

An eddy sends a row to the operators in an order of its own choice, and learns from what comes back
(Avnur and Hellerstein, SIGMOD 2000, by lottery; CACQ, SIGMOD 2002). Here a batch is routed as a
whole, and the order is that of rank: the operator that lets the fewest through comes first. All
look-ups cost about the same, so rank is the *fan-out*, the partners that a row has in a window.

Fan-outs come from two sources. What was probed since the last review is known: matches per probe.
What nobody has tried is estimated from samples of the latest rows: with p(v) and q(v) the shares of
the values of two compared columns, a row has Σ p(v) q(v) · |window| partners. (A lottery would send
some rows astray to find out.) Columns are taken to be independent until a route has been used.

Nothing here changes an answer: a route is a probe order, and every order gives the same results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.engine.control.pair_shares import compare_all, equal_share
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.tree.join_tree import JoinTree
from penstock.plan.stream_set import StreamSet
from penstock.values.wiring import Condition, KeyColumn, Wiring

Int64s = NDArray[np.int64]
Counts = dict[tuple[StreamSet, StreamSet], tuple[int, int]]
"""Probes and matches of what was joined with what."""

_SAMPLE = 1024
_PAIRS = 64
_RESIDUAL = 1 / 3
"""The share that a predicate lets through of which nothing is known."""
_PROBES_TO_BELIEVE = 64
"""Probes that say more than an estimate."""


def counts_of(tree: JoinTree) -> Counts:
    """What each step of the running tree has counted since its start."""
    counts: Counts = {}
    for operator in tree.operators:
        inputs = [each.streams for each in operator.node.inputs]
        for position, steps in enumerate(operator.steps):
            together = inputs[position]
            for other, step in steps:
                counts[together, inputs[other]] = (step.probes, step.matches)
                together = together | inputs[other]
    return counts


class Routing:
    """The fan-outs of one block by now."""

    def __init__(
        self, tree: JoinTree, before: Mapping[tuple[StreamSet, StreamSet], tuple[int, int]]
    ) -> None:
        """``before`` is what :func:`counts_of` said at the last review."""
        self._leaves = tree.leaves
        self._wiring: Wiring = tree.wiring
        self._samples: dict[KeyColumn, Int64s] = {}
        self._shares: dict[KeyColumn | tuple[KeyColumn, KeyColumn] | Condition, float] = {}
        self._measured: dict[tuple[StreamSet, StreamSet], float] = {}
        for pair, (probes, matches) in counts_of(tree).items():
            probes_before, matches_before = before.get(pair, (0, 0))
            if probes - probes_before >= _PROBES_TO_BELIEVE:
                ratio = (matches - matches_before) / (probes - probes_before)
                self._measured[pair] = ratio

    def fanout(self, together: StreamSet, target: StreamSet, rows: float) -> float:
        """Combinations over ``target``, of which there are ``rows``, that one over ``together``
        meets."""
        measured = self._measured.get((together, target))
        if measured is not None:
            return measured
        linking = self._wiring.between(together, target)
        share = _RESIDUAL ** len(linking.residuals)
        for pair in linking.keys:
            share *= self._equal(*pair)
        for condition in linking.conditions:
            share *= self._compared(condition)
        return share * rows

    def window(self, alias: str) -> int:
        """Rows of the window of a stream."""
        return len(self._leaves[alias].rows)

    def looseness(self, together: StreamSet, target: StreamSet) -> int:
        """0 where a hash finds partners, 1 where a comparison does, 2 where nothing links."""
        linking = self._wiring.between(together, target)
        return 0 if linking.keys else 1 if linking.conditions or linking.residuals else 2

    def route(self, start: str) -> tuple[str, ...]:
        """The streams that rows of ``start`` should visit, in this order."""
        together = StreamSet.of(start)
        left = [alias for alias in self._leaves if alias != start]
        order = []
        while left:
            chosen = min(left, key=lambda alias: self._rank(together, alias))
            order.append(chosen)
            left.remove(chosen)
            together = together | StreamSet.of(chosen)
        return tuple(order)

    def _rank(self, together: StreamSet, alias: str) -> tuple[int, float]:
        """Linked streams come before others, whatever their size."""
        return self.looseness(together, StreamSet.of(alias)), self._meets(together, alias)

    def _meets(self, together: StreamSet, alias: str) -> float:
        return self.fanout(together, StreamSet.of(alias), self.window(alias))

    def partial_results(self, start: str, order: Sequence[str]) -> float:
        """Partial results that a row of ``start`` makes along ``order``; and one, for the row."""
        together = StreamSet.of(start)
        size = total = 1.0
        for alias in order[:-1]:
            size *= self._meets(together, alias)
            total += size
            together = together | StreamSet.of(alias)
        return total

    # -- samples -----------------------------------------------------------------------------

    def _equal(self, mine: KeyColumn, theirs: KeyColumn) -> float:
        pair = (mine, theirs)
        if pair not in self._shares:
            one, two = self._sample(mine), self._sample(theirs)
            share = equal_share(one, two) if len(one) and len(two) else 0.0
            self._shares[pair] = self._shares[theirs, mine] = share
        return self._shares[pair]

    def _compared(self, condition: Condition) -> float:
        if condition not in self._shares:
            one = self._sample(condition.left)[-_PAIRS:]
            two = self._sample(condition.right)[-_PAIRS:]
            good = compare_all(condition.operator, one, two)
            self._shares[condition] = float(good.mean()) if good.size else 0.0
        return self._shares[condition]

    def _sample(self, key: KeyColumn) -> Int64s:
        """The latest values of a column."""
        if key not in self._samples:
            leaf: LeafWindow = self._leaves[key.stream]
            first = max(leaf.rows.tail, leaf.rows.head - _SAMPLE)
            rows = np.arange(first, leaf.rows.head, dtype=np.int64)
            flags = leaf.chosen(rows)
            rows = rows if flags is None else rows[flags]
            self._samples[key] = leaf.rows.take(leaf.key_column(key.position), rows)
        return self._samples[key]
