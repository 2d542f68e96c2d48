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

Where rows cost next to nothing, to leave them out costs as much as to take them in. If hardly any
are left for more than a window, so that hardly any are there to be found either, and pushes still
take more than there is for them, and as long as whole ones did, limiting saves nothing: all rows
are taken in, and the query is short, as it would be in any case.
"""

from __future__ import annotations

LEAST, MOST = 0.01, 1.25
"""Shares between which is tried; at the most, everything fits with room to spare."""
_SLOWEST, _FASTEST = 0.05, 0.5
"""Gains: of pushes that are a small part of a window, and of those that are most of it."""
_PER_WINDOW = 4.0
"""The gain over a window."""
_HARDLY_ANY = 2 * LEAST
"""A share at which windows hold next to nothing after a while."""
_IN_VAIN = 16
"""Pushes with hardly any rows that took as long as whole ones, after which limiting is given up."""
_REST = 256
"""Pushes until it is tried again."""
_AS_LONG = 1.1
"""How many times what a whole push took, as known from before, a limited one takes that has surely
saved nothing."""
_NEW = 0.3
"""How much a push counts for what a whole one takes."""


class Throttle:
    """A share that follows what pushes take."""

    def __init__(self) -> None:
        self.share: float | None = None
        """The share of all work that is done; None for all."""
        self._whole = 0.0
        """Seconds per row of whole pushes."""
        self._in_vain = self._rest = 0
        self._passed = 0.0
        """Windows that have passed since pushes are in vain."""

    def decide(self, foreseen: float) -> float | None:
        """The share for the push at hand, of which a share is ``foreseen`` to fit; None for all."""
        if self.share is None:
            self._rest = max(0, self._rest - 1)
            if foreseen >= 1 or self._rest:
                return None
            self.share = max(LEAST, foreseen)
        return self.share

    def learn(
        self, took: float, means: float, of_window: float, rows: int, drift: float = 1.0
    ) -> None:
        """A push of ``rows`` ``took`` so many seconds; there were so many ``means``; it was that
        part of a window. In the long run it would take ``drift`` times as long."""
        if took <= 0 or not rows:
            return
        if self.share is None:
            new = 1.0 if self._whole == 0 else _NEW
            self._whole += new * (took / rows - self._whole)
            return
        as_long = _AS_LONG * self._whole * rows
        is_in_vain = self.share <= _HARDLY_ANY and took > max(means, as_long)
        self._in_vain = self._in_vain + 1 if is_in_vain else 0
        self._passed = self._passed + of_window if is_in_vain else 0.0
        if self._in_vain >= _IN_VAIN and self._passed > 1:
            self.share, self._in_vain, self._rest = None, 0, _REST
            return
        gain = max(_SLOWEST, min(_FASTEST, _PER_WINDOW * of_window))
        ratio = max(0.1, min(10.0, max(0.0, means) / (took * drift)))
        self.share = max(LEAST, self.share * ratio**gain)
        if self.share > MOST:
            self.share = None
