"""A job made ready: its sources opened, its query parsed and checked, its cells placed.

Nothing is running yet. Every mistake that Spark is needed to find is found here, and is one line
that names the file and the key.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.cells.placement import Placement
from penstock.engine.engine import Engine
from penstock.engine.overload.overload import Overload
from penstock.errors import OptionError, PenstockError
from penstock.job.job import Job
from penstock.planning.limits import Limits
from penstock.query.column_list import source_names
from penstock.query.join_graph import JoinGraph
from penstock.query.parse import parse
from penstock.query.unreadable import CORRUPT
from penstock.spark.cells.trigger_budget import interval_of, with_trigger_budget
from penstock.spark.data_source.amplification import read_by_cells
from penstock.spark.data_source.options import lane_of
from penstock.spark.data_source.source import answers
from penstock.spark.jobs.job_lane import SOURCE, ChosenLane, choose_lane, lane_options
from penstock.spark.jobs.side_sinks import DROPPED
from penstock.spark.jobs.sinks import check_sink
from penstock.spark.jobs.sources import read_source, with_times
from penstock.spark.jobs.spark_mistake import blamed_on
from penstock.spark.jobs.told_warnings import collected_warnings
from penstock.spark.join import join, placement_of
from penstock.spark.rows.ahead import MOST_AHEAD
from penstock.spark.rows.arrow_types import arrow_schema
from penstock.spark.session import PARTITIONS, parallelism
from penstock.spark.state.checkpoint_files import CheckpointFiles
from penstock.spark.state.checkpoint_manager import warn_of_renaming
from penstock.spark.state.checkpoint_owner import CheckpointOwner


@dataclass(frozen=True, slots=True)
class PreparedJob:
    """A job with everything that is known before it runs."""

    job: Job
    query: JoinGraph
    frames: dict[str, DataFrame]
    placement: Placement
    plan: str
    cells: int
    """How many were asked for; the placement may have fewer."""
    options: dict[str, Any]
    lane: ChosenLane
    spark: SparkSession
    warnings: tuple[str, ...] = ()
    """What works and is probably not what the user wants."""
    reads: tuple[str, ...] = ()
    """What each cell reads, in lines, if there are several and Penstock reads the sources."""

    @property
    def is_source(self) -> bool:
        """Whether Penstock reads the sources itself."""
        return self.lane.name == SOURCE

    def results(self) -> DataFrame:
        """The answer, as a streaming DataFrame."""
        job = self.job
        if self.is_source:
            warn_of_renaming(job.checkpoint, self.spark.conf.get)
            with blamed_on(str(job.file or job.name)):
                return answers(self.spark, self.options)
        lateness = {n: s.watermark for n, s in job.sources.items() if s.watermark is not None}
        with blamed_on(str(job.file or job.name)):
            return join(
                self.query,
                self.frames,
                self.cells,
                plan=job.plan,
                lateness=lateness or None,
                rates=_rates(job),
                hot=_hot(job),
                orders=job.checkpoint,
                checkpoint=job.checkpoint,
                trigger=interval_of(job),
                dropped=DROPPED if job.late or job.rejected else None,
                refresh=job.refreshed,
                max_ahead=_max_ahead(job),
                **self.options,
            )

    def check(self) -> None:
        """Find what is wrong with the join or the sinks, without starting any."""
        job, results = self.job, self.results()
        for name, sink in {"sink": job.sink, "late": job.late, "rejected": job.rejected}.items():
            if sink is not None:
                with blamed_on(f"{job.file or job.name}: {name}"):
                    columns = results if name == "sink" else None
                    check_sink(sink, results.sparkSession, columns)


def prepare(job: Job, spark: SparkSession) -> PreparedJob:
    """Open the sources of ``job``, and check everything that can be checked before it runs."""
    lane = choose_lane(job, lambda name: spark.conf.get(name, None))
    if lane.name == SOURCE:
        return _prepare_source(job, spark, lane)
    file = str(job.file or job.name)
    frames = {}
    for name, source in job.sources.items():
        with blamed_on(f"{file}: sources.{name}"):
            frames[name] = read_source(spark, source)
    event_times = {}
    warned: list[str] = []
    for name, source in job.sources.items():
        default = job.event_time if job.event_time in frames[name].columns else None
        event_times[name] = None if source.static else source.event_time or default
        if source.event_time_format is not None:
            with blamed_on(f"{file}: sources.{name}.event_time_format"):
                frames[name] = with_times(frames[name], event_times[name], source.event_time_format)
    with blamed_on(f"{file}: query"):
        schemas = {name: arrow_schema(frame.drop(CORRUPT)) for name, frame in frames.items()}
        with collected_warnings(warned):
            query = parse(job.query, schemas, event_times)
    for name in frames:
        _check_read(file, name, query.sources)
    options = engine_options(job)
    with blamed_on(file):
        plan = str(Engine(query, plan=job.plan, **options).plan)
    owner = CheckpointOwner.read(CheckpointFiles.of(job.checkpoint, spark))
    if owner is not None:
        with blamed_on(f"{file}: checkpoint"):
            owner.check(query, job.checkpoint, _before(owner, schemas, event_times))
    cells = job.cells if job.cells != "auto" or owner is None else owner.cells
    with blamed_on(file):
        placement = placement_of(query, spark, cells, _rates(job), _hot(job))
    if cells == "auto":
        cells = int(str(spark.conf.get(PARTITIONS)))
    options = with_trigger_budget(options, job, placement.cells, lambda: parallelism(spark))
    warned += _what_waits(job, query, lane)
    return PreparedJob(
        job, query, frames, placement, plan, cells, options, lane, spark, tuple(warned)
    )


def _prepare_source(job: Job, spark: SparkSession, lane: ChosenLane) -> PreparedJob:
    """The same for a job whose sources Penstock reads itself."""
    file = str(job.file or job.name)
    options = lane_options(job, parallelism(spark), lambda name: spark.conf.get(name, None))
    with blamed_on(f"{file}: query"):
        read = source_names(job.query)
    for name in job.sources:
        _check_read(file, name, read)
    warned: list[str] = []
    with collected_warnings(warned):
        made = lane_of(options, lambda place: blamed_on(f"{file}: {place}" if place else file))
    with blamed_on(file):
        plan = str(Engine(made.query, plan=job.plan, **engine_options(job)).plan)
    warned += _what_waits(job, made.query, lane)
    return PreparedJob(
        job,
        made.query,
        {},
        made.placement,
        plan,
        made.placement.cells if job.cells == "auto" else job.cells,
        options,
        lane,
        spark,
        tuple(warned),
        tuple(read_by_cells(made)),
    )


def _check_read(file: str, name: str, read: Collection[str]) -> None:
    """:class:`OptionError` if the query does not read the source ``name``."""
    if name not in read:
        known = ", ".join(read)
        raise OptionError(f"{file}: sources.{name}: the query does not read it; it reads {known}")


def _what_waits(job: Job, query: JoinGraph, lane: ChosenLane) -> list[str]:
    """A word on results that a run which ends leaves for the next one."""
    if job.trigger != "available-now":
        return []
    if query.waits_for_watermark and not job.flush:
        what = "EXCEPT" if query.minus else "GROUP BY"
        how = "flush = true" + ', with lane = "source"' * (lane.name != SOURCE)
        return [
            f"{what}: a row leaves when the watermark has passed what it tells of; what the newest "
            'rows bring is left for the next run, since trigger = "available-now" ends this one '
            f"({how}: it leaves at once, and older rows that come later are late)"
        ]
    if query.emission == "dstream" and not query.waits_for_watermark:
        return ["DSTREAM: results that are alive when this run ends are left for the next one"]
    return []


def _before(
    owner: CheckpointOwner, schemas: Mapping[str, pa.Schema], event_times: Mapping[str, str | None]
) -> JoinGraph | None:
    """The query that a checkpoint was begun with, None if it does not fit the sources any more."""
    try:
        return parse(owner.query, schemas, event_times)
    except PenstockError:
        return None


def _max_ahead(job: Job) -> Any:
    return {"default": MOST_AHEAD, "off": None}.get(str(job.max_ahead), job.max_ahead)


def _hot(job: Job) -> dict[str, tuple[Any, ...]] | None:
    return dict(job.hot) or None


def _rates(job: Job) -> dict[str, float] | None:
    return {n: s.rate for n, s in job.sources.items() if s.rate is not None} or None


def engine_options(job: Job) -> dict[str, Any]:
    """The options of the engine that the job gives; the engine says which it knows."""
    options: dict[str, Any] = {}
    if job.idle is not None:
        options["idle"] = job.idle
    if job.max_results is not None:
        options["max_results"] = job.max_results
    if job.max_halt is not None:
        options["max_halt"] = job.max_halt
    if job.adapt is not None:
        options["adapt"] = job.adapt
    if job.feedback is not None:
        options["feedback"] = job.feedback
    if job.overload is not None:
        options["overload"] = Overload.of(job.overload.given())
    if job.limits is not None:
        options["limits"] = Limits(**asdict(job.limits))
    if job.spill_folder is not None:
        options["spill_folder"] = job.spill_folder
    return options
