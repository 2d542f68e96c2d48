"""A running job: start, watch, stop; every event goes to the log beside the checkpoint.

    with JobRun(prepare(job, spark)) as run:
        run.start()
        while not run.ended:
            for event in run.poll(0.2):
                print(event)

Stopping waits for the running micro-batch, so that its results are there; what comes after it is
left for the next run. Spark may have begun another batch by then. That one is given up, and done by
the next run from the start: nothing is lost and nothing doubled by it.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict

import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import QueryIdleEvent, StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

import penstock
from penstock.errors import InputError, OptionError, PenstockError
from penstock.job.job import Job
from penstock.job.redaction import redacted
from penstock.spark.jobs.listener import ProgressListener, Told, batch_event, plan_decisions
from penstock.spark.jobs.prepared_job import PreparedJob
from penstock.spark.jobs.sinks import start_sink
from penstock.spark.jobs.spark_mistake import blamed_on, one_line, own_error
from penstock.spark.jobs.told_warnings import collected_warnings
from penstock.spark.operator.evolution import forget_seeds
from penstock.spark.session import EMPTY_BATCHES, PARTITIONS
from penstock.spark.state.checkpoint_files import CheckpointFiles
from penstock.spark.state.checkpoint_owner import CheckpointOwner, last_batch
from penstock.spark.state.plan_orders import ORDERS, PlanOrders, checked_order
from penstock.spark.state.static_refresh import running
from penstock.spark.state.static_versions import StaticVersions
from penstock.telemetry.alerts import Alerts
from penstock.telemetry.batch_news import BatchNews
from penstock.telemetry.event_log import EventLog
from penstock.telemetry.events import (
    Batch,
    Event,
    Failure,
    Idle,
    Order,
    Restart,
    Start,
    Stop,
    Warned,
)

FINISHED = "finished"
REFRESH = "refresh"
"""The order to read a static relation again, and what a warning is about if that cannot be done."""
_ELSEWHERE = (
    "pin and undo reach the cells by a file in the checkpoint folder, which cannot be reached from "
    "Python, so whose it is was not looked at either: {}"
)
_LAST_WORDS = 10.0
"""How long to wait for what Spark's listeners have still to say about a query that has ended."""


