"""What plans have cost, against what the model says: lessons of a running query.

The model knows operations; it does not know this query's caches, widths, guards and texts. While a
plan runs, its CPU and its bytes are measured, and the *ratio* of measured to modelled is kept for
it. What was never run is taken to be misjudged as much as the plan that runs: then comparisons are
those of the model, and limits are those of the machine. So a plan that the model flatters is tried
at most once: its ratio is known from then on, and the one before it is come back to.

Streams change and ratios with them, so what was learnt about plans that do not run fades towards
the plan that does, by :data:`FADING` with every look. For bytes a ratio below one is not believed
of plans that were not run: the windows may not be full yet, and a limit on memory is a promise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.planning.block import Cost
from penstock.planning.limits import Limits

Ratio = tuple[float, float]

LEARNING = 0.5
"""The weight of what was measured since the last look."""
FADING = 1 / 16
"""The share of a ratio that is forgotten with every look at another plan."""
CALM = 1.5
"""Times by which the model may have changed since the last look, if a ratio is to be learnt: what
was measured is a mean over the time between."""
MOST_RATIO = 64.0
"""No ratio is believed beyond this, or below one divided by it."""
KNOWN_PLANS = 8
"""Plans whose ratios are remembered, at most."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a plan has cost since the last look; None where that is not known."""

    cpu: float | None = None
    """CPU seconds per second of event time."""
    memory: float | None = None
    """Bytes that are held."""


UNMEASURED = Measured()


@dataclass(frozen=True, slots=True)
class Lessons:
    """Ratios of plans by their outlines; ``running`` is the plan that runs."""

    running: str
    ratios: Mapping[str, Ratio]

    def corrected(self, outline: str, cost: Cost) -> Cost:
        """The modelled ``cost`` of a plan, as measured ratios correct it."""
        cpu, memory = self._ratio(outline)
        return Cost(cost.cpu * cpu, cost.memory * memory)

    def modelled(self, limits: Limits) -> Limits:
        """Limits that a plan which was never run must be within by the model."""
        cpu, memory = self._ratio("")
        return Limits(
            None if limits.cpu is None else limits.cpu / cpu,
            None if limits.memory is None else max(1, int(limits.memory / memory)),
        )

    def _ratio(self, outline: str) -> Ratio:
        found = self.ratios.get(outline)
        if found is None:
            cpu, memory = self.ratios.get(self.running, (1.0, 1.0))
            found = cpu, max(1.0, memory)
        return found


def learnt(
    ratios: Mapping[str, Ratio], running: str, modelled: Cost, measured: Measured
) -> dict[str, Ratio]:
    """``ratios`` after ``running`` has been measured."""
    before = ratios.get(running)
    new = (
        _between(None if before is None else before[0], measured.cpu, modelled.cpu),
        # Bytes are what they are: a limit breaks by the largest, not by the mean.
        _between(None, measured.memory, modelled.memory)
        if before is None or measured.memory is not None
        else before[1],
    )
    if before is None and measured == UNMEASURED:
        return dict(ratios)
    others = {plan: _faded(ratio, new) for plan, ratio in ratios.items() if plan != running}
    kept = list(others.items())[-(KNOWN_PLANS - 1) :]
    return dict(kept) | {running: new}


def _between(before: float | None, measured: float | None, modelled: float) -> float:
    """The ratio from now on."""
    if measured is None or modelled <= 0 or measured <= 0:
        return 1.0 if before is None else before
    now = min(MOST_RATIO, max(1 / MOST_RATIO, measured / modelled))
    if before is None:
        return now
    return math.exp((1 - LEARNING) * math.log(before) + LEARNING * math.log(now))


def _faded(ratio: Ratio, towards: Ratio) -> Ratio:
    cpu, memory = (
        math.exp((1 - FADING) * math.log(one) + FADING * math.log(other))
        for one, other in zip(ratio, towards, strict=True)
    )
    return cpu, memory
