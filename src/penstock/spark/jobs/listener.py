"""From Spark's progress to events: one :class:`~penstock.telemetry.events.Batch` per micro-batch.

Spark calls a listener in a thread of its own, for all queries of the session, and a little after
the fact. So what it says is queued here and picked up by whoever waits for the query; the end of a
query comes through the same queue, behind its last batch.
"""

from __future__ import annotations

import queue
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from penstock.engine.control.plan_event import PlanEvent
from penstock.engine.push.dropped import LATE
from penstock.spark.cells.cell_report import CellReport, cell_reports
from penstock.telemetry.events import Batch, CellBatch, PlanDecision
from penstock.telemetry.operator_batch import in_all_cells

_EXECUTED = "addBatch"
_WHOLE = "triggerExecution"


class ProgressListener(StreamingQueryListener):
    """Queues the progress of all queries, and their ends as None."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[str, StreamingQueryProgress | None]]
        self._queue = queue.SimpleQueue()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's names
        pass

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        self._queue.put((str(event.progress.runId), event.progress))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        self._queue.put((str(event.runId), None))

    def told(self, run: str, wait: float) -> list[StreamingQueryProgress | None]:
        """What has come for ``run``; waits up to ``wait`` seconds for the first."""
        found: list[StreamingQueryProgress | None] = []
        try:
            while True:
                whose, progress = self._queue.get(timeout=0 if found else wait)
                if whose == run:
                    found.append(progress)
        except queue.Empty:
            return found


def batch_event(progress: StreamingQueryProgress, sources: Sequence[str]) -> Batch | None:
    """The event of a micro-batch; None if the trigger found nothing to do.

    ``sources`` are the names of the streams in Spark's order.
    """
    durations: dict[str, int] = {name: int(ms) for name, ms in progress.durationMs.items()}
    if _EXECUTED not in durations:
        return None
    reports = cell_reports(progress.observedMetrics or {})
    cells = tuple(_cell(report) for report in reports)
    dropped: dict[str, dict[str, int]] = {}
    for report in reports:
        for source, reasons in report.dropped.items():
            sums = dropped.setdefault(source, {})
            for reason, count in reasons.items():
                sums[reason] = sums.get(reason, 0) + count
    read = [int(source.numInputRows) for source in progress.sources]
    rows = dict(zip(sources, read, strict=False))
    if any(report.read for report in reports):  # Spark has counted what the cells answered.
        rows = {source: reports[0].read.get(source, 0) for source in sources}
    silent: dict[str, float] = {}
    for report in reports:
        silent |= report.silent
    return Batch(
        at=progress.timestamp,
        run=str(progress.runId),
        batch=int(progress.batchId),
        seconds=durations.get(_WHOLE, 0) / 1000,
        rows=rows,
        results=sum(cell.results for cell in cells),
        late={source: dropped.get(source, {}).get(LATE, 0) for source in sources},
        state_bytes=sum(cell.state_bytes for cell in cells),
        stored_bytes=sum(cell.stored_bytes for cell in cells),
        engine_seconds=sum(cell.engine_seconds for cell in cells),
        durations=durations,
        cells=cells,
        operators=in_all_cells(each for report in reports for each in report.operators),
        dropped=dropped,
        filtered=_filtered(rows, reports, dropped),
        silent=silent,
    )


def plan_decisions(progress: StreamingQueryProgress) -> list[PlanDecision]:
    """What the controllers of the cells decided in a micro-batch."""
    return [
        PlanDecision(
            at=progress.timestamp,
            run=str(progress.runId),
            batch=int(progress.batchId),
            cell=report.cell,
            action=event.action,
            before=event.before,
            plan=event.plan,
            reason=event.reason,
            after_seconds=event.at,
            after_rows=event.rows,
            rival=event.rival,
            exceeded=event.exceeded,
            numbers=event.numbers,
        )
        for report in cell_reports(progress.observedMetrics or {})
        for event in map(PlanEvent.from_json, report.decisions)
    ]


def _filtered(
    rows: Mapping[str, int],
    reports: Sequence[CellReport],
    dropped: Mapping[str, Mapping[str, int]],
) -> dict[str, int]:
    """Rows read, less those sent to cells and those that could not be sent, by source."""
    found = {}
    for source, read in rows.items():
        sent = sum(report.sent.get(source, 0) for report in reports)
        if any(source in report.sent for report in reports):
            rejected = sum(n for reason, n in dropped.get(source, {}).items() if reason != LATE)
            found[source] = max(0, read - sent - rejected)
    return found


def _cell(report: CellReport) -> CellBatch:
    late = {source: reasons.get(LATE, 0) for source, reasons in report.dropped.items()}
    fields: dict[str, Any] = {
        name: getattr(report, name) for name in CellBatch.__dataclass_fields__ if name != "late"
    }
    return CellBatch(late=late, **fields)
