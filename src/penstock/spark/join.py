"""``penstock.spark.join``: DataFrames in, the DataFrame of results out.

::

    source A ─► route and pack ─┐
    source B ─► route and pack ─┼─► union ─► by cell: one engine ─► results
    source C ─► route and pack ─┘

Only packed rows are shuffled, a few for each cell and batch (:mod:`penstock.cells.packing`). On
streams the middle is a stateful operator that keeps the engine's state in Spark's checkpoints
(:mod:`penstock.spark.operator.cell_processor`); one micro-batch is one push, if it brings any row
at all. On batch DataFrames it is a grouped map: everything is one push, then ``finish()``, so
DSTREAM gives all results that die at all, nothing is late, and RSTREAM is the answer at the end.

Static relations are batch DataFrames in both cases. They are read when ``join`` is called and
carried to the cells; a query that restarts from a checkpoint goes on with the rows it started with,
unless they are to be refreshed (:mod:`penstock.spark.state.static_refresh`).
"""

from __future__ import annotations

import hashlib
import os
import secrets
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from penstock.cells.delivery import Delivery, from_chunk, to_chunk
from penstock.cells.packing import NO_NEWS, PACKED, Packer
from penstock.cells.placement import HotValues, Placement, place
from penstock.cells.rejected import AHEAD
from penstock.engine.engine import Engine
from penstock.engine.options import milliseconds
from penstock.engine.recovery.fingerprint import fingerprint as query_fingerprint
from penstock.errors import InputError, OptionError
from penstock.job.job import NO_FOLDER
from penstock.query.join_graph import ARRIVAL, JoinGraph, Stream
from penstock.query.left_out import left_out
from penstock.query.parse import parse
from penstock.query.unreadable import CORRUPT
from penstock.spark.cells.cell import Cell, CellSettings, with_static
from penstock.spark.cells.cell_keys import cell_keys
from penstock.spark.cells.cell_report import OBSERVED
from penstock.spark.cells.trigger_budget import with_budget
from penstock.spark.explain import JoinDescription, described
from penstock.spark.operator.cell_processor import CellProcessor
from penstock.spark.operator.cell_work import CellWork
from penstock.spark.operator.evolution import Evolved, evolved
from penstock.spark.operator.version_stream import Versioned, version_stream
from penstock.spark.private_spark import look_again, watermark_delay
from penstock.spark.rows.ahead import MOST_AHEAD, marked, most_ahead, too_far_ahead
from penstock.spark.rows.arrow_types import answer_schema, arrow_schema, check_type
from penstock.spark.rows.envelope import Envelope
from penstock.spark.rows.pushdown import Pushdown, needs_clock, push_down, quote
from penstock.spark.rows.result_time import ResultTime, with_watermarks
from penstock.spark.rows.watermarks import (
    warn_without_watermark,
    watermark_delays,
    watermark_policy,
)
from penstock.spark.session import PARTITIONS, check_session, parallelism
from penstock.spark.state.checkpoint_files import CheckpointFiles
from penstock.spark.state.checkpoint_manager import warn_of_renaming
from penstock.spark.state.static_refresh import StaticRefresh, check_begun, intervals
from penstock.spark.state.static_versions import StaticVersions
from penstock.values.value_hash import VERSION

Batches = Iterator[pa.RecordBatch]

_EVENT_TIME = "ts"
"""The event time of a DataFrame without a watermark, if it has such a column."""


