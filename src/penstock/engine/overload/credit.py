"""Credit: what pushes may use up before the budget is looked at again.

To look at a budget (three clocks, a model of what rows will find, what is to be told) takes longer
than a push of a row. So a look that finds the query well within its budget gives *credit*, and the
pushes after it only ask whether they fit in. That is safe:

- What was used so far is what the compiled push has counted, not what was foreseen. Only the rows
  of the push at hand are estimated, as they are with a look.
- The credit is the tokens that were left, and what time has brought since: event time, or wall time
  on the arrival line. For a budget of probes it is never more than can be
  saved: with T₀ tokens at the look, R·t new ones and U used, min(most, T₀ + R·t) - U is at most
  what looking at every push would have left (by induction over the pushes: to take the minimum
  before the use is subtracted gives no more than the other way round).
- After :data:`MOST_PUSHES`, or :data:`MOST_SECONDS` by the clock, or when somebody asks, or when a
  push is much larger than those that were looked at, it is over: then all of it counts as one push.

Where rows are left at the door and nothing else is limited, pushes pass under the door as it was
opened, and only the time that they take is measured: the share follows that at the next look. A
look would take longer than what it saves in a push of some thousand rows.

Under ``exact`` nothing is ever skipped, and a budget is only told about: there the last point alone
ends it, and a query that is short costs no more than one that is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

MOST_PUSHES = 256
"""Pushes without a look: a look costs as much as some pushes of a row."""
MOST_SECONDS = 0.1
"""Seconds of wall time without a look: no person sees that something is told that much later."""
_PUSHES_TO_COMPARE = 3
"""Pushes of which none is left out."""


@dataclass(slots=True)
class Credit:
    """Prices and tokens since a look, in what the budget counts: probes, or seconds of a core."""

    prices: Mapping[str, float]
    """What a row of each stream leads to, its probes included."""
    most_rows: int
    """Rows of a push to which the prices apply."""
    by_wall: bool
    """Whether wall time brings tokens, not event time."""
    is_limited: bool
    """Whether there is a budget to be kept."""
    tokens: float
    """Left at the look."""
    rate: float
    """New tokens per tick of event time, or per second of wall time."""
    most: float
    """Tokens that can be saved."""
    each_push: float
    each_row: float
    each_probe: float
    """What a push takes in any case, what a row takes to be stored, and what a probe takes."""
    since: float
    """When the time of :attr:`rate` began."""
    began: float
    """Wall time of the look."""
    now: int
    """Event time, of the look and then of the last push that has passed."""
    wall_time: Callable[[], float]
    work: Callable[[], float]
    """What was done since the start, in probes."""
    work_before: float = 0.0
    """Those of the look."""
    most_pushes: int = MOST_PUSHES
    """Pushes until the next look."""
    is_at_the_door: bool = False
    """Whether rows are left at the door in the pushes that pass."""
    # Of the pushes that have passed:
    pushes: int = 0
    rows: int = 0
    all_stale: int = 0
    """Results that were not fresh."""
    last: float = 0.0
    """Wall time when the last one began."""
    took: float = 0.0
    """Seconds that they took, where rows are left at the door."""
    longest: float = 0.0
    """Those of the push that took the most."""
    # Of the push at hand:
    until: int = 0
    """Event time after it."""
    stale: int = 0
    """Results that are not fresh."""
    _start: float = 0.0

    def covers(self, need: float, rows: int, until: int) -> bool:
        """Whether a push of ``rows``, priced at ``need``, that takes time on to ``until`` fits in.

        If so, :meth:`note` follows when it is done, and nothing if it fails.
        """
        wall = self._start = self.wall_time()
        is_over = self.pushes >= self.most_pushes or wall - self.began > MOST_SECONDS
        if is_over or rows > self.most_rows:
            return False
        if self.is_limited:
            used = self.each_push * (self.pushes + 1) + self.each_row * self.rows
            used += self.each_probe * (self.work() - self.work_before)
            time = (wall if self.by_wall else until) - self.since
            left = self.tokens + self.rate * time - used
            if left > self.most:  # No more is saved than for a burst.
                self.tokens += self.most - left
                left = self.most
            if need > left:
                return False
        self.until, self.stale = until, 0
        return True

    @property
    def usual(self) -> float:
        """What they took if the longest, which may have met something else, was like the others."""
        if self.pushes < _PUSHES_TO_COMPARE:
            return self.took
        return (self.took - self.longest) * self.pushes / (self.pushes - 1)

    def note(self, rows: int) -> None:
        """The push of ``rows`` is done."""
        self.pushes += 1
        self.rows += rows
        self.all_stale += self.stale
        self.now = self.until
        self.last = self._start
