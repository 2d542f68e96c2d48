"""What a join on Spark is made of, in words: ``penstock.spark.explain``.

``DataFrame.explain()`` shows Spark's part: scans with the filters and columns that were pushed to
them, ``penstock_pack_A`` where rows of A are packed for the cells, and the stateful operator, in
which Spark cannot look. This is the rest of it: the query, the plan that cells begin with, where
each predicate is checked, how rows are spread over cells, and what is late.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from penstock.cells.placement import Placement
from penstock.errors import InputError
from penstock.query.join_graph import JoinGraph, Stream
from penstock.query.window import duration
from penstock.spark.rows.pushdown import Pushdown

_NAME = "_penstock_join"
"""The attribute of a DataFrame that has the description of its join."""


@dataclass(frozen=True, slots=True)
class JoinDescription:
    """One join, as it was handed to Spark."""

    query: JoinGraph
    plan: str
    """The plan that cells begin with."""
    is_pinned: bool
    placement: Placement
    columns: Mapping[str, tuple[str, ...]]
    """The columns that are read of each source."""
    delays: Mapping[str, int]
    """The lateness of each source that has one, in milliseconds."""
    pushdowns: Mapping[str, Pushdown]
    metric: str | None
    """The name of the observed metric; None for batch DataFrames."""

    def __str__(self) -> str:
        chosen = "as given" if self.is_pinned else "to begin with; each cell changes it as it pays"
        lines = [
            "query",
            *(f"  {line.strip()}" for line in self.query.text.strip().splitlines()),
            f"plan {self.plan}, {chosen}",
            *self.placement.describe().splitlines(),
        ]
        streams: dict[str, Stream] = {}
        for block in self.query.blocks:
            for stream in block.streams:
                streams.setdefault(stream.source, stream)
        for source, stream in streams.items():
            lines += [f"source {source}{self._time(stream)}"]
            lines += [f"  reads {', '.join(self.columns[source])}"]
            lines += [f"  {line}" for line in _checked(self.pushdowns[source])]
        joined = [str(p) for b in self.query.blocks for p in b.predicates if len(p.streams) > 1]
        lines.append(f"in the cells {', '.join(joined) or 'no predicate'}")
        if self.metric is not None:
            lines.append(f'metrics of a batch: progress.observedMetrics["{self.metric}"]')
        return "\n".join(lines)

    def _time(self, stream: Stream) -> str:
        if stream.is_static:
            return ", static: read once"
        if self.query.by_rows:
            return ", in the order of arrival"
        late = self.delays.get(stream.source)
        when = "never late" if late is None else f"late after {duration(late).lower()}"
        return f" by {stream.event_time}, {when}"


def _checked(pushed: Pushdown) -> list[str]:
    """Where the predicates on one source are checked."""
    lines = []
    if pushed.pushed and pushed.is_masked:
        lines.append(f"Spark passes on, of others only the time: {', '.join(pushed.pushed)}")
    elif pushed.pushed:
        lines.append(f"Spark filters: {', '.join(pushed.pushed)}")
    if pushed.kept:
        lines.append(f"checked before the shuffle: {', '.join(pushed.kept)}")
    return lines


def described(frame: DataFrame, description: JoinDescription) -> DataFrame:
    """``frame``, which is the answer of the join in ``description``."""
    setattr(frame, _NAME, description)
    return frame


def explain(frame: DataFrame) -> str:
    """The join that ``frame`` is the answer of; for Spark's part of it, ``frame.explain()``.

    >>> print(penstock.spark.explain(results))                 # doctest: +SKIP
    """
    description = frame.__dict__.get(_NAME) if isinstance(frame.__dict__, dict) else None
    if description is None:
        raise InputError(
            "this DataFrame is not one that penstock.spark.join returned; give that one, as it "
            "was before anything else was done to it"
        )
    return str(description)
