"""The demo with too little CPU: now and then more comes than the budget covers.

A calm second of the auction house needs about 12,500 probes, and 20,000 are allowed. In a surge
five times as many events come, which need more than five times the probes, since the windows fill
up as well. Results may be ten minutes old, so that ``defer`` can make up for all it put off.
"""

from __future__ import annotations

from typing import Literal

import penstock
from penstock.cli.demo.streams import QUERY

Policy = Literal["exact", "shed", "defer"]

PROBES = 20_000
FACTOR = 5
_PERIOD, _FIRST, _AFTER = 400, 60, 100
"""In seconds of event time: a surge is from the first to before the last of each period."""

SURGE_QUERY = QUERY.replace("]", "] FRESHNESS 10 MINUTES")


def factor_at(second: int) -> int:
    """How many times as many events as usual come in this second."""
    return FACTOR if _FIRST <= second % _PERIOD < _AFTER else 1


def limited(policy: Policy) -> penstock.Overload:
    """``policy`` with the budget of the demo."""
    return penstock.Overload(policy, probes=PROBES)
