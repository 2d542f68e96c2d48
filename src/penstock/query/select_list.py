"""The items of SELECT: what each one computes, and what it is called.

A name is the alias if there is one, else the name of the column or field, else the text of the
expression. Where two items would share a name, those that are plain columns take the stream's name
in front: ``SELECT A.id, B.id`` gives ``A_id`` and ``B_id``. What is ambiguous even then is refused.
The columns of a block after EXCEPT are those of the first block, by position, and take their names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from penstock.query.expression import Column, Expression, Field
from penstock.query.join_graph import SelectItem
from penstock.query.resolve import GroupedResolver, Resolver, name_of
from penstock.query.scope import Scope
from penstock.query.syntax import Item, Span


@dataclass(frozen=True, slots=True)
class _Draft:
    """A select item on its way: ``column`` is set if it is a plain column with no alias."""

    name: str
    expression: Expression
    column: Column | None
    span: Span


def select_list(items: Sequence[Item], scope: Scope, resolver: Resolver) -> tuple[SelectItem, ...]:
    """The select items, with ``*`` expanded."""
    drafts = [draft for item in items for draft in _drafts(item, scope, resolver)]
    shared = {name for name, count in Counter(d.name for d in drafts).items() if count > 1}
    named: dict[str, SelectItem] = {}
    for draft in drafts:
        name = draft.name
        if name in shared and draft.column is not None:
            name = f"{draft.column.stream}_{draft.column.name}"
        if name in named:
            raise scope.error(
                f"two items of SELECT are called {name}",
                draft.span,
                "give each a name of its own with AS",
            )
        named[name] = SelectItem(name, draft.expression)
    return tuple(named.values())


def subtracted_list(
    items: Sequence[Item], scope: Scope, names: Sequence[str]
) -> tuple[SelectItem, ...]:
    """The select items of a block after EXCEPT; ``names`` are those of the first block."""
    drafts = [draft for item in items for draft in _drafts(item, scope, Resolver(scope))]
    if len(drafts) != len(names):
        raise scope.error(
            f"this side of EXCEPT has {_columns(len(drafts))}, the first one has {len(names)}",
            (items[0].span[0], items[-1].span[1]),
            "both sides select the same number of columns",
        )
    return tuple(SelectItem(n, d.expression) for n, d in zip(names, drafts, strict=True))


def _columns(count: int) -> str:
    return f"{count} column" + ("" if count == 1 else "s")


def _drafts(item: Item, scope: Scope, resolver: Resolver) -> list[_Draft]:
    node = item.expression
    if isinstance(node, exp.Star):
        return [_starred(column, item, resolver) for column in scope.all_columns(item.span)]
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        columns = scope.columns_of(name_of(node.args["table"]), item.span)
        return [_starred(column, item, resolver) for column in columns]
    expression = resolver.expression(node)
    is_name = isinstance(node, exp.Column | exp.Dot)
    column = Resolver(scope).expression(node) if is_name else None
    if item.alias:
        return [_Draft(item.alias.text, expression, None, item.alias.span)]
    if isinstance(column, Column):
        return [_Draft(column.name, expression, column, item.span)]
    if isinstance(column, Field):
        return [_Draft(column.name, expression, None, item.span)]
    written = " ".join(scope.text[item.span[0] : item.span[1]].split())
    return [_Draft(written, expression, None, item.span)]


def _starred(column: Column, item: Item, resolver: Resolver) -> _Draft:
    expression: Expression = column
    if isinstance(resolver, GroupedResolver):
        expression = resolver.column(column, item.expression)
    return _Draft(column.name, expression, column, item.span)
