"""The push at hand: what it brings, what it needs and what it may do.

After a push it is the last one, or all those that have passed since the last look.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.engine.overload.probe_budget import Grant
from penstock.engine.state.clock import START


@dataclass(slots=True)
class PushAtHand:
    """The push at hand; each begins with what the one before has left."""

    number: int = 0
    """Pushes before it."""
    began: int = START
    """Event time when the first push came."""
    now: int = START
    """Event time after it."""
    seconds: float = 1.0
    """Seconds of event time that it takes."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """Rows that it brings to each stream, with those at the door."""
    count: int = 0
    """The same of all streams."""
    need: float = 0.0
    """Work that it would take in full."""
    results: float = 0.0
    """Results of a unit of work."""
    grant: Grant = field(default_factory=lambda: Grant(math.inf, 0.0))
    used: float = 0.0
    """Work that it took."""
    was_open: Mapping[str, float] = field(default_factory=dict)
    """The shares of rows that the door took in of it."""
    is_again: bool = False
    """Whether its answer has left before."""
    is_given: bool = False
    """Whether the host allows so many probes."""
    is_clocked: bool = False
    """Whether the clock may tell how far it goes."""
    is_rationed: bool = False
    """Whether not all of its rows may probe."""
