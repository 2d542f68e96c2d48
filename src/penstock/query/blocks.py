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
from penstock.query.select_list import select_list, subtracted_list
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
    """The join graph of ``query``."""
    refuse_repeated_aliases(query, text)
    rows = by_rows(query, text)
    scopes = [Scope(text, streams_of_block(b, sources, text, rows=rows)) for b in query.blocks]
    graphs: list[JoinGraph] = []
    for block, scope in zip(query.blocks, scopes, strict=True):
        predicates = _predicates(block, scope)
        if not cross_products:
            _refuse_cross_product(block, scope, predicates)
        graph = JoinGraph(text, scope.streams, predicates, (), query.emission)
        if len(query.blocks) > 1:
            _refuse_grouping(block, text)
        if graphs:
            names = graphs[0].schema.names
            graphs.append(replace(graph, select=subtracted_list(block.items, scope, names)))
        else:
            graphs.append(_selected(graph, block, scope))
    graphs = _aligned(graphs, query, text)
    unit = time_unit(tuple(stream for graph in graphs for stream in graph.streams))
    graphs = [replace(graph, time_unit=unit) for graph in graphs]
    return replace(graphs[0], minus=tuple(graphs[1:]))


def _selected(graph: JoinGraph, block: Block, scope: Scope) -> JoinGraph:
    """``graph`` with its select list, grouped or not."""
    if not _grouping(block):
        return replace(graph, select=select_list(block.items, scope, Resolver(scope)))
    keys = [_group_key(key, block, scope) for key in block.group_by]
    resolver = GroupedResolver(scope, tuple(dict.fromkeys(keys)))
    select = select_list(block.items, scope, resolver)
    return replace(
        graph,
        select=select,
        having=_having(block, scope, resolver),
        group_by=tuple(resolver.group_by),
        aggregates=tuple(resolver.aggregates),
    )


def _grouping(block: Block) -> Span | None:
    """Where ``block`` groups: its GROUP BY, or its first aggregate."""
    if block.group_span:
        return block.group_span
    if block.having:
        return span_of(block.having)
    return next((item.span for item in block.items if has_aggregate(item.expression)), None)


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


def _having(block: Block, scope: Scope, resolver: GroupedResolver) -> Expression | None:
    """The condition that rows of the grouped relation must meet; it may use names of SELECT."""
    if block.having is None:
        return None

    def written_out(node: exp.Expr) -> exp.Expr:
        item = _item_meant(node, block, scope) if isinstance(node, exp.Column) else None
        return exp.Paren(this=item.expression.copy()) if item else node

    condition = resolver.condition(block.having.transform(written_out), "HAVING")
    if isinstance(condition, Constant) and condition != TRUE:
        _refuse_constant(condition, block.having, "HAVING", scope)
    return None if condition == TRUE else condition


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


def _refuse_grouping(block: Block, text: str) -> None:
    place = _grouping(block)
    if place:
        raise QueryError(
            "EXCEPT and grouping cannot stand in one query",
            text,
            *place,
            "group the answer of EXCEPT in a query of its own",
        )


def _aligned(graphs: list[JoinGraph], query: Query, text: str) -> list[JoinGraph]:
    """The blocks of EXCEPT, with each column in a type common to all of them."""
    if len(graphs) == 1:
        return graphs
    columns = [
        _aligned_column([graph.select[position] for graph in graphs], position, query, text)
        for position in range(len(graphs[0].select))
    ]
    return [
        replace(graph, select=tuple(column[number] for column in columns))
        for number, graph in enumerate(graphs)
    ]


def _aligned_column(
    column: list[SelectItem], position: int, query: Query, text: str
) -> list[SelectItem]:
    expressions = [item.expression for item in column]
    for number in range(1, len(column)):
        try:
            kind = typed.common(expressions[: number + 1])
            if not is_comparable(kind):
                raise TypeMismatch(f"{expressions[0]} ({kind}) cannot be compared")
        except TypeMismatch as mismatch:
            items = query.blocks[number].items
            exact = len(items) == len(query.blocks[0].items) and position < len(items)
            first, last = (items[position],) * 2 if exact else (items[0], items[-1])
            raise QueryError(
                f"EXCEPT compares column {column[0].name}: {mismatch.message}",
                text,
                first.span[0],
                last.span[1],
                mismatch.hint,
            ) from None
    return [SelectItem(item.name, typed.convert(item.expression, kind)) for item in column]