class JobRun:
    """One run of a job. Use it as a context: leaving it ends the run, also in mid-batch."""

    def __init__(self, prepared: PreparedJob, clock: Callable[[], float] = time.time) -> None:
        self.prepared = prepared
        self.ended = False
        self.failure: Failure | None = None
        self.mistake: PenstockError | None = None
        """The user's mistake that is behind the failure, if it is one."""
        self.log_problem: str | None = None
        """Why the event log could not be written any further."""
        self.batches = 0
        self.rows = 0
        self.results = 0
        self._clock = clock
        self._began = clock()
        self._listener = ProgressListener()
        self._log: EventLog | None = None
        self._spark: SparkSession | None = None
        self._query: StreamingQuery | None = None
        self._stop_reason: str | None = None
        self._stop_at_once = False
        self._latest = -1
        self._is_idle = False
        rules = prepared.job.alerts
        self._alerts = None if rules is None else Alerts(rules)
        self._news = BatchNews()
        streams = {s.source: s for b in prepared.query.blocks for s in b.streams}
        self._sources = [n for n in prepared.query.sources if not streams[n].is_static]
        spark = prepared.spark
        self._files = CheckpointFiles.of(prepared.job.checkpoint, spark)
        problem = self._files.problem()
        self._takes_none = "" if problem is None else _ELSEWHERE.format(problem)
        """Why orders cannot be taken; empty if they can."""
        self._orders = PlanOrders.read(self._files).given(prepared.job.plan)
        self._untold: list[str] = list(prepared.warnings)
        """Warnings that the next call of :meth:`poll` tells."""

    def __enter__(self) -> JobRun:
        job = self.prepared.job
        if job.event_log is not None:
            with _writing(job):
                self._log = EventLog(job.event_log)
        return self

    def __exit__(self, *_: object) -> None:
        if (refreshing := running(self._files.address)) is not None:
            refreshing.stop()
        with suppress(Py4JError, OSError):  # Spark may be dead already.
            if self._query is not None and not self.ended:
                self._query.stop()
            if self._spark is not None:
                self._spark.streams.removeListener(self._listener)
        if self._log is not None:
            self._log.close()

    def start(self) -> Event:
        """Start the query; the event that says so."""
        prepared = self.prepared
        job = prepared.job
        after = last_batch(self._files)
        owner = CheckpointOwner.read(self._files)
        has_state = after is not None and after >= 0
        self._news = BatchNews(fresh=after is None)
        with collected_warnings(self._untold):
            results = prepared.results()
        self._spark = results.sparkSession
        self._spark.streams.addListener(self._listener)
        few = _nothing_empty(self._spark, prepared)
        with blamed_on(f"{job.file or job.name}: sink"), few:
            self._query = start_sink(results, job)
        mine = CheckpointOwner.of(prepared.query, prepared.cells)
        if not self._takes_none and (owner != mine or not has_state):
            with _writing(job):
                mine.write(self._files)
        start = Start(
            at=self._now(),
            run=str(self._query.runId),
            job=job.name,
            query=prepared.query.text,
            plan=prepared.plan,
            cells=prepared.placement.cells,
            placement=prepared.placement.describe(),
            sources={name: source.format for name, source in job.sources.items()},
            sink=job.sink.format,
            versions={"penstock": penstock.__version__, "spark": pyspark.__version__},
            limits={} if job.limits is None else _given(asdict(job.limits)),
            accepts=self._accepts,
            takes_none=self._takes_none,
            lane=str(prepared.lane),
            refreshes=tuple(job.refreshed),
            streams={s.alias: s.source for b in prepared.query.blocks for s in b.streams},
        )
        if after is not None:
            fields = {name: getattr(start, name) for name in Start.__dataclass_fields__}
            start = Restart(**fields, after=after)
        if self._alerts is not None:
            self._alerts.of(start)
        return self._noted(start)

    def poll(self, seconds: float) -> list[Event]:
        """Wait up to ``seconds`` for something to happen; the events since the last call."""
        events = self._news_of_spark(seconds)
        if self._alerts is None:
            return events
        alerts = [alert for event in events for alert in self._alerts.of(event)]
        if not self.ended:
            alerts += self._alerts.look(self._clock())
        return [*events, *map(self._noted, alerts)]

    def _news_of_spark(self, seconds: float) -> list[Event]:
        query = self._running()
        run = str(query.runId)
        warned = [self._noted(Warned(self._now(), run, "job", each)) for each in self._untold]
        self._untold.clear()
        refreshing = running(self._files.address)
        if refreshing is not None:
            refreshing.is_heard = True
            while refreshing.problems:
                text = refreshing.problems.pop(0)
                warned.append(self._noted(Warned(self._now(), run, REFRESH, text)))
        if warned:
            return warned
        told = self._listener.told(run, seconds)
        try:
            finished = None in told or not (told or query.isActive)
            if finished and None not in told:
                told += self._listener.last_words(run, _LAST_WORDS)
            events = self._batches(told)
            if finished:
                events.append(self._end(query))
            elif self._stop_reason is not None and self._may_stop(bool(events)):
                query.stop()
        except (Py4JError, OSError) as error:
            told_by = redacted(f"{type(error).__name__}: {error}")
            self.ended = True
            self.failure = Failure(self._now(), run, "Spark's process has died", told_by)
            return [self._noted(self.failure)]
        return events

    def stop(self, reason: str, at_once: bool = False) -> None:
        """Ask the run to end after the micro-batch that is running, or ``at_once``."""
        self._stop_reason = self._stop_reason or reason
        self._stop_at_once = self._stop_at_once or at_once

    def check_order(self, command: Mapping[str, str]) -> None:
        """:class:`PenstockError` if nobody can obey the order in ``command``."""
        if self._takes_none:
            raise OptionError(self._takes_none)
        if command.get("command") == REFRESH:
            self._check_refreshed(command.get("source", ""))
        else:
            checked_order(command, self.prepared.query)

    def _check_refreshed(self, name: str) -> None:
        have = ", ".join(self.prepared.job.refreshed)
        if name not in self.prepared.job.refreshed:
            raise OptionError(
                f"{name!r} is no static relation that the job refreshes; "
                + (f"there are: {have}" if have else 'give it refresh = "asked" in the job file')
            )

    @property
    def _accepts(self) -> tuple[str, ...]:
        """The commands that a page may send."""
        if self._takes_none:
            return ()
        return (*ORDERS, REFRESH) if self.prepared.job.refreshed else ORDERS

    def order(self, command: Mapping[str, str]) -> Event:
        """Hand on what somebody wants of the plan, such as ``{"command": "pin", "plan": …}``.

        Cells take it up with their next micro-batch; what they made of it comes as decisions.
        ``{"command": "refresh", "source": …}`` asks for a static relation to be read again.
        """
        at, run, what = self._now(), str(self._running().runId), str(command.get("command"))
        source = command.get("source", "")
        try:
            self.check_order(command)
            if what == REFRESH:
                with _writing(self.prepared.job):
                    StaticVersions(self._files).ask([source], self._clock())
                number = int(1000 * self._clock())
                return self._noted(Order(at, run, REFRESH, number, source=source))
            order, plan = checked_order(command, self.prepared.query)
            orders = self._orders.with_order(order, plan, self._clock())
            with _writing(self.prepared.job):
                orders.write(self._files)
        except PenstockError as error:
            asked = command.get("plan", "")
            return self._noted(
                Order(at, run, what, plan=asked, source=source, refused=redacted(str(error)))
            )
        self._orders = orders
        return self._noted(Order(at, run, order, orders.last, plan))

    def _may_stop(self, committed: bool) -> bool:
        return self._stop_at_once or committed or not self._running().status["isTriggerActive"]

    def _batches(self, told: Sequence[Told]) -> list[Event]:
        found: list[Event] = []
        for progress in told:
            if isinstance(progress, QueryIdleEvent) and not self._is_idle:
                self._is_idle = True
                found.append(self._noted(Idle(progress.timestamp, str(progress.runId))))
            if not isinstance(progress, StreamingQueryProgress):
                continue
            event = batch_event(progress, self._sources)
            if event and event.batch > self._latest:
                self._count(event)
                if self.batches == 1:
                    forget_seeds(self._files)
                found.append(self._noted(event))
                found += [self._noted(each) for each in plan_decisions(progress)]
                found += [self._noted(each) for each in self._news.of(event)]
        return found

    def _end(self, query: StreamingQuery) -> Event:
        run = str(query.runId)
        error = query.exception()
        self.ended = True
        if error is None:
            reason = self._stop_reason or FINISHED
            seconds = round(self._clock() - self._began, 3)
            return self._noted(
                Stop(self._now(), run, reason, self.batches, self.rows, self.results, seconds)
            )
        self.mistake = own_error(error)
        self.failure = Failure(self._now(), run, one_line(error), redacted(str(error)[:20_000]))
        return self._noted(self.failure)

    def _count(self, event: Batch) -> None:
        self._is_idle = False
        self._latest = event.batch
        self.batches += 1
        self.rows += sum(event.rows.values())
        self.results += event.results

    def _noted(self, event: Event) -> Event:
        """Log ``event``; a full disk ends the log, not the job."""
        if self._log is not None and self.log_problem is None:
            try:
                self._log.write(event)
            except OSError as error:
                self.log_problem = redacted(f"{self._log.path}: {error.strerror or error}")
        return event

    def _running(self) -> StreamingQuery:
        if self._query is None:
            raise PenstockError("the job has not been started")
        return self._query

    def _now(self) -> str:
        moment = datetime.datetime.fromtimestamp(self._clock(), datetime.UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _given(limits: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in limits.items() if value is not None}


@contextmanager
def _nothing_empty(spark: SparkSession, prepared: PreparedJob) -> Iterator[None]:
    """What starts here has no more partitions than cells, and no micro-batch without rows.

    Each costs a fixed time: cells have nothing to do in such a batch, and between them and the sink
    nothing waits for a watermark. A query takes its settings with it when it starts, so they are
    put back then. If it started before, Spark takes the number of partitions from the checkpoint.
    """
    usual = {name: str(spark.conf.get(name)) for name in (PARTITIONS, EMPTY_BATCHES)}
    wanted = {EMPTY_BATCHES: "false"}
    if prepared.placement.cells < int(usual[PARTITIONS]):
        wanted[PARTITIONS] = str(prepared.placement.cells)
    for name in wanted.keys() - prepared.job.spark.keys():
        spark.conf.set(name, wanted[name])
    try:
        yield
    finally:
        for name, value in usual.items():
            spark.conf.set(name, value)


@contextmanager
def _writing(job: Job) -> Iterator[None]:
    """What the file system refuses, a full disk say, is one line about the checkpoint."""
    try:
        yield
    except OSError as error:
        raise InputError(
            redacted(
                f"{job.file or job.name}: checkpoint: {error.filename or job.checkpoint} cannot be "
                f"written: {error.strerror or error}"
            )
        ) from None
