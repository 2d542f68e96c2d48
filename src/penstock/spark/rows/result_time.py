"""The event time of results, as a column that Spark's own operators behind the join know.

A result is born at the latest event time of its tuples. The engine is asked for those event times
beside the answer, and the latest of them becomes one more column. Spark is told that it is the
event time of what the join emits (``eventTimeColumnName`` of its stateful operator), so that an
aggregate by windows may follow, with Spark's one watermark for the whole query: that of the
streams, by their delays and the policy.

**Why nothing is lost behind the join.** A result leaves in the batch of its last tuple, which is
not late: it is born at or after the watermark that the join had before the batch. That watermark
is Spark's or ahead of it: both are made of the same delays and the newest event times of the same
rows, and ours may also go on without an idle stream, or with rows that Spark filters first. So no
result is older than Spark's watermark, which Spark checks. A second ``withWatermark`` on the
results would not do (and is refused by Spark): results run ahead of the slowest stream.

It needs a watermark on every stream, on a column of timestamps, and answers that leave at birth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from penstock.errors import OptionError
from penstock.query.expression import Column
from penstock.query.join_graph import JoinGraph, SelectItem, Stream
from penstock.spark.private_spark import watermark_delay

_KIND = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class ResultTime:
    """A column ``name`` with the event time of results, behind the first ``width`` columns."""

    name: str
    width: int

    @classmethod
    def of(cls, name: str, query: JoinGraph) -> ResultTime:
        """:class:`OptionError` if the answer to ``query`` has no such time."""
        if query.by_rows or query.emission != "istream" or query.is_grouped or query.minus:
            raise OptionError(
                "result_time is for answers that leave at birth: ISTREAM by event time, with no "
                "GROUP BY and no EXCEPT"
            )
        if name in query.schema.names:
            raise OptionError(f"result_time={name!r} is a column of the answer; give another name")
        return cls(name, len(query.select))

    def asked(self, query: JoinGraph) -> JoinGraph:
        """``query``, with the event times of its streams behind the answer."""
        times = []
        for number, stream in enumerate(query.streams):
            if not stream.is_static and stream.event_time is not None:
                kind = stream.schema.field(stream.event_time).type
                column = Column(type=kind, stream=stream.alias, name=stream.event_time)
                times.append(SelectItem(f"{self.name} {number}", column))
        return replace(query, select=(*query.select, *times))

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """That of the answer with this column; ``schema`` is that of :meth:`asked`."""
        return pa.schema([*list(schema)[: self.width], pa.field(self.name, _KIND)])

    def folded(self, results: pa.Table) -> pa.Table:
        """``results`` of :meth:`asked` with the latest of their event times."""
        # Arrow compares integers element by element, and no times with a zone.
        times = [column.cast(_KIND).cast(pa.int64()) for column in results.columns[self.width :]]
        born = pc.max_element_wise(*times).cast(_KIND)
        columns = [*results.columns[: self.width], born]
        return pa.table(columns, schema=self.schema(results.schema))


def with_watermarks(
    frames: Mapping[str, DataFrame], moving: Mapping[str, Stream], delays: Mapping[str, int]
) -> dict[str, DataFrame]:
    """``frames`` with the watermarks that the join has, for Spark to have the same."""
    found = dict(frames)
    for source, stream in moving.items():
        name = stream.event_time
        kind = None if name is None else stream.schema.field(name).type
        if name is None or kind is None or not pa.types.is_timestamp(kind):
            raise OptionError(
                f"result_time needs event times that are timestamps, and that of {source} is "
                f"{kind}: Spark has watermarks on timestamps alone"
            )
        if source not in delays:
            raise OptionError(
                f"result_time needs a watermark on every stream, and {source} has none: "
                f'withWatermark("{name}", "10 seconds")'
            )
        given = watermark_delay(frames[source], name)
        if given is None:
            found[source] = frames[source].withWatermark(name, f"{delays[source]} milliseconds")
        elif given != delays[source]:
            raise OptionError(
                f"result_time: the watermark of {source} has a delay of {given} ms, and lateness "
                f"says {delays[source]} ms; give one of them"
            )
    return found
