"""What a cell did in one micro-batch, and how that leaves the cell.

A cell emits one report beside its results, as JSON in a column of its own, and Spark collects the
reports of a batch as an observed metric (``DataFrame.observe``). So they arrive with the progress
of the batch, in ``StreamingQueryProgress.observedMetrics``: once for every batch that was
committed, whatever was tried before, since Spark counts only the attempt that it accepts. A batch
that was computed and then lost with its driver is computed again and reported then. Nothing is
written to any file, and a query that nobody listens to pays one row per cell and batch.

>>> from penstock.spark.cells.cell_report import cell_reports
>>> reports = cell_reports(query.lastProgress.observedMetrics)    # doctest: +SKIP

Beside the reports the metric of :func:`penstock.spark.join` has their sums as plain numbers, for
whoever reads the progress as it is: ``results``, ``state_bytes``, ``stored_bytes``, ``engine_ms``,
the pushes that were ``compiled`` and those that went the ``reference`` way, and for each source
``rows.A`` and ``late.A``, the rows that reached the cells and those of them that came too late.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as sql

from penstock.query.join_graph import JoinGraph
from penstock.telemetry.operator_batch import OperatorBatch

OBSERVED = "penstock"
"""Observed metrics of joins have names that start with this."""
COLUMN = "reports"
"""The column of the observed metric that has the reports of all cells."""

Origin: TypeAlias = Literal["new", "live", "replayed", "restored"]


@dataclass(frozen=True, slots=True)
class CellReport:
    """One cell in one micro-batch. Counts are of this batch alone."""

    batch: int
    """Spark's number of the micro-batch; -1 if there is none (batch DataFrames)."""
    cell: int
    rows: Mapping[str, int]
    """Rows that reached the cell, by source. A row that goes to several cells counts in each."""
    results: int
    state_bytes: int
    """What the engine holds in memory after the batch."""
    stored_bytes: int
    """What Spark's state store holds of the cell after the batch."""
    engine_seconds: float
    """Wall time in ``push``."""
    total_seconds: float
    """Wall time in the cell: reading and writing state, making the engine current, ``push``."""
    origin: Origin
    """Where the engine came from: made ``new``, still ``live`` in this worker, live but behind and
    ``replayed`` up to the state, or ``restored`` from the state."""
    plan: str
    """The plan that the engine ran."""
    watermark: int | None
    """In ticks of the query's time unit, after the batch."""
    sent: Mapping[str, int] = field(default_factory=dict)
    """Rows that were sent to any cell, by source. Each is told by one cell, not by all that get
    it; the same holds for ``dropped``."""
    dropped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Rows that were dropped, by source and reason: ``late`` of those that were sent,
    ``no event time`` and ``unreadable`` beside them."""
    silent: Mapping[str, float] = field(default_factory=dict)
    """Streams that all state waits for though others have moved on by several windows: seconds of
    event time behind the newest."""
    operators: tuple[OperatorBatch, ...] = ()
    """What each window and join did."""
    decisions: tuple[Mapping[str, Any], ...] = ()
    """What was decided about the plan: :class:`penstock.engine.control.plan_event.PlanEvent` as
    JSON."""
    read: Mapping[str, int] = field(default_factory=dict)
    """Rows that the batch took of each source, where cells read them themselves. Each is told by
    one cell."""
    filtered: Mapping[str, int] = field(default_factory=dict)
    """Rows that the query's own filters keep out of every result, by source, where cells read them
    themselves."""
    event_clock: int | None = None
    """The watermark after the batch in milliseconds since 1970, None if there is none."""
    newest: Mapping[str, int] = field(default_factory=dict)
    """The newest event time of each source in milliseconds since 1970."""
    refreshed: Mapping[str, int] = field(default_factory=dict)
    """Static relations that have other rows from this batch on, with the number of the version."""
    ways: Mapping[str, int] = field(default_factory=dict)
    """Pushes by the way they went: ``compiled`` or ``reference``."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Pushes that were not compiled, by the reason."""
    overload: Mapping[str, Any] = field(default_factory=dict)
    """How short of time the cell is, and what it costs; empty where nothing limits it."""
    skipped: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Files that were left out, by source and name, with the reason."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> CellReport:
        fields: dict[str, Any] = json.loads(text)
        fields["operators"] = tuple(OperatorBatch(**each) for each in fields["operators"])
        fields["decisions"] = tuple(fields.get("decisions", ()))
        return cls(**fields)


def ways_between(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[dict[str, int], dict[str, int]]:
    """Pushes between two metrics of an engine: by way, and those not compiled by their reason."""
    then, now = before["execution"], after["execution"]
    ways = {way: now[way] - then[way] for way in ("compiled", "reference")}
    known = then["reasons"]
    reasons = {why: count - known.get(why, 0) for why, count in now["reasons"].items()}
    return ways, {why: count for why, count in reasons.items() if count > 0}


def in_milliseconds(query: JoinGraph, ticks: int | None) -> int | None:
    """An instant of the event-time line of ``query`` in milliseconds since 1970."""
    if ticks is None or query.by_rows:
        return None
    return ticks // query.ticks_per_millisecond


def newest_times(query: JoinGraph, newest: Mapping[str, int]) -> dict[str, int]:
    """The newest event time of each source in milliseconds; none on the arrival line."""
    if query.by_rows:
        return {}
    return {source: at // query.ticks_per_millisecond for source, at in newest.items()}


def numbers(report: Column, sources: Sequence[str]) -> list[Column]:
    """The sums of a batch over the JSON texts in the column ``report``."""

    def total(path: str, name: str, factor: int = 1) -> Column:
        value = sql.get_json_object(report, f"$.{path}").cast("double") * factor
        return sql.coalesce(sql.sum(value), sql.lit(0)).cast("bigint").alias(name)

    of_all = ("results", "state_bytes", "stored_bytes")
    by_source = [
        total(path.format(source), f"{name}.{source}")
        for source in sources
        for name, path in (
            ("rows", "rows['{}']"),
            ("late", "dropped['{}']['late']"),
            ("no_event_time", "dropped['{}']['no event time']"),
            ("unreadable", "dropped['{}']['unreadable']"),
        )
    ]
    return [
        *(total(field, field) for field in of_all),
        total("engine_seconds", "engine_ms", 1_000),
        *(total(f"ways.{way}", way) for way in ("compiled", "reference")),
        *by_source,
    ]


def cell_reports(observed: Mapping[str, Any]) -> list[CellReport]:
    """The reports among the observed metrics of a batch, by cell.

    Where a batch is computed several times (side outputs, ``foreachBatch`` with several actions),
    pyspark 4.2 has the reports of all times, and 4.3 those of one: the first of each cell counts.
    """
    found: list[CellReport] = []
    for name, row in observed.items():
        if name.startswith(OBSERVED):
            reports = [CellReport.from_json(text) for text in row[COLUMN] or ()]
            found += {report.cell: report for report in reversed(reports)}.values()
    return sorted(found, key=lambda report: report.cell)
