"""What a probe costs on this machine, learned from pushes.

A push takes a·(rows) + c·(probes + results) seconds, about: every tuple is stored and purged
whatever the policy, and only probes, with what they make, can be saved. If all the time were put on
the probes, a push that sheds most of them would make each look dearer, the next would shed more,
and so on down to none. So both are learned, by least squares over recent pushes (older ones fade),
and a budget of s seconds allows (s - a·rows) / c probes and results.

While rows and probes go up and down together the two cannot be told apart, so a little weight stays
on the first guess of their ratio, until pushes differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

FADE = 0.95
_ROW, _PROBE = 1e-7, 1e-7
"""Seconds per row and per probe before anything is known, of W1 on a core of 2020."""
_CHEAPEST = 0.25
"""A probe does not cost less than so much of what it would at the first guess of the ratio."""
_WEIGHT = 1e-3
"""How much the guess counts against what was seen."""


@dataclass(frozen=True, slots=True)
class ProbeCost:
    """Sums over pushes of products of rows, probes and seconds."""

    rows_rows: float = 0.0
    rows_probes: float = 0.0
    probes_probes: float = 0.0
    rows_seconds: float = 0.0
    probes_seconds: float = 0.0

    def observe(self, rows: int, probes: int, seconds: float) -> ProbeCost:
        """What is known after a push of ``rows`` that made ``probes`` in ``seconds``."""
        if rows + probes == 0:
            return self
        return replace(
            self,
            rows_rows=FADE * self.rows_rows + rows * rows,
            rows_probes=FADE * self.rows_probes + rows * probes,
            probes_probes=FADE * self.probes_probes + probes * probes,
            rows_seconds=FADE * self.rows_seconds + rows * seconds,
            probes_seconds=FADE * self.probes_seconds + probes * seconds,
        )

    @property
    def costs(self) -> tuple[float, float]:
        """Seconds per row and per probe, neither below zero."""
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

    def probes_in(self, seconds: float, rows: int) -> float:
        """The probes that fit into ``seconds`` beside storing ``rows``; none if rows fill them."""
        row, probe = self.costs
        if math.isinf(seconds):
            return seconds
        return max(0.0, seconds - row * rows) / probe
