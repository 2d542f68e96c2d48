"""What the rows in the windows stand for, when others were left at the door.

Of the rows of a push a share π was drawn at random, so each that was taken in stands for 1/π rows
(Horvitz and Thompson). Draws are independent from stream to stream, so a result stands for the
product of what its rows stand for, and the results that would have been made without a door are
estimated without bias by the sum over those that were made, whatever shares were in use when their
rows came in: today's rows meet yesterday's, drawn with another share. So weights are kept by row,
as runs: rows of a window are numbered as they come, and those of one push weigh the same.

Where rows were chosen by key (:mod:`~.key_arcs`), a result is there if the hash of its key lies in
the arcs of all of its rows. Hashes are spread evenly, so it stands for one over the length of what
these arcs have in common, and for the product of that over the classes of keys.

The mean weight of a push's results is taken from a random sample of them, which adds the error of
that sample. The error of the draws themselves is Σ (1 - π_d) t_d² over the rows d, with t_d the
weight of all results that hang on d: the chance that two of the sampled results hang on the same
row tells Σ t_d²; where keys were chosen, it is the same with keys for rows. That error is shared by
pushes of the same window, and of the same keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.engine.overload.key_arcs import Arc
from penstock.engine.state.composites import Composites
from penstock.engine.state.leaf_window import LeafWindow

Int64s = NDArray[np.int64]
KeyClass = Mapping[str, Callable[[Int64s], Int64s]]
"""The keys of rows of each stream that has a column in a class of equal ones."""

_SAMPLE = 256
"""Results of a push that are looked at."""
_NEARLY_ALL = 1.001
"""A weight up to which nothing worth a look was left out."""
_CIRCLE = Arc(-1e300, 2e300)
"""That of rows which were not chosen by key."""
_NO_ARCS: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Weight:
    """What a result of a push stands for."""

    mean: float = 1.0
    """Results for each that was made, on average."""
    variance: float = 0.0
    """Of this mean, from the sample that it was taken from."""
    blur: float = 0.0
    """Relative standard error of the draws at the door."""


class RowWeights:
    """Runs of rows with the same weight, for each stream that has a door."""

    def __init__(self) -> None:
        self._runs: dict[str, list[tuple[int, float]]] = {}
        """For each stream, where each run of rows ends, and the weight of its rows."""
        self._coming: Mapping[str, float] = {}
        """The weight of rows that come after the last run."""
        self._arcs: dict[str, list[tuple[int, Arc]]] = {}
        """The same for arcs, of each stream that has rows which were chosen by key."""
        self._coming_arcs: Mapping[str, Arc] = {}
        self.is_thin = False
        """Whether rows are missing in windows, those of the push at hand included."""

    def begin(
        self,
        leaves: Mapping[str, LeafWindow],
        coming: Mapping[str, float],
        arcs: Mapping[str, Arc] = _NO_ARCS,
    ) -> None:
        """The rows of the next push have these weights, 1 where none is given, and their keys lie
        in these ``arcs``."""
        if arcs or self._coming_arcs or self._arcs:
            self._begin_arcs(leaves, arcs)
        if not (coming or self._coming or self._runs or self._arcs):
            self.is_thin = False
            return
        for stream in {*coming, *self._coming, *self._runs}:
            rows = leaves[stream].rows
            runs = [run for run in self._runs.get(stream, ()) if run[0] > rows.tail]
            weight = self._coming.get(stream, 1.0)
            if rows.head > max(rows.tail, runs[-1][0] if runs else 0):
                if runs and runs[-1][1] == weight:
                    runs.pop()
                runs.append((rows.head, weight))
            if stream in coming or any(weight > 1 for _, weight in runs):
                self._runs[stream] = runs
            else:
                self._runs.pop(stream, None)
        self._coming = coming
        known = [weight for runs in self._runs.values() for _, weight in runs]
        self.is_thin = max((*coming.values(), *known), default=1.0) > _NEARLY_ALL
        self.is_thin |= bool(self._arcs)

    def _begin_arcs(self, leaves: Mapping[str, LeafWindow], coming: Mapping[str, Arc]) -> None:
        for stream in {*coming, *self._coming_arcs, *self._arcs}:
            rows = leaves[stream].rows
            runs = [run for run in self._arcs.get(stream, ()) if run[0] > rows.tail]
            if rows.head > max(rows.tail, runs[-1][0] if runs else 0):
                runs.append((rows.head, self._coming_arcs.get(stream, _CIRCLE)))
            if stream in coming or any(arc is not _CIRCLE for _, arc in runs):
                self._arcs[stream] = runs
            else:
                self._arcs.pop(stream, None)
        self._coming_arcs = coming

    def pool(self, weights: Mapping[str, float]) -> None:
        """All rows since :meth:`begin` weigh so much after all."""
        self._coming = {**self._coming, **weights}

    def share(self, stream: str, leaves: Mapping[str, LeafWindow]) -> float:
        """Of the rows that would be in the window of ``stream``, the share that is."""
        at, there, whole = leaves[stream].rows.tail, 0, 0.0
        for end, weight in self._runs.get(stream, ()):
            if end > at:
                there, whole, at = there + end - at, whole + (end - at) * weight, end
        return there / whole if whole else 1.0

    def part(self, leaves: Mapping[str, LeafWindow]) -> float:
        """The part of the rows of all windows that is there, about."""
        part = self.length(leaves) if self._arcs else 1.0
        for stream in self._runs:
            part *= self.share(stream, leaves)
        return part

    def averages(self, leaves: Mapping[str, LeafWindow]) -> dict[str, float]:
        """The mean weight of the rows in each window where it is not 1."""
        return {stream: 1 / self.share(stream, leaves) for stream in self._runs}

    def length(self, leaves: Mapping[str, LeafWindow]) -> float:
        """The length of the arcs of all rows in windows that were chosen by key, on average; 1 for
        those that were not."""
        whole = rows = 0.0
        for stream, runs in self._arcs.items():
            at = leaves[stream].rows.tail
            for end, arc in runs:
                if end > at:
                    whole += (end - at) * min(1.0, arc.length)
                    rows, at = rows + end - at, end
        return whole / rows if rows else 1.0

    @property
    def newest_arcs(self) -> dict[str, tuple[float, float]]:
        """Start and length of the arc of the newest rows of each stream."""
        newest = {stream: runs[-1][1] for stream, runs in self._arcs.items() if runs}
        newest |= self._coming_arcs
        return {s: (arc.start, arc.length) for s, arc in newest.items() if arc is not _CIRCLE}

    def resume(
        self, averages: Mapping[str, float], arcs: Mapping[str, tuple[float, float]] = _NO_ARCS
    ) -> None:
        """Go on with windows whose rows have these weights on average, and about these ``arcs``."""
        self._runs, self._coming = {}, averages
        self._arcs, self._coming_arcs = {}, {s: Arc(*each) for s, each in arcs.items()}
        self.is_thin = bool(averages or arcs)

    def weigh(
        self, results: Composites, rng: np.random.Generator, classes: Iterable[KeyClass] = ()
    ) -> Weight:
        """What the ``results`` of the push at hand stand for; ``classes`` are those by which rows
        are chosen."""
        count = len(results)
        if not count or not (self._runs or self._arcs):
            return Weight()
        drawn = rng.integers(0, count, _SAMPLE) if count > _SAMPLE else np.arange(count)
        weights = np.ones(len(drawn))
        squares = 0.0
        for stream, runs in self._runs.items():
            ends = np.array([end for end, _ in runs], np.int64)
            each = np.array([*(w for _, w in runs), self._coming.get(stream, 1.0)])
            rows = np.asarray(results.ids[stream])[drawn]
            found = each[np.searchsorted(ends, rows, side="right")]
            weights *= found
            missing = 1.0 - 1.0 / float(found.mean())
            squares += missing * _hanging_together(rows, count > _SAMPLE)
        for keys in classes if self._arcs else ():
            shares = np.full(len(drawn), np.inf)
            starts = np.full(len(drawn), -np.inf)
            for stream in keys.keys() & self._arcs.keys():
                arcs = [*self._arcs[stream], (0, self._coming_arcs.get(stream, _CIRCLE))]
                ends = np.array([end for end, _ in arcs[:-1]], np.int64)
                rows = np.asarray(results.ids[stream])[drawn]
                found = np.searchsorted(ends, rows, side="right")
                starts = np.maximum(starts, np.array([arc.start for _, arc in arcs])[found])
                shares = np.minimum(shares, np.array([arc.end for _, arc in arcs])[found])
            shares -= starts  # What is there though its keys are not was the newest of a push.
            shares = np.where((shares > 0) & (shares < 1), shares, 1.0)
            weights /= shares
            stream, keys_of = next(iter(keys.items()))
            missing = 1.0 - float(shares.mean())
            if missing:
                own = keys_of(np.asarray(results.ids[stream])[drawn])
                squares += missing * _hanging_together(own, count > _SAMPLE)
        mean = float(weights.mean())
        spread = float(weights.var()) / len(drawn) if count > _SAMPLE else 0.0
        return Weight(mean, spread, math.sqrt(squares))


def _hanging_together(rows: Int64s, is_sample: bool) -> float:
    """The chance that two results hang on the same row, from their ``rows``: Σ t_d² over the square
    of Σ t_d. A sample in which no two do says that there might be one such pair."""
    ordered = np.sort(rows)
    ends = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    counts = np.diff(ends, prepend=0, append=len(rows))
    squares = float(counts @ counts)
    if not is_sample:
        return squares / len(rows) ** 2
    return max(2.0, squares - len(rows)) / (len(rows) * (len(rows) - 1))
