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

**How low it may go.** A part of a push costs the same whatever comes in (its checks, its books, a
look at rows that stay outside). A budget below that cannot be kept by any share; to lower it
further only loses results. So what pushes took is fitted as fixed + each · share
(:class:`~penstock.engine.overload.share_cost.ShareCost`), whole pushes included, and the share is
lowered no further where

- what is taken no longer follows: a share lower by a tenth would save less than a hundredth, or
- less than half of it follows, and to draw as many rows of all streams before the engine sees them
  would keep more results for the CPU that is spent.

So what a push takes ends at most a ninth above the least that it can.

If there is no such share, or a push with it takes as long as a whole one, limits are in vain: all
rows are taken in for a while, and the query is short, as it would be in any case. They are tried
again, each time after a longer while, and with half of the rows at first.
"""

from __future__ import annotations

from penstock.engine.overload.share_cost import ShareCost

LEAST_SHARE, MOST_SHARE = 0.01, 1.25
"""Shares between which is tried; at the most, everything fits with room to spare."""
_SLOWEST, _FASTEST = 0.05, 0.5
"""Gains: of pushes that are a small part of a window, and of those that are most of it."""
_PER_WINDOW = 4.0
"""The gain over a window."""
_FIRST_SHARE = 0.5
"""The least share of the first pushes, if it is not known what whole ones take, and when limits are
tried again: what is lost by that is lost for a window."""
_PUSHES_TRIED = 6
"""Limited pushes from which on it counts what they took."""
_TIMES_OVER = 1.1
"""How many times what there is they take, if limits are in vain."""
_AS_LONG = 0.9
"""Of what a whole push takes, the part that tells of no saving."""
_REST, _LONGEST_REST = 16, 256
"""Pushes after which limits are tried again, at first and at most."""
_NEW_PART = 0.3
"""How much a push counts for what pushes take on average."""


class Throttle:
    """A share that follows what pushes take."""

    def __init__(self) -> None:
        self.share: float | None = None
        """The share of all work that is done; None for all."""
        self._over = 0.0
        """How many times what there was limited pushes took."""
        self._tried = self._rest = 0
        """Limited pushes, and whole ones until the next try."""
        self._while = _REST
        self._cost = ShareCost()

    @property
    def is_resting(self) -> bool:
        """Whether all rows are taken in although the query is short."""
        return self.share is None and self._rest > 0

    def decide(self, foreseen: float, rows: int = 0) -> float | None:
        """The share for the push of ``rows`` at hand, of which a share is ``foreseen`` to fit; None
        for all."""
        if self.share is None:
            self._rest = max(0, self._rest - 1)
            if foreseen >= 1 or self._rest:
                return None
            is_known = self._while == _REST and self._cost.is_known(rows)
            self.share = max(LEAST_SHARE if is_known else _FIRST_SHARE, foreseen)
            self._tried, self._over = 0, 0.0
        return self.share

    def let_pass(self, pushes: int) -> None:
        """So many pushes came for which nothing was decided."""
        self._rest = max(0, self._rest - pushes)

    def learn(
        self,
        took: float,
        means: float,
        of_window: float,
        rows: int,
        drift: float = 1.0,
        is_full: bool = True,
        power: float = 1.0,
        streams: int = 2,
        books: float = 0.0,
        usual: float | None = None,
        pushes: int = 1,
    ) -> None:
        """A push of ``rows`` ``took`` so many seconds; there were so many ``means``; it was that
        part of a window. In the long run it would take ``drift`` times as long. Windows are full,
        or not: then whole pushes tell nothing.

        A share s keeps s to this ``power`` of the results, which have rows of so many ``streams``.
        Of what the push took so many seconds went into the ``books`` of the limits. It stands for
        so many ``pushes``; without what seldom happens they take as many as ``usual``.
        """
        if took <= 0 or not rows:
            return
        if self.share is None:
            if is_full:
                self._cost.note_whole(took / rows, rows / pushes)
            return
        if self._tried or pushes > 1:  # At first there may be something to load.
            often = (took if usual is None else usual) * drift
            each = rows / pushes
            self._cost.note(min(1.0, self.share), often / rows, each, books / rows)
        least, is_known = LEAST_SHARE, self._cost.is_known(rows / pushes)
        if not is_known:
            least = min(_FIRST_SHARE, self.share)
        elif self._tried >= _PUSHES_TRIED:
            least = self._cost.least_share(power, streams, LEAST_SHARE)
        self._tried += pushes
        if self._is_in_vain(took * drift / max(1e-9, means), least, is_known):
            self.share = None
            return
        gain = max(_SLOWEST, min(_FASTEST, _PER_WINDOW * of_window))
        ratio = max(0.1, min(10.0, max(0.0, means) / (took * drift)))
        self.share = max(least, self.share * ratio**gain)
        if self.share > MOST_SHARE:
            self.share = None

    def _is_in_vain(self, over: float, least: float, is_known: bool) -> bool:
        """Whether to do without for a while, after one more push that will take ``over`` times what
        there was, where no share below the ``least`` is worth it, if what one takes is known."""
        new = _NEW_PART if self._over else 1.0
        self._over += new * (over - self._over)
        if not is_known or self._tried < _PUSHES_TRIED or self._over < _TIMES_OVER:
            return False
        if least < 1 and self._cost.at(least) < _AS_LONG * self._cost.at(1.0):
            return False
        self._rest = self._while
        self._while = min(2 * self._while, _LONGEST_REST)
        return True
