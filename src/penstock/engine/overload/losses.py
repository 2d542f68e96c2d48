"""What was lost, and what is missing because of it: by dropped probes, and at the door.

Two estimates serve: of probes that were not made, below the root and there
(:mod:`penstock.engine.overload.loss_estimate`), and of rows that were not taken in
(:mod:`penstock.engine.overload.row_weights`). Each result that was made stands for so many that
both together say.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.engine.overload.half_way_counts import HalfWayCounts
from penstock.engine.overload.key_arcs import Arc, KeyArcs
from penstock.engine.overload.late_finds import LateFinds
from penstock.engine.overload.loss_estimate import LossEstimate
from penstock.engine.overload.row_weights import RowWeights, Weight
from penstock.engine.rationing.debt import Forgotten
from penstock.engine.state.clock import START
from penstock.engine.state.composites import Composites
from penstock.engine.tree.join_tree import JoinTree
from penstock.overload.missed_results import Missed, Stratum
from penstock.plan.stream_set import StreamSet
from penstock.query.expression import Column

Int64s = NDArray[np.int64]

_ALIKE = 0.1
"""How far the part of the rows that windows have may change before results are weighed again: that
takes longer than to make them."""
_MOST_UNWEIGHED = 16
"""Pushes after which they are weighed in any case."""


class Losses:
    """The losses of a running ``tree``."""

    def __init__(self, tree: JoinTree) -> None:
        self._tree = tree
        self.estimate = LossEstimate(tree.root.streams)
        self.late = LateFinds()
        """What owed probes found, of what was foreseen."""
        self._untried: dict[StreamSet, float] = {}
        """Results that were foreseen of probes that were given up, of inputs of which none was made
        in the meantime."""
        self._unforeseen: Counter[StreamSet] = Counter()
        """Such probes of which nothing is known at all so far."""
        self._weights = RowWeights()
        self._weight = Weight()
        """What the results of the push at hand stand for, or those of one shortly before."""
        self._unweighed = 0
        """Pushes that may be taken to be like the last that was looked at."""
        self._part = self._part_weighed = 1.0
        """The part of the rows that windows have, now and when results were weighed."""
        self._thinned: list[StreamSet] = []
        """Joins whose states have lost, in this push, what was still to be completed."""

    def attach(self, tree: JoinTree) -> None:
        """Go on with another tree, whose states lack nothing."""
        self._tree = tree
        self.estimate = replace(
            LossEstimate(tree.root.streams),
            lost=self.estimate.lost,
            variance=self.estimate.variance,
            common_error=self.estimate.common_error,
        )

    @property
    def is_to_weigh(self) -> bool:
        """Whether results of the push at hand stand for more than themselves, and nobody has looked
        for how many for some pushes."""
        is_alike = abs(self._part - self._part_weighed) <= _ALIKE * self._part_weighed
        return self._weights.is_thin and not (self._unweighed and is_alike)

    @property
    def are_felt(self) -> bool:
        """Whether windows or states may lack something."""
        return bool(self.estimate.fills) or self._weights.is_thin

    @property
    def is_thin(self) -> bool:
        """Whether states lack what dropped probes did not make."""
        return self.estimate.is_thin

    def share_there(self, streams: StreamSet) -> float:
        """Which part of what ``streams`` have together is in their state, or window, about: of each
        part of it, the share that was made or taken in."""
        share = self.estimate.share_there(streams)
        for stream in streams if self._weights.is_thin else ():
            share *= self._weights.share(stream, self._tree.leaves)
        return share

    def length_there(self) -> float:
        """The length of the arcs of the rows in windows, on average."""
        return self._weights.length(self._tree.leaves)

    def begin(self, weights: Mapping[str, float], arcs: Mapping[str, Arc]) -> None:
        """A push begins whose rows stand for so many each, where some were left out, or whose keys
        lie in ``arcs``."""
        self._weights.begin(self._tree.leaves, weights, arcs)
        self._thinned = []
        self._unweighed = max(0, self._unweighed - 1)
        if not self._weights.is_thin:
            self._weight, self._unweighed = Weight(), 0
            return
        self._part = self._weights.part(self._tree.leaves)

    def pass_under(self, weights: Mapping[str, float], arcs: Mapping[str, Arc]) -> None:
        """Pushes come that are not looked at, as in :meth:`begin`."""
        self._weights.begin(self._tree.leaves, weights, arcs)

    def passed(self, pushes: int, weights: Mapping[str, float]) -> None:
        """So many have come, whose rows weigh so much."""
        self._weights.pool(weights)
        self._unweighed = max(0, self._unweighed - pushes)

    def weigh(self, results: Composites, seed: Sequence[int], keys: KeyArcs) -> None:
        """Note what the ``results`` of the push stand for; rows were chosen by ``keys``, if any."""
        classes = [
            {stream: self._keys_of(stream, column) for stream, column in each.items()}
            for each in keys.classes
        ]
        if len(results):
            self._weight = self._weights.weigh(results, np.random.default_rng(seed), classes)
            self._unweighed, self._part_weighed = _MOST_UNWEIGHED, self._part

    def _keys_of(self, stream: str, column: Column) -> Callable[[Int64s], Int64s]:
        """The keys of rows of ``stream`` in ``column``."""
        leaf = self._tree.leaves[stream]
        place = leaf.key_column(leaf.encoder.expressions.index(column))
        return lambda rows: leaf.rows.take(place, rows)

    def thin(self, joins: Iterable[StreamSet]) -> None:
        """The states of ``joins`` have lost what was still to be completed."""
        self._thinned += joins

    def commit(
        self,
        counts: HalfWayCounts,
        made: Mapping[StreamSet, Mapping[StreamSet, float]],
        strata: Sequence[tuple[StreamSet, StreamSet, Stratum]],
        before: int,
        now: int,
        is_short: bool,
        again: bool,
    ) -> None:
        """The push is done, in which rows of each input of joins ``made`` so much and probes were
        dropped from ``strata``. It has taken time on from ``before`` to ``now``. If it is made
        ``again``, what is lost has been counted."""
        if not (strata or self.estimate.fills or self._weight.mean > 1 or is_short):
            return
        fades = {join: self._fade(join, now - before if before != START else None) for join in made}
        after = self.estimate.after(fades, made, strata, self._held(made), self._weight)
        self.estimate = self.estimate.refilled(after.fills) if again else after
        for join in self._thinned:
            there = sum(made[join].values())
            self.estimate = self.estimate.thinned(join, there, counts.expected(join))
        self._thinned = []

    def give_up_rows(
        self,
        gone: Iterable[tuple[StreamSet, Forgotten]],
        at_root: Collection[StreamSet],
        foreseen: Mapping[StreamSet, float],
    ) -> None:
        """Owed probes of inputs will not be made; a row of each is ``foreseen`` to lead to so many
        results by now, if that is known."""
        for origin, each in gone:
            self._unforeseen[origin] += each.unforeseen
            results = each.results
            if origin in foreseen:
                results += self._unforeseen.pop(origin) * foreseen[origin]
            self.give_up([(origin, results)], at_root)

    def give_up(
        self, gone: Iterable[tuple[StreamSet, float]], at_root: Collection[StreamSet]
    ) -> None:
        """Owed probes of inputs will find nothing, that were foreseen to lead to so many results.

        How far that is right is known from others of its kind, for inputs ``at_root``. Below it, a
        state lacks what was not made, and whoever probes it later misses that too: all that is
        known is the order of magnitude.
        """
        for origin, foreseen in gone:
            foreseen += self._untried.pop(origin, 0.0)
            ratio = self.late.ratio(origin)
            if not ratio.is_known:
                self._untried[origin] = foreseen
                continue
            lost = foreseen * ratio.value
            doubt = ratio.doubt if origin in at_root else 1.0
            self.estimate = replace(
                self.estimate,
                lost=self.estimate.lost + lost,
                variance=self.estimate.variance + foreseen * ratio.spread,
                common_error=self.estimate.common_error + doubt * lost,
            )

    @property
    def missed(self) -> Missed:
        """Results lost since the start, with those that nobody has tried yet as they were foreseen,
        and off by as much."""
        found = self.estimate.missed
        untried = sum(self._untried.values()) + self._unforeseen.total()
        return Missed(found.results + untried, math.hypot(found.error, untried))

    def _fade(self, join: StreamSet, passed: int | None) -> float:
        """What is left of a sum about the state of ``join`` after so many ticks.

        Of combinations of k streams with windows of S that were made at age a, (1 - a/S)^(k-1) are
        still there, so those in a state are S/(k+1) old on average.
        """
        span = min(self._tree.leaves[stream].span for stream in join)
        if passed is None or span <= 0:
            return 0.9
        return math.exp(-max(0, passed) * (len(join) + 1) / span)

    def _held(self, joins: Iterable[StreamSet]) -> dict[StreamSet, int]:
        """Rows of the states of which nothing has been lost so far."""
        new = {join for join in joins if join not in self.estimate.fills}
        states = self._tree.states if new else ()
        return {state.streams: len(state.rows) for state in states if state.streams in new}

    def to_json(self) -> dict[str, Any]:
        """What was lost so far, and what windows lack."""
        loss = self.estimate
        return {
            "lost": [loss.lost, loss.variance, loss.common_error],
            "weights": self._weights.averages(self._tree.leaves),
            "arcs": self._weights.newest_arcs,
            "late": self.late.to_json(),
            "untried": [[sorted(origin), each] for origin, each in self._untried.items()],
            "unforeseen": [[sorted(origin), each] for origin, each in self._unforeseen.items()],
        }

    def load_json(self, values: Mapping[str, Any]) -> None:
        """Go on from what :meth:`to_json` wrote down."""
        lost, variance, common_error = values["lost"]
        self.estimate = replace(
            self.estimate, lost=lost, variance=variance, common_error=common_error
        )
        self.late = LateFinds.from_json(values.get("late", []))
        self._untried = {StreamSet(o): each for o, each in values.get("untried", [])}
        self._unforeseen = Counter({StreamSet(o): n for o, n in values.get("unforeseen", [])})
        self._weights.resume(values.get("weights", {}), values.get("arcs", {}))
