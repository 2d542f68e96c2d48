"""A join of two or more inputs: the deltas of its inputs become its own delta.

With inputs 1 … k, new rows of input i meet the *new* contents of inputs j < i and the *old*
contents of inputs j > i. A result whose newest parts come from inputs I is then made exactly once,
by the largest member of I. A binary join is the case k = 2 and an mjoin the case k > 2; what
distinguishes them is only that the result of a join below the root is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.engine.join.compiled_order import CompiledOrder
from penstock.engine.join.join_order import probe_order
from penstock.engine.join.join_step import Algorithm, Input, JoinStep
from penstock.engine.state.composite_state import CompositeState
from penstock.engine.state.composites import Composites, concatenate, none_of
from penstock.engine.state.leaf_window import LeafWindow, date
from penstock.plan.plan import Join
from penstock.values.wiring import Wiring

Int64s = NDArray[np.int64]

_MOST_ROWS = 1 << 15
"""New rows that go through a probe order at a time, at most."""
_MOST_PARTIAL_RESULTS = 1 << 17
"""Partial results that a slice should make, at most: what a probe order holds in between."""


class JoinOperator:
    """Runs one :class:`~penstock.plan.plan.Join`."""

    def __init__(
        self,
        node: Join,
        inputs: Sequence[Input],
        wiring: Wiring,
        leaves: Mapping[str, LeafWindow],
        algorithm: Algorithm,
        state: CompositeState | None,
        counts: list[int],
    ) -> None:
        """``counts`` is the tally of the whole tree."""
        self.node = node
        self.streams = node.streams
        self.state = state
        self._counts = counts
        self.place = len(counts)
        counts.append(0)
        self.extent = 0
        """From the first to the last birth in the slice of a push that is being worked off."""
        self.growth = [1.0] * len(inputs)
        """The largest partial result of a probe order per new row, smoothed."""
        self._leaves = leaves
        self._wiring = wiring
        self._algorithm: Algorithm = algorithm
        self._place = len(counts)
        """From here on, the tally has two places for each step."""
        counts += [0] * (2 * len(inputs) * (len(inputs) - 1))
        self.steps: list[list[tuple[int, JoinStep]]] = []
        self._are_hashed = True
        """Whether no step tries all pairs, of which many would be dead."""
        self.orders: list[CompiledOrder] = []
        """The probe order of each input, for compiled pushes."""
        self.reroute(node, inputs)
        span = min(leaves[stream].span for stream in self.streams)
        self._brief = span // (2 * len(self.streams)) if span else -1
        """In a slice no longer than this, lifespans can wait until results are complete: what a
        probe sees was alive when the slice began, so there is little to reject. A composite of k
        streams lives for about a k-th of the windows, as its oldest row is the first to go. Where
        rows may die as soon as they are born, and in any order, no slice is short."""

    def reroute(self, node: Join, inputs: Sequence[Input]) -> None:
        """Probe in the orders of ``node`` from now on: the same join in all other respects."""
        self.node = node
        streams = [each.streams for each in inputs]
        orders = node.orders or tuple(
            probe_order(position, streams, self._wiring) for position in range(len(inputs))
        )
        before, self.steps = self.steps, []
        place = self._place
        for position, order in enumerate(orders):
            together = streams[position]
            steps = []
            for other in order:
                target = inputs[other]
                linking = self._wiring.between(together, target.streams)
                step = JoinStep(target, linking, self._leaves, self._algorithm, self._counts, place)
                place += 2
                steps.append((other, step))
                together = together | target.streams
            self.steps.append(steps)
        self._are_hashed = all(step.hashed for order in self.steps for _, step in order)
        self.orders = [
            CompiledOrder(
                sorted(start), [step for _, step in order], self._leaves, self.state is None
            )
            for start, order in zip(streams, self.steps, strict=True)
        ]
        for old in before:
            for _, step in old:
                step.dispose()

    @property
    def made(self) -> int:
        """Results since the start."""
        return self._counts[self.place]

    @property
    def is_brief(self) -> bool:
        """Whether lifespans can wait in the slice that is being worked off."""
        return self.extent <= self._brief and self._are_hashed

    def pairs_of(self, position: int) -> int:
        """Matches since the start that rows of input ``position`` had a part in first."""
        return sum(
            step.matches
            for start, order in enumerate(self.steps)
            for number, (other, step) in enumerate(order)
            if other == position or (start == position and number == 0)
        )

    def process(self, deltas: Sequence[Composites | None], old_heads: Sequence[int]) -> Composites:
        """The new results, given the deltas of the inputs, which are already stored there.

        ``old_heads`` are the heads of the inputs before their deltas.
        """
        made: list[Composites] = []
        for position, delta in enumerate(deltas):
            if delta is not None:
                made += self.probe(position, delta, old_heads)
        return self.gather(made)

    def probe(
        self,
        position: int,
        delta: Composites,
        old_heads: Sequence[int],
        upto: Sequence[int] | None = None,
    ) -> list[Composites]:
        """What rows of input ``position`` make, in parts.

        ``upto`` are the bounds of a push long ago, if it is then that they should have probed.
        """
        made = []
        start = 0
        while start < len(delta):
            size = max(64, min(_MOST_ROWS, int(_MOST_PARTIAL_RESULTS / self.growth[position])))
            whole = start == 0 and len(delta) <= size
            part = self._probe(
                position, delta if whole else delta.slice(start, start + size), old_heads, upto
            )
            start += size
            if part is not None:
                made.append(part)
        return made

    def gather(self, made: list[Composites]) -> Composites:
        """All that was made, counted."""
        result = self.together(made)
        self._counts[self.place] += len(result)
        return result

    def together(self, made: list[Composites]) -> Composites:
        """All that was made: results of the query dated, what is stored if it happens to be."""
        if not made:
            return none_of(sorted(self.streams))
        if all(part.dated for part in made):
            return concatenate(made)
        undated = concatenate([Composites.undated(part.ids) for part in made])
        return undated if self.state is not None else self._dated(undated.ids)

    def _probe(
        self,
        position: int,
        batch: Composites,
        old_heads: Sequence[int],
        upto: Sequence[int] | None = None,
    ) -> Composites | None:
        steps = self.steps[position]
        bounds = []
        for other, step in steps:
            rows = step.target.rows
            bound = rows.head if other < position else old_heads[other]
            if upto is not None:
                bound = upto[other]
            if bound <= rows.low and step.target.missing is None:
                return None
            bounds.append(bound)
        count = most = len(batch)
        if upto is None and self.is_brief:
            ids = batch.ids
            for (_, step), bound in zip(steps, bounds, strict=True):
                ids = step.extend(ids, bound)
                size = len(next(iter(ids.values())))
                most = max(most, size)
                if size == 0:
                    break
            batch = Composites.undated(ids)
        else:
            if not batch.dated:
                batch = self._dated(batch.ids)
                if len(batch) == 0:
                    return None
            for (_, step), bound in zip(steps, bounds, strict=True):
                batch = step.apply(batch, bound)
                most = max(most, len(batch))
                if len(batch) == 0:
                    break
        self.growth[position] = 0.5 * self.growth[position] + 0.5 * most / count
        return batch if len(batch) else None

    def _dated(self, ids: Mapping[str, Int64s]) -> Composites:
        """The combinations whose lifespans share an instant, with these."""
        found = date(ids, self._leaves)
        keep = found.births <= found.deaths
        return found if keep.all() else found.pick(np.flatnonzero(keep))
