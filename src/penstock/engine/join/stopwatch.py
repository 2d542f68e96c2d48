"""How long each operator takes: one look at the clock per operator and push.

For people who read EXPLAIN ANALYZE, and for nothing else: no decision of the engine depends on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from penstock.plan.stream_set import StreamSet

_LAPS_TO_FOLD = 1 << 10
"""Laps from which on they are added up, not kept one by one."""


class Stopwatch:
    """Adds up seconds by operator."""

    clock: Callable[[], float] = staticmethod(time.perf_counter)
    """Wall time: CPU time costs a call into the system, several times an operator's own cost."""

    def __init__(self) -> None:
        self._seconds: dict[StreamSet, float] = {}
        self._folded = 0
        self._laps: list[tuple[Sequence[StreamSet], Sequence[float], float]] = []
        """Laps of the push at hand, and of those before it that are not added up yet: operators,
        and what each took, in units of so many seconds."""
        self._committed = 0
        """Laps that are of pushes that are done."""
        self._before = 0.0

    @property
    def seconds(self) -> dict[StreamSet, float]:
        """Seconds of each operator, in all pushes that are done."""
        self._fold()
        return self._seconds

    @property
    def laps(self) -> int:
        """Laps since the start."""
        self._fold()
        return self._folded

    def start(self) -> None:
        """Begin the next lap."""
        self._before = self.clock()

    def lap(self, operator: StreamSet) -> None:
        """Count the time since the last lap as ``operator``'s."""
        now = self.clock()
        self._laps.append(((operator,), (now - self._before,), 1.0))
        self._before = now

    def add(self, operators: Sequence[StreamSet], laps: Sequence[float], unit: float) -> None:
        """Add laps that were measured elsewhere, in units of so many seconds."""
        self._laps.append((operators, laps, unit))

    def commit(self) -> None:
        """The push is done: its laps count."""
        self._committed = len(self._laps)
        if self._committed >= _LAPS_TO_FOLD:
            self._fold()

    def forget(self) -> None:
        """The push has failed."""
        del self._laps[self._committed :]

    def _fold(self) -> None:
        for operators, laps, unit in self._laps[: self._committed]:
            for operator, lap in zip(operators, laps, strict=True):
                self._seconds[operator] = self._seconds.get(operator, 0.0) + lap * unit
            self._folded += len(laps)
        del self._laps[: self._committed]
        self._committed = 0
