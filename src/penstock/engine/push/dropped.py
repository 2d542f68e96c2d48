"""Rows that a push set aside: from which source, why, and the rows as they were pushed."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

LATE = "late"
"""The row is older than the watermark of its source."""
NO_EVENT_TIME = "no event time"
"""Its event time is NULL."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """Rows of one source that were dropped in one push for one reason."""

    source: str
    reason: str
    """:data:`LATE`, :data:`NO_EVENT_TIME`, or another text: reasons may be added."""
    rows: pa.Table
    """With all columns that were pushed."""
    watermark: int | None = None
    """The watermark that a late row was too late for, in ticks of the query's time unit."""