def join(
    query: JoinGraph | str,
    frames: Mapping[str, DataFrame],
    cells: int | Literal["auto"] = "auto",
    plan: str = "auto",
    lateness: Any = None,
    rates: Mapping[str, float] | None = None,
    hot: HotValues | None = None,
    state_folder: str | os.PathLike[str] | None = None,
    orders: str | os.PathLike[str] | None = None,
    trigger: float | None = None,
    event_time: str | Mapping[str, str | None] | None = None,
    dropped: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    result_time: str | None = None,
    refresh: Mapping[str, Any] | None = None,
    max_ahead: Any = MOST_AHEAD,
    **options: Any,
) -> DataFrame:
    """The answer to ``query`` over ``frames``, by source.

    >>> results = join("SELECT A.id FROM A [RANGE 5 MINUTES], B [RANGE 5 MINUTES] "
    ...                "WHERE A.x = B.x", {"A": a, "B": b})     # doctest: +SKIP
    >>> results.writeStream.format("parquet").start(folder)    # doctest: +SKIP

    ``query`` is a text, or what ``penstock.parse`` made of one. A text is parsed with the schemas
    of ``frames``, and ``event_time`` is the column with the event time, one for all or a dict by
    source: by default the one that has a watermark, else ``ts``.

    ``cells`` is how many engines share the work at most, by default as many as there are shuffle
    partitions; :func:`placement_of` tells what becomes of it. ``lateness`` is how far out of order
    events may be, for all sources or as a dict by source; by default each source has the delay of
    its ``withWatermark``. A source without one is never late; then windows keep their rows for
    ever, and a warning says so. Several watermarks become one by Spark's
    ``spark.sql.streaming.multipleWatermarkPolicy``. ``rates``, tuples per time unit by source,
    tell which streams are costly to send to several cells. ``hot`` has values of a join column
    that make up much of a stream, ``{"A.x": [17, 4]}``: each is spread over cells of its own; see
    :func:`penstock.cells.placement.place` for a better way. :func:`penstock.spark.survey` finds
    both in a sample. ``orders`` is a folder, best that of the checkpoint, with a file that cells
    read at the beginning of each batch, to pin a plan or undo a change while the query runs: see
    :class:`penstock.spark.state.plan_orders.PlanOrders`. ``trigger`` is the interval of the query's
    trigger in seconds: an overload policy without a budget of its own keeps batches within it.
    ``dropped`` names one more column, in which rows that were late, unreadable or without an event
    time leave with the answers of their batch: NULL in answers, else a struct of ``source``,
    ``reason``, ``event_time``, ``watermark`` and ``value``, the row as JSON. See
    :func:`penstock.spark.split`. ``result_time`` names one more column, with the event time of each
    result, that Spark's own operators by event time may use: see
    :mod:`penstock.spark.rows.result_time`. ``max_ahead`` is how far the event time of a row may be
    ahead of its micro-batch, for all sources or by source; rows that are further ahead would move
    the clock, so they are set aside as ``too far ahead``. None: any time.
    ``options`` are those of :class:`penstock.Engine`. ``state_folder`` has no
    effect any more: windows are in Spark's state store, with the checkpoint.

    ``checkpoint`` is the folder that the query is going to be started with. Then cells, rates, hot
    values and lateness may have changed since it ran last, and the SELECT list and predicates as
    far as what is kept allows it: windows are laid out anew
    (:mod:`penstock.spark.operator.evolution`). Without it such a restart fails in the first batch,
    with a message.

    ``refresh`` says which static relations are read again while the query runs, and how often:
    ``{"S": "10 MINUTES"}``, or ``"asked"`` for :func:`penstock.spark.refresh` alone. It needs the
    ``checkpoint``. A batch has one version of a relation, whoever does it however often: see
    :mod:`penstock.spark.operator.version_stream`.
    """
    if state_folder is not None:
        warnings.warn(f"state_folder {NO_FOLDER}", FutureWarning, stacklevel=2)
    query = _parsed(query, frames, event_time)
    born = None if result_time is None else ResultTime.of(result_time, query)
    query = query if born is None else born.asked(query)
    engine = Engine(query, plan=plan, **options)
    schemas = _check_frames(query, frames, engine)
    if dropped is not None:
        schemas = _with_all_columns(query, frames, schemas, dropped)
    spark = next(iter(frames.values())).sparkSession
    placement = placement_of(query, spark, cells, rates, hot)
    streaming = any(frame.isStreaming for frame in frames.values())
    if not streaming and (dropped or result_time):
        raise OptionError("dropped and result_time are for streams, and these are batch DataFrames")
    if streaming:
        check_session(spark)
        options = with_budget(options, trigger, placement.cells, lambda: parallelism(spark))
    every = intervals(query, refresh, options) if refresh else {}
    if every and not streaming:
        raise OptionError("refresh is for streams, and these are batch DataFrames")
    if every and checkpoint is None:
        raise OptionError("refresh needs checkpoint=, the folder that the query is started with")
    if checkpoint is not None and streaming and any(s.is_static for s in query.streams):
        check_begun(CheckpointFiles.of(os.fspath(checkpoint), spark), every)
    moving = {s.source: s for b in query.blocks for s in b.streams if not s.is_static}
    fixed = [source for source in query.sources if source not in moving]
    delays = watermark_delays(query, frames, moving, lateness)
    if born is not None:
        frames = with_watermarks(frames, moving, delays)
    ahead = most_ahead(query, moving, max_ahead) if streaming else {}
    if streaming:
        warn_without_watermark(query, moving, delays)
    options = {**options, "watermark_policy": watermark_policy(spark)}
    pushdowns = {
        s: push_down(query, frames[s], s, s in moving and needs_clock(query, s, streaming, delays))
        for s in query.sources
    }
    settings = CellSettings(
        query,
        placement,
        str(plan),
        delays,
        {s: _read_static(frames[s], schemas[s], pushdowns[s]) for s in fixed},
        options,
    )
    keys = tuple(cell_keys(placement.cells))
    fingerprint = _fingerprint(settings)
    taken_over = Evolved()
    if streaming and checkpoint is not None:
        warn_of_renaming(os.fspath(checkpoint), spark.conf.get)
        taken_over = evolved(spark, os.fspath(checkpoint), settings, keys, fingerprint)
    packed = []
    for source, stream in moving.items():
        pushed = pushdowns[source]
        packer = Packer(
            query,
            placement,
            keys,
            source,
            schemas[source],
            stream.event_time,
            is_masked=pushed.is_masked,
            values=dropped is not None,
            retired=taken_over.retired,
        )
        early = too_far_ahead(frames[source], stream.event_time, ahead.get(source))
        frame = marked(frames[source], early)
        early = None if early is None else sql.col(AHEAD)
        rows = pushed.apply(
            frame,
            _in_order(frame, schemas[source]),
            stream.event_time,
            # A filter that Spark may push into a scan is to name columns of the scan alone.
            _unplaced(frame if pushed.is_masked else frames[source], stream.event_time)
            if streaming
            else None,
            early,
        )
        packed.append(rows.mapInArrow(_packing(packer), PACKED))
    versioned = None
    if every:
        assert checkpoint is not None
        versioned = Versioned(
            StaticVersions(CheckpointFiles.of(os.fspath(checkpoint), spark)),
            {source: query.sources.index(source) for source in every},
            keys,
            {source: settings.static[source] for source in every},
        )
    if not packed:
        raise InputError("all relations of the query are static; a join on Spark needs a stream")
    united = packed[0]
    for each in packed[1:]:
        united = united.unionAll(each)
    if versioned is not None:
        united = united.unionAll(version_stream(spark, versioned))
        again = {s: partial(_read_again, frames[s], schemas[s], pushdowns[s]) for s in every}
        StaticRefresh(versioned.versions, again, every).start(spark)
    grouped = united.groupBy("cell")
    description = JoinDescription(
        query,
        str(engine.plan),
        engine.is_pinned,
        placement,
        {source: tuple(schema.names) for source, schema in schemas.items()},
        delays,
        pushdowns,
        None,
    )
    if not streaming:
        at_once = _all_at_once(settings, keys)
        return described(grouped.applyInArrow(at_once, answer_schema(query.schema)[1]), description)
    ordered = None if orders is None else CheckpointFiles.of(os.fspath(orders), spark)
    versions = None if versioned is None else versioned.versions
    work = CellWork(
        settings, keys, fingerprint, ordered, trigger, dropped, taken_over.seeds, born, versions
    )
    processor = CellProcessor(work)
    envelope = Envelope.of(query.schema if born is None else born.schema(query.schema), dropped)
    mode = "None" if born is None else "EventTime"
    wrapped = grouped.transformWithStateInPandas(
        processor, envelope.wrapped, "Append", mode, None, result_time or ""
    )
    # The same join may be twice in a query, and observed metrics must have different names.
    metric = f"{OBSERVED} {fingerprint[:8]} {secrets.token_hex(4)}"
    answer = envelope.unwrap(wrapped, metric, list(moving))
    return described(answer, replace(description, metric=metric))


