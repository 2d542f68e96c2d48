"""Unit costs that fit what a running query has cost: calibrated ones, scaled by kind of work.

Calibration measures bare operations. A query has other keys, other widths, other caches, and each
*kind* of work may be dearer or cheaper than there: probing, keeping rows, output, and what a push
costs however small. What is observed is a sum: seconds = Σ over kinds of scale · predicted seconds.
The scales are estimated by an extended Kalman filter on their logarithms, so none is ever negative.

The prior is that of the calibration: all scales are 1. They err together (another machine, another
load) more than apart, and the prior covariance says so. So one mix of work, seen again and again,
moves all of them alike, as a single factor would; only mixes that differ, after a change of plan or
of the streams, tell the kinds apart. What is far from what was expected is taken for noise, the
more so the farther: a machine that is busy for a moment is no news. Nothing is known for ever: the
covariance goes back to the prior, by :data:`FORGETTING` with each observation.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from penstock.planning.unit_costs import UnitCosts

COMMON = 1.4
"""Standard deviation of the logarithm of what all scales have in common: a factor of four."""
OWN = 0.7
"""That of what each has of its own: a factor of two."""
NOISE = 0.15
"""That of an observation."""
SURPRISE = 2.0
"""Standard deviations beyond which an observation is the noisier the more it says."""
FORGETTING = 1 / 128
"""Part of the prior covariance that comes back with each observation."""
MOST = 64.0
"""No scale is believed beyond this, or below one divided by it."""


class Work(NamedTuple):
    """CPU seconds that work should have taken by the calibrated costs, by kind."""

    probing: float
    keeping: float
    output: float
    fixed: float


KINDS = Work._fields
COSTS: dict[str, tuple[str, ...]] = {
    "probing": ("probe", "compare", "join", "check", "residual"),
    "keeping": ("insert", "delete", "index", "arrival", "window", "text"),
    "output": ("result", "column", "group", "answer", "aggregate"),
    "fixed": ("call", "push", "step", "grouping", "state"),
}
"""The unit costs of each kind."""


class FittedCosts:
    """Scales of ``calibrated`` costs."""

    def __init__(self, calibrated: UnitCosts) -> None:
        self.calibrated = calibrated
        self._logs = np.zeros(len(KINDS))
        self._prior = COMMON**2 + OWN**2 * np.eye(len(KINDS))
        self._covariance = self._prior.copy()
        self.observations = 0

    @property
    def scales(self) -> dict[str, float]:
        """What operations cost over what they were calibrated to, by kind."""
        return dict(zip(KINDS, np.exp(self._logs).tolist(), strict=True))

    @property
    def costs(self) -> UnitCosts:
        """The calibrated costs, scaled."""
        values = self.calibrated.to_json()
        scaled = {
            name: scale * values[name]
            for kind, scale in self.scales.items()
            for name in COSTS[kind]
        }
        return replace(self.calibrated, **scaled)

    def observe(self, work: Work, seconds: float) -> float:
        """``work`` has taken so many ``seconds``. By which factor such work is priced higher now
        than before."""
        shares = np.asarray(work) * np.exp(self._logs)
        before = float(shares.sum())
        if before <= 0 or seconds <= 0:
            return 1.0
        slope = shares / before
        known = float(slope @ self._covariance @ slope)
        news = math.log(seconds / before)
        noise = NOISE * max(1.0, abs(news) / (SURPRISE * math.sqrt(known + NOISE**2)))
        spread = known + noise**2
        gain = self._covariance @ slope / spread
        bound = math.log(MOST)
        self._logs = np.clip(self._logs + gain * news, -bound, bound)
        self._covariance -= np.outer(gain, slope @ self._covariance)
        self._covariance += FORGETTING * (self._prior - self._covariance)
        self.observations += 1
        return float((np.asarray(work) * np.exp(self._logs)).sum()) / before
