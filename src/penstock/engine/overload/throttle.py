"""The share of all work that fits into a budget of time, found by trying.

What a push will take is foreseen from its rows and from what things have cost
(:mod:`penstock.engine.overload.probe_cost`). That says well enough when a query gets short. It says
badly how far rows have to be cut down: to that a push answers at once in part, and in part over a
whole window, and costs learned from pushes that are all alike do not tell rows from probes. But
what a push took is known to the microsecond, and it falls with the share. So from then on the share
goes up and down by what pushes took against what there was for them,

    share ← share · (there was / it will take) ^ gain.

What a push finds in the windows changes for a whole window after a change of share, and by how much
is known from the share of rows that they hold: so it is not what a push took that counts, but what
one like it will take when they have been filled by such. That lets the gain be four per window, and
after a burst the budget is kept within a fraction of one. What does not depend on rows at all, and
what was foreseen wrongly, then cost a lower share and nothing else. The allocator has the shape:
which rows, and which probes.

Where a push costs the same whatever comes in, or rows cost no more than to look at them, no share
saves anything. That shows when a small share is in use, pushes take more than there is, and they
take as long as whole ones did. Then all rows are taken in for a while, and the query is short, as
it would be in any case; limits are tried again, each time after a longer while.
"""

from __future__ import annotations

import math

LEAST_SHARE, MOST_SHARE = 0.01, 1.25
"""Shares between which is tried; at the most, everything fits with room to spare."""
_SLOWEST, _FASTEST = 0.05, 0.5
"""Gains: of pushes that are a small part of a window, and of those that are most of it."""
_PER_WINDOW = 4.0
"""The gain over a window."""
_SHARE_THAT_SAVES = 0.2
"""A share at which a push must take less than a whole one, if that can be had."""
_TRIED = 6
"""Pushes with such a share from which on it counts what they took."""
_OVER = 1.1
"""How many times what there is they take, if limits are in vain."""
_AS_LONG = 0.9
"""Of what a whole push takes, the part that tells of no saving."""
_REST, _LONGEST_REST = 16, 256
"""Pushes after which limits are tried again, at first and at most."""
_NEW = 0.3
"""How much a push counts for what pushes take on average."""


class Throttle:
    """A share that follows what pushes take."""

    def __init__(self) -> None:
        self.share: float | None = None
        """The share of all work that is done; None for all."""
        self._whole = self._limited = self._over = 0.0
        """Seconds per row of whole pushes of full windows, those of limited ones with a small
        share, and how many times what there was these took."""
        self._tried = self._rest = 0
        """Pushes with a small share, and whole ones until the next try."""
        self._while = _REST

    @property
    def is_resting(self) -> bool:
        """Whether all rows are taken in although the query is short."""
        return self.share is None and self._rest > 0

    def decide(self, foreseen: float) -> float | None:
        """The share for the push at hand, of which a share is ``foreseen`` to fit; None for all."""
        if self.share is None:
            self._rest = max(0, self._rest - 1)
            if foreseen >= 1 or self._rest:
                return None
            self.share = max(LEAST_SHARE, foreseen)
        return self.share

    def learn(
        self,
        took: float,
        means: float,
        of_window: float,
        rows: int,
        drift: float = 1.0,
        whole: float = math.inf,
        is_full: bool = True,
    ) -> None:
        """A push of ``rows`` ``took`` so many seconds; there were so many ``means``; it was that
        part of a window. In the long run it would take ``drift`` times as long. A ``whole`` one is
        foreseen to take that, and if windows are full, that is measured."""
        if took <= 0 or not rows:
            return
        if self.share is None:
            if is_full:
                self._whole += (_NEW if self._whole else 1.0) * (took / rows - self._whole)
            return
        if self._is_in_vain(took / rows, took / max(1e-9, means), self._whole or whole / rows):
            self.share, self._tried = None, 0
            return
        gain = max(_SLOWEST, min(_FASTEST, _PER_WINDOW * of_window))
        ratio = max(0.1, min(10.0, max(0.0, means) / (took * drift)))
        self.share = max(LEAST_SHARE, self.share * ratio**gain)
        if self.share > MOST_SHARE:
            self.share = None

    def _is_in_vain(self, seconds: float, over: float, whole: float) -> bool:
        """Whether to do without for a while, after one more push of so many ``seconds`` per row,
        ``over`` times what there was, where a ``whole`` one takes as many."""
        if self.share is None or self.share > _SHARE_THAT_SAVES:
            self._tried = 0
            return False
        new = _NEW if self._tried else 1.0
        self._limited += new * (seconds - self._limited)
        self._over += new * (over - self._over)
        self._tried += 1
        if self._tried < _TRIED or self._over < _OVER or self._limited < _AS_LONG * whole:
            return False
        self._rest = self._while
        self._while = min(2 * self._while, _LONGEST_REST)
        return True
