"""What probes find for each result that was foreseen, where some are put off.

What a row would lead to is foreseen from what half-way joins find at that time. A probe that is
made, later or in a push in which others are put off, tells how far that was right, and so stands
for those that will never be made: of a burst, and of the calm after it, since each was foreseen in
its own time. So what was lost is what was foreseen of it, times this ratio (a ratio estimate); its
error comes from how far probes that were made together lie from it.

What was made long ago fades.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from penstock.plan.stream_set import StreamSet

_FADE_PER_PASS = 0.99
"""What is left of older payments after one more."""
_ENOUGH_PASSES = 4
"""Passes from which on they tell."""
_FOUND_IN_PASS = 64
"""Results that a pass has found at least; smaller ones are put together, or their spread would be
that of chance alone."""


class Ratio(NamedTuple):
    """Results for each that was foreseen."""

    value: float
    doubt: float
    """How far it is off in other passes, as a part of it: rows that are given up are older than
    those that were made, so to have made many of these does not make it smaller."""
    spread: float
    """Variance of what is found, for each result that was foreseen."""
    is_known: bool = True


_UNKNOWN = Ratio(1.0, 1.0, 0.0, is_known=False)


class LateFinds:
    """Sums over passes, by the input whose rows probed."""

    def __init__(self) -> None:
        self._sums: dict[StreamSet, tuple[float, ...]] = {}
        """Their number, what was found and foreseen, and the three products of both."""
        self._small: dict[StreamSet, tuple[float, float]] = {}
        """What was found and foreseen in passes that are too small by themselves."""

    def note(self, origin: StreamSet, found: float, foreseen: float) -> None:
        """Rows of ``origin`` have found so many results where so many were ``foreseen``."""
        before = self._small.pop(origin, (0.0, 0.0))
        found, foreseen = found + before[0], foreseen + before[1]
        if found < _FOUND_IN_PASS:
            self._small[origin] = found, foreseen
            return
        new = (1.0, found, foreseen, found * found, found * foreseen, foreseen * foreseen)
        old = self._sums.get(origin, (0.0,) * 6)
        self._sums[origin] = tuple(
            _FADE_PER_PASS * before + each for before, each in zip(old, new, strict=True)
        )

    def ratio(self, origin: StreamSet) -> Ratio:
        """What rows of ``origin`` find for each result that is foreseen."""
        passes, found, foreseen, ff, fw, ww = self._sums.get(origin, (0.0,) * 6)
        if passes < _ENOUGH_PASSES or foreseen <= 0:
            return _UNKNOWN
        value = found / foreseen
        squares = max(0.0, ff - 2 * value * fw + value * value * ww) * passes / (passes - 1)
        return Ratio(value, math.sqrt(squares / ww) / value, squares / foreseen)

    def to_json(self) -> list[Any]:
        """The sums, as plain values."""
        return [
            [sorted(origin), *sums]
            for each in (self._sums, self._small)
            for origin, sums in each.items()
        ]

    @classmethod
    def from_json(cls, values: list[Any]) -> LateFinds:
        """What :meth:`to_json` wrote down: six sums of an input, or the two that are small yet."""
        made = cls()
        for origin, *sums in values:
            key = StreamSet(origin)
            if len(sums) == 2:
                made._small[key] = sums[0], sums[1]
            else:
                made._sums[key] = tuple(sums)
        return made
