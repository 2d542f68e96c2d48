"""Typed expressions from parts: every conversion is put in here, and constants are folded.

Each function takes expressions that are typed already and gives one that keeps the promise of
:mod:`penstock.query.expression`: both sides of a comparison or of arithmetic have one type. Two
exceptions, where one type would make no sense: ``timestamp ± duration`` has a timestamp (the node's
type) and a duration of the same unit, and ``timestamp − timestamp`` is a duration with two
timestamps of that unit.

Negation is pushed down to the leaves, which three-valued logic allows: ``NOT (a OR b)`` falls into
two conjuncts, ``NOT a <> b`` can drive a hash join. ``x IN (…)`` is a disjunction of equalities.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.query import constant, types
from penstock.query.constant import FALSE, TRUE, UNKNOWN
from penstock.query.expression import (
    And,
    Arithmetic,
    ArithmeticOperator,
    Case,
    Cast,
    Comparison,
    ComparisonOperator,
    Constant,
    Expression,
    IsNull,
    Like,
    Negative,
    Not,
    Or,
)
from penstock.query.types import NUMBERS, Family, TypeMismatch, family

_OPPOSITE: dict[ComparisonOperator, ComparisonOperator] = {
    "=": "<>",
    "<>": "=",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
}


def convert(expression: Expression, kind: pa.DataType) -> Expression:
    """``expression`` as ``kind``; what has that type already stays as it is."""
    if expression.type == kind:
        return expression
    if isinstance(expression, Constant):
        exact = constant.represent(expression, kind)
        if exact is not None:
            return exact
    return Cast(kind, expression)


def cast(expression: Expression, kind: pa.DataType) -> Expression:
    """``CAST(expression AS kind)``."""
    if not types.can_cast(expression.type, kind):
        raise TypeMismatch(f"{shown(expression)} cannot be cast to {kind}")
    return convert(expression, kind)


def common(expressions: Sequence[Expression]) -> pa.DataType:
    """The type in which all of ``expressions`` are compared; constants adapt to the others."""
    first, *others = sorted(expressions, key=lambda e: isinstance(e, Constant))
    kind = types.plain(first.type)
    for other in others:
        if isinstance(other, Constant) and constant.represent(other, kind) is not None:
            continue
        try:
            kind = types.common_type(kind, other.type)
        except TypeMismatch as mismatch:
            raise TypeMismatch(
                f"{shown(first)} and {shown(other)} cannot be compared"
                + (f": {mismatch.message}" if mismatch.message else ""),
                mismatch.hint,
            ) from None
    if family(kind) is Family.OTHER:
        raise TypeMismatch(
            f"{shown(first)} cannot be compared", "it can be selected, and tested with IS NULL"
        )
    return kind


def compare(symbol: ComparisonOperator, left: Expression, right: Expression) -> Expression:
    """``left symbol right``."""
    if is_null_constant(left) and is_null_constant(right):
        return UNKNOWN
    try:
        kind = common((left, right))
    except TypeMismatch as mismatch:
        # in the order of the text, whichever side is a constant
        types_apart = f"{shown(left)} and {shown(right)} cannot be compared"
        reason = mismatch.message.partition("cannot be compared")[2]
        raise TypeMismatch(types_apart + reason, mismatch.hint or _field(left)) from None
    left, right = convert(left, kind), convert(right, kind)
    if isinstance(left, Constant) and isinstance(right, Constant):
        return constant.compared(symbol, left, right)
    if is_null_constant(left) or is_null_constant(right):
        return UNKNOWN
    return Comparison(pa.bool_(), symbol, left, right)


def _field(expression: Expression) -> str | None:
    """The hint to look inside of a struct, if ``expression`` is one."""
    if not pa.types.is_struct(expression.type) or not expression.type.num_fields:
        return None
    return f"compare its fields, such as {expression}.{expression.type.field(0).name}"


def arithmetic(symbol: ArithmeticOperator, left: Expression, right: Expression) -> Expression:
    """``left symbol right``."""
    families = family(left.type), family(right.type)
    if families == (Family.NULL, Family.NULL):
        return Constant(pa.null(), None)
    if Family.NULL in families:
        other = right if families[0] is Family.NULL else left
        if family(other.type) in NUMBERS:
            kind = pa.float64() if symbol == "/" else types.number_type(other.type)
            return Constant(kind, None)
    if set(families) <= NUMBERS:
        return _number_arithmetic(symbol, left, right)
    if symbol in ("+", "-"):
        found = _time_arithmetic(symbol, left, right)
        if found is not None:
            return found
    hint = None
    if Family.STRING in families and set(families) & NUMBERS:
        hint = "CAST the string to a number: CAST(x AS DOUBLE)"
    elif Family.DURATION in families and Family.INTEGER in families:
        hint = "an integer counts in its own unit: add the number, for example + 5000"
    elif Family.TIMESTAMP in families and set(families) & NUMBERS:
        hint = "add a length of time to a timestamp: + INTERVAL 5 SECONDS"
    raise TypeMismatch(f"{symbol} is not defined for {shown(left)} and {shown(right)}", hint)


def _number_arithmetic(
    symbol: ArithmeticOperator, left: Expression, right: Expression
) -> Expression:
    kinds = types.plain(left.type), types.plain(right.type)
    if symbol == "/" or any(family(kind) is Family.FLOAT for kind in kinds):
        kind = pa.float64()
    elif any(family(k) is Family.DECIMAL or k == pa.uint64() for k in kinds):
        sizes = []
        for side, side_kind in zip((left, right), kinds, strict=True):
            known = isinstance(side, Constant) and side.value is not None
            sizes.append(constant.width(side) if known else types.digits(side_kind))  # type: ignore[arg-type]
        if any(p > types.MOST_DIGITS for p, _ in sizes):
            raise TypeMismatch(
                f"{symbol} is not defined for decimals of more than {types.MOST_DIGITS} digits",
                "CAST to DECIMAL(38, s) or DOUBLE first",
            )
        kind = types.arithmetic_decimal(symbol, sizes[0], sizes[1])
    else:
        kind = pa.int64()
    left, right = convert(left, kind), convert(right, kind)
    if isinstance(left, Constant) and isinstance(right, Constant):
        return constant.computed(symbol, left, right, kind)
    return Arithmetic(kind, symbol, left, right)


def _time_arithmetic(
    symbol: ArithmeticOperator, left: Expression, right: Expression
) -> Expression | None:
    if symbol == "+" and family(right.type) in (Family.TIMESTAMP, Family.DATE):
        left, right = right, left
    families = family(left.type), family(right.type)
    if families[0] is Family.DATE:
        unit = right.type.unit if families[1] in (Family.TIMESTAMP, Family.DURATION) else "s"
        left = convert(left, pa.timestamp(unit))
    if families[1] is Family.DATE and symbol == "-":
        right = convert(
            right, pa.timestamp(left.type.unit if family(left.type) in _MOMENTS else "s")
        )
    families = family(left.type), family(right.type)
    if families == (Family.DURATION, Family.DURATION):
        kind = operand = pa.duration(types.finest(left.type.unit, right.type.unit))
        left, right = convert(left, kind), convert(right, operand)
    elif families == (Family.TIMESTAMP, Family.DURATION):
        unit = types.finest(left.type.unit, right.type.unit)
        kind = pa.timestamp(unit, tz=left.type.tz)
        left, right = convert(left, kind), convert(right, pa.duration(unit))
    elif families == (Family.TIMESTAMP, Family.TIMESTAMP) and symbol == "-":
        try:
            operand = types.common_type(left.type, right.type)
        except TypeMismatch as mismatch:
            raise TypeMismatch(
                f"{shown(right)} cannot be subtracted from {shown(left)}: {mismatch.message}",
                mismatch.hint,
            ) from None
        kind = pa.duration(operand.unit)
        left, right = convert(left, operand), convert(right, operand)
    else:
        return None
    if isinstance(left, Constant) and isinstance(right, Constant):
        return constant.computed(symbol, left, right, kind)
    return Arithmetic(kind, symbol, left, right)


_MOMENTS = (Family.TIMESTAMP, Family.DURATION)


def negative(operand: Expression) -> Expression:
    """``-operand``."""
    found = family(operand.type)
    if found is Family.NULL:
        return operand
    if found is Family.DURATION:
        kind = operand.type
    elif found in NUMBERS:
        kind = types.number_type(operand.type)
    else:
        raise TypeMismatch(f"- is not defined for {shown(operand)}")
    if isinstance(operand, Constant):
        if operand.value == 2**63:
            return Constant(pa.int64(), -(2**63))
        return constant.negated(operand, kind)
    return Negative(kind, convert(operand, kind))


def condition(operand: Expression, where: str) -> Expression:
    """``operand`` as a truth value, or a mismatch that names the clause ``where``."""
    if is_null_constant(operand):
        return UNKNOWN
    if family(operand.type) is not Family.BOOLEAN:
        hint = "compare it with something, for example x <> 0" if _is_number(operand) else None
        raise TypeMismatch(f"{where} needs a condition; {shown(operand)} is none", hint)
    return convert(operand, pa.bool_())


def both(operands: Sequence[Expression]) -> Expression:
    """The conjunction: nested ones are one, what is true anyway goes."""
    flat: list[Expression] = []
    for operand in operands:
        flat += operand.operands if isinstance(operand, And) else (operand,)
    kept = [o for o in dict.fromkeys(flat) if o != TRUE]
    if FALSE in kept:
        return FALSE
    if len(kept) < 2:
        return kept[0] if kept else TRUE
    return And(pa.bool_(), tuple(kept))


def either(operands: Sequence[Expression]) -> Expression:
    """The disjunction: nested ones are one, what is false anyway goes."""
    flat: list[Expression] = []
    for operand in operands:
        flat += operand.operands if isinstance(operand, Or) else (operand,)
    kept = [o for o in dict.fromkeys(flat) if o != FALSE]
    if TRUE in kept:
        return TRUE
    if len(kept) < 2:
        return kept[0] if kept else FALSE
    return Or(pa.bool_(), tuple(kept))


def negation(operand: Expression) -> Expression:
    """``NOT operand``, with the negation at the leaves."""
    if isinstance(operand, Constant):
        return operand if operand.value is None else (FALSE if operand.value else TRUE)
    if isinstance(operand, Not):
        return operand.operand
    if isinstance(operand, Comparison):
        opposite = _OPPOSITE[operand.operator]
        return Comparison(operand.type, opposite, operand.left, operand.right)
    if isinstance(operand, And):
        return either([negation(o) for o in operand.operands])
    if isinstance(operand, Or):
        return both([negation(o) for o in operand.operands])
    return Not(pa.bool_(), operand)


def is_null(operand: Expression) -> Expression:
    """``operand IS NULL``."""
    if isinstance(operand, Constant):
        return TRUE if operand.value is None else FALSE
    return IsNull(pa.bool_(), operand)


def like(operand: Expression, pattern: Expression) -> Expression:
    """``operand LIKE pattern``."""
    if is_null_constant(operand) or is_null_constant(pattern):
        return UNKNOWN
    if not isinstance(pattern, Constant) or family(pattern.type) is not Family.STRING:
        raise TypeMismatch("LIKE needs a pattern in quotes", "for example A.name LIKE 'a%'")
    if family(operand.type) is not Family.STRING:
        raise TypeMismatch(
            f"LIKE needs a string; {shown(operand)} is none", "CAST(x AS STRING) makes it one"
        )
    return Like(pa.bool_(), convert(operand, pa.string()), str(pattern.value))


def case(
    conditions: Sequence[Expression], values: Sequence[Expression], otherwise: Expression
) -> Expression:
    """``CASE WHEN … THEN … ELSE otherwise END``; branches that are never taken go."""
    taken: list[tuple[Expression, Expression]] = []
    for test, value in zip(conditions, values, strict=True):
        if test == TRUE:
            otherwise = value
            break
        if not isinstance(test, Constant):
            taken.append((test, value))
    kind = alike([*values, otherwise])
    if not taken:
        return convert(otherwise, kind)
    results = [convert(value, kind) for value in (*(value for _, value in taken), otherwise)]
    return Case(kind, tuple(test for test, _ in taken), tuple(results))


def alike(expressions: Sequence[Expression]) -> pa.DataType:
    """The type that holds any of ``expressions``; of one type, that may be a nested one."""
    known = [e for e in expressions if not is_null_constant(e)]
    kinds = {types.plain(e.type) for e in known}
    if len(kinds) < 2:
        return kinds.pop() if kinds else pa.null()
    return common(known)


def is_null_constant(expression: Expression) -> bool:
    """Whether ``expression`` is the literal NULL."""
    return isinstance(expression, Constant) and expression.value is None


def _is_number(expression: Expression) -> bool:
    return family(expression.type) in NUMBERS


def shown(expression: Expression) -> str:
    """``expression`` with its type, for an error message."""
    return f"{expression} ({expression.type})"
