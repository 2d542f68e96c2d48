"""Literals as typed constants, and arithmetic on constants.

A whole number is an int64 (a decimal when it does not fit), a number with a point is a decimal of
just as many digits, as in Spark, and one with an exponent a double. So ``x * 0.1`` is exact when x
is a decimal and a double when x is one.

A constant takes the type of what it stands beside whenever that type holds its value exactly: in
``A.x = 5`` with an int32 column the 5 is an int32 and the column needs no conversion.
"""

from __future__ import annotations

import math
import operator
import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from penstock.query.expression import ArithmeticOperator, ComparisonOperator, Constant
from penstock.query.types import MOST_DIGITS, Family, TypeMismatch, family

_EXACT = Context(prec=200)
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}

TRUE = Constant(pa.bool_(), True)
FALSE = Constant(pa.bool_(), False)
UNKNOWN = Constant(pa.bool_(), None)
"""NULL as the value of a condition."""


def number(text: str) -> Constant:
    """The number that ``text`` writes."""
    if text.isdecimal():
        if len(text.lstrip("0")) > MOST_DIGITS:
            raise TypeMismatch(f"a number has at most {MOST_DIGITS} digits")
        value = int(text)
        if value < 2**63:
            return Constant(pa.int64(), value)
        return Constant(pa.decimal128(len(str(value)), 0), Decimal(value))
    if "e" in text.lower():
        try:
            double = float(text)
        except ValueError:
            raise TypeMismatch(f"'{text}' is not a number") from None
        if math.isinf(double):
            raise TypeMismatch(f"{text} is larger than any double")
        return Constant(pa.float64(), double)
    whole, _, fraction = text.partition(".")
    whole = whole.lstrip("0")
    if not (whole + fraction + "0").isdecimal():
        raise TypeMismatch(f"'{text}' is not a number")
    if len(whole) + len(fraction) > MOST_DIGITS:
        raise TypeMismatch(f"a decimal has at most {MOST_DIGITS} digits", "write it as 1.5e0")
    precision = max(1, len(whole) + len(fraction))
    return Constant(pa.decimal128(precision, len(fraction)), Decimal(text))


def day(text: str) -> Constant:
    """``DATE 'text'``."""
    try:
        return Constant(pa.date32(), date.fromisoformat(text.strip()))
    except ValueError:
        raise TypeMismatch(f"'{text}' is not a date", "as in DATE '2026-01-31'") from None


def moment(text: str) -> Constant:
    """``TIMESTAMP 'text'``; with a zone in the text it is an instant, else a clock reading."""
    try:
        value = datetime.fromisoformat(text.strip())
    except ValueError:
        raise TypeMismatch(
            f"'{text}' is not a timestamp",
            "as in TIMESTAMP '2026-01-31 12:00:00' or TIMESTAMP '2026-01-31 12:00:00Z'",
        ) from None
    if re.search(r"[.,]\d{7}", text):
        raise TypeMismatch("a timestamp literal has at most six digits after the point")
    if value.tzinfo is None:
        return Constant(pa.timestamp("us"), value)
    try:
        return Constant(pa.timestamp("us", tz="UTC"), value.astimezone(UTC))
    except OverflowError:
        raise TypeMismatch(f"'{text}' is out of range") from None


def length(microseconds: int) -> Constant:
    """``INTERVAL …``."""
    unit = "us" if microseconds % 1_000 else "ms"
    return Constant(pa.duration(unit), timedelta(microseconds=microseconds))


def represent(constant: Constant, kind: pa.DataType) -> Constant | None:
    """``constant`` as a value of ``kind``, or None if that type cannot hold it exactly.

    A double stands for any number: that is how numbers meet doubles.
    """
    if constant.type == kind:
        return constant
    value = constant.value
    if value is not None:
        value = _converted(value, family(constant.type), kind)
        if value is None:
            return None
        try:
            pa.scalar(value, type=kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError):
            return None
    return Constant(kind, value)


def _converted(value: Any, source: Family, kind: pa.DataType) -> Any:
    target = family(kind)
    numbers = (Family.INTEGER, Family.DECIMAL)
    if target is Family.FLOAT and source in (*numbers, Family.FLOAT):
        double = float(value)
        if kind == pa.float64():
            return double
        single = struct.unpack("f", struct.pack("f", double))[0] if abs(double) < 1e38 else None
        return double if single == double and Decimal(double) == Decimal(value) else None
    if target is Family.INTEGER and source in numbers:
        return int(value) if int(value) == value else None
    if target is Family.DECIMAL and source in numbers:
        exact = Decimal(value)
        quantum = Decimal(1).scaleb(-kind.scale)
        scaled = exact.quantize(quantum, context=_EXACT)
        fits = len(scaled.as_tuple().digits) <= kind.precision
        return scaled if scaled == exact and fits else None
    if target is Family.TIMESTAMP and source is Family.DATE and kind.tz is None:
        return datetime(value.year, value.month, value.day)
    if target is Family.TIMESTAMP and source is Family.TIMESTAMP:
        same = (value.tzinfo is None) == (kind.tz is None)
        return value if same and value.microsecond % _MICROSECONDS[kind.unit] == 0 else None
    if target is Family.DURATION and source is Family.DURATION:
        whole = value % timedelta(microseconds=_MICROSECONDS[kind.unit])
        return None if whole else value
    return value if target is source else None


_COMPARISONS: dict[ComparisonOperator, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compared(symbol: ComparisonOperator, left: Constant, right: Constant) -> Constant:
    """``left symbol right`` for constants of one type. Literals are never NaN."""
    if left.value is None or right.value is None:
        return UNKNOWN
    return TRUE if _COMPARISONS[symbol](left.value, right.value) else FALSE


def computed(
    symbol: ArithmeticOperator, left: Constant, right: Constant, kind: pa.DataType
) -> Constant:
    """``left symbol right`` as a constant of ``kind``; overflow is a mismatch."""
    if left.value is None or right.value is None:
        return Constant(kind, None)
    a, b = left.value, right.value
    if symbol in ("/", "%") and b == 0:
        raise TypeMismatch("division by zero")
    value: Any
    try:
        if symbol == "+":
            value = _EXACT.add(a, b) if isinstance(a, Decimal) else a + b
        elif symbol == "-":
            value = _EXACT.subtract(a, b) if isinstance(a, Decimal) else a - b
        elif symbol == "*":
            value = _EXACT.multiply(a, b) if isinstance(a, Decimal) else a * b
        elif symbol == "/":
            value = a / b
        elif isinstance(a, int):
            value = int(math.copysign(1, a)) * (abs(a) % abs(b))
        else:
            value = _EXACT.remainder(a, b) if isinstance(a, Decimal) else math.fmod(a, b)
        if isinstance(value, Decimal):
            quantum = Decimal(1).scaleb(-kind.scale)
            value = value.quantize(quantum, context=_EXACT, rounding="ROUND_HALF_UP")
            if len(value.as_tuple().digits) > kind.precision:
                raise OverflowError
        pa.scalar(value, type=kind)
    except (OverflowError, pa.ArrowInvalid):
        raise TypeMismatch(f"the result does not fit {kind}") from None
    return Constant(kind, value)


def negated(constant: Constant, kind: pa.DataType) -> Constant:
    """``-constant`` as a constant of ``kind``."""
    if constant.value is None:
        return Constant(kind, None)
    return Constant(kind, -constant.value)


def width(constant: Constant) -> tuple[int, int]:
    """Precision and scale of a whole or decimal constant, as written."""
    if isinstance(constant.value, int):
        return len(str(abs(constant.value))), 0
    return constant.type.precision, constant.type.scale
