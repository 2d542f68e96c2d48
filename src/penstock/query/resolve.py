"""Expressions of the text to typed expressions over columns.

One function per kind of node, chosen by the node's class; the rules about types are those of
:mod:`penstock.query.typed`, and a mismatch found there becomes an error that points at the node.

Under GROUP BY an expression above the aggregates is resolved by :class:`GroupedResolver`: a part
that equals a group expression becomes the column ``$group<i>``, an aggregate ``$aggregate<i>``, and
a column that is neither is refused. Parts are compared after resolution, so ``GROUP BY a.x``
matches ``A.X`` in SELECT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pyarrow as pa
from sqlglot import exp

from penstock.query import constant, typed, types
from penstock.query.expression import (
    GROUPED,
    Aggregate,
    AggregateFunction,
    ArithmeticOperator,
    Column,
    ComparisonOperator,
    Constant,
    Expression,
    Field,
)
from penstock.query.functions import FUNCTIONS, concatenated, extract, function
from penstock.query.scope import Scope, listed, matching, suggestion
from penstock.query.syntax import Name, span_of
from penstock.query.types import NUMBERS, TypeMismatch, family

_COMPARISONS: dict[type[exp.Expr], ComparisonOperator] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_ARITHMETIC: dict[type[exp.Expr], ArithmeticOperator] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
AGGREGATES: dict[str, AggregateFunction] = {
    "COUNT": "count",
    "SUM": "sum",
    "AVG": "avg",
    "MIN": "min",
    "MAX": "max",
}

DEEPEST = 100
"""How deep an expression may be: everybody walks it by recursion, wherever they are called from."""


def is_aggregate(node: exp.Expr) -> bool:
    """Whether ``node`` is a call of an aggregate function."""
    return isinstance(node, exp.Anonymous) and str(node.this).upper() in AGGREGATES


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate function is called in ``node`` or below it."""
    return any(is_aggregate(call) for call in node.find_all(exp.Anonymous))


_SAME_FUNCTION = 0.8
"""How like a function a name has to be to be taken for it: CONCAT is not COUNT, and CUONT is."""


