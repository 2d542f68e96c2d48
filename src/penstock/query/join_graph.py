"""The join graph: a validated query, ready to be planned and run.

Immutable. Streams are known by their alias; ``source`` is the name under which batches arrive, so
a self-join is two streams with one source. Predicates are the conjuncts of WHERE. An
:class:`EquiPredicate` links two streams by equality of one expression over each; everything else
is a plain :class:`Predicate`, checked as soon as its streams are together.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from penstock.query.expression import Aggregate, Expression, streams_of
from penstock.query.window import Range, Rows, Static, Unbounded, Window

Emission = Literal["istream", "dstream", "rstream"]
TimeUnit = Literal["ms", "us", "ns"]

ARRIVAL = "arrival"
"""The optional column that orders the rows of a push in a query with ROWS windows."""

_SHOWN = 160
"""Characters of a query's text in its ``repr``."""

TICKS_PER_MILLISECOND: dict[TimeUnit, int] = {"ms": 1, "us": 1_000, "ns": 1_000_000}


@dataclass(frozen=True, slots=True)
class Stream:
    """One item of FROM."""

    alias: str
    source: str
    schema: pa.Schema
    window: Window
    event_time: str | None
    """The event-time column; None for a static relation, or ROWS without one."""
    freshness: int | None = None
    """FRESHNESS in milliseconds; None means as long as the window."""

    @property
    def is_static(self) -> bool:
        return not self.window.has_time


@dataclass(frozen=True, slots=True)
class Predicate:
    """A conjunct of WHERE: a boolean expression over one or more streams."""

    expression: Expression

    @property
    def streams(self) -> frozenset[str]:
        return streams_of(self.expression)

    def __str__(self) -> str:
        return str(self.expression)


@dataclass(frozen=True, slots=True)
class EquiPredicate(Predicate):
    """``left = right``, where each side reads exactly one stream and the streams differ.

    ``expression`` is the whole comparison. Both sides have one type.
    """

    left: Expression
    right: Expression

    @property
    def left_stream(self) -> str:
        (stream,) = streams_of(self.left)
        return stream

    def side(self, stream: str) -> Expression:
        """The side that reads ``stream``."""
        return self.left if self.left_stream == stream else self.right


@dataclass(frozen=True, slots=True)
class SelectItem:
    """One column of the answer. With aggregates, the expression reads :data:`GROUPED` columns."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True, repr=False)
class JoinGraph:
    """A query: what ``penstock.parse`` returns."""

    text: str
    streams: tuple[Stream, ...]
    predicates: tuple[Predicate, ...]
    select: tuple[SelectItem, ...]
    emission: Emission = "istream"
    group_by: tuple[Expression, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    """Not empty, or ``group_by`` not empty: the answer is grouped."""
    having: Expression | None = None
    """What rows of the grouped relation must meet; it reads :data:`GROUPED` columns."""
    minus: tuple[JoinGraph, ...] = ()
    """The blocks after EXCEPT, in order; their ``minus`` is empty."""
    time_unit: TimeUnit = "ms"
    """One tick of the time line: the finest unit among all event-time columns, at least ms."""

    def __repr__(self) -> str:
        """The text of the query in one line, shortened."""
        return f"<JoinGraph {textwrap.shorten(self.text, _SHOWN, placeholder=' …')}>"

    @property
    def by_rows(self) -> bool:
        """Whether the time line is the arrival order (ROWS windows) and not event time."""
        return any(s.window.latest is not None for block in self.blocks for s in block.streams)

    @property
    def has_clock_times(self) -> bool:
        """Whether an instant of the time line is one of the clock: all event times are timestamps,
        which count from 1970 in UTC."""
        streams = [s for block in self.blocks for s in block.streams if not s.is_static]
        times = [s.schema.field(s.event_time).type for s in streams if s.event_time is not None]
        return not self.by_rows and bool(times) and all(map(pa.types.is_timestamp, times))

    @property
    def blocks(self) -> tuple[JoinGraph, ...]:
        """This block and those after EXCEPT."""
        return (self, *self.minus)

    @property
    def is_grouped(self) -> bool:
        return bool(self.group_by or self.aggregates)

    @property
    def ignores_copies(self) -> bool:
        """Whether the answer is the same however often a result is there: MIN, MAX and groups."""
        extrema = all(each.function in ("min", "max") for each in self.aggregates)
        return self.is_grouped and extrema and not self.minus

    @property
    def waits_for_watermark(self) -> bool:
        """Whether a row leaves only when no older ones can come, since they might change it."""
        undoes = self.is_grouped or bool(self.minus)
        return undoes and self.emission != "rstream" and not self.by_rows

    @property
    def aliases(self) -> tuple[str, ...]:
        """The aliases of this block, in the order of FROM."""
        return tuple(s.alias for s in self.streams)

    @property
    def sources(self) -> tuple[str, ...]:
        """The distinct source names of all blocks, in the order of the text."""
        return tuple(dict.fromkeys(s.source for block in self.blocks for s in block.streams))

    @property
    def schema(self) -> pa.Schema:
        """The schema of the answer."""
        return pa.schema([(item.name, item.expression.type) for item in self.select])

    @property
    def ticks_per_millisecond(self) -> int:
        return TICKS_PER_MILLISECOND[self.time_unit]

    def stream(self, alias: str) -> Stream:
        """The stream of this block called ``alias``."""
        for candidate in self.streams:
            if candidate.alias == alias:
                return candidate
        raise KeyError(alias)

    def linking(self, left: frozenset[str], right: frozenset[str]) -> Iterator[Predicate]:
        """Predicates that can be checked when ``left`` meets ``right``, and not before."""
        both = left | right
        for predicate in self.predicates:
            streams = predicate.streams
            if streams <= both and not streams <= left and not streams <= right:
                yield predicate


__all__ = [
    "ARRIVAL",
    "Aggregate",
    "Emission",
    "EquiPredicate",
    "JoinGraph",
    "Predicate",
    "Range",
    "Rows",
    "SelectItem",
    "Static",
    "Stream",
    "TimeUnit",
    "Unbounded",
    "Window",
]
