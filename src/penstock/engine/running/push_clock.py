"""CPU seconds of each push, without asking for them at each.

The CPU clock is a call into the system: half a microsecond on a good day and ten on a virtual
machine, where a push of one row takes fifty. So of pushes that are small one in eight is measured
and stands for those after it, as long as the clock on the wall, which costs next to nothing, says
that they are small too.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_BRIEF_SECONDS = 250e-6
"""Seconds of a push below which reading the clock costs a share of it."""
_UNMEASURED_PUSHES = 7
"""Brief pushes after one that was measured that are not."""


class PushClock:
    """Measures pushes, one after another."""

    def __init__(
        self,
        cpu: Callable[[], float] = time.thread_time,
        wall: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._cpu, self._wall = cpu, wall
        self._left = 0
        """Small pushes that need not be measured."""
        self._each = 0.0
        """CPU seconds of the last push that was."""
        self._began = self._began_cpu = 0.0

    def start(self) -> None:
        """A push begins."""
        self._began = self._wall()
        if not self._left:
            self._began_cpu = self._cpu()

    def stop(self) -> float:
        """CPU seconds of the push that ends."""
        if not self._left:
            self._each = self._cpu() - self._began_cpu
            self._left = _UNMEASURED_PUSHES if self._each < _BRIEF_SECONDS else 0
            return self._each
        took = self._wall() - self._began
        if took < _BRIEF_SECONDS:
            self._left -= 1
            return self._each
        self._left = 0
        return took
