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

Where rows cost next to nothing, to leave them out costs as much as to take them in. That is
suspected where choosing them is a good part of what pushes take. Then some whole pushes are made
to compare with: if they take no longer, limiting saves nothing, all rows are taken in for a while,
and the query is short, as it would be in any case. Both are tried again, each time after a longer
while.
"""

from __future__ import annotations

from collections import deque

LEAST, MOST = 0.01, 1.25
"""Shares between which is tried; at the most, everything fits with room to spare."""
_SLOWEST, _FASTEST = 0.05, 0.5
"""Gains: of pushes that are a small part of a window, and of those that are most of it."""
_PER_WINDOW = 4.0
"""The gain over a window."""
_DEAR = 0.25
"""The part of what pushes take from which on choosing rows may be what is too dear."""
_TRIED = 6
"""Limited pushes from which on it counts what they took on average."""
_REST, _LONGEST_REST = 16, 256
"""Pushes after which whole and limited ones are compared again, at first and at most."""
_AS_LONG = 0.97
"""Of what a whole push takes, the part that tells of no saving."""
_WHOLE = 5
"""Whole pushes, the shortest of which counts: after limited ones, windows have to grow."""
_NEW = 0.3
"""How much a push counts for what limited ones take."""


class Throttle:
    """A share that follows what pushes take."""

    def __init__(self) -> None:
        self.share: float | None = None
        """The share of all work that is done; None for all."""
        self._whole: deque[float] = deque(maxlen=_WHOLE)
        """Seconds per row of the last whole pushes."""
        self._limited = self._choosing = 0.0
        """Seconds per row of limited pushes, and those that it takes to choose rows."""
        self._tried = self._rest = 0
        """Limited pushes since the last whole ones, and whole ones until the next try."""
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
            self.share = max(LEAST, foreseen)
        return self.share

    def learn(
        self,
        took: float,
        means: float,
        of_window: float,
        rows: int,
        drift: float = 1.0,
        choosing: float = 0.0,
    ) -> None:
        """A push of ``rows`` ``took`` so many seconds; there were so many ``means``; it was that
        part of a window. In the long run it would take ``drift`` times as long. Of that,
        ``choosing`` rows took so long."""
        if took <= 0 or not rows:
            return
        if self.share is None:
            self._whole.append(took / rows)
            return
        if self._is_in_vain(took / rows, choosing / rows):
            self.share, self._tried = None, 0
            return
        gain = max(_SLOWEST, min(_FASTEST, _PER_WINDOW * of_window))
        ratio = max(0.1, min(10.0, max(0.0, means) / (took * drift)))
        self.share = max(LEAST, self.share * ratio**gain)
        if self.share > MOST:
            self.share = None

    def _is_in_vain(self, seconds: float, choosing: float) -> bool:
        """Whether to do without for a while, after one more push of so many ``seconds`` per row."""
        new = _NEW if self._tried else 1.0
        self._limited += new * (seconds - self._limited)
        self._choosing += new * (choosing - self._choosing)
        self._tried += 1
        if self._tried < _TRIED or self._choosing < _DEAR * self._limited:
            return False
        if len(self._whole) == _WHOLE and self._limited >= _AS_LONG * min(self._whole):
            self._rest = self._while
        elif len(self._whole) < _WHOLE or self._tried > self._while:
            self._rest = _WHOLE
        else:
            return False
        self._while = min(2 * self._while, _LONGEST_REST)
        return True
