"""Rows that a source has and no micro-batch has taken yet, as far as Spark tells it.

Kafka's offsets count rows: of each partition of each topic, the progress of a batch has where it
ended and what was there by then. Penstock's own reader tells the rows by source. Other sources have
offsets that say nothing of rows.
"""

from __future__ import annotations

import json
from typing import Any

from penstock.spark.data_source.lane import WAITING


def backlog(end: str | None, latest: str | None) -> int | None:
    """Rows between two offsets of a source, None if offsets do not count rows.

    >>> backlog('{"bids": {"0": 7, "1": 5}}', '{"bids": {"0": 9, "1": 5, "2": 4}}')
    6
    >>> backlog('{"logOffset": 3}', '{"logOffset": 5}') is None
    True
    """
    taken, there = _counts(end), _counts(latest)
    if taken is None or there is None:
        return None
    return sum(max(0, count - taken.get(place, 0)) for place, count in there.items())


def told_backlog(latest: str | None) -> dict[str, int]:
    """Rows that wait, by source, if Penstock reads the sources itself.

    >>> told_backlog('{"waiting": {"bids": 6}}')
    {'bids': 6}
    >>> told_backlog('{"bids": {"0": 9}}')
    {}
    """
    try:
        told: Any = json.loads(latest or "null")
        return {str(source): int(rows) for source, rows in told[WAITING].items()}
    except (ValueError, AttributeError, TypeError, KeyError):
        return {}


def _counts(offset: str | None) -> dict[tuple[str, str], int] | None:
    """Rows by topic and partition, None if the offset is of another kind."""
    try:
        topics: Any = json.loads(offset or "null")
        return {
            (topic, partition): int(count)
            for topic, partitions in topics.items()
            for partition, count in partitions.items()
        }
    except (ValueError, AttributeError, TypeError):
        return None
