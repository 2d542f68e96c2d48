"""Notice that streams change, from counts that are kept anyway.

Every step of every probe order counts what came to it and what left it. Each predicate is decided
in some step of any plan, so when a selectivity changes, it does so in some step: matches per probe
and row of the input that is probed. Comparing counts takes microseconds, against milliseconds for
statistics: it tells when a look is worth its cost, not what to do.

The counts also say how much work the pushes were, and how much more than normal: *excess* is a
cumulative sum (Page, Biometrika 1954) of the work per row beyond what it was at first, with some
slack for chance. It goes up as long as a plan has become dear, and down to zero when it has not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import is_not
from typing import NamedTuple

from penstock.engine.join.join_step import JoinStep
from penstock.engine.tree.join_tree import JoinTree
from penstock.plan.stream_set import StreamSet

CHANGED = 1.5
"""Times more or fewer matches than before that are news."""
MATCHES_ADDED = 50.0
"""Matches that are added to both: what rests on fewer is no news."""
CLUSTERED = 0.1
"""The weight of a match in a later step of a probe order: matches of one tuple come together."""
PROBE = 10e-9
MATCH = 30e-9
ROW = 80e-9
COMPARE = 1e-9
"""CPU seconds of a probe, a match, a row that is taken in, and a pair that a nested loop compares,
about."""

ENOUGH_PROBES = 500
"""Rows that must have begun, if what they found in several streams is to be believed."""
SLACK = 1.2
"""Work per row that is so many times the normal one is still normal."""


class Glance(NamedTuple):
    """What the counts say."""

    work: float
    """CPU seconds since the last glance."""
    changed: bool
    """Whether selectivities have changed since :meth:`StepWatch.reset`."""
    excess: float
    """CPU seconds beyond the normal since then."""


_Seen = tuple[float, float, int]
"""Probes, matches and pairs of a step."""


class StepWatch:
    """Watches the steps of the trees of an engine."""

    def __init__(self) -> None:
        self._trees: list[JoinTree] = []
        self._steps: list[tuple[JoinStep, float]] = []
        """With what a match in it counts."""
        self._before: list[tuple[int, int]] = []
        self._at_reset: list[tuple[int, int]] = []
        """Counts at the last :meth:`reset`."""
        self._heads: dict[int, dict[str, int]] = {}
        """Rows that had come then, by tree and stream."""
        self._normal: list[_Seen] | None = None
        """From the first glance after :meth:`reset`."""
        self._per_row = 0.0
        """Work, from the same."""
        self._excess = 0.0

    def glance(self, trees: Sequence[JoinTree], rows: int) -> Glance:
        """Compare, after ``rows`` more have come."""
        work = rows * ROW
        if len(trees) != len(self._trees) or any(map(is_not, trees, self._trees)):
            self._begin(trees)
            return Glance(work, False, 0.0)
        before, self._before = self._before, self._counts()
        seen: list[_Seen] = []
        for (step, weight), (old_probes, old_matches), (probes, matches) in zip(
            self._steps, before, self._before, strict=True
        ):
            probes, matches = probes - old_probes, matches - old_matches
            pairs = probes * len(step.target.rows)
            work += matches * MATCH + (probes * PROBE if step.hashed else pairs * COMPARE)
            seen.append((weight * probes, weight * matches, pairs))
        if self._normal is None:
            self._normal = seen
            self._per_row = work / rows if rows else 0.0
            return Glance(work, False, 0.0)
        self._excess = max(0.0, self._excess + work - SLACK * self._per_row * rows)
        return Glance(work, any(map(_differ, seen, self._normal)), self._excess)

    def reset(self) -> None:
        """What the next glance sees is the new normal."""
        self._normal = None
        self._excess = 0.0
        self._at_reset = self._counts()
        self._heads = {
            id(tree): {alias: leaf.rows.head for alias, leaf in tree.leaves.items()}
            for tree in self._trees
        }

    def seen_together(self, trees: Sequence[JoinTree]) -> dict[StreamSet, float]:
        """The share of the combinations of three and more streams that have passed all predicates
        between them, by the counts since :meth:`reset`.

        A new row of stream X, after the inputs over S have been visited, has as many partial
        results as there are combinations over S for one row of X. Pairs cannot tell: whoever has
        many partners in B may have many, or none, in C. Rows that feedback keeps back have no
        partner in the input that they wait for. So where that input is in S they are rows that
        have found nothing, and where it is not, the counts say nothing about S.
        """
        if len(trees) != len(self._trees) or any(map(is_not, trees, self._trees)):
            return {}
        before = dict(zip((id(step) for step, _ in self._steps), self._at_reset, strict=True))
        found: dict[StreamSet, list[float]] = {}
        for tree in trees:
            sizes = {alias: float(len(leaf.rows)) for alias, leaf in tree.leaves.items()}
            waits = [
                (guard.streams, guard.opposite.streams)
                for edge in tree.edges
                for guard in edge.guards
                if guard.is_on
            ]
            for operator in tree.operators:
                for origin, steps in zip(operator.node.inputs, operator.steps, strict=True):
                    if len(origin.streams) > 1:
                        continue
                    first = steps[0][1]
                    began = first.probes - before[id(first)][0]
                    if waits:
                        (alias,) = origin.streams
                        head = self._heads.get(id(tree), {}).get(alias, 0)
                        began = max(began, tree.leaves[alias].rows.head - head)
                    _count_together(origin.streams, began, steps, before, sizes, waits, found)
        return {
            streams: max(matches, 0.5) / pairs
            for streams, (matches, pairs, probes) in found.items()
            if pairs > 0 and probes >= ENOUGH_PROBES
        }

    def _begin(self, trees: Sequence[JoinTree]) -> None:
        self._trees = list(trees)
        self._steps = [
            (step, 1.0 if number == 0 else CLUSTERED)
            for tree in trees
            for operator in tree.operators
            for steps in operator.steps
            for number, (_, step) in enumerate(steps)
        ]
        self._before = self._counts()
        self.reset()

    def _counts(self) -> list[tuple[int, int]]:
        return [(step.probes, step.matches) for step, _ in self._steps]


def _count_together(
    origin: StreamSet,
    began: int,
    steps: Sequence[tuple[object, JoinStep]],
    before: Mapping[int, tuple[int, int]],
    sizes: Mapping[str, float],
    waits: Sequence[tuple[StreamSet, StreamSet]],
    found: dict[StreamSet, list[float]],
) -> None:
    """Add to ``found`` what the steps of ``began`` rows of stream ``origin`` have counted: matches,
    pairs that could have been, and rows that began. ``waits`` are inputs that wait for others."""
    streams, pairs = origin, float(began)
    for _, step in steps:
        streams = StreamSet(streams | step.target.streams)
        pairs *= math.prod(sizes[each] for each in step.target.streams)
        if len(streams) > 2 and all(
            opposite <= streams for waiting, opposite in waits if waiting <= streams
        ):
            sums = found.setdefault(streams, [0.0, 0.0, 0.0])
            sums[0] += step.matches - before[id(step)][1]
            sums[1] += pairs
            sums[2] += began


def _differ(one: _Seen, other: _Seen) -> bool:
    """Whether matches per pair differ.

    The larger sample is brought down to the smaller one. The matches of one probe come together, so
    they are worth no more than the probe.
    """
    first, second = one[2], other[2]
    if not first or not second:
        return False
    weight = 1.0
    for probes, matches, _ in (one, other):
        if matches > probes:
            weight = min(weight, probes / matches)
    pairs = weight * min(first, second)
    mine, theirs = MATCHES_ADDED + one[1] * pairs / first, MATCHES_ADDED + other[1] * pairs / second
    return mine > CHANGED * theirs or theirs > CHANGED * mine
