"""What a probe costs on this machine, learned from pushes.

A push takes a·(rows) + c·(probes + results) seconds, about: every tuple is stored and purged
whatever the policy, and only probes, with what they make, can be saved. If all the time were put on
the probes, a push that sheds most of them would make each look dearer, the next would shed more,
and so on down to none. So both are learned, by least squares over recent pushes or slices of pushes
(older ones fade, and large ones count for more, in proportion), and a budget of s seconds allows
(s - a·rows) / c probes and results.

While rows and probes go up and down together the two cannot be told apart, so a little weight stays
on the first guess of their ratio, until pushes differ. A push that takes many times as long as
foreseen has more likely met something that has nothing to do with its rows (a kernel that is
loaded, a machine that stands still) than dearer probes; so it counts as several times as long and
no more. If it was the probes, the next one says so again.

How rows and probes share the time changes slowly, and how much it is in all may change from one
slice to the next, when windows fill in a burst or a neighbour begins to compute. So there is a
*level* beside the sums, a mean over the last few, by which both costs are multiplied.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

FADE = 0.95
_ROW, _PROBE = 1e-7, 1e-7
"""Seconds per row and per probe before anything is known, of W1 on a core of 2020."""
_CHEAPEST = 0.25
"""A probe does not cost less than so much of what it would at the first guess of the ratio."""
_WEIGHT = 1e-3
"""How much the guess counts against what was seen."""
_SURPRISE = 4.0
"""A push counts as at most so many times as long as foreseen."""
_FAST = 0.5
"""How much the last push counts for the level."""
_FEW = 3
"""So many pushes are taken as they are."""


@dataclass(frozen=True, slots=True)
class ProbeCost:
    """Sums over pushes of products of rows, probes and seconds, each divided by rows + probes."""

    rows_rows: float = 0.0
    rows_probes: float = 0.0
    probes_probes: float = 0.0
    rows_seconds: float = 0.0
    probes_seconds: float = 0.0
    pushes: int = 0
    level: float = 1.0
    """What the last few pushes took, divided by what they should have."""

    @property
    def is_known(self) -> bool:
        """Whether more is known than a first guess."""
        return self.pushes >= _FEW

    def observe(self, rows: int, probes: int, seconds: float) -> ProbeCost:
        """What is known after a push of ``rows`` that made ``probes`` in ``seconds``."""
        if rows + probes == 0:
            return self
        level = 1.0
        if self.is_known:
            row, probe = self._slow
            foreseen = row * rows + probe * probes
            seconds = min(seconds, _SURPRISE * self.level * foreseen)
            level = self.level
            if foreseen > 0:
                level += _FAST * (seconds / foreseen - level)
        weight = 1.0 / (rows + probes)
        return ProbeCost(
            FADE * self.rows_rows + weight * rows * rows,
            FADE * self.rows_probes + weight * rows * probes,
            FADE * self.probes_probes + weight * probes * probes,
            FADE * self.rows_seconds + weight * rows * seconds,
            FADE * self.probes_seconds + weight * probes * seconds,
            self.pushes + 1,
            level,
        )

    @property
    def costs(self) -> tuple[float, float]:
        """Seconds per row and per probe, neither below zero."""
        row, probe = self._slow
        return self.level * row, self.level * probe

    @property
    def _slow(self) -> tuple[float, float]:
        """The costs over many pushes."""
        seen = self.rows_rows + self.probes_probes
        if seen == 0:
            return _ROW, _PROBE
        scale = (self.rows_seconds + self.probes_seconds) / (
            _ROW * (self.rows_rows + self.rows_probes)
            + _PROBE * (self.rows_probes + self.probes_probes)
        )
        guess_row, guess_probe = scale * _ROW, scale * _PROBE
        weight = _WEIGHT * seen
        rr, pp, rp = self.rows_rows + weight, self.probes_probes + weight, self.rows_probes
        rs, ps = self.rows_seconds + weight * guess_row, self.probes_seconds + weight * guess_probe
        determinant = rr * pp - rp * rp
        row, probe = (rs * pp - ps * rp) / determinant, (ps * rr - rs * rp) / determinant
        if row < 0:
            row, probe = 0.0, ps / pp
        elif probe <= 0:
            row, probe = rs / rr, 0.0
        if probe < _CHEAPEST * guess_probe:
            probe = _CHEAPEST * guess_probe
            row = max(0.0, rs - probe * rp) / rr
        return row, probe

    def per_probe(self, results: float, after: float = 0.0) -> float:
        """Seconds of a probe that makes ``results``, each of which takes ``after`` later on."""
        return self.costs[1] * (1.0 + results) + after * results

    def probes_in(
        self, seconds: float, rows: int, results: float = 0.0, after: float = 0.0
    ) -> float:
        """The probes that fit into ``seconds`` beside storing ``rows``; none if rows fill them."""
        if math.isinf(seconds):
            return seconds
        return max(0.0, seconds - self.costs[0] * rows) / self.per_probe(results, after)
