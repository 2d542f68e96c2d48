"""Pushes that run away: what a push may cost before it is taken back and looked at again.

A plan that is right for what has come so far may be wrong by orders of magnitude for the push at
hand: a fan-out that was rare is frequent in its second half. No look between pushes helps there.
But a push is a transaction that can be left between any two portions of its work, as an interrupt
leaves it. So a push has a bound, in CPU seconds: several times what its rows have cost normally,
and several looks. When it is passed, the push is taken back, a sample of its rows is looked at
(:mod:`penstock.engine.control.coming_batch`), and it is made once more from its first row, by a
better plan if there is one, and without a bound. The answer is that of one push, whatever the
query: nothing is divided. What is lost is the bound at most: a push is cut only when it costs more
than that anyway, so no push takes more than twice as long as without, and a look.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from threading import get_ident

BEYOND = 4.0
"""Times the normal cost of its rows that a push may take."""
LOOKS = 8.0
"""Looks that it may take at least: a push must be worth them."""
LARGE = 4.0
"""Times more rows than the latest pushes had, or than there are yet, make a push large."""
FADING = 1 / 8
"""The weight of a push among the latest."""


class RunawayPush(Exception):  # noqa: N818 - no error: it is caught
    """The push at hand has cost more than it may, and is to be taken back."""


class Pushes:
    """What the latest pushes cost."""

    def __init__(self) -> None:
        self._rows = 0.0
        self._seconds = 0.0
        self.largest = 0.0
        """Rows of the largest of them; older ones count for less."""

    def note(self, rows: int, seconds: float) -> None:
        """A push of ``rows`` took so many CPU seconds."""
        self._rows += FADING * (rows - self._rows)
        self._seconds += FADING * (seconds - self._seconds)
        self.largest = max(rows, (1 - FADING) * self.largest)

    def cost_of(self, rows: int) -> float | None:
        """CPU seconds that ``rows`` take normally; None if there were none yet."""
        return rows * self._seconds / self._rows if self._rows else None


def bound_of(normal: float | None, look: float) -> float:
    """CPU seconds that a push may take which takes ``normal`` ones, when a ``look`` takes so many;
    any number if nothing is normal yet."""
    return math.inf if normal is None else max(BEYOND * normal, LOOKS * look)


class Watch:
    """Raises :class:`RunawayPush` once ``bound`` CPU seconds have passed since it was made."""

    def __init__(self, bound: float, clock: Callable[[], float]) -> None:
        self._end = clock() + bound
        self._clock = clock
        self._thread = get_ident()

    def __call__(self) -> None:
        """To be called between portions of the work."""
        if get_ident() == self._thread and self._clock() > self._end:
            raise RunawayPush
