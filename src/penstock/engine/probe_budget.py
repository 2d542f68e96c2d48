"""How many probes a push may make: tokens that time brings and probes take.

Tokens may be saved up to a burst, but not time per push, which passes unused. A push that made more
probes than it was allowed (what a probe finds is known only afterwards) leaves a deficit, which
later pushes make good.

Clocks are parameters: event time comes with the push, CPU and wall time from functions that a test
can replace.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from penstock.engine.overload import Overload
from penstock.engine.probe_cost import ProbeCost

Now = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Grant:
    """What a push may do: ``probes`` in all, of which ``saved`` are from before."""

    probes: float
    saved: float


class ProbeBudget:
    """The budget of ``option``; without one, a whole core."""

    def __init__(
        self, option: Overload, cpu_time: Now = time.thread_time, wall_time: Now = time.perf_counter
    ) -> None:
        self._option = option
        self._wall_time = wall_time
        self._cost_time = cpu_time if option.seconds is None else wall_time
        self._share = option.cpu if option.has_budget else 1.0
        self._tokens = option.probes * option.burst if option.probes is not None else 0.0
        self._last_start: float | None = None
        self._start = self._cost_start = 0.0
        self._rows = 0
        self.cost = ProbeCost()

    @property
    def is_timed(self) -> bool:
        """Whether the budget is time, so that what a push costs has to be measured."""
        return self._option.probes is None

    def __str__(self) -> str:
        option = self._option
        if option.probes is not None:
            return f"{option.probes:g} probes/s of event time"
        if option.seconds is not None:
            return f"{option.seconds:g} s per push"
        return f"{self._share:g} of a core"

    def begin(self, rows: int, seconds: float, given: float | None, results: float = 0.0) -> Grant:
        """A push of ``rows`` that takes event time on by ``seconds``; ``given`` by the host.

        ``results`` are to be expected per probe: to make one costs about as much as a probe.
        """
        if self.is_timed:
            self._start, self._cost_start = self._wall_time(), self._cost_time()
        self._rows = rows
        if given is not None:
            return Grant(given, 0.0)
        new = self._new(rows, seconds) / (1.0 + results if self.is_timed else 1.0)
        return Grant(self._tokens + new, self._tokens)

    def _new(self, rows: int, seconds: float) -> float:
        option = self._option
        if option.probes is not None:
            return option.probes * seconds
        if option.seconds is not None:
            return self.cost.probes_in(option.seconds, rows)
        if self._last_start is None:
            return math.inf  # Nothing to compare with: the first push is measured.
        assert self._share is not None
        return self.cost.probes_in(self._share * (self._start - self._last_start), rows)

    def end(self, grant: Grant, used: int, results: int = 0) -> None:
        """The push is done, ``used`` probes and so many results were made."""
        if self.is_timed:
            seconds = self._cost_time() - self._cost_start
            if self._last_start is not None:  # The first push may have to load or compile.
                self.cost = self.cost.observe(self._rows, used + results, seconds)
            self._last_start = self._start
        left = grant.probes - used
        if math.isinf(left):
            left = 0.0
        self._tokens = max(-self._most(grant), min(left, self._most(grant)))

    def _most(self, grant: Grant) -> float:
        """The most tokens that are saved, or owed: a single slip must not stop everything."""
        option = self._option
        if option.seconds is not None:
            return 0.0  # The time of one trigger is of no use to the next.
        if option.probes is not None:
            return max(1.0, option.probes * option.burst)
        fresh = grant.probes - grant.saved
        return max(1.0, fresh * option.burst) if math.isfinite(fresh) else 1.0
