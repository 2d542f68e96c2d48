"""The run of a job: start Spark, watch, stop when asked to, sum up."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from penstock.cli.kernels_beside import kernels_beside
from penstock.cli.run.progress import Progress
from penstock.cli.run.spark_start import SparkLog, started_spark
from penstock.cli.run.view import Extra, LineView, LiveView, View, show_summary
from penstock.telemetry import Alert, Event, Failure

if TYPE_CHECKING:
    from penstock.cli.live_page import LivePage
    from penstock.cli.run.latest_results import LatestResults
    from penstock.job import Job
    from penstock.spark.jobs.job_run import JobRun
    from penstock.ui.hub import Command

FAILED = 1
USER_ERROR = 2
_SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
_FRAME = 0.2

Tick = Callable[["JobRun", Progress], None]


def run_job(
    job: Job,
    plain: bool = False,
    spark_log: str | None = None,
    console: Console | None = None,
    extra: Extra | None = None,
    tick: Tick | None = None,
    page: LivePage | None = None,
    results: LatestResults | None = None,
) -> int:
    """Run ``job`` until it ends; the exit code. ``tick`` is called a few times a second.

    ``page`` shows the run, with the latest of ``results``, and stays behind it, also if it fails.
    """
    console = console or Console(highlight=False)
    is_live = console.is_terminal and not plain and spark_log is None
    with (
        kernels_beside(console) as wait_for_kernels,
        started_spark(job, console, spark_log) as (spark, log),
    ):
        from penstock.spark.jobs.job_run import JobRun
        from penstock.spark.jobs.prepared_job import prepare

        progress = Progress()
        view: View = LiveView(console, extra) if is_live else LineView(console)
        began = time.monotonic()
        with (
            _alerting(job, view) as alert,
            JobRun(prepare(job, spark)) as run,
            _asked_to_stop(run, view) as asked,
        ):
            if page is not None:
                page.check = run.check_order
            began_with = run.start()

            def is_over() -> bool:
                if tick is not None:
                    tick(run, progress)
                return bool(asked) or run.ended

            wait_for_kernels(is_over)  # Spark opens the sources and starts its Python meanwhile.
            with view:
                _watch(run, began_with, view, progress, _Shown(page, results, alert), tick)
        seconds = time.monotonic() - began
        more = _how_to_go_on(job, progress, asked)
        show_summary(console, progress, seconds, is_live, ("events", _log_of(run)), *more)
        code = 128 + asked[0] if asked else 0
        if isinstance(progress.end, Failure):
            code = _told_failure(run, log)
    if page is not None and not asked:
        page.stay(console)
    return code


@contextmanager
def _alerting(job: Job, view: View) -> Iterator[Callable[[Alert], None] | None]:
    """What sends alerts on, if the job has somebody to tell; the last ones are waited for."""
    if job.alerts is None:
        yield None
        return
    from penstock.cli.run.alert_sender import AlertSender

    sender = AlertSender(job.alerts, job.name, view.say)
    try:
        yield sender.send
    finally:
        sender.close()


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the page of a run is told, if there is one."""

    page: LivePage | None
    results: LatestResults | None
    alert: Callable[[Alert], None] | None = None

    def commands(self) -> list[Command]:
        """What the page has asked for since the last call."""
        return [] if self.page is None else self.page.commands()

    def show(self, events: list[Event]) -> None:
        if self.alert is not None:
            for event in events:
                if isinstance(event, Alert):
                    self.alert(event)
        if self.page is None or not events:
            return
        self.page.show(events)
        if self.results is not None:
            self.page.show_results(self.results.rows())


def _watch(
    run: JobRun,
    start: Event,
    view: View,
    progress: Progress,
    shown: _Shown,
    tick: Tick | None,
) -> None:
    """Show what happens from the ``start`` on, until the run has ended."""
    events = [start]
    while True:
        for event in events:
            progress.note(event)
        view.show(progress, events)
        shown.show(events)
        if run.ended:
            return
        if tick is not None:
            tick(run, progress)
        events = [run.order(command) for command in shown.commands()] + run.poll(_FRAME)


@contextmanager
def _asked_to_stop(run: JobRun, view: View) -> Iterator[list[int]]:
    """Signals end the run: the first after the running batch, the second at once."""
    asked: list[int] = []

    def ask(number: int, frame: object) -> None:
        asked.append(number)
        run.stop(_SIGNALS[signal.Signals(number)], at_once=len(asked) > 1)
        again = "" if len(asked) > 1 else " after the running micro-batch; once more: at once"
        view.say(f"stopping{again}")

    before = {number: signal.signal(number, ask) for number in _SIGNALS}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _how_to_go_on(job: Job, progress: Progress, asked: list[int]) -> list[tuple[str, str]]:
    if job.file is None:
        return []
    again = f": penstock run {job.file}"
    if isinstance(progress.end, Failure):
        return [("next", f"what was committed is safe; mend the cause and go on{again}")]
    if asked:
        return [("next", f"stopped; nothing is lost, the same command goes on from here{again}")]
    return []


def _log_of(run: JobRun) -> str:
    job = run.prepared.job
    if run.log_problem is not None:
        return f"not complete: {run.log_problem}"
    return "" if job.file is None else str(job.event_log or "")


def _told_failure(run: JobRun, log: SparkLog) -> int:
    failure = run.failure
    if run.mistake is not None:
        job = run.prepared.job
        print(f"penstock: {job.file or job.name}: {run.mistake}", file=sys.stderr)
        return USER_ERROR
    reason = failure.reason if failure else "the job has failed"
    print(f"penstock: {reason}; Spark's log: {log.keep()}", file=sys.stderr)
    return FAILED