def _parsed(
    query: JoinGraph | str,
    frames: Mapping[str, DataFrame],
    event_time: str | Mapping[str, str | None] | None,
) -> JoinGraph:
    """``query``, parsed with the schemas of ``frames`` if it is a text."""
    if isinstance(query, JoinGraph):
        if event_time is not None:
            raise OptionError("event_time belongs to the text of a query, and this one is parsed")
        return query
    schemas = {name: arrow_schema(frame) for name, frame in frames.items()}
    if event_time is None:
        event_time = {name: _event_time(frame) for name, frame in frames.items()}
    return parse(query, schemas, event_time)


def _event_time(frame: DataFrame) -> str | None:
    """The column of ``frame`` that has a watermark, else ``ts`` if there is one."""
    for name in frame.columns:
        if watermark_delay(frame, name) is not None:
            return name
    return _EVENT_TIME if _EVENT_TIME in frame.columns else None


def placement_of(
    query: JoinGraph,
    spark: SparkSession,
    cells: int | Literal["auto"] = "auto",
    rates: Mapping[str, float] | None = None,
    hot: HotValues | None = None,
) -> Placement:
    """The grid of cells that :func:`join` uses; ``describe()`` puts it into words."""
    if cells == "auto":
        cells = int(str(spark.conf.get(PARTITIONS)))
    return place(query, cells, rates, hot)


