"""Options of ``format("penstock")``: checked once, where the source is loaded.

Options of a source begin with its name in the query: ``A.format``, ``A.path``, ``A.watermark``.
Those without a name are about the query, or about all sources. Case does not matter, as everywhere
in Spark. An option that nobody knows is a mistake and not ignored.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pyarrow as pa

from penstock.cells.placement import place
from penstock.engine.engine import Engine
from penstock.engine.options import milliseconds
from penstock.engine.overload.overload import Overload
from penstock.errors import InputError, OptionError, PenstockError, PenstockWarning, QueryError
from penstock.job.mistake import did_you_mean, listed
from penstock.planning.limits import Limits
from penstock.query.column_list import source_names
from penstock.query.join_graph import ARRIVAL, JoinGraph
from penstock.query.parse import parse
from penstock.sources.ledger import Ledger
from penstock.sources.object_store import S3A, store_options
from penstock.sources.portion import Source
from penstock.spark.cells.cell import CellSettings
from penstock.spark.cells.reach import unkept_by_sources
from penstock.spark.cells.trigger_budget import with_budget
from penstock.spark.data_source.job_options import with_job
from penstock.spark.data_source.lane import Lane
from penstock.spark.data_source.partitioned_cells import (
    auto_cells,
    follow_partitions,
    parted_streams,
)
from penstock.spark.data_source.source_options import FOR_ALL, REFUSED, Given, source_of
from penstock.spark.data_source.text_time_source import TextTimeSource
from penstock.spark.rows.ahead import MOST_AHEAD
from penstock.spark.rows.watermarks import warn_without_watermark
from penstock.spark.state.checkpoint_files import CheckpointFiles

_QUERY = (
    "query",
    "checkpointLocation",
    "cells",
    "plan",
    "feedback",
    "overload",
    "adapt",
    "idle",
    "maxResults",
    "maxHalt",
    "watermarkPolicy",
    "orders",
    "trigger",
    "reports",
    "dropped",
    "cores",
    "limits",
    "spillFolder",
    "hot",
    "flush",
    "snapshotCache",
    "snapshotInterval",
)
_AUTO = "auto"
_OF_TABLES = ("option.query", "option.job")
"""Options that Spark gives once more, in this way, where a table of its catalog is made."""
_CACHE = "2g"
"""Bytes of snapshots on a local disk: some ten million rows, of all queries of a user together."""
_INTERVAL = "10 MINUTES"
"""Time between two snapshots in the checkpoint folder: what is read again after a failure."""
_OF_ENGINES = {
    "feedback": "feedback",
    "overload": "overload",
    "adapt": "adapt",
    "idle": "idle",
    "maxhalt": "max_halt",
    "watermarkpolicy": "watermark_policy",
    "spillfolder": "spill_folder",
}


Blame = Callable[[str], AbstractContextManager[None]]
"""Puts a place, such as ``sources.A`` or ``query``, before the errors that it is the reason for."""


def lane_of(options: Mapping[str, str], blame: Blame | None = None) -> Lane:
    """The lane that ``options`` describe; an error in one line if they cannot be meant."""
    blame = blame or _blamed_on
    if any(name in options for name in _OF_TABLES):
        raise OptionError(
            "this cannot be a table of the catalog: Spark keeps the options of a table, and does "
            "not give them to a data source in Python that reads it; use CREATE TEMPORARY VIEW … "
            "USING penstock OPTIONS (…)"
        )
    given = with_job(options)
    text = given.get("query")
    if text is None:
        raise OptionError('option "query" is missing: the text of the query, in CQL, or "job"')
    with blame("query"):
        names = _names(text)
    sources = _by_source(given, names)
    made: dict[str, Source] = {}
    for name, each in sources.items():
        with blame(f"sources.{name}"):
            made[name] = source_of(each, "checkpointlocation" in given)
    with blame("query"):
        event_times = {n: _event_time(sources[n], source.schema) for n, source in made.items()}
    for name, each in sources.items():
        pattern, column = each.own.get("eventtimeformat"), event_times[name]
        if pattern is None:
            continue
        with blame(f"sources.{name}"):
            if column is None:
                raise OptionError(f'event_time_format: found "{pattern}", and no event time')
            made[name] = TextTimeSource(made[name], column, pattern)
    with blame("query"):
        query = parse(text, {n: source.schema for n, source in made.items()}, event_times)
    with blame(""):
        return _placed(query, sources, made, given)


def _placed(
    query: JoinGraph,
    sources: Mapping[str, Given],
    made: Mapping[str, Source],
    given: Mapping[str, str],
) -> Lane:
    """The lane of ``query``, with its cells and the options of engines."""
    engine_options: dict[str, Any] = {
        option: given[name] for name, option in _OF_ENGINES.items() if name in given
    }
    if given.get("overload", "").lstrip().startswith("{"):
        engine_options["overload"] = Overload.of(_json(given, "overload"))
    if "limits" in given:
        engine_options["limits"] = Limits.from_json(_json(given, "limits"))
    if "maxresults" in given:
        most = given["maxresults"].strip()
        if not most.isdecimal():
            raise OptionError(f"maxResults is a whole number of results, 1 or more, not {most!r}")
        engine_options["max_results"] = int(most)
    plan = given.get("plan", "auto")
    engine = Engine(query, plan=plan, **engine_options)
    if engine.options.overload.policy == "defer":
        raise OptionError(
            'overload="defer" keeps the probes that it puts off with windows, and here windows are '
            "read again; use penstock.spark.join, or shed"
        )
    streams = {s.source: s for block in query.blocks for s in block.streams}
    moving = [name for name in query.sources if not streams[name].is_static]
    if not moving:
        raise InputError("all relations of the query are static; a join on Spark needs a stream")
    ordered = query.by_rows and any(ARRIVAL in made[name].schema.names for name in moving)
    columns = {}
    for name in query.sources:
        chosen = engine.columns[name]
        more = (ARRIVAL,) if ordered and name in moving and ARRIVAL not in chosen else ()
        columns[name] = (*chosen, *more)
        for column in columns[name]:
            if column not in made[name].schema.names:
                have = ", ".join(made[name].schema.names)
                raise InputError(f"{name} has no column {column!r}; its columns are: {have}")
    cells = given.get("cells", "1").strip().lower()
    if cells != _AUTO and not cells.isdecimal():
        raise OptionError(f"cells is a number of 1 or more, or auto, not {cells!r}")
    cores = int(given.get("cores", os.cpu_count() or 1))
    rates = {n: float(r) for n in query.sources if (r := sources[n].own.get("rate")) is not None}
    hot = _json(given, "hot") if "hot" in given else None
    if cells == _AUTO and not hot:
        parted = auto_cells(query, cores, rates, made, engine_options)
    else:
        count = 1 if cells == _AUTO else int(cells)
        parts = parted_streams(query, made) if count > 1 else {}
        placed = place(query, count, rates or None, hot, parts)
        parted = follow_partitions(query, placed, made, engine_options)
    placement = parted.placement
    for name, reason in parted.reasons.items():
        whose = f"partitions of {name} are" if name in made else f"{name} of all partitions are"
        warnings.warn(f"{whose} read by all cells: {reason}", PenstockWarning, stacklevel=2)
    interval = None
    if "trigger" in given:
        interval = (milliseconds("trigger", given["trigger"]) or 0) / 1e3
    engine_options = with_budget(engine_options, interval, placement.cells, lambda: cores)
    delays = {} if query.by_rows else _delays(sources, moving)
    warn_without_watermark(query, {name: streams[name] for name in moving}, delays)
    settings = CellSettings(
        query,
        placement,
        plan,
        delays,
        {},
        engine_options,
    )
    checkpoint, orders = given.get("checkpointlocation"), given.get("orders")
    return Lane(
        settings,
        made,
        columns,
        None if checkpoint is None else Ledger(checkpoint, store_options(checkpoint, given.get)),
        None if orders is None else CheckpointFiles(orders, store_options(orders, given.get)),
        interval,
        _flag(given, "reports"),
        _cache_bytes(given.get("snapshotcache", _CACHE)),
        _durable_seconds(given, settings, made),
        given.get("dropped"),
        {} if query.by_rows else _ahead(sources, moving),
        _flag(given, "flush") and query.waits_for_watermark,
        parted.aligned,
        parted.relayed,
        parted.reasons,
        rates,
    )


def _ahead(sources: Mapping[str, Given], moving: list[str]) -> dict[str, int]:
    """Milliseconds that rows of each stream may be ahead of their arrival."""
    given = {name: sources[name].get("maxAhead") or MOST_AHEAD for name in moving}
    found = {
        name: milliseconds(f"{name}.maxAhead", text)
        for name, text in given.items()
        if text.strip().lower() != "off"
    }
    return {name: most for name, most in found.items() if most is not None}


def _flag(given: Mapping[str, str], name: str) -> bool:
    """Whether the option ``name`` of the query is true; by default it is not."""
    value = given.get(name, "false").strip().lower()
    if value not in ("true", "false"):
        raise OptionError(f"{name} is true or false, not {value!r}")
    return value == "true"


def _cache_bytes(text: str) -> int:
    match = re.fullmatch(r"\s*(\d+)\s*([kmgt]?)b?\s*", text.lower())
    if match is None:
        raise OptionError(f"snapshotCache is bytes, such as 512m or 0 for none, not {text!r}")
    return int(match[1]) << {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}[match[2]]


def _durable_seconds(
    given: Mapping[str, str], settings: CellSettings, made: Mapping[str, Source]
) -> float | None:
    """Seconds between two snapshots in the checkpoint folder, if windows need any."""
    text = given.get("snapshotinterval", _INTERVAL)
    seconds = (milliseconds("snapshotInterval", text) or 0) / 1e3
    reason = None if "checkpointlocation" not in given else unkept_by_sources(settings, made)
    if reason is None or not seconds:
        return None
    warnings.warn(
        f"{reason}: a snapshot of each cell is kept in the checkpoint folder, every "
        f"{text.strip().lower()} (snapshotInterval)",
        PenstockWarning,
        stacklevel=2,
    )
    return seconds


def _json(given: Mapping[str, str], name: str) -> Any:
    try:
        return json.loads(given[name])
    except ValueError as problem:
        raise OptionError(f"{name} is not JSON: {problem}") from None


def _names(text: str) -> tuple[str, ...]:
    names = source_names(text)
    small = [name.lower() for name in names]
    for name in names:
        if small.count(name.lower()) > 1:
            raise OptionError(
                f"the query reads sources whose names differ from {name!r} in case only, and "
                "options have no case; rename one"
            )
    return names


def _by_source(given: Mapping[str, str], names: tuple[str, ...]) -> dict[str, Given]:
    """The options by source; a mistake if one is known to nobody."""
    own: dict[str, dict[str, str]] = {name: {} for name in names}
    shared = {}
    known = {each.lower(): each for each in (*_QUERY, *FOR_ALL)}
    longest = sorted(names, key=len, reverse=True)
    for key, value in given.items():
        name = next((n for n in longest if key.startswith(f"{n.lower()}.")), None)
        if name is not None:
            own[name][key[len(name) + 1 :]] = value
        elif key in known or key.startswith(S3A):
            shared[key] = value
        elif key == "path":
            raise OptionError(
                f"path is an option of a source: write {names[0]}.path, and load() without a path"
            )
        elif key in REFUSED:
            raise OptionError(f"{key} is not for this source: {REFUSED[key]}")
        else:
            prefix = key.split(".")[0]
            hint = did_you_mean(key, known.values()) or did_you_mean(prefix, names)
            raise OptionError(
                f"unknown option {key!r}; options of the query are {listed(known.values())}, and "
                f"those of a source begin with its name: {listed(names)}"
                + (f"; {hint}" if hint else "")
            )
    return {name: Given(name, each, shared) for name, each in own.items()}


@contextmanager
def _blamed_on(place: str) -> Iterator[None]:
    """Errors about a source begin with its name, as options do."""
    name = place.removeprefix("sources.")
    try:
        yield
    except QueryError:
        raise
    except PenstockError as error:
        told = str(error)
        if place == name or told.startswith((f"{name}.", f"{name}: ")):
            raise
        raise type(error)(f"{name}: {told}") from None


def _event_time(given: Given, schema: pa.Schema) -> str | None:
    """The event-time column; None for a relation that has none, which is static."""
    if given.flag("static"):
        return None
    column = given.own.get("eventtime")
    if column is not None:
        if column not in schema.names:
            have = ", ".join(schema.names)
            raise OptionError(
                f"event_time says {column!r} for {given.name}, which has no such column; it has "
                f"{have}"
            )
        return column
    column = given.shared.get("eventtime", "ts")
    return column if column in schema.names else None


def _delays(sources: Mapping[str, Given], moving: list[str]) -> dict[str, int]:
    """The delay in milliseconds of each stream that has a watermark."""
    delays = {
        name: milliseconds(f"{name}.watermark", sources[name].get("watermark")) for name in moving
    }
    return {name: delay for name, delay in delays.items() if delay is not None}
