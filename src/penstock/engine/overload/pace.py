"""When a push is worked off in slices, by the clock, and what is left of it.

What probes cost and find is known badly when a burst begins. Then a push of a budget of time is cut
into slices of event time: each is a small push of its own, and has what is left of the time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

_SLICES, _LEAST_SLICE = 16, 4096
"""A push that is paced by the clock is cut into about so many slices, of at least so many rows."""
ROOM = 0.5
"""A push of a burst is paced when it needs more than this part of its time."""
_BURST = 2.0
"""A burst is a push with so many times the rows of the one before."""
_OVERDRAWN = 1.25
"""A push that took so many times what it was granted was not foreseen."""
_WARY = 8
"""Pushes after a burst, or after one that was not foreseen, that are paced: windows fill."""


class Pace:
    """The pace of the pushes of a query."""

    def __init__(self) -> None:
        self.left: Counter[str] | None = None
        """Rows of the push at hand, by stream, that have not been taken in; None if it is made at
        once."""
        self._wary = 0
        """Pushes that are still to be paced."""

    def is_to_pace(self, rows: int, last: int, need: float, allowed: float) -> bool:
        """Whether little is known about a push of ``rows``, after one of ``last``, which needs so
        much of what is ``allowed``."""
        self._wary = _WARY if rows > _BURST * last else max(0, self._wary - 1)
        return self._wary > 0 and need > ROOM * allowed

    @property
    def slice_rows(self) -> int | None:
        """The rows of a slice; None if there are none."""
        if self.left is None:
            return None
        return max(_LEAST_SLICE, self.left.total() // _SLICES)

    def take(self, rows: Mapping[str, int]) -> None:
        """A slice of ``rows`` is done."""
        assert self.left is not None
        self.left.subtract(rows)

    def end(self, work: float, allowed: float) -> None:
        """A push is done, with so much ``work`` where so much was ``allowed``."""
        if self.left is None and work > _OVERDRAWN * allowed:
            self._wary = _WARY
