"""Seconds as a line over a count, learned from recent pairs: a fixed part and a part per piece.

Least squares in which older pairs fade. The slope is between 0 and the mean seconds per piece, so
both parts are never negative. While all counts are about the same, a fixed part cannot be told from
the rest and everything is put on the pieces: who plans for more of them than ever is then cautious.
"""

from __future__ import annotations

from dataclasses import dataclass

_FADE = 0.9
_ALIKE = 0.05
"""Counts that spread by less than this share of their mean tell nothing about the slope."""


@dataclass(frozen=True, slots=True)
class FittedLine:
    """Faded sums of weights, counts, seconds and their products.

    >>> line = FittedLine().through(100, 2.0).through(300, 4.0)
    >>> round(line.fixed, 6), round(line.each, 6)
    (1.0, 0.01)
    """

    weight: float = 0.0
    counts: float = 0.0
    seconds: float = 0.0
    squares: float = 0.0
    products: float = 0.0

    def through(self, count: float, seconds: float) -> FittedLine:
        """The line with one more pair."""
        return FittedLine(
            _FADE * self.weight + 1.0,
            _FADE * self.counts + count,
            _FADE * self.seconds + seconds,
            _FADE * self.squares + count * count,
            _FADE * self.products + count * seconds,
        )

    @property
    def each(self) -> float:
        """Seconds per piece."""
        if not self.counts:
            return 0.0
        most = self.seconds / self.counts
        spread = self.squares * self.weight - self.counts**2
        if spread <= (_ALIKE * self.counts) ** 2:
            return most
        slope = (self.products * self.weight - self.counts * self.seconds) / spread
        return min(most, max(0.0, slope))

    @property
    def fixed(self) -> float:
        """Seconds beside those of the pieces."""
        return (self.seconds - self.each * self.counts) / self.weight if self.weight else 0.0
