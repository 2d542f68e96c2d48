"""What looks at guards may cost, and guards that turn out not to pay: a share of what pushes took.

A look at a guard that is off takes a sample, some 0.2 ms, whatever a push takes. Where a push
takes a tenth of that, as many looks as rows suggest would cost more than guards can save, so there
are fewer. What pushes took is reckoned from what was counted, and rather too low than too high: no
clock is read. What guards have saved counts as if pushes had taken it. A guard that was turned off
because it had cost more than it saved is paid for from the same budget, with both changes, so
whoever was wrong waits the longer before the next attempt.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.engine.feedback.edge import Edge
from penstock.engine.join.join_operator import JoinOperator

SHARE = 0.03
"""The share of the time of pushes that looks, and guards that do not pay, may take."""
FIRST = 300_000.0
"""Nanoseconds that may be spent before there is a share: a first look."""
PUSH = 80_000.0
ROW = 60.0
PAIR = 20.0
SCAN_PER_ROW = 0.7
"""Nanoseconds of a push without rows, of a row of an input, of a pair that is found, and of a
row that nested loops go by: not more than was measured on any case of the study."""

Way = tuple[Edge, JoinOperator, int]
"""An edge, the join that it feeds, and as which input."""


class LookBudget:
    """Nanoseconds that may be spent on looks at the guards of one tree."""

    def __init__(self, ways: Sequence[Way]) -> None:
        self._edges = [edge for edge, _, _ in ways]
        self._joins = {consumer.streams: consumer for _, consumer, _ in ways}.values()
        self._ways = ways
        self._scanned = [0] * len(ways)
        self._scans = 0.0
        self._earned = 0.0
        self._spent = 0.0

    def left(self, pushes: int) -> float:
        """Nanoseconds that may be spent now, after so many ``pushes``; below 0 after a failure."""
        return FIRST + SHARE * (self._taken(pushes) + self._earned) - self._spent

    def spend(self, nanoseconds: float) -> None:
        """So much was spent on a look, or lost by a guard."""
        self._spent += nanoseconds

    def earn(self, nanoseconds: float) -> None:
        """So much has been saved by a guard."""
        self._earned += nanoseconds

    def pushes_until(self, lacking: float, pushes: int) -> int:
        """Pushes after which ``lacking`` nanoseconds more may be spent, if they go on as before."""
        per_push = SHARE * self._taken(pushes) / max(1, pushes)
        return 1 + int(lacking / per_push)

    def _taken(self, pushes: int) -> float:
        """Nanoseconds that pushes took, by counts."""
        taken = PUSH * pushes + ROW * sum(edge.came for edge in self._edges)
        steps = (step for join in self._joins for order in join.steps for _, step in order)
        for number, (edge, consumer, position) in enumerate(self._ways):
            _, step = consumer.steps[position][0]
            if not step.hashed:
                news = edge.admitted - self._scanned[number]
                self._scanned[number] += news
                self._scans += SCAN_PER_ROW * news * len(step.target.rows)
        return taken + PAIR * sum(step.matches for step in steps) + self._scans
