"""Which power of one thing another grows with."""

from __future__ import annotations

import math
from collections.abc import Sequence


def exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """Of the power of ``x`` that is nearest to ``y``; NaN where there is one ``x``."""
    logs = [(math.log(a), math.log(b)) for a, b in zip(x, y, strict=True)]
    middle_x = sum(a for a, _ in logs) / len(logs)
    middle_y = sum(b for _, b in logs) / len(logs)
    spread = sum((a - middle_x) ** 2 for a, _ in logs)
    return sum((a - middle_x) * (b - middle_y) for a, b in logs) / spread if spread else math.nan