def _check_frames(
    query: JoinGraph, frames: Mapping[str, DataFrame], engine: Engine
) -> dict[str, pa.Schema]:
    """The columns that the query reads of each source, in the types that it was parsed with."""
    for source in query.sources:
        if source not in frames:
            given = ", ".join(frames) or "none"
            raise InputError(f"the query reads {source!r}, which has no DataFrame; given: {given}")
    for name in frames:
        if name not in query.sources:
            known = ", ".join(query.sources)
            raise InputError(f"there is a DataFrame for {name!r}, but the query reads: {known}")
    streams = {s.source: s for block in query.blocks for s in block.streams}
    modes = {frames[name].isStreaming for name, s in streams.items() if not s.is_static}
    if len(modes) > 1:
        batch = next(n for n, s in streams.items() if not s.is_static and not frames[n].isStreaming)
        raise InputError(
            f"the DataFrame of {batch} is a batch and others are streams; "
            "make it a stream, or a static relation: with no window and no event time in the query"
        )
    ordered = {n for n, s in streams.items() if not s.is_static and ARRIVAL in frames[n].columns}
    schemas = {}
    for name, stream in streams.items():
        if stream.is_static and frames[name].isStreaming:
            raise InputError(f"{name} is static in the query, so its DataFrame must be a batch")
        found = arrow_schema(frames[name])
        fields = []
        for column in engine.columns[name]:
            if column in left_out(found):
                raise InputError(
                    f"column {column!r} of the DataFrame of {name} is of type "
                    f"{left_out(found)[column]}, which Arrow has not; cast it in the DataFrame"
                )
            if column not in found.names:
                have = ", ".join(found.names)
                raise InputError(
                    f"the DataFrame of {name} has no column {column!r}; its columns are: {have}"
                )
            declared = stream.schema.field(column).type
            check_type(name, column, found.field(column).type, declared)
            fields.append(pa.field(column, declared))
        if query.by_rows and not stream.is_static:
            fields += _order_of(stream, found, bool(ordered), [f.name for f in fields])
        schemas[name] = pa.schema(fields)
    return schemas


def _order_of(
    stream: Stream, found: pa.Schema, by_arrival: bool, chosen: list[str]
) -> list[pa.Field]:
    """The column that puts the rows of a ROWS window in order, if it is not there already."""
    if by_arrival and ARRIVAL not in found.names:
        raise InputError(
            f"the DataFrame of {stream.source} has no column {ARRIVAL!r}, but others do: "
            "give it to all or to none"
        )
    if not by_arrival and stream.event_time is None:
        raise InputError(
            f"the DataFrame of {stream.source} has neither a column {ARRIVAL!r} nor an event time "
            "to put its rows in order"
        )
    return [found.field(ARRIVAL)] if by_arrival and ARRIVAL not in chosen else []


