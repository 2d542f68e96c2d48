"""What a push of several parts has taken in so far."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from penstock.engine.state.clock import START

if TYPE_CHECKING:
    from penstock.engine.push.whole_push import WholePush


class Taken:
    """The sums of what :class:`~penstock.engine.push.whole_push.WholePush` tells of each part."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        """Rows of each source."""
        self.late: Counter[str] = Counter()
        self.without_time: Counter[str] = Counter()
        self.on_time: Counter[str] = Counter()
        self.rows = self.places = 0
        self.are_whole = True
        """Whether no row of any part has a NULL, nor was looked at step by step."""
        self.has_rows = False
        """Whether any row is on time."""
        self.first = START
        """The first event time of all, in ticks."""

    def add(self, whole: WholePush) -> None:
        """One more part has been looked at."""
        self.seen.update(whole.seen)
        self.late.update(whole.late)
        self.without_time.update(whole.without_time)
        self.on_time.update(whole.on_time)
        self.rows += whole.rows
        self.are_whole &= whole.are_whole
        if whole.has_rows:
            self.first = min(self.first, whole.first) if self.has_rows else whole.first
            self.has_rows = True
