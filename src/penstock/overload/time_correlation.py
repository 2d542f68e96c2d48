"""How many matches a probe can expect, from the lags at which partners were found before.

If B follows A by about a minute, an A that probes the window of B at once finds nothing, and one
that probes late finds all. What is learned (after GrubJoin, to which JAQPOT points): for each range
of lags, the share of pairs (prober, stored tuple) with such a lag that match. What a prober can
expect is the sum, over the ranges, of that share times the number of stored tuples at that lag.
Counting stored tuples by lag is two binary searches per range in their sorted births.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError

Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class LagProfile:
    """Pairs and matches seen so far for lags from ``edges[i]`` to just below ``edges[i + 1]``.

    The lag is the birth of the prober minus that of the stored tuple, in ticks.
    """

    edges: Int64s
    pairs: Floats
    matches: Floats

    @staticmethod
    def empty(edges: Int64s) -> LagProfile:
        """Nothing seen yet; ``edges`` ascend."""
        if len(edges) < 2 or not (np.diff(edges) > 0).all():
            raise OptionError("the edges of a lag profile must ascend, and be two at least")
        nothing = np.zeros(len(edges) - 1)
        return LagProfile(np.asarray(edges, np.int64), nothing, nothing.copy())

    def observe(
        self, births: Int64s, stored: Int64s, lags: Int64s, decay: float = 1.0
    ) -> LagProfile:
        """The profile after tuples born at ``births`` probed a state.

        ``stored`` are the births in the state, ascending; ``lags`` those of the matches. What was
        seen before counts ``decay`` times as much as what is seen now.
        """
        if len(lags) and (lags.min() < self.edges[0] or lags.max() >= self.edges[-1]):
            lags = lags[(lags >= self.edges[0]) & (lags < self.edges[-1])]
        bins = np.searchsorted(self.edges, lags, "right") - 1
        found = np.bincount(bins, minlength=len(self.pairs)).astype(np.float64)
        return LagProfile(
            self.edges,
            decay * self.pairs + self._counts(births, stored).sum(axis=1),
            decay * self.matches + found,
        )

    @property
    def shares(self) -> Floats:
        """The share of pairs that match, by lag; zero where no pair was seen."""
        return np.divide(
            self.matches, self.pairs, out=np.zeros_like(self.matches), where=self.pairs > 0
        )

    def expected_matches(self, births: Int64s, stored: Int64s) -> Floats:
        """The matches that a tuple born at each of ``births`` can expect in a state."""
        return self.shares @ self._counts(births, stored)

    def _counts(self, births: Int64s, stored: Int64s) -> Int64s:
        """Stored tuples per range of lags (rows) and prober (columns)."""
        at = np.searchsorted(stored, births[None, :] - self.edges[:, None], "right")
        return at[:-1] - at[1:]
