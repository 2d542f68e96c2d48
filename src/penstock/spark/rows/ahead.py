"""Rows too far ahead of their arrival are marked, so that they do not move the clock.

One row a century ahead would make every row after it late. What tells a wrong time from a right one
is the time of arrival, and on Spark that is the time at which the micro-batch was planned
(``current_timestamp()``): Spark keeps it in the log of the batch, so that a batch that is done
again, after a restart too, sets aside the same rows.

By default a day is allowed: more than clocks and time zones are wrong by, and less than what makes
windows useless. Rows of the past are of no concern here, so old data can be read as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import IntegralType, TimestampNTZType, TimestampType

from penstock.cells.rejected import AHEAD
from penstock.engine.options import delays_of, milliseconds
from penstock.errors import OptionError
from penstock.query.join_graph import JoinGraph, Stream
from penstock.spark.rows.pushdown import quote

MOST_AHEAD = "1 DAY"
"""How far ahead of its arrival a row may be, unless somebody says otherwise."""


def most_ahead(query: JoinGraph, moving: Mapping[str, Stream], given: Any) -> dict[str, int]:
    """Milliseconds that rows of each source may be ahead; sources that are not in it, any time."""
    if query.by_rows or given is None:
        return {}
    if isinstance(given, Mapping):
        for name in given:
            if name not in moving:
                known = ", ".join(moving)
                raise OptionError(
                    f"max_ahead is given for {name!r}, which is no stream; streams are: {known}"
                )
        return delays_of(given, "max_ahead")
    most = milliseconds("max_ahead", given)
    return {} if most is None else dict.fromkeys(moving, most)


def too_far_ahead(frame: DataFrame, event_time: str | None, most: int | None) -> Column | None:
    """True for rows of ``frame`` that are more than ``most`` milliseconds ahead; None: none is."""
    if event_time is None or most is None:
        return None
    column = sql.col(quote(event_time))
    kind = frame.schema[event_time].dataType
    if isinstance(kind, IntegralType):
        return column > sql.unix_millis(sql.current_timestamp()) + sql.lit(most)
    if not isinstance(kind, TimestampType | TimestampNTZType):
        return None
    latest = sql.current_timestamp() + sql.make_dt_interval(secs=sql.lit(most / 1000))
    return column > latest.cast(kind)


def marked(frame: DataFrame, ahead: Column | None) -> DataFrame:
    """``frame`` with a column that says which rows are ``ahead``."""
    return frame if ahead is None else frame.withColumn(AHEAD, ahead)
