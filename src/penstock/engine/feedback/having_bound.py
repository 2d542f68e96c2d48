"""What HAVING tells the inputs: rows that can be in no group that is shown.

Two kinds of conditions in HAVING are conditions on single results, and where these read one stream,
on its rows. They are tested before a row gets into its window, like any predicate on one stream, so
the feedback is for good: there is nobody to wake.

- A condition on *groups alone* holds for all results of a group or for none: without those for
  which it does not hold, whole groups are missing, none of which is shown. It does not matter which
  aggregates there are.
- A *lower bound on MAX*, if that MAX is the only aggregate: a group is shown at an instant only if
  a result alive then reaches the bound, and the greatest of those that reach it is the greatest of
  all. Results that do not reach it are therefore neither shown nor missing; a group without any
  that does is not shown either way. The same goes for an upper bound on MIN. With a second
  aggregate it does not hold: a row with a small value may have the greatest of another column. An
  upper bound on MAX says nothing about rows: those beyond it must be known, to hide their group.

A bound on COUNT, SUM or AVG can be crossed with the next result, and needs all that were there
before: these are not told. Only comparisons of columns with constants or other columns are
taken: they cannot fail, as a division by zero can, on a row that is in no result.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.query.expression import (
    GROUPED,
    And,
    Column,
    Comparison,
    Constant,
    Expression,
    IsNull,
    Like,
    Not,
    Or,
    columns_of,
    streams_of,
    walk,
)
from penstock.query.join_graph import JoinGraph, Predicate

_CANNOT_FAIL = (Column, Constant, Comparison, And, Or, Not, IsNull, Like)
_TELLING = {"max": (">", ">="), "min": ("<", "<=")}
"""Operators with the function on the left that hold if they hold for one of the results."""
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def with_bounds(graph: JoinGraph) -> JoinGraph:
    """``graph`` with the predicates on one stream that follow from its HAVING.

    The answer is the same.
    """
    if graph.having is None:
        return graph
    conjuncts = graph.having.operands if isinstance(graph.having, And) else (graph.having,)
    bounds = []
    for conjunct in conjuncts:
        if all(isinstance(each, _CANNOT_FAIL) for each in walk(conjunct)):
            found = _on_results(graph, conjunct) if _is_told(graph, conjunct) else None
            if found is not None and len(streams_of(found)) == 1:
                bounds.append(Predicate(found))
    return replace(graph, predicates=(*graph.predicates, *bounds)) if bounds else graph


def _is_told(graph: JoinGraph, conjunct: Expression) -> bool:
    """Whether ``conjunct`` holds for a group just if it does for the results that are shown."""
    aggregates = {c for c in columns_of(conjunct) if c.name.startswith("$aggregate")}
    if not aggregates:
        return True
    if len(graph.aggregates) != 1 or not isinstance(conjunct, Comparison):
        return False
    operator: str = conjunct.operator
    left = conjunct.left
    if left not in aggregates:
        operator, left = _MIRRORED.get(operator, operator), conjunct.right
    is_alone = left in aggregates and {conjunct.left, conjunct.right} - {left}
    return bool(is_alone) and operator in _TELLING.get(graph.aggregates[0].function, ())


def _on_results(graph: JoinGraph, expression: Expression) -> Expression | None:
    """``expression`` with what groups and aggregates are made of instead of them; None if that is
    anything but columns."""
    if isinstance(expression, Column) and expression.stream == GROUPED:
        if expression.name.startswith("$group"):
            source: Expression | None = graph.group_by[int(expression.name.removeprefix("$group"))]
        else:
            source = graph.aggregates[0].argument
        return source if isinstance(source, Column) else None
    parts = [_on_results(graph, each) for each in expression.children()]
    known = tuple(each for each in parts if each is not None)
    if len(known) < len(parts):
        return None
    if isinstance(expression, Comparison):
        return replace(expression, left=known[0], right=known[1])
    if isinstance(expression, And | Or):
        return replace(expression, operands=known)
    if isinstance(expression, Not | IsNull | Like):
        return replace(expression, operand=known[0])
    return expression