class Resolver:
    """Expressions over the columns of a block."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._depth = 0

    def expression(self, node: exp.Expr) -> Expression:
        """``node`` with names and types resolved, or a :class:`~penstock.errors.QueryError`."""
        resolve = self._METHODS.get(type(node))
        if resolve is None:
            raise self.scope.error("this expression is not supported", span_of(node))
        self._depth += 1
        if self._depth > DEEPEST:
            raise RecursionError
        try:
            return resolve(self, node)
        except TypeMismatch as mismatch:
            raise self.scope.error(mismatch.message, span_of(node), mismatch.hint) from None
        finally:
            self._depth -= 1

    def condition(self, node: exp.Expr, where: str) -> Expression:
        """``node`` as a condition; ``where`` names the clause that needs one."""
        try:
            return typed.condition(self.expression(node), where)
        except TypeMismatch as mismatch:
            raise self.scope.error(mismatch.message, span_of(node), mismatch.hint) from None

    def _column(self, node: exp.Expr) -> Expression:
        qualifier = qualifier_of(node)
        if qualifier is not None and not self.scope.has_stream(qualifier.text):
            struct = self._struct(qualifier)
            if struct is not None:
                return self.scope.field(struct, name_of(node.this))
        return self.scope.column(qualifier, name_of(node.this))

    def _path(self, node: exp.Expr) -> Expression:
        """``stream.column.field…`` or ``column.field…``, with three parts or more."""
        first, second, *rest = [name_of(part) for part in (node.this, *node.expressions)]
        found: Expression
        if self.scope.has_stream(first.text):
            found = self.scope.column(first, second)
        else:
            found = self.scope.field(self.scope.column(None, first), second)
        for name in rest:
            found = self.scope.field(found, name)
        return found

    def _struct(self, name: Name) -> Expression | None:
        """The one column called ``name``, if it is a struct."""
        owners = [s for s in self.scope.streams if matching(name.text, s.schema.names)]
        if len(owners) != 1:
            return None
        column = self.scope.column(None, name)
        return column if pa.types.is_struct(column.type) else None

    def _literal(self, node: exp.Expr) -> Expression:
        text = str(node.this)
        return Constant(pa.string(), text) if node.args["is_string"] else constant.number(text)

    def _boolean(self, node: exp.Expr) -> Expression:
        return constant.TRUE if node.this else constant.FALSE

    def _null(self, node: exp.Expr) -> Expression:
        return Constant(pa.null(), None)

    def _paren(self, node: exp.Expr) -> Expression:
        return self.expression(node.this)

    def _interval(self, node: exp.Expr) -> Expression:
        return constant.length(int(node.this.this))

    def _cast(self, node: exp.Expr) -> Expression:
        target = node.args["to"]
        if isinstance(target, exp.Var):
            text = str(node.this.this)
            return constant.day(text) if target.this == "DATE" else constant.moment(text)
        sizes = tuple(str(size.this) for size in target.expressions)
        try:
            kind = types.named_type(str(target.this), sizes)
        except TypeMismatch as mismatch:
            raise self.scope.error(mismatch.message, span_of(target), mismatch.hint) from None
        return typed.cast(self.expression(node.this), kind)

    def _comparison(self, node: exp.Expr) -> Expression:
        left, right = self.expression(node.this), self.expression(node.expression)
        return typed.compare(_COMPARISONS[type(node)], left, right)

    def _arithmetic(self, node: exp.Expr) -> Expression:
        left, right = self.expression(node.this), self.expression(node.expression)
        return typed.arithmetic(_ARITHMETIC[type(node)], left, right)

    def _negative(self, node: exp.Expr) -> Expression:
        return typed.negative(self.expression(node.this))

    def _and(self, node: exp.Expr) -> Expression:
        return typed.both([self.condition(part, "AND") for part in flattened(node, exp.And)])

    def _or(self, node: exp.Expr) -> Expression:
        return typed.either([self.condition(part, "OR") for part in flattened(node, exp.Or)])

    def _not(self, node: exp.Expr) -> Expression:
        return typed.negation(self.condition(node.this, "NOT"))

    def _is(self, node: exp.Expr) -> Expression:
        return typed.is_null(self.expression(node.this))

    def _between(self, node: exp.Expr) -> Expression:
        value = self.expression(node.this)
        low, high = self.expression(node.args["low"]), self.expression(node.args["high"])
        return typed.both([typed.compare(">=", value, low), typed.compare("<=", value, high)])

    def _in(self, node: exp.Expr) -> Expression:
        value = self.expression(node.this)
        choices = [self.expression(choice) for choice in node.expressions]
        return typed.either([typed.compare("=", value, choice) for choice in choices])

    def _like(self, node: exp.Expr) -> Expression:
        found = typed.like(self.expression(node.this), self.expression(node.expression))
        return typed.negation(found) if node.args.get("negate") else found

    def _concatenated(self, node: exp.Expr) -> Expression:
        return concatenated([self.expression(part) for part in (node.this, node.expression)])

    def _extract(self, node: exp.Expr) -> Expression:
        return extract(str(node.this.this), self.expression(node.expression))

    def _case(self, node: exp.Expr) -> Expression:
        operand = node.this and self.expression(node.this)
        conditions, values = [], []
        for branch in node.args["ifs"]:
            if operand is None:
                conditions.append(self.condition(branch.this, "WHEN"))
            else:
                conditions.append(typed.compare("=", operand, self.expression(branch.this)))
            values.append(self.expression(branch.args["true"]))
        default = node.args.get("default")
        otherwise = self.expression(default) if default else Constant(pa.null(), None)
        return typed.case(conditions, values, otherwise)

    def _call(self, node: exp.Expr) -> Expression:
        name = str(node.this).upper()
        if name in AGGREGATES:
            return self._aggregate(node)
        if name not in FUNCTIONS:
            known = sorted((*FUNCTIONS, *AGGREGATES, "CAST", "EXTRACT"))
            start, _ = span_of(node)
            raise self.scope.error(
                f"unknown function {node.this}; functions are {listed(known)}",
                (start, int(node.meta["name_end"]) + 1),
                suggestion(name, known, _SAME_FUNCTION),
            )
        for argument in node.expressions:
            if isinstance(argument, exp.Star):
                raise self.scope.error(f"{name}(*) does not exist", span_of(argument))
        return function(name, [self.expression(part) for part in node.expressions])

    def _aggregate(self, node: exp.Expr) -> Expression:
        name = str(node.this).upper()
        raise self.scope.error(
            f"{name} is an aggregate, which stands only in SELECT and HAVING",
            span_of(node),
            "a condition on an aggregate stands in HAVING, after GROUP BY",
        )

    _METHODS: ClassVar[dict[type[exp.Expr], Callable[[Any, Any], Expression]]] = {
        exp.Column: _column,
        exp.Literal: _literal,
        exp.Boolean: _boolean,
        exp.Null: _null,
        exp.Paren: _paren,
        exp.Interval: _interval,
        exp.Cast: _cast,
        exp.Neg: _negative,
        exp.And: _and,
        exp.Or: _or,
        exp.Not: _not,
        exp.Is: _is,
        exp.Between: _between,
        exp.In: _in,
        exp.Like: _like,
        exp.Dot: _path,
        exp.DPipe: _concatenated,
        exp.Extract: _extract,
        exp.Case: _case,
        exp.Anonymous: lambda self, node: self._call(node),
        **dict.fromkeys(_COMPARISONS, _comparison),
        **dict.fromkeys(_ARITHMETIC, _arithmetic),
    }


class GroupedResolver(Resolver):
    """Expressions above the grouping. ``aggregates`` collects those that were met."""

    def __init__(self, scope: Scope, group_by: Sequence[Expression]) -> None:
        super().__init__(scope)
        self.group_by = list(group_by)
        self.aggregates: list[Aggregate] = []
        self._below = _ArgumentResolver(scope)

    def expression(self, node: exp.Expr) -> Expression:
        if not has_aggregate(node):
            plain = self._below.expression(node)
            if plain in self.group_by:
                return Column(plain.type, GROUPED, f"$group{self.group_by.index(plain)}")
            if isinstance(plain, Constant):
                return plain
            if isinstance(plain, Column | Field):
                raise self.ungrouped(plain, node)
        return super().expression(node)

    def column(self, plain: Column, node: exp.Expr) -> Expression:
        """A column of ``*``, which has no text of its own."""
        if plain in self.group_by:
            return Column(plain.type, GROUPED, f"$group{self.group_by.index(plain)}")
        raise self.ungrouped(plain, node)

    def ungrouped(self, column: Column | Field, node: exp.Expr) -> Exception:
        grouped = f"GROUP BY has {', '.join(map(str, self.group_by))}" if self.group_by else ""
        return self.scope.error(
            f"{column} is neither grouped nor aggregated" + (f"; {grouped}" if grouped else ""),
            span_of(node),
            f"add it to GROUP BY, or write for example MAX({column})",
        )

    def _aggregate(self, node: exp.Expr) -> Expression:
        found = self._below.aggregate(node)
        if found not in self.aggregates:
            self.aggregates.append(found)
        return Column(found.type, GROUPED, f"$aggregate{self.aggregates.index(found)}")


class _ArgumentResolver(Resolver):
    """Expressions below the grouping: group expressions and the arguments of aggregates."""

    def aggregate(self, node: exp.Expr) -> Aggregate:
        """The call ``node`` of an aggregate function."""
        name = str(node.this).upper()
        if len(node.expressions) != 1:
            raise TypeMismatch(f"{name} takes one argument, not {len(node.expressions)}")
        (part,) = node.expressions
        if isinstance(part, exp.Star):
            if name != "COUNT":
                raise TypeMismatch(f"{name}(*) does not exist", "only COUNT(*) counts rows")
            return Aggregate(pa.int64(), "count", None)
        return typed_aggregate(AGGREGATES[name], self.expression(part))

    def _aggregate(self, node: exp.Expr) -> Expression:
        raise self.scope.error("an aggregate cannot stand inside an aggregate", span_of(node))


def typed_aggregate(function: AggregateFunction, argument: Expression) -> Aggregate:
    """``function(argument)``, with the argument converted to what is added up or compared."""
    found = family(argument.type)
    if function == "count":
        counts_all = isinstance(argument, Constant) and argument.value is not None
        return Aggregate(pa.int64(), "count", None if counts_all else argument)
    name = function.upper()
    if function in ("min", "max"):
        if not types.is_comparable(argument.type):
            raise TypeMismatch(
                f"{name} needs values that can be compared; {argument} is {argument.type}"
            )
        kind = types.plain(argument.type)
        return Aggregate(kind, function, typed.convert(argument, kind))
    if found not in NUMBERS:
        raise TypeMismatch(f"{name} needs a number; {argument} is {argument.type}")
    kind = types.number_type(argument.type)
    if pa.types.is_decimal256(kind):
        raise TypeMismatch(f"{name} of {kind} is not supported", "CAST to DECIMAL(38, s) first")
    if function == "sum":
        return Aggregate(types.sum_type(kind), "sum", typed.convert(argument, kind))
    if not pa.types.is_decimal(kind) or argument.type == pa.uint64():
        kind = pa.float64()
    return Aggregate(types.average_type(kind), "avg", typed.convert(argument, kind))


def flattened(node: exp.Expr, connector: type[exp.Expr]) -> list[exp.Expr]:
    """The operands of nested ``connector`` nodes, in the order of the text, without recursion."""
    parts: list[exp.Expr] = []
    waiting = [node]
    while waiting:
        part = waiting.pop()
        inner = part
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if isinstance(inner, connector):
            waiting += [inner.expression, inner.this]
        else:
            parts.append(part)
    return parts


def name_of(node: exp.Expr) -> Name:
    """An identifier of the text."""
    return Name(node.name, span_of(node))


def qualifier_of(node: exp.Expr) -> Name | None:
    """The stream before the dot of a column, if there is one."""
    table = node.args.get("table")
    return name_of(table) if table is not None else None
