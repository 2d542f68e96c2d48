"""The watermarks of a join's DataFrames, by Spark's rules.

A DataFrame says how late is too late by ``withWatermark``, whose delay is in the metadata of its
event-time column; ``lateness`` says it instead. A source without a delay is never late, as in
Spark's own joins: there a side without a watermark drops nothing, and the state of the other side
stays, since a row that matches it may come at any time. Here all windows stay then
(:mod:`penstock.engine.push.lateness`), and a warning says so. Several watermarks become one by
``spark.sql.streaming.multipleWatermarkPolicy``, as in Spark.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.engine.options import delays_of, milliseconds
from penstock.errors import OptionError, PenstockWarning
from penstock.query.join_graph import JoinGraph, Stream
from penstock.spark.private_spark import watermark_delay

POLICY = "spark.sql.streaming.multipleWatermarkPolicy"


def watermark_delays(
    query: JoinGraph,
    frames: Mapping[str, DataFrame],
    moving: Mapping[str, Stream],
    lateness: Any,
) -> dict[str, int]:
    """The delay of each source that has one, in milliseconds."""
    if query.by_rows:
        return {}
    if isinstance(lateness, Mapping):
        unknown = set(lateness) - set(moving)
        if unknown:
            known = ", ".join(moving)
            raise OptionError(
                f"lateness is given for {min(unknown)!r}, which is no stream; streams are: {known}"
            )
    elif (delay := milliseconds("lateness", lateness)) is not None:
        return dict.fromkeys(moving, delay)
    given = {
        source: watermark_delay(frames[source], stream.event_time)
        for source, stream in moving.items()
        if stream.event_time is not None
    }
    return delays_of({**given, **(lateness or {})})


def watermark_policy(spark: SparkSession) -> str:
    """``min`` or ``max``."""
    return str(spark.conf.get(POLICY, "min")).lower()


def warn_without_watermark(
    query: JoinGraph, moving: Mapping[str, Stream], delays: Mapping[str, int]
) -> None:
    """One warning if state will never go, with the sources that are the reason."""
    timeless = [source for source in moving if source not in delays]
    endless = all(getattr(s.window, "milliseconds", None) is None for s in moving.values())
    if query.by_rows or not timeless or endless:
        return
    names = ", ".join(timeless)
    have = "has no watermark" if len(timeless) == 1 else "have no watermark"
    warnings.warn(
        f"{names} {have}: nothing there is late, and the windows of all streams keep their rows "
        'for ever; say how late rows may be with withWatermark("ts", "10 seconds"), with '
        "lateness=, or with watermark in a job file",
        PenstockWarning,
        stacklevel=3,
    )
