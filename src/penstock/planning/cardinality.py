"""How many combinations of which streams there are: the sizes and rates behind every cost.

Sets of streams are bit masks here. With λᵢ tuples per second that live Wᵢ seconds, |Sᵢ| = λᵢ Wᵢ are
alive, and of the combinations over a set V

    |S_V| = σ_V · Π |Sᵢ|                                  are alive at any instant, and
    λ_V   = |S_V| · Σ 1/Wᵢ                                are born per second,

since a combination over V is born with its youngest member: λᵢ · Π_{j≠i} |Sⱼ| · σ_V of them with
one of stream i. For equal windows these are the paper's |S_AB| = λ_A λ_B σ_AB W² and the rate
2 λ_A λ_B σ_AB W; a static relation has 1/W = 0. Both depend on V alone and not on the plan, which
is what makes dynamic programming right.

**Selectivity.** The paper multiplies the selectivities of the edges inside V. That is wrong for a
class of three or more columns that are all equal (A.x = B.x AND B.x = C.x): the third edge says
nothing new. For such a class each member has a share q (one divided by its number of values), the
chance that all members in V are equal is the product of the q without the largest, and a pair has
min(q, q'): the containment assumption of textbooks. Where a pair is known to differ from this, a
factor for the pair corrects it. So every given pair is reproduced exactly, and a chain or star of
given pairs multiplies up as in the paper. Predicates over three or more streams are a factor of
every set that has them all, and so is what was *observed* for a set, against what the rest says.

Logarithms throughout: twenty streams overflow a float.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.planning.bits import bits_of

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_LEAST_SIZE = 1e-300
_MOST_LOG = 690.0
"""exp of more is near the end of floats; costs this large are all the same."""
ABSENT = -math.inf


def log(value: float) -> float:
    """The logarithm; of zero, that of something very small."""
    return math.log(max(value, _LEAST_SIZE))


def exp(value: float) -> float:
    """The exponential, at most as large as costs may become."""
    return math.exp(min(value, _MOST_LOG))


class Cardinality:
    """Sizes and rates of sets of the streams of one block."""

    def __init__(
        self,
        sizes: Sequence[float],
        turnovers: Sequence[float],
        pairs: Floats,
        classes: Sequence[Floats],
        together: Sequence[tuple[int, float]] = (),
        observed: Sequence[tuple[int, float]] = (),
    ) -> None:
        """``turnovers`` are 1/Wᵢ. ``pairs`` holds log factors of pairs (symmetric, zero diagonal);
        each of ``classes`` the log q of every stream, :data:`ABSENT` if it is no member;
        ``together`` log factors of sets of three or more; ``observed`` log shares of sets.
        """
        self.count = len(sizes)
        self.log_sizes = np.array([log(size) for size in sizes])
        self.turnovers = np.array(turnovers, float)
        self.pairs = pairs
        self.classes = np.array(classes).reshape(len(classes), self.count)
        self.together = tuple(together)
        self._rows: list[list[float]] = pairs.tolist()
        self._class_rows: list[list[float]] = self.classes.tolist()
        self._sizes: list[float] = self.log_sizes.tolist()
        self._turnovers = [float(each) for each in turnovers]
        self._pairs: dict[int, float] = {0: 0.0}
        self._log_selectivity: dict[int, float] = {}
        self._size: dict[int, float] = {}
        self._turnover: dict[int, float] = {}
        self.observed = tuple(
            (mask, share - self._without_observed(mask))
            for mask, share in sorted(observed, key=lambda each: -each[0].bit_count())
        )

    def turnover(self, mask: int) -> float:
        """Σ 1/Wᵢ: the share of the combinations over ``mask`` that is replaced per second."""
        found = self._turnover.get(mask)
        if found is None:
            found = self._turnover[mask] = sum(self._turnovers[i] for i in bits_of(mask))
        return found

    def size(self, mask: int) -> float:
        """|S_V|: combinations alive at any instant."""
        found = self._size.get(mask)
        if found is None:
            found = self._size[mask] = exp(self.log_size(mask))
        return found

    def log_size(self, mask: int) -> float:
        """log |S_V|."""
        return sum(self._sizes[i] for i in bits_of(mask)) + self.log_selectivity(mask)

    @property
    def is_pairwise(self) -> bool:
        """Whether selectivities are products over pairs, as in the paper."""
        return not self.is_adjusted and len(self.classes) == 0

    def rate(self, mask: int) -> float:
        """λ_V: combinations born per second."""
        return self.size(mask) * self.turnover(mask)

    def log_selectivity(self, mask: int) -> float:
        """log σ_V."""
        found = self._log_selectivity.get(mask)
        if found is None:
            found = self._without_observed(mask) + self._correction(mask)
            self._log_selectivity[mask] = found
        return found

    def adjustment(self, mask: int) -> float:
        """The log factor of ``mask`` that pairs and classes do not explain."""
        if not self.together and not self.observed:
            return 0.0
        return self._needing_all(mask) + self._correction(mask)

    @property
    def is_adjusted(self) -> bool:
        return bool(self.together or self.observed)

    def _without_observed(self, mask: int) -> float:
        return self._pairs_inside(mask) + self._classes_inside(mask) + self._needing_all(mask)

    def _pairs_inside(self, mask: int) -> float:
        found = self._pairs.get(mask)
        if found is None:
            low = mask & -mask
            row, rest = self._rows[low.bit_length() - 1], mask ^ low
            found = self._pairs_inside(rest) + sum(row[j] for j in bits_of(rest))
            self._pairs[mask] = found
        return found

    def _classes_inside(self, mask: int) -> float:
        total = 0.0
        for shares in self._class_rows:
            inside = [shares[i] for i in bits_of(mask) if shares[i] != ABSENT]
            if len(inside) > 1:
                total += sum(inside) - max(inside)
        return total

    def _needing_all(self, mask: int) -> float:
        return sum(factor for streams, factor in self.together if streams & mask == streams)

    def _correction(self, mask: int) -> float:
        """What was observed for disjoint parts of ``mask``, the largest first."""
        total, left = 0.0, mask
        for streams, factor in self.observed:
            if streams & left == streams:
                total += factor
                left &= ~streams
        return total
