"""From checks to a verdict, and numbers in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from penstock_studies.lab.experiment import Verdict


def judge(checks: Sequence[bool], measured: str) -> Verdict:
    """All checks hold, some or none."""
    if not checks:
        return Verdict("not measured", measured or "no data")
    if all(checks):
        return Verdict("holds", measured)
    return Verdict("holds in part" if any(checks) else "does not hold", measured)


def times(ratio: float | None) -> str:
    """``12×``; a ratio below 1 keeps two digits."""
    if ratio is None:
        return "–"
    return f"{ratio:.0f}×" if ratio >= 9.95 else f"{ratio:.2g}×"


def per_cent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


def as_float(value: object) -> float:
    """A number of a row of measurements; NaN if it is none."""
    return float(value) if isinstance(value, int | float) else math.nan
