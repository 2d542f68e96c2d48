"""Units of time that a query may use, for windows, FRESHNESS and INTERVAL.

Months and years are not among them: they have no fixed length.
"""

from __future__ import annotations

_SIZES = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
MICROSECONDS = {
    **_SIZES,
    **{f"{unit}S": size for unit, size in _SIZES.items()},
    "US": 1,
    "MS": 1_000,
    "SEC": 1_000_000,
    "SECS": 1_000_000,
    "MIN": 60_000_000,
    "MINS": 60_000_000,
}
"""The units of time that a text may use, in microseconds."""

UNITS = "MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS"
"""For hints: the units that are usual for windows."""