def _read_static(frame: DataFrame, schema: pa.Schema, pushed: Pushdown) -> bytes:
    return to_chunk(pushed.apply(frame, schema.names, None).toArrow().cast(schema))


def _read_again(frame: DataFrame, schema: pa.Schema, pushed: Pushdown) -> pa.Table:
    """The rows that ``frame`` has by now: files that have come since are looked for."""
    look_again(frame)
    return from_chunk(_read_static(frame, schema, pushed))


def _in_order(frame: DataFrame, schema: pa.Schema) -> list[str]:
    """The columns of ``schema`` as they follow in ``frame``: Spark need not arrange them anew.

    The text of what could not be read comes with them, if ``frame`` has it.
    """
    return [name for name in frame.columns if name in schema.names or name in (CORRUPT, AHEAD)]


def _unplaced(frame: DataFrame, event_time: str | None) -> Column | None:
    """True for rows that have no place on the time line, which are to be counted."""
    found = None if event_time is None else sql.col(quote(event_time)).isNull()
    if found is not None and CORRUPT in frame.columns:
        found = found | sql.col(CORRUPT).isNotNull()
    if found is not None and AHEAD in frame.columns:
        found = found | sql.coalesce(sql.col(AHEAD), sql.lit(False))
    return found


def _with_all_columns(
    query: JoinGraph, frames: Mapping[str, DataFrame], schemas: dict[str, pa.Schema], dropped: str
) -> dict[str, pa.Schema]:
    """Dropped rows are to be whole: streams are sent with the columns that the query does not read.

    Columns of types that Arrow has not stay behind.
    """
    if dropped in query.schema.names:
        raise OptionError(f"dropped={dropped!r} is a column of the answer; give another name")
    found = dict(schemas)
    for block in query.blocks:
        for stream in block.streams:
            if not stream.is_static:
                source = stream.source
                everything = arrow_schema(frames[source])
                more = [f for f in everything if f.name not in (*schemas[source].names, CORRUPT)]
                found[source] = pa.schema([*schemas[source], *more])
    return found


def _fingerprint(settings: CellSettings) -> str:
    """Tells apart what must not share a checkpoint: another query, placement or lateness."""
    placement = settings.placement
    grid = [(d.share, str(d)) for d in placement.dimensions]
    parts = [query_fingerprint(settings.query), VERSION, grid, sorted(settings.delays.items())]
    policy = settings.options.get("watermark_policy", "min")
    idle = milliseconds("idle", settings.options.get("idle"))
    if policy != "min" or idle is not None:
        parts.append([policy, idle])
    if placement.hot:
        parts.append([(g.hash, [(d.share, str(d)) for d in g.dimensions]) for g in placement.hot])
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _packing(packer: Packer) -> Callable[[Batches], Batches]:
    def pack(batches: Batches) -> Batches:
        context = TaskContext.get()
        return packer.pack(batches, context.partitionId() if context else 0)

    # Spark's plan and its page call the operator by the name of the function.
    pack.__name__ = pack.__qualname__ = f"penstock_pack_{packer.source}"
    return pack


def _all_at_once(
    settings: CellSettings, keys: tuple[int, ...]
) -> Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]:
    """One push of everything, and ``finish()``."""
    numbers = {key: number for number, key in enumerate(keys)}
    schema, _ = answer_schema(settings.query.schema)

    def answer(key: tuple[pa.Scalar, ...], packed: pa.Table) -> pa.Table:
        order = [("source", "ascending"), ("partition", "ascending"), ("sequence", "ascending")]
        delivery = Delivery()
        for row in packed.sort_by(order).to_pylist():
            newest = None if row["newest"] == NO_NEWS else row["newest"]
            delivery.add(settings.query.sources[row["source"]], newest, row["chunk"])
        cell = Cell(settings, settings.engine())
        first = with_static(settings, numbers[key[0].as_py()], delivery)
        return pa.concat_tables([cell.push(first), cell.finish()]).cast(schema)

    answer.__name__ = answer.__qualname__ = "penstock_join"
    return answer
