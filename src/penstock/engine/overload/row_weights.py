"""What the rows in the windows stand for, when others were left at the door.

Of the rows of a push a share π was drawn at random, so each that was taken in stands for 1/π rows
(Horvitz and Thompson). Draws are independent from stream to stream, so a result stands for the
product of what its rows stand for, and the results that would have been made without a door are
estimated without bias by the sum over those that were made, whatever shares were in use when their
rows came in: today's rows meet yesterday's, drawn with another share. So weights are kept by row,
as runs: rows of a window are numbered as they come, and those of one push weigh the same.

The mean weight of a push's results is taken from a random sample of them, which adds the error of
that sample. The error of the draws themselves is Σ (1 - π_d) t_d² over the rows d, with t_d the
weight of all results that hang on d: the chance that two of the sampled results hang on the same
row tells Σ t_d². That error is shared by pushes of the same window.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.composites import Composites
from penstock.engine.state.leaf_window import LeafWindow

Int64s = NDArray[np.int64]

_SAMPLE = 1024
"""Results of a push that are looked at."""
_NEARLY_ALL = 1.001
"""A weight up to which nothing worth a look was left out."""


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
        self.is_thin = False
        """Whether rows are missing in windows, those of the push at hand included."""

    def begin(self, leaves: Mapping[str, LeafWindow], coming: Mapping[str, float]) -> None:
        """The rows of the next push have these weights; 1 where none is given."""
        if not (coming or self._coming or self._runs):
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

    def share(self, stream: str, leaves: Mapping[str, LeafWindow]) -> float:
        """Of the rows that would be in the window of ``stream``, the share that is."""
        at, there, whole = leaves[stream].rows.tail, 0, 0.0
        for end, weight in self._runs.get(stream, ()):
            if end > at:
                there, whole, at = there + end - at, whole + (end - at) * weight, end
        return there / whole if whole else 1.0

    def averages(self, leaves: Mapping[str, LeafWindow]) -> dict[str, float]:
        """The mean weight of the rows in each window where it is not 1."""
        return {stream: 1 / self.share(stream, leaves) for stream in self._runs}

    def resume(self, averages: Mapping[str, float]) -> None:
        """Go on with windows whose rows have these weights on average."""
        self._runs, self._coming = {}, averages
        self.is_thin = bool(averages)

    def weigh(self, results: Composites, rng: np.random.Generator) -> Weight:
        """What the ``results`` of the push at hand stand for."""
        count = len(results)
        if not count or not self._runs:
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
