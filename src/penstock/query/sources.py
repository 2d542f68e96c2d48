"""The items of FROM to streams: source, window, event time, freshness.

A query runs on one time line. RANGE and NOW windows are on event time, ROWS windows on the order of
arrival, and the two are not mixed; UNBOUNDED goes with either. A stream needs what its time line
needs: an event-time column, or on the arrival line at least a column ``arrival`` instead. A FROM
item with no window and no event-time column is a static relation.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from penstock.errors import OptionError, PenstockWarning, QueryError
from penstock.query.join_graph import ARRIVAL, JoinGraph, Stream, TimeUnit
from penstock.query.scope import listed, matching, suggestion
from penstock.query.syntax import Block, FromItem, Name, Query, Span
from penstock.query.types import Family, family, is_comparable, plain
from penstock.query.window import Rows, Static, Window, duration

_TEXTS = "event_time_format='iso' reads texts such as 2026-03-01 12:00:00; or give their format"
_EXAMPLE = "[RANGE 5 MINUTES], [ROWS 10] or [UNBOUNDED]"


@dataclass(frozen=True, slots=True)
class Sources:
    """What the caller says about the sources: checked once, when made."""

    schemas: Mapping[str, pa.Schema]
    event_time: str | Mapping[str, str | None]

    def __post_init__(self) -> None:
        if not isinstance(self.schemas, Mapping):
            raise OptionError(
                f"schemas is {_kind(self.schemas)}; expected a dict of name to pyarrow.Schema"
            )
        for name, schema in self.schemas.items():
            if not isinstance(name, str) or not name:
                raise OptionError(f"a name in schemas is {name!r}; expected a string")
            if not isinstance(schema, pa.Schema):
                raise OptionError(
                    f"the schema of {name} is {_kind(schema)}; expected a pyarrow.Schema, or data "
                    "that has one: a pyarrow Table, a pandas or polars DataFrame, a list of dicts "
                    "with a row"
                )
            twice = sorted({c for c in schema.names if schema.names.count(c) > 1})
            if twice:
                raise OptionError(f"the schema of {name} has {twice[0]} twice")
        if isinstance(self.event_time, str):
            return
        if not isinstance(self.event_time, Mapping):
            raise OptionError(
                f"event_time is {_kind(self.event_time)}; expected the name of a column, or a dict "
                "of stream to column"
            )
        for name, column in self.event_time.items():
            if name not in self.schemas:
                raise OptionError(
                    f"event_time names {name!r}, which is not in schemas; "
                    f"these are {listed(self.schemas)}"
                )
            if column is not None and column not in self.schemas[name].names:
                raise OptionError(
                    f"event_time says {column!r} for {name}, which has no such column; "
                    f"it has {listed(self.schemas[name].names)}"
                )

    def event_time_of(self, source: str) -> str | None:
        """The event-time column of ``source``, if it has one."""
        if not isinstance(self.event_time, str):
            return self.event_time.get(source)
        return self.event_time if self.event_time in self.schemas[source].names else None


def _kind(value: object) -> str:
    return f"of type {type(value).__name__}"


def by_rows(query: Query, text: str) -> bool:
    """Whether the query runs on the arrival line; refuses a query that mixes the two lines."""
    lines: dict[bool, FromItem] = {}
    for block in query.blocks:
        for item in block.streams:
            if item.window is None or item.window.window.is_endless:
                continue
            rows = item.window.window.latest is not None
            lines.setdefault(rows, item)
            if len(lines) == 2:
                other = lines[not rows]
                raise QueryError(
                    f"{item.window.window} on {item.alias.text} cannot stand beside "
                    f"{other.window.window if other.window else ''} on {other.alias.text}: "
                    "one query has either RANGE or ROWS windows",
                    text,
                    *item.window.span,
                    "use one kind of window for all streams; [UNBOUNDED] goes with either",
                )
    return True in lines


def streams_of_block(
    block: Block, sources: Sources, text: str, *, rows: bool
) -> tuple[Stream, ...]:
    """The streams of one block, in the order of FROM."""
    return tuple(_stream(item, sources, text, rows=rows) for item in block.streams)


def refuse_repeated_aliases(query: Query, text: str) -> None:
    """An alias names one stream of the whole query, so that plans can name it too."""
    seen: dict[str, int] = {}
    for number, block in enumerate(query.blocks):
        for item in block.streams:
            alias = item.alias.text
            if alias in seen:
                where = "twice in FROM" if seen[alias] == number else "on both sides of EXCEPT"
                raise QueryError(
                    f"{alias} stands {where}",
                    text,
                    *item.alias.span,
                    f"give each a name of its own, such as {item.source.text} AS {alias}2",
                )
            seen[alias] = number


def _stream(item: FromItem, sources: Sources, text: str, *, rows: bool) -> Stream:
    name = item.source
    source = matching(name.text, sources.schemas)
    if source is None:
        raise QueryError(
            f"unknown stream {name.text}; streams are {listed(sources.schemas)}",
            text,
            *name.span,
            suggestion(name.text, sources.schemas),
        )
    schema = sources.schemas[source]
    event_time = sources.event_time_of(source)
    window = _window(item, source, schema, event_time, text, rows=rows)
    if window.has_time and event_time is not None:
        kind = schema.field(event_time).type
        if not (pa.types.is_timestamp(kind) or pa.types.is_integer(kind)):
            raise QueryError(
                f"the event time {event_time} of {source} is {kind}; "
                "expected a timestamp, or an integer in milliseconds",
                text,
                *item.span,
                _TEXTS if family(plain(kind)) is Family.STRING else None,
            )
    freshness = _freshness(item, window, text)
    return Stream(item.alias.text, source, schema, window, event_time, freshness)


def _window(
    item: FromItem,
    source: str,
    schema: pa.Schema,
    event_time: str | None,
    text: str,
    *,
    rows: bool,
) -> Window:
    if item.window is None:
        if event_time is None:
            return Static()
        raise QueryError(
            f"{item.alias.text} has no window",
            text,
            *item.span,
            f"write one after its name: {_EXAMPLE}; or, if {source} is a static relation, let the "
            f"dict event_time say None for it, so that {event_time} is a plain column",
        )
    window: Window = item.window.window
    if event_time is None and not (rows and ARRIVAL in schema.names):
        needed = f"a column {ARRIVAL}, or an event-time column" if rows else "an event-time column"
        raise QueryError(
            f"{window} on {item.alias.text} needs {needed}; {source} has {listed(schema.names)}",
            text,
            *item.window.span,
            f"name the event-time column: event_time = {_instants(schema)}, or write no window if "
            f"the relation is static{_inside(schema)}",
        )
    if isinstance(window, Rows):
        keys = tuple(_partition_key(key, source, schema, text) for key in item.window.partition_by)
        window = replace(window, partition_by=tuple(dict.fromkeys(keys)))
    return window


def _instants(schema: pa.Schema) -> str:
    """The first column that holds timestamps, quoted, for a person to write."""
    return next((f'"{f.name}"' for f in schema if pa.types.is_timestamp(f.type)), "…")


def _inside(schema: pa.Schema) -> str:
    """The way to an event time that may be a field of a struct."""
    structs = [f for f in schema if pa.types.is_struct(f.type) and f.type.num_fields]
    if not structs:
        return ""
    path = f"{structs[-1].name}.{structs[-1].type.field(0).name}"
    return f"; a field such as {path} has to be a column: in a job file, {path} AS ts in select"


def _partition_key(key: Name, source: str, schema: pa.Schema, text: str) -> str:
    found = matching(key.text, schema.names)
    if found is None:
        raise QueryError(
            f"{source} has no column {key.text}; it has {listed(schema.names)}",
            text,
            *key.span,
            suggestion(key.text, schema.names),
        )
    kind = schema.field(found).type
    if not is_comparable(kind):
        raise QueryError(
            f"PARTITION BY needs a column that can be compared; {found} is {kind}", text, *key.span
        )
    return found


def _freshness(item: FromItem, window: Window, text: str) -> int | None:
    clause = item.freshness
    if clause is None:
        return None
    if window.span is None:
        shown = str(window) if window.has_time else "no window"
        raise QueryError(
            f"FRESHNESS goes with RANGE windows; {item.alias.text} has {shown}",
            text,
            *clause.span,
        )
    if clause.milliseconds < window.span:
        raise QueryError(
            f"FRESHNESS {duration(clause.milliseconds)} of {item.alias.text} is shorter than its "
            f"window {window}",
            text,
            *clause.span,
            "a result may hold any tuple of the window; write a shorter window, or a longer "
            "freshness",
        )
    return clause.milliseconds


def time_unit(streams: tuple[Stream, ...]) -> TimeUnit:
    """The finest unit among the event-time columns of ``streams``, at least a millisecond."""
    units = {
        kind.unit
        for stream in streams
        if stream.event_time is not None and not stream.is_static
        if pa.types.is_timestamp(kind := stream.schema.field(stream.event_time).type)
    }
    return "ns" if "ns" in units else "us" if "us" in units else "ms"


def warn_of_mixed_zones(graph: JoinGraph) -> None:
    """One warning if some event times have a time zone and others have none.

    The latter are taken as UTC; if they are local times, streams are hours apart and nothing meets.
    Integers count from 1970 in UTC, and agree with zones.
    """
    naive: dict[str, None] = {}
    zoned: dict[str, None] = {}
    for stream in (s for block in graph.blocks for s in block.streams if not s.is_static):
        if stream.event_time is None or graph.by_rows:
            continue
        kind = stream.schema.field(stream.event_time).type
        if pa.types.is_timestamp(kind):
            (naive if kind.tz is None else zoned)[f"{stream.source}.{stream.event_time}"] = None
    if naive and zoned:
        warnings.warn(
            f"event times with and without a time zone: {', '.join(zoned)} with, "
            f"{', '.join(naive)} without, which is taken as UTC; if it is local time, streams will "
            "be hours apart: convert it, or give all of them a time zone",
            PenstockWarning,
            stacklevel=3,
        )


def span_of_stream(block: Block, alias: str) -> Span:
    """Where the stream ``alias`` stands in FROM."""
    return next(item.span for item in block.streams if item.alias.text == alias)
