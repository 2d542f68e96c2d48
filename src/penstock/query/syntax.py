"""The shape of a query text, before names and types mean anything.

What :mod:`penstock.query.dialect` reads and the rest of the package resolves. Scalar expressions
are sqlglot trees; everything that is CQL and not SQL (windows, freshness, emission) is a value of
this module. Each value knows the characters it was written with, ``text[start:end]``, so that an
error can point at them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from penstock.query.join_graph import Emission
from penstock.query.window import Window

if TYPE_CHECKING:
    from sqlglot import exp

Span = tuple[int, int]

NOWHERE: Span = (0, 0)


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier, without its quotes."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class WindowClause:
    """``[…]``. ``partition_by`` of the window is empty: the names are still to be resolved."""

    window: Window
    partition_by: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class FreshnessClause:
    """``FRESHNESS n UNIT``."""

    milliseconds: int
    span: Span


@dataclass(frozen=True, slots=True)
class FromItem:
    """One stream of FROM, and how it is joined to the one before it."""

    source: Name
    alias: Name
    """The source's own name where no alias is written."""
    window: WindowClause | None
    freshness: FreshnessClause | None
    joined: Literal["comma", "inner", "cross"]
    on: exp.Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class Item:
    """One item of SELECT. ``*`` has a Star as its expression, ``A.*`` a Column of a Star."""

    expression: exp.Expr
    alias: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class Block:
    """``SELECT … FROM … WHERE … GROUP BY … HAVING …``."""

    items: tuple[Item, ...]
    streams: tuple[FromItem, ...]
    where: exp.Expr | None
    group_by: tuple[exp.Expr, ...]
    group_span: Span | None
    having: exp.Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class Query:
    """``block EXCEPT block …`` with the relation-to-stream operator above it."""

    emission: Emission
    blocks: tuple[Block, ...]


def span_of(node: exp.Expr) -> Span:
    """The characters of ``node``: its own marks if it has them, else those of its parts."""
    start, end = node.meta.get("start"), node.meta.get("end")
    if start is not None and end is not None:
        return int(start), int(end) + 1
    parts = [span for child in node.iter_expressions() if (span := span_of(child)) != NOWHERE]
    return (min(p[0] for p in parts), max(p[1] for p in parts)) if parts else NOWHERE
