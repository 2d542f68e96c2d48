"""An instant of event time, for people."""

from __future__ import annotations

from datetime import UTC, datetime

from penstock.query.join_graph import TICKS_PER_MILLISECOND, TimeUnit


def instant_text(instant: int, unit: TimeUnit | None) -> str:
    """The clock time of an ``instant`` in ticks of ``unit`` since 1970; None: of no clock.

    >>> instant_text(1772712250123, "ms"), instant_text(17, None)
    ('2026-03-05T12:04:10Z', 'instant 17')
    """
    if unit is None:
        return f"instant {instant}"
    try:
        moment = datetime.fromtimestamp(instant // (1000 * TICKS_PER_MILLISECOND[unit]), UTC)
    except (ValueError, OverflowError, OSError):  # Beyond the year 9999.
        return f"instant {instant}"
    return f"{moment:%Y-%m-%dT%H:%M:%S}Z"
