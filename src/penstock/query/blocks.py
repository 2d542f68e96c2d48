"""The blocks of a query to a join graph.

:mod:`sources <penstock.query.sources>` makes the items of FROM into streams,
:mod:`resolve <penstock.query.resolve>` gives names and types to expressions,
:mod:`select_list <penstock.query.select_list>` names the columns of the answer. What remains is
what concerns a block as a whole: its conjuncts, its grouping, whether its streams hang together,
and how the blocks of EXCEPT agree on their columns.

A conjunct that is true for every row is dropped. One that is false or NULL for every row leaves
nothing to run, and is refused.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from penstock.errors import QueryError
from penstock.query import typed
from penstock.query.connectivity import parts
from penstock.query.constant import TRUE
from penstock.query.expression import (
    And,
    Comparison,
    Constant,
    Expression,
    columns_of,
    streams_of,
)
from penstock.query.join_graph import (
    EquiPredicate,
    JoinGraph,
    Predicate,
    SelectItem,
)
from penstock.query.resolve import (
    GroupedResolver,
    Resolver,
    flattened,
    has_aggregate,
    name_of,
    qualifier_of,
)
from penstock.query.scope import Scope, matching
from penstock.query.select_list import select_list
from penstock.query.sources import (
    Sources,
    by_rows,
    refuse_repeated_aliases,
    span_of_stream,
    streams_of_block,
    time_unit,
)
from penstock.query.syntax import Block, Item, Query, Span, span_of
from penstock.query.types import TypeMismatch, is_comparable


def graph_of(query: Query, sources: Sources, text: str, *, cross_products: bool) -> JoinGraph:
    refuse_repeated_aliases(query, text)
    rows = by_rows(query, text)
    scopes = [Scope(text, streams_of_block(b, sources, text, rows=rows)) for b in query.blocks]
    graphs = [
        _block(block, scope, cross_products=cross_products)
        for block, scope in zip(query.blocks, scopes, strict=True)
    ]
    unit = time_unit(tuple(s for scope in scopes for s in scope.streams))
    graphs = [replace(g, emission=query.emission, time_unit=unit) for g in graphs]
    if len(graphs) > 1:
        graphs = _aligned(graphs, query, text)
    return replace(graphs[0], minus=tuple(graphs[1:]))


def _block(block: Block, scope: Scope, *, cross_products: bool) -> JoinGraph:
    predicates = _predicates(block, scope)
    if not cross_products:
        _refuse_cross_product(block, scope, predicates)
    grouped = bool(block.group_by) or any(has_aggregate(i.expression) for i in block.items)
    if not grouped:
        select = select_list(block.items, scope, Resolver(scope))
        return JoinGraph(scope.text, scope.streams, predicates, select)
    keys = [_group_key(key, block, scope) for key in block.group_by]
    resolver = GroupedResolver(scope, tuple(dict.fromkeys(keys)))
    select = select_list(block.items, scope, resolver)
    return JoinGraph(
        scope.text,
        scope.streams,
        predicates,
        select,
        group_by=tuple(resolver.group_by),
        aggregates=tuple(resolver.aggregates),
    )


# ---- WHERE and ON ----------------------------------------------------------------------------


def _predicates(block: Block, scope: Scope) -> tuple[Predicate, ...]:
    """The conjuncts of ON and WHERE, each once."""
    resolver = Resolver(scope)
    found: dict[object, Predicate] = {}
    clauses = [(item.on, "ON") for item in block.streams] + [(block.where, "WHERE")]
    for clause, where in clauses:
        if clause is None:
            continue
        for node in flattened(clause, exp.And):
            condition = resolver.condition(node, where)
            conjuncts = condition.operands if isinstance(condition, And) else (condition,)
            for conjunct in conjuncts:
                if conjunct == TRUE:
                    continue
                _refuse_constant(conjunct, node, where, scope)
                predicate = _predicate(conjunct)
                found.setdefault(_identity(predicate), predicate)
    return tuple(found.values())


def _refuse_constant(conjunct: Expression, node: exp.Expr, where: str, scope: Scope) -> None:
    if isinstance(conjunct, Constant):
        null = conjunct.value is None
        raise scope.error(
            f"this condition is always {'NULL' if null else 'false'}, so there is never a result",
            span_of(node),
            "test for NULL with IS NULL" if null else f"take it out of {where}",
        )
    if not columns_of(conjunct):
        raise scope.error(
            "this condition reads no stream", span_of(node), f"take it out of {where}"
        )


def _predicate(conjunct: Expression) -> Predicate:
    if isinstance(conjunct, Comparison) and conjunct.operator == "=":
        left, right = streams_of(conjunct.left), streams_of(conjunct.right)
        if len(left) == len(right) == 1 and left != right:
            return EquiPredicate(conjunct, conjunct.left, conjunct.right)
    return Predicate(conjunct)


def _identity(predicate: Predicate) -> object:
    """Equal for predicates that say the same: ``a = b`` and ``b = a``."""
    if isinstance(predicate, EquiPredicate):
        return frozenset((predicate.left, predicate.right))
    return predicate.expression


def _refuse_cross_product(block: Block, scope: Scope, predicates: tuple[Predicate, ...]) -> None:
    aliases = [s.alias for s in scope.streams]
    links = [sorted(p.streams) for p in predicates]
    for before, item in zip(block.streams, block.streams[1:], strict=False):
        if item.joined == "cross":
            links.append([before.alias.text, item.alias.text])
    found = parts(aliases, links)
    if len(found) == 1:
        return
    apart, rest = found[1], [alias for part in found if part is not found[1] for alias in part]
    raise scope.error(
        f"no predicate links {_and(apart)} to {_and(rest)}: this is a cross product",
        span_of_stream(block, apart[0]),
        "add a predicate that reads both sides, or ask for it with CROSS JOIN or "
        "cross_products=True",
    )


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# ---- GROUP BY --------------------------------------------------------------------------------


def _group_key(node: exp.Expr, block: Block, scope: Scope) -> Expression:
    """A group expression: written out, or an item of SELECT by its position or its alias."""
    item = _item_meant(node, block, scope)
    key = item.expression if item else node
    if has_aggregate(key):
        raise scope.error("GROUP BY cannot group by an aggregate", span_of(node))
    if isinstance(key, exp.Star) or isinstance(key.this, exp.Star):
        raise scope.error("GROUP BY cannot group by *", span_of(node), "list the columns")
    found = Resolver(scope).expression(key)
    if not columns_of(found):
        raise scope.error(f"GROUP BY {found} puts everything into one group", span_of(node))
    if not is_comparable(found.type):
        raise scope.error(
            f"GROUP BY needs values that can be compared; {found} is {found.type}", span_of(node)
        )
    return found


def _item_meant(node: exp.Expr, block: Block, scope: Scope) -> Item | None:
    if isinstance(node, exp.Literal) and not node.args["is_string"]:
        position = str(node.this)
        if (
            not position.isdecimal()
            or len(position) > 9
            or not (1 <= int(position) <= len(block.items))
        ):
            raise scope.error(
                f"GROUP BY {position} is no position of SELECT, which has {len(block.items)}",
                span_of(node),
            )
        return block.items[int(position) - 1]
    if isinstance(node, exp.Column) and qualifier_of(node) is None:
        name = name_of(node.this).text
        if any(matching(name, stream.schema.names) for stream in scope.streams):
            return None
        aliases = [item.alias.text for item in block.items if item.alias]
        alias = matching(name, aliases)
        if alias is not None:
            return next(i for i in block.items if i.alias and i.alias.text == alias)
    return None


# ---- EXCEPT ----------------------------------------------------------------------------------


def _aligned(graphs: list[JoinGraph], query: Query, text: str) -> list[JoinGraph]:
    """The blocks with the columns of all of them in common types."""
    first = graphs[0]
    for graph, block in zip(graphs, query.blocks, strict=True):
        if graph.is_grouped:
            raise QueryError(
                "EXCEPT and GROUP BY cannot stand in one query",
                text,
                *(block.group_span or _first_aggregate(block)),
                "group the answer of EXCEPT in a query of its own",
            )
        if len(graph.select) != len(first.select):
            raise QueryError(
                f"this side of EXCEPT has {_columns(len(graph.select))}, "
                f"the first one {_columns(len(first.select))}",
                text,
                block.items[0].span[0],
                block.items[-1].span[1],
                "both sides select the same number of columns",
            )
    columns = [list(g.select) for g in graphs]
    for position in range(len(first.select)):
        column = [select[position] for select in columns]
        kind = _common(column, query, text)
        for select in columns:
            item = select[position]
            select[position] = SelectItem(item.name, typed.convert(item.expression, kind))
    return [replace(g, select=tuple(c)) for g, c in zip(graphs, columns, strict=True)]


def _common(column: list[SelectItem], query: Query, text: str) -> pa.DataType:
    try:
        kind = typed.common([item.expression for item in column])
        if is_comparable(kind):
            return kind
        mismatch = TypeMismatch(f"{column[0].expression} ({kind}) cannot be compared")
    except TypeMismatch as found:
        mismatch = found
    block = query.blocks[1]
    raise QueryError(
        f"EXCEPT compares column {column[0].name}: {mismatch.message}",
        text,
        block.items[0].span[0],
        block.items[-1].span[1],
        mismatch.hint,
    )


def _columns(count: int) -> str:
    return f"{count} column" + ("" if count == 1 else "s")


def _first_aggregate(block: Block) -> Span:
    return next(item.span for item in block.items if has_aggregate(item.expression))
