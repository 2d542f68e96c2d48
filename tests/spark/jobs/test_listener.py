"""Progress of Spark becomes events: names by position, late rows counted once, no idle triggers."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from penstock.engine.control.plan_event import PlanEvent
from penstock.spark.cells.cell_report import CellReport
from penstock.spark.jobs.listener import ProgressListener, batch_event, plan_decisions


def report(cell: int, late: int) -> CellReport:
    rows = {"A": 10, "B": 5}
    told = {"A": {"late": late, "unreadable": 1}, "B": {"late": cell}}
    sent = {"A": 7, "B": 2}
    found = CellReport(7, cell, rows, 3, 100, 50, 0.25, 0.5, "live", "(A B)", None)
    clock: dict[str, Any] = {"event_clock": 4_000 + cell, "newest": {"A": 9_000 - cell}}
    silent = {"B": 3.5} if cell else {}
    skipped = {"A": {f"{cell}.parquet": "missing since it was read"}}
    return replace(
        found, sent=sent, dropped=told, silent=silent, refreshed={"S": 2}, **clock, skipped=skipped
    )


def progress(run: str = "r", executed: bool = True) -> Any:
    reports = [report(1, 4).to_json(), report(0, 2).to_json()]
    durations = {"triggerExecution": 1_500, "latestOffset": 3}
    return SimpleNamespace(
        timestamp="2026-01-01T00:00:00.000Z",
        runId=run,
        batchId=7,
        durationMs=durations | ({"addBatch": 900} if executed else {}),
        sources=[
            SimpleNamespace(
                numInputRows=20, endOffset='{"t": {"0": 5}}', latestOffset='{"t": {"0": 12}}'
            ),
            SimpleNamespace(
                numInputRows=5, endOffset='{"logOffset": 1}', latestOffset='{"logOffset": 2}'
            ),
        ],
        observedMetrics={"penstock 1": {"reports": reports}},
    )


def test_a_batch() -> None:
    event = batch_event(progress(), ["A", "B"])
    skip = "missing since it was read"
    assert event is not None
    assert (event.batch, event.seconds, event.rows) == (7, 1.5, {"A": 20, "B": 5})
    assert event.late == {"A": 6, "B": 1}
    assert event.dropped == {"A": {"late": 6, "unreadable": 2}, "B": {"late": 1}}
    assert event.filtered == {"A": 20 - 14 - 2, "B": 1}
    assert event.silent == {"B": 3.5}
    assert (event.watermark, event.newest, event.refreshed) == (4_000, {"A": 9_000}, {"S": 2})
    assert event.backlog == {"A": 7}
    assert event.skipped == {"A": dict.fromkeys(("0.parquet", "1.parquet"), skip)}
    assert [cell.late for cell in event.cells] == [{"A": 2, "B": 0}, {"A": 4, "B": 1}]
    assert (event.results, event.state_bytes, event.stored_bytes) == (6, 200, 100)
    assert event.engine_seconds == 0.5
    assert [cell.cell for cell in event.cells] == [0, 1]
    assert event.cells[0].origin == "live"


def test_decisions_of_cells_become_events() -> None:
    numbers = {"cpu": 0.5, "rival_cpu": 0.1}
    event = PlanEvent(
        "migrate", "(A B C)", "((A C) B)", 8.5, 99, "it pays", None, ("cpu",), numbers
    )
    told = replace(report(1, 0), decisions=(event.to_json(),))
    seen = progress()
    seen.observedMetrics = {"penstock 1": {"reports": [report(0, 0).to_json(), told.to_json()]}}
    (decision,) = plan_decisions(seen)
    assert (decision.batch, decision.cell, decision.action) == (7, 1, "migrate")
    assert (decision.before, decision.plan) == ("(A B C)", "((A C) B)")
    assert (decision.after_seconds, decision.after_rows) == (8.5, 99)
    assert decision.exceeded == ("cpu",)
    assert decision.numbers == numbers
    assert plan_decisions(progress()) == []


def test_a_trigger_that_found_nothing() -> None:
    assert batch_event(progress(executed=False), ["A", "B"]) is None


def test_queries_are_told_apart_and_the_end_comes_last() -> None:
    listener = ProgressListener()
    mine, other = progress("mine"), progress("other")
    for each in (mine, other, mine):
        listener.onQueryProgress(SimpleNamespace(progress=each))  # type: ignore[arg-type]
    listener.onQueryTerminated(SimpleNamespace(runId="mine"))  # type: ignore[arg-type]
    assert listener.told("mine", 0.0) == [mine, mine, None]
    assert listener.told("mine", 0.0) == []


def test_what_comes_late_after_the_end_is_waited_for() -> None:
    """Spark tells of batches in a thread of its own, which may be behind the end of the query."""
    listener = ProgressListener()

    def tell() -> None:
        for _ in range(3):
            time.sleep(0.05)
            listener.onQueryProgress(SimpleNamespace(progress=progress()))  # type: ignore[arg-type]
        time.sleep(0.05)
        listener.onQueryTerminated(SimpleNamespace(runId="r"))  # type: ignore[arg-type]

    thread = threading.Thread(target=tell)
    thread.start()
    found = listener.last_words("r", 60.0)
    thread.join()
    assert len(found) == 4
    assert found[-1] is None
    assert listener.last_words("r", 0.01) == []
