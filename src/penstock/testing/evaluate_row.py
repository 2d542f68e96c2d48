"""An expression on one row: the meaning of every node, in plain Python.

A row gives for each stream the values of its columns, as :mod:`penstock.testing.python_values`
makes them (so a timestamp is an integer in the unit of its type). The rules are Spark SQL's in
ANSI mode: three-valued logic, NaN equals NaN and is greater than every other number, -0.0 equals
0.0, ``%`` has the sign of the dividend, and overflow and division by zero are errors.
"""

from __future__ import annotations

import datetime
import functools
import math
import re
import struct
from collections.abc import Mapping
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.query.expression import (
    And,
    Arithmetic,
    Case,
    Cast,
    Column,
    Comparison,
    Constant,
    Expression,
    Field,
    Function,
    IsNull,
    Like,
    Negative,
    Not,
    Or,
)
from penstock.testing.python_values import python_values
from penstock.testing.row_functions import function

Row = Mapping[str, Mapping[str, Any]]
"""Stream alias to column name to value."""

WIDE = Context(prec=400)
"""Wide enough that no sum, product or cast of decimals rounds before it is meant to."""

_EPOCH = datetime.date(1970, 1, 1)
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def evaluate(expression: Expression, row: Row) -> Any:
    """The value of ``expression`` on ``row``; None is NULL."""
    match expression:
        case Column():
            return row[expression.stream][expression.name]
        case Constant():
            return constant_value(expression.value, expression.type)
        case Cast():
            return cast(evaluate(expression.operand, row), expression.operand.type, expression.type)
        case Arithmetic():
            left, right = evaluate(expression.left, row), evaluate(expression.right, row)
            return arithmetic(expression.operator, left, right, expression.type)
        case Negative():
            value = evaluate(expression.operand, row)
            return None if value is None else fit(negated(value), expression.type)
        case Comparison():
            left, right = evaluate(expression.left, row), evaluate(expression.right, row)
            return compare(expression.operator, left, right)
        case And():
            truths = [evaluate(operand, row) for operand in expression.operands]
            return False if False in truths else None if None in truths else True
        case Or():
            truths = [evaluate(operand, row) for operand in expression.operands]
            return True if True in truths else None if None in truths else False
        case Not():
            truth = evaluate(expression.operand, row)
            return None if truth is None else not truth
        case IsNull():
            return evaluate(expression.operand, row) is None
        case Like():
            value = evaluate(expression.operand, row)
            return None if value is None else like(value, expression.pattern)
        case Case():
            for condition, value in zip(expression.conditions, expression.values, strict=False):
                if evaluate(condition, row) is True:
                    return evaluate(value, row)
            return evaluate(expression.values[-1], row)
        case Field():
            struct = evaluate(expression.operand, row)
            return None if struct is None else struct[_field_position(expression)]
        case Function():
            arguments = [evaluate(argument, row) for argument in expression.arguments]
            return fit_function(expression, arguments)
        case _:
            raise TypeError(f"no rule for {type(expression).__name__}")


def _field_position(field: Field) -> int:
    return int(field.operand.type.get_field_index(field.name))


def fit_function(expression: Function, arguments: list[Any]) -> Any:
    """A call of a scalar function, in the type of ``expression``."""
    value = function(expression, arguments)
    if value is None or not isinstance(value, int | float | Decimal) or isinstance(value, bool):
        return value
    return fit(value, expression.type)


def compare(operator: str, left: Any, right: Any) -> bool | None:
    """``left operator right`` for two values of one type."""
    if left is None or right is None:
        return None
    order = three_way(left, right)
    return {
        "=": order == 0,
        "<>": order != 0,
        "<": order < 0,
        "<=": order <= 0,
        ">": order > 0,
        ">=": order >= 0,
    }[operator]


def three_way(left: Any, right: Any) -> int:
    """Negative, zero or positive as ``left`` is less than, equal to or greater than ``right``."""
    left_nan, right_nan = left != left, right != right
    if left_nan or right_nan:
        return int(left_nan) - int(right_nan)
    return int(left > right) - int(left < right)


def arithmetic(operator: str, left: Any, right: Any, kind: pa.DataType) -> Any:
    """``left operator right`` in the type ``kind``."""
    if left is None or right is None:
        return None
    if operator in "/%" and right == 0:
        raise PenstockError(f"division by zero: {left} {operator} {right}")
    if isinstance(left, Decimal):
        exact = {
            "+": WIDE.add,
            "-": WIDE.subtract,
            "*": WIDE.multiply,
            "/": WIDE.divide,
            "%": WIDE.remainder,
        }[operator]
        return fit(exact(left, right), kind)
    if operator == "%":
        return fit(_remainder(left, right), kind)
    if operator == "/":
        return fit(_quotient(left, right), kind)
    if operator == "*":
        return fit(left * right, kind)
    return fit(left + right if operator == "+" else left - right, kind)


