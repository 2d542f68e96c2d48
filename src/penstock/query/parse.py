"""CQL text to a validated join graph: the way in to the package.

:mod:`penstock.query.dialect` reads the text, :mod:`penstock.query.blocks` gives it its meaning.
Every fault of the text is a :class:`~penstock.errors.QueryError` that points at its place; a wrong
argument beside the text is an :class:`~penstock.errors.OptionError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.errors import OptionError, QueryError
from penstock.query.given_schema import schema_of
from penstock.query.join_graph import JoinGraph
from penstock.query.sources import Sources
from penstock.query.time_format import with_time_formats


def parse(
    text: str,
    schemas: Mapping[str, Any],
    event_time: str | Mapping[str, str | None] = "ts",
    *,
    event_time_format: str | Mapping[str, str] | None = None,
    cross_products: bool = False,
) -> JoinGraph:
    """The query ``text`` over streams with these ``schemas``.

    A schema is pyarrow's, or anything that has one: a table, a pandas or polars DataFrame, a list
    of dicts whose values tell their types.
    ``event_time`` is the column that holds the event time: a timestamp, or an integer that counts
    milliseconds. It is one name for all streams, or a dict of stream to column; a stream that lacks
    the column (or has None in the dict) and no window is a static relation.
    ``event_time_format`` is how event times are written that are texts: ``"iso"``, or a format of
    strptime; for all such streams, or a dict of stream to format. A text that is no time is NULL.
    ``cross_products`` allows streams that no predicate links.

    >>> schema = pa.schema([("id", pa.int64()), ("x", pa.string()), ("ts", pa.timestamp("ms"))])
    >>> query = "SELECT A.id, B.id FROM A [RANGE 5 MINUTES], B [RANGE 90 SECONDS] WHERE A.x = B.x"
    >>> graph = parse(query, {"A": schema, "B": schema})
    >>> print(*(f"{stream.alias} {stream.window}" for stream in graph.streams))
    A [RANGE 5 MINUTES] B [RANGE 90 SECONDS]
    >>> print(*graph.predicates)
    A.x = B.x
    >>> graph.schema.names
    ['A_id', 'B_id']
    """
    if not isinstance(text, str):
        raise OptionError(f"the query is of type {type(text).__name__}; expected a string")
    if isinstance(schemas, Mapping):
        schemas = {name: schema_of(name, given) for name, given in schemas.items()}
    sources = with_time_formats(Sources(schemas, event_time), event_time_format)
    # sqlglot takes as long to load as everything else together, and a worker that is handed a
    # graph never parses.
    from penstock.query.blocks import graph_of
    from penstock.query.dialect import read
    from penstock.query.sources import warn_of_mixed_zones

    try:
        graph = graph_of(read(text), sources, text, cross_products=cross_products)
        warn_of_mixed_zones(graph)
        return graph
    except RecursionError:
        raise QueryError(
            "the query is nested too deeply",
            text,
            *_deepest(text),
            "take out parentheses that are not needed; AND, OR and IN may be as long as you like",
        ) from None


def _deepest(text: str) -> tuple[int, int]:
    """The place where the most parentheses are open."""
    depth, best, place = 0, 0, 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth > best:
            best, place = depth, position
    return place, place + 1
