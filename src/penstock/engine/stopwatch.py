"""How long each operator takes: one look at the clock per operator and push.

For people who read EXPLAIN ANALYZE, and for nothing else: no decision of the engine depends on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from penstock.plan.stream_set import StreamSet


class Stopwatch:
    """Adds up seconds by operator."""

    clock: Callable[[], float] = staticmethod(time.perf_counter)
    """Wall time: CPU time costs a call into the system, several times an operator's own cost."""

    def __init__(self) -> None:
        self.seconds: dict[StreamSet, float] = {}
        self.laps = 0
        self._laps: list[tuple[StreamSet, float]] = []
        """Of the push at hand."""
        self._before = 0.0

    def start(self) -> None:
        """What comes next belongs to the next lap."""
        self._before = self.clock()

    def lap(self, operator: StreamSet) -> None:
        """What came since the last lap was ``operator``'s."""
        now = self.clock()
        self._laps.append((operator, now - self._before))
        self._before = now

    def add(self, operator: StreamSet, seconds: float) -> None:
        """A lap that somebody else has measured."""
        self._laps.append((operator, seconds))

    def commit(self) -> None:
        """The push is done: its laps count."""
        for operator, seconds in self._laps:
            self.seconds[operator] = self.seconds.get(operator, 0.0) + seconds
        self.laps += len(self._laps)
        self._laps.clear()

    def forget(self) -> None:
        """The push has failed."""
        self._laps.clear()
