"""From Spark's progress to events: one :class:`~penstock.telemetry.events.Batch` per micro-batch.

Spark calls a listener in a thread of its own, for all queries of the session, and a little after
the fact. So what it says is queued here and picked up by whoever waits for the query; the end of a
query comes through the same queue, behind its last batch.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

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
from penstock.sources.ledger import joined_skips
from penstock.spark.cells.cell_report import CellReport, cell_reports
from penstock.spark.jobs.backlog import backlog, told_backlog
from penstock.telemetry.events import Batch, CellBatch, PlanDecision
from penstock.telemetry.operator_batch import in_all_cells

_EXECUTED = "addBatch"
_WHOLE = "triggerExecution"


Told: TypeAlias = StreamingQueryProgress | QueryIdleEvent | None


class ProgressListener(StreamingQueryListener):
    """Queues the progress of all queries, that they are idle, and their ends as None."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[str, Told]]
        self._queue = queue.SimpleQueue()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's names
        pass

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        self._queue.put((str(event.runId), event))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        self._queue.put((str(event.progress.runId), event.progress))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        self._queue.put((str(event.runId), None))

    def told(self, run: str, wait: float) -> list[Told]:
        """What has come for ``run``; waits up to ``wait`` seconds for the first."""
        found: list[Told] = []
        try:
            while True:
                whose, progress = self._queue.get(timeout=0 if found else wait)
                if whose == run:
                    found.append(progress)
        except queue.Empty:
            return found

    def last_words(self, run: str, wait: float) -> list[Told]:
        """All that comes for ``run``, which has ended, until it is said so, for up to ``wait``
        seconds: on a busy machine its last batches come one by one."""
        found: list[Told] = []
        until = time.monotonic() + wait
        while None not in found:
            more = self.told(run, max(0.0, until - time.monotonic()))
            if not more:
                break
            found += more
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
        rows = {source: sum(each.read.get(source, 0) for each in reports) for source in sources}
    clocks = [each.event_clock for each in reports if each.event_clock is not None]
    newest: dict[str, int] = {}
    for report in reports:
        for source, at in report.newest.items():
            newest[source] = max(at, newest.get(source, at))
    offsets = [backlog(each.endOffset, each.latestOffset) for each in progress.sources]
    waiting = {n: rows for n, rows in zip(sources, offsets, strict=False) if rows is not None}
    for each in progress.sources:
        waiting = told_backlog(each.latestOffset) or waiting
    silent: dict[str, float] = {}
    refreshed: dict[str, int] = {}
    for report in reports:
        silent |= report.silent
        refreshed |= report.refreshed
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
        refreshed=refreshed,
        watermark=min(clocks, default=None),
        newest=newest,
        backlog=waiting,
        skipped=joined_skips(*(report.skipped for report in reports)),
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
            strategy=event.strategy,
            strategy_reason=event.strategy_reason,
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
    found: dict[str, int] = {}
    for report in reports:
        for source, count in report.filtered.items():
            found[source] = found.get(source, 0) + count
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
