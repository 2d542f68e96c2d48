"""What the half-way joins of a running tree find per probe, and the path model of that.

Nothing is measured for this beyond the counts that every step keeps. Equation 4 has matches per
probe as σ·|S|: the share of pairs that match, which is a mean over recent pushes, times the rows of
the target by now, those of the push at hand included. So when a burst comes it is known what its
rows will find, before it has been seen. Where the target is a stored join of which only a share was
made, or a window of whose rows only a share was taken in, a probe finds that share of its partners,
so the productivity that the allocators ask for,
that of full states, is the quotient. Before anything was seen, every half-way join counts as
finding one match: then no direction is better than any other, and the first allocation treats all
alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, NamedTuple

from penstock.engine.join.join_operator import JoinOperator
from penstock.engine.join.join_step import JoinStep
from penstock.engine.tree.join_tree import JoinTree
from penstock.overload.path_model import PathModel, observed_model
from penstock.overload.prices import PROBES, Prices
from penstock.plan.plan import Join, Leaf, Node, Plan
from penstock.plan.stream_set import StreamSet

_MEMORY = 4096.0
"""Probes after which what was seen before has faded by about two thirds, in large pushes faster."""
_THINNEST = 0.05
_LENT = 32
"""Probes of the other way that count at most."""


@dataclass(slots=True)
class _Seen:
    """What a step has found: recent pairs and matches, and its counts at the last look."""

    step: JoinStep
    pairs: float = 0.0
    matches: float = 0.0
    last_probes: int = 0
    last_matches: int = 0
    told: int | None = None
    """Rows that the target had when another engine looked, in place of those of now."""
    back: _Seen | None = None
    """The half-way join of the same two inputs the other way."""

    @property
    def size(self) -> int:
        """The rows that a probe may see."""
        return _size(self.step) if self.told is None else self.told

    @property
    def share(self) -> float | None:
        """The share of pairs that match, None if nothing was seen. What was found the other way
        counts like a few probes of this one: an input that has hardly probed is not known to be
        poor."""
        pairs, matches = self.pairs, self.matches
        if self.back is not None and self.back.pairs:
            lent = min(self.back.pairs, _LENT * self.back.size)
            pairs, matches = pairs + lent, matches + lent * self.back.matches / self.back.pairs
        return matches / pairs if pairs else None

    def learn(self, share_there: float = 1.0) -> None:
        """Take note of what was found since the last call, where such a share of the target was
        there to be found."""
        probes, matches = self.step.probes, self.step.matches
        new = probes - self.last_probes
        if new > 0:
            fade = 1.0 - min(0.3, new / _MEMORY)
            self.pairs = fade * self.pairs + new * share_there * _size(self.step)
            self.matches = fade * self.matches + matches - self.last_matches
        self.last_probes, self.last_matches = probes, matches


class Done(NamedTuple):
    """What was done in a push."""

    probes: int
    work: float
    made: dict[StreamSet, dict[StreamSet, float]]
    """Combinations that each join has made, bottom-up, by the input whose rows probed."""
    probed: dict[StreamSet, int]
    """Rows of each input of the root that have probed."""

    def total(self, join: StreamSet) -> int:
        """Combinations that ``join`` has made."""
        return round(sum(self.made.get(join, {}).values()))


class HalfWayCounts:
    """The half-way joins of ``tree``."""

    def __init__(self, tree: JoinTree, prices: Prices = PROBES) -> None:
        """With ``prices`` what is counted is work, in probes; without, probes alone."""
        operators = {operator.streams: operator for operator in tree.operators}
        self.plan = Plan(_with_orders(tree.root, operators))
        self.joins: dict[StreamSet, tuple[StreamSet, ...]] = {}
        """The inputs of each join."""
        self._operators = list(tree.operators)
        self._made = [operator.made for operator in tree.operators]
        self._seen: dict[tuple[StreamSet, StreamSet], _Seen] = {}
        self._counts = tree.counts
        self._places = [
            step.place
            for operator in tree.operators
            for steps in operator.steps
            for _, step in steps
        ]
        """Where the probes of all steps are counted; a place later, their matches."""
        self._prices = prices
        self._ways: list[tuple[StreamSet, StreamSet, list[tuple[StreamSet, _Seen]]]] = []
        """The steps of every input of every join, top-down: the join, the input, its targets."""
        for operator in tree.operators:
            inputs = tuple(each.streams for each in operator.node.inputs)
            self.joins[operator.streams] = inputs
            for position, steps in enumerate(operator.steps):
                way = []
                for other, step in steps:
                    seen = _Seen(step, 0.0, 0.0, step.probes, step.matches)
                    self._seen[inputs[position], inputs[other]] = seen
                    way.append((inputs[other], seen))
                self._ways.insert(0, (operator.streams, inputs[position], way))

        for (origin, target), seen in self._seen.items():
            seen.back = self._seen.get((target, origin))
        self._last_steps = {
            operator.streams: [
                (origin, steps[-1][1])
                for origin, steps in zip(self.joins[operator.streams], operator.steps, strict=True)
                if steps
            ]
            for operator in tree.operators
        }
        """Of each join and input, the step that makes combinations."""
        self._matched = {
            origin: step.matches for steps in self._last_steps.values() for origin, step in steps
        }
        """Their matches at the end of the push before."""
        root = tree.operators[-1]
        self._first_steps = [
            (origin, steps[0][1])
            for origin, steps in zip(self.joins[root.streams], root.steps, strict=True)
            if steps
        ]
        self._probed = {origin: step.probes for origin, step in self._first_steps}
        """Rows of each input of the root that had probed by the end of the push before."""
        self._taken = self.probes, self.work
        """Probes and work at the end of the push before."""

    @property
    def are_known(self) -> bool:
        """Whether it has been seen what each half-way join finds."""
        return all(seen.share is not None for seen in self._seen.values())

    @property
    def probes(self) -> int:
        """All probes since the start."""
        counts = self._counts
        return sum([counts[place] for place in self._places])

    @property
    def work(self) -> float:
        """All work since the start; where only probes count, these."""
        prices, counts = self._prices, self._counts
        work = float(self.probes)
        if prices is PROBES:
            return work
        work += prices.match * sum([counts[place + 1] for place in self._places])
        made = [operator.made for operator in self._operators]
        return work + prices.stored * sum(made[:-1]) + prices.result * made[-1]

    @property
    def used(self) -> float:
        """The work of the push at hand."""
        return self.work - self._taken[1]

    @property
    def results(self) -> int:
        """What the root has made in the push at hand."""
        return self._operators[-1].made - self._made[-1]

    def learn(self) -> None:
        """Take note of what was found since the last call. A push that failed has found nothing:
        the counts are then as they were before it."""
        for seen in self._seen.values():
            seen.learn()

    def learn_late(self, shares: Mapping[StreamSet, float]) -> None:
        """The same where probes were made that were owed: such ``shares`` of the partners of each
        input were still there, of each stream about as many."""
        streams = max(self.joins, key=len)
        for (origin, target), seen in self._seen.items():
            seen.learn(shares.get(origin, 1.0) ** (len(target) / len(streams - origin)))

    def take(self) -> Done:
        """A push is done: what was done in it."""
        before, self._taken = self._taken, (self.probes, self.work)
        self.learn()
        for seen in self._seen.values():
            seen.told = None
        made = {}
        for number, operator in enumerate(self._operators):
            made[operator.streams] = self._by_input(
                operator.streams, operator.made - self._made[number]
            )
            self._made[number] = operator.made
        probed = {o: step.probes - self._probed[o] for o, step in self._first_steps}
        self._probed = {origin: step.probes for origin, step in self._first_steps}
        return Done(self._taken[0] - before[0], self._taken[1] - before[1], made, probed)

    def _by_input(self, join: StreamSet, made: int) -> dict[StreamSet, float]:
        """What ``join`` has made since the last call, divided by the matches of last steps."""
        matches = {}
        for origin, step in self._last_steps[join]:
            matches[origin] = step.matches - self._matched.get(origin, 0)
            self._matched[origin] = step.matches
        whole = sum(matches.values())
        if whole <= 0:
            return {origin: made / len(matches) for origin in matches}
        return {origin: made * each / whole for origin, each in matches.items()}

    def to_json(self) -> list[list[Any]]:
        """What was found, and how many rows there were to be found."""
        return [
            [sorted(origin), sorted(target), seen.pairs, seen.matches, _size(seen.step)]
            for (origin, target), seen in self._seen.items()
        ]

    def load_json(self, values: Sequence[Sequence[Any]]) -> None:
        """Take what :meth:`to_json` wrote down for what was found here."""
        for origin, target, pairs, matches, _ in values:
            seen = self._seen.get((StreamSet(origin), StreamSet(target)))
            if seen is not None:
                seen.pairs, seen.matches = pairs, matches

    def look_back(self, values: Sequence[Sequence[Any]]) -> None:
        """Let targets have as many rows as when ``values`` were written down, for one push."""
        for origin, target, _, _, size in values:
            seen = self._seen.get((StreamSet(origin), StreamSet(target)))
            if seen is not None:
                seen.told = size

    def expected(self, join: StreamSet) -> float:
        """The combinations that a binary ``join`` has of what its inputs hold, if all were made."""
        inputs = self.joins[join]
        seen = [self._seen[pair] for pair in permutations(inputs, 2)] if len(inputs) == 2 else []
        shares = [each.share for each in seen if each.share is not None]
        sizes = math.prod(_size(each.step) for each in seen)
        return sizes * sum(shares) / len(shares) if shares else 0.0

    def model(
        self,
        rates: Mapping[str, float],
        share_there: Callable[[StreamSet], float],
        sizes: Mapping[StreamSet, float],
        coming: Mapping[str, int],
    ) -> PathModel:
        """The path model at these rates.

        ``share_there`` of what streams have together is in their state, and ``coming`` are the rows
        of the push at hand.
        """
        productivities = {
            (origin, target): _productivity(seen, target, share_there, coming)
            for (origin, target), seen in self._seen.items()
        }
        return observed_model(self.plan, rates, productivities, sizes)

    def prices(
        self, share_there: Callable[[StreamSet], float], coming: Mapping[str, int]
    ) -> dict[StreamSet, tuple[float, float]]:
        """Work and results that a row of each input leads to, on its way to the root: what the
        :meth:`model` says, without making one."""
        found: dict[StreamSet, tuple[float, float]] = {}
        prices = self._prices
        for join, origin, way in self._ways:
            cost, made = 0.0, 1.0
            for target, seen in way:
                cost += made
                made *= _productivity(seen, target, share_there, coming)
                cost += made * prices.match
            further, results = found.get(join, (prices.result, 1.0))
            if join in found:
                further += prices.stored
            found[origin] = (cost + made * further, made * results)
        return found


def _productivity(
    seen: _Seen,
    target: StreamSet,
    share_there: Callable[[StreamSet], float],
    coming: Mapping[str, int],
) -> float:
    """Matches of a probe, if the state of ``target`` were full."""
    size = seen.size
    share = max(_THINNEST, share_there(target))
    if len(target) == 1:
        size += coming.get(min(target), 0)
    return (1.0 if seen.share is None else seen.share * size) / share


def _size(step: JoinStep) -> int:
    """The rows that a probe may see."""
    return step.target.rows.head - step.target.rows.low


def _with_orders(node: Node, operators: Mapping[StreamSet, JoinOperator]) -> Node:
    """``node`` with the probe orders that the engine has chosen."""
    if isinstance(node, Leaf):
        return node
    steps = operators[node.streams].steps
    return Join(
        tuple(_with_orders(each, operators) for each in node.inputs),
        tuple(tuple(other for other, _ in each) for each in steps),
    )
