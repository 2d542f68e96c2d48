"""What work costs beside a probe, in probes.

JAQPOT counts probes. A probe that finds nothing is the cheapest thing that a join does: a match is
made, a combination is stored, a result is dated and its columns are fetched, a row is checked and
put into its window, and each costs several probes. The ratios are those of the unit costs of the
cost model (``penstock calibrate``), which differ less between machines than the times do.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prices:
    """Probes that each costs, beyond the probe that led to it."""

    row: float = 0.0
    """A row that is taken in."""
    match: float = 0.0
    """Two parts that match."""
    stored: float = 0.0
    """A match that is stored, below the root."""
    result: float = 0.0
    """A match that is a result."""


PROBES = Prices()
"""Only probes count, as in the paper."""
