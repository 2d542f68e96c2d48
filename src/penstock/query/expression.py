"""Typed expressions over the columns of streams.

Every node carries its Arrow type. The parser makes all conversions explicit: both sides of a
:class:`Comparison` or :class:`Arithmetic` have one type, with a :class:`Cast` where the text had
none. So an evaluator needs no rules of its own about types, and two evaluators (the engine's on
columns, the oracle's on single rows) can be compared.

Meaning follows Spark SQL: NULL makes a comparison NULL, logic is three-valued, NaN equals NaN and
is greater than every other number, -0.0 equals 0.0, ``/`` gives a double (or a decimal), integer
overflow and division by zero are errors.

After grouping, a select item refers to the columns ``$group0``, ``$group1``, … and ``$aggregate0``,
… of the pseudo stream :data:`GROUPED`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from typing import Literal as OneOf

import pyarrow as pa

from penstock.query.window import duration

GROUPED = ""
"""The stream name of columns that exist only after grouping."""

ComparisonOperator = OneOf["=", "<>", "<", "<=", ">", ">="]
ArithmeticOperator = OneOf["+", "-", "*", "/", "%"]
AggregateFunction = OneOf["count", "sum", "avg", "min", "max"]


@dataclass(frozen=True, slots=True)
class Expression:
    """Base of all nodes. ``type`` is the Arrow type of the value."""

    type: pa.DataType

    def children(self) -> tuple[Expression, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Column(Expression):
    """A column of the stream known in the query as ``stream`` (its alias)."""

    stream: str
    name: str

    def __str__(self) -> str:
        return f"{self.stream}.{self.name}" if self.stream else self.name


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """A literal; ``value`` is a plain Python value, None for NULL."""

    value: Any

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + "'"
        if isinstance(self.value, bool):
            return str(self.value).upper()
        if isinstance(self.value, datetime):
            return f"TIMESTAMP '{self.value}'"
        if isinstance(self.value, date):
            return f"DATE '{self.value}'"
        if isinstance(self.value, timedelta):
            microseconds = self.value // timedelta(microseconds=1)
            if microseconds % 1_000:
                return f"INTERVAL {microseconds} MICROSECONDS"
            return f"INTERVAL {duration(microseconds // 1_000)}"
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """``operand`` converted to ``type``."""

    operand: Expression

    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        return f"CAST({self.operand} AS {self.type})"


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    """``left operator right``; both sides have the node's own type.

    Except with time: ``timestamp ± duration`` is a timestamp and ``timestamp − timestamp`` a
    duration. Operands and answer then have one unit.
    """

    operator: ArithmeticOperator
    left: Expression
    right: Expression

    def children(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    def __str__(self) -> str:
        return f"({self.left} {self.operator} {self.right})"


@dataclass(frozen=True, slots=True)
class Negative(Expression):
    """``-operand``."""

    operand: Expression

    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        return f"-{self.operand}"


@dataclass(frozen=True, slots=True)
class Comparison(Expression):
    """``left operator right``; both sides have one type, the node's type is bool."""

    operator: ComparisonOperator
    left: Expression
    right: Expression

    def children(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@dataclass(frozen=True, slots=True)
class And(Expression):
    """Three-valued conjunction of two or more operands."""

    operands: tuple[Expression, ...]

    def children(self) -> tuple[Expression, ...]:
        return self.operands

    def __str__(self) -> str:
        return "(" + " AND ".join(map(str, self.operands)) + ")"


@dataclass(frozen=True, slots=True)
class Or(Expression):
    """Three-valued disjunction of two or more operands."""

    operands: tuple[Expression, ...]

    def children(self) -> tuple[Expression, ...]:
        return self.operands

    def __str__(self) -> str:
        return "(" + " OR ".join(map(str, self.operands)) + ")"


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """Three-valued negation."""

    operand: Expression

    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        return f"NOT {self.operand}"


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    """``operand IS NULL``: never NULL itself."""

    operand: Expression

    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        return f"{self.operand} IS NULL"


@dataclass(frozen=True, slots=True)
class Like(Expression):
    """``operand LIKE pattern`` with a constant pattern (``%`` and ``_``)."""

    operand: Expression
    pattern: str

    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        return f"{self.operand} LIKE {Constant(pa.string(), self.pattern)}"


@dataclass(frozen=True, slots=True)
class Field(Expression):
    """The field ``name`` of a struct; NULL where the struct is."""

    operand: Expression
    name: str

    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        return f"{self.operand}.{self.name}"


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """``CASE WHEN condition THEN value … ELSE otherwise END``.

    The value of the first condition that is true; all values have the node's own type.
    """

    conditions: tuple[Expression, ...]
    values: tuple[Expression, ...]
    """As many as conditions, and ``otherwise`` after them."""

    def children(self) -> tuple[Expression, ...]:
        return (*self.conditions, *self.values)

    def __str__(self) -> str:
        branches = zip(self.conditions, self.values, strict=False)
        written = " ".join(f"WHEN {condition} THEN {value}" for condition, value in branches)
        return f"CASE {written} ELSE {self.values[-1]} END"


@dataclass(frozen=True, slots=True)
class Function(Expression):
    """A scalar function by its name in lower case; see :mod:`penstock.query.functions`."""

    name: str
    arguments: tuple[Expression, ...]

    def children(self) -> tuple[Expression, ...]:
        return self.arguments

    def __str__(self) -> str:
        return f"{self.name.upper()}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``function(argument)`` over the results of a group; ``argument`` is None for COUNT(*).

    ``type`` is the type of the answer: int64 for COUNT, int64 / double / decimal for SUM, double
    for AVG (decimal for AVG of decimals), the argument's type for MIN and MAX. NULL arguments are
    skipped; SUM, AVG, MIN and MAX of no values are NULL.
    """

    type: pa.DataType
    function: AggregateFunction
    argument: Expression | None

    def __str__(self) -> str:
        return f"{self.function.upper()}({'*' if self.argument is None else self.argument})"


def walk(expression: Expression) -> Iterator[Expression]:
    """``expression`` and everything below it, parents first."""
    yield expression
    for child in expression.children():
        yield from walk(child)


def columns_of(expression: Expression) -> tuple[Column, ...]:
    """The distinct columns in ``expression``, in the order of their first occurrence."""
    return tuple(dict.fromkeys(n for n in walk(expression) if isinstance(n, Column)))


def streams_of(expression: Expression) -> frozenset[str]:
    """The aliases of the streams that ``expression`` reads."""
    return frozenset(n.stream for n in walk(expression) if isinstance(n, Column))
