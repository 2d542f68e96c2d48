"""How many results were missed because probes were skipped, with the standard error.

The estimate is of Horvitz and Thompson's kind: a thing that was seen with probability π stands for
1/π things (:func:`missed_in_strata`). Of N tuples n were drawn to probe, and they found
y_1 … y_n matches. The N-n others missed (N-n) · mean(y) in expectation, without bias, with the
variance (N-n)² · (s²/n + s²/(N-n)): the error of the mean, and the spread of the tuples that were
not seen themselves. This equals N²(1 - n/N) s²/n, the textbook variance of the total of a simple
random sample, because the matches that were seen have no error. Strata (batches, half-way joins)
are drawn independently, so both add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Missed:
    """About ``results`` were missed, give or take ``error`` (one standard error)."""

    results: float
    error: float

    def __str__(self) -> str:
        return f"{self.results:,.0f} ± {self.error:,.0f}"


@dataclass(frozen=True, slots=True)
class Stratum:
    """``probed`` of ``tuples`` were drawn at random; the sum and sum of squares of their matches.

    ``worth`` are the results that one match leads to: 1 at the root.
    """

    tuples: int
    probed: int
    matches: float
    squares: float
    worth: float = 1.0

    @staticmethod
    def of(tuples: int, matches: Int64s, worth: float = 1.0) -> Stratum:
        """The stratum of ``tuples`` of which ``len(matches)`` probed."""
        found = matches.astype(np.float64)
        return Stratum(tuples, len(found), float(found.sum()), float(found @ found), worth)

    @staticmethod
    def of_groups(tuples: int, probed: Floats, found: Floats) -> Stratum:
        """The stratum of ``tuples`` of which some ``probed``, by groups that they were thrown into
        at random, and what each group has ``found``.

        A group of n tuples deviates from n times the mean by a square of n s² in expectation, so
        the deviations of all, made up for the mean that was fitted, tell the spread s².
        """
        count, matches = int(probed.sum()), float(found.sum())
        if count == 0:
            return Stratum(tuples, 0, 0.0, 0.0)
        groups = int(np.count_nonzero(probed))
        mean = matches / count
        beyond = found - mean * probed
        spread = float(beyond @ beyond) / count * (groups / (groups - 1) if groups > 1 else 1.0)
        squares = matches**2 if count == 1 else spread * (count - 1) + count * mean * mean
        return Stratum(tuples, count, matches, squares)


def missed_in_strata(strata: Iterable[Stratum]) -> Missed:
    """The results missed by the tuples that did not probe.

    A stratum of which nothing was drawn says nothing, so the error is infinite; with one draw
    nothing is known of the spread, which is then taken to be as large as what was found.
    """
    missed = variance = 0.0
    for each in strata:
        left = each.tuples - each.probed
        if left <= 0:
            continue
        if each.probed == 0:
            variance = math.inf
            continue
        mean = each.matches / each.probed
        spread = (
            max(0.0, each.squares - each.probed * mean * mean) / (each.probed - 1)
            if each.probed > 1
            else each.squares
        )
        missed += each.worth * left * mean
        variance += each.worth**2 * each.tuples * left * spread / each.probed
    return Missed(missed, math.sqrt(variance))