def negated(value: Any) -> Any:
    """``-value``, not rounded to the digits of the decimal context, and with no decimal -0."""
    if not isinstance(value, Decimal):
        return -value
    return value.copy_negate() if value else value.copy_abs()


def fit(value: Any, kind: pa.DataType) -> Any:
    """``value`` rounded to ``kind`` if that is a float or a decimal; an error if it overflows."""
    if pa.types.is_decimal(kind):
        rounded = value.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, WIDE)
        if rounded.copy_abs() >= Decimal(10) ** (kind.precision - kind.scale):
            raise PenstockError(f"{value} does not fit into {kind}")
        return rounded
    if pa.types.is_float32(kind):
        try:
            return struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError:
            return math.copysign(math.inf, value)
    if pa.types.is_integer(kind):
        lowest = 0 if pa.types.is_unsigned_integer(kind) else -(2 ** (kind.bit_width - 1))
        if not lowest <= value < lowest + 2**kind.bit_width:
            raise PenstockError(f"integer overflow: {value} does not fit into {kind}")
    return value


def cast(value: Any, source: pa.DataType, target: pa.DataType) -> Any:
    """``value`` of type ``source`` as a value of type ``target``."""
    if value is None or source == target:
        return value
    is_text = pa.types.is_string(target) or pa.types.is_large_string(target)
    if pa.types.is_timestamp(target):
        if pa.types.is_timestamp(source):
            return value * _PER_SECOND[target.unit] // _PER_SECOND[source.unit]
        if isinstance(value, datetime.date):
            return (value - _EPOCH).days * 86_400 * _PER_SECOND[target.unit]
    elif pa.types.is_date(target):
        if pa.types.is_timestamp(source):
            return _EPOCH + datetime.timedelta(days=value // (86_400 * _PER_SECOND[source.unit]))
        if isinstance(value, datetime.date):
            return value
    elif isinstance(value, str) and not is_text:
        return _arrow_cast(value, source, target)
    elif pa.types.is_decimal(target):
        return fit(Decimal(str(value)) if isinstance(value, float) else Decimal(value), target)
    elif pa.types.is_floating(target):
        return fit(float(value), target)
    elif pa.types.is_boolean(target):
        return bool(value)
    elif pa.types.is_integer(target) and not isinstance(value, datetime.date):
        return fit(_truncated(value), target)
    elif is_text and isinstance(value, str):
        return value
    elif is_text and pa.types.is_boolean(source):
        return str(value).lower()
    elif is_text and (pa.types.is_integer(source) or isinstance(value, datetime.date)):
        return str(value)
    elif is_text and isinstance(value, Decimal):
        return f"{value:f}"
    elif isinstance(value, bytes) or pa.types.is_dictionary(source):
        return value
    return _arrow_cast(value, source, target)


def like(value: str, pattern: str) -> bool:
    r"""SQL's LIKE: ``%`` is anything, ``_`` one character, ``\`` takes the next one as it is."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    expression = "".join(wild.get(p, re.escape(p[-1])) for p in parts)
    return re.fullmatch(expression, value, re.DOTALL) is not None


@functools.lru_cache(maxsize=1024)
def constant_value(value: Any, kind: pa.DataType) -> Any:
    """A literal of the query as :func:`python_values` would give it."""
    return None if value is None else python_values(pa.array([value], kind))[0]


def _arrow_cast(value: Any, source: pa.DataType, target: pa.DataType) -> Any:
    """Reading and writing of text, which has no rule here: as Arrow does it."""
    try:
        return python_values(pa.array([value], source).cast(target))[0]
    except pa.ArrowInvalid as problem:
        raise PenstockError(f"{value!r} cannot be cast to {target}: {problem}") from None


def _quotient(left: Any, right: Any) -> Any:
    if isinstance(left, float):
        return left / right
    size = abs(left) // abs(right)
    return size if (left < 0) == (right < 0) else -size


def _remainder(left: Any, right: Any) -> Any:
    if isinstance(left, float):
        return math.nan if math.isinf(left) else math.fmod(left, right)
    size = abs(left) % abs(right)
    return size if left >= 0 else -size


def _truncated(value: Any) -> int:
    if isinstance(value, float) and not math.isfinite(value):
        raise PenstockError(f"integer overflow: {value}")
    if isinstance(value, Decimal):
        return int(value.to_integral_value(ROUND_DOWN, WIDE))
    return int(value)
