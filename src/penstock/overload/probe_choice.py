"""Which tuples of a batch get the probes when there are not enough for all.

Three orders (JAQPOT leaves the choice open and points to time correlation):

- ``random``: every tuple has the same chance.
- ``newest``: the latest births first, since what they find stays fresh the longest.
- ``correlated``: those with the most expected matches first (:mod:`.time_correlation`).

An order by rank never looks at the tuples at its end, so nobody could say what is lost there. A
share ``audit`` of the probes therefore goes to tuples drawn at random from those that the rank left
out. A batch has then two strata: the *sure* tuples, and the *others*, of which a simple random
sample probes. That is all that an unbiased estimate of the loss needs
(:mod:`~penstock.overload.missed_results`). ``random`` is the case without sure tuples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Choice:
    """Positions in the batch, ascending: ``sure`` ones, and ``sampled`` from the ``others``."""

    sure: Int64s
    sampled: Int64s
    others: int

    @property
    def positions(self) -> Int64s:
        """All tuples that probe, in the order of the batch."""
        found = np.concatenate([self.sure, self.sampled])
        found.sort()
        return found

    @property
    def probability(self) -> float:
        """The chance that one of the others had to probe."""
        return len(self.sampled) / self.others if self.others else 1.0


def choose_random(count: int, allowed: int, chance: np.random.Generator) -> Choice:
    """``allowed`` of ``count`` tuples, each with the same chance."""
    everyone = np.arange(count, dtype=np.int64)
    if allowed >= count:
        return Choice(everyone, everyone[:0], 0)
    return Choice(everyone[:0], _sample(everyone, allowed, chance), count)


def choose_ranked(
    ranks: NDArray[np.int64] | NDArray[np.float64],
    allowed: int,
    chance: np.random.Generator,
    audit: float = 0.1,
) -> Choice:
    """``allowed`` tuples with the highest ranks, ties by the later position, but for the audit.

    The ranks are births for ``newest`` and expected matches for ``correlated``. If there is an
    audit at all it has at least two tuples, as far as there are: one tells no error.
    """
    if not 0 <= audit <= 1:
        raise OptionError(f"the audit is {audit}; it is a share of the probes, from 0 to 1")
    count = len(ranks)
    allowed = max(0, allowed)
    if allowed >= count:
        return choose_random(count, allowed, chance)
    drawn = min(allowed, max(2, math.ceil(audit * allowed))) if audit > 0 else 0
    order = np.argsort(ranks, kind="stable")
    first_sure = count - (allowed - drawn)
    others = order[:first_sure]
    return Choice(np.sort(order[first_sure:]), _sample(others, drawn, chance), len(others))


def _sample(positions: Int64s, size: int, chance: np.random.Generator) -> Int64s:
    return np.sort(chance.choice(positions, max(0, size), replace=False, shuffle=False))
