"""Scalar functions on the values of one row, in plain Python: the twin of the kernels on columns.

Values are those of :mod:`penstock.testing.python_values`: a timestamp is an integer in the unit of
its type, a date a ``datetime.date``.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.query.expression import Function

_WIDE = Context(prec=400)
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_EPOCH = datetime.date(1970, 1, 1)
_DAY = 86_400


def function(call: Function, arguments: list[Any]) -> Any:
    """The value of ``call`` on ``arguments``; None is NULL."""
    name = call.name
    if name == "coalesce":
        return next((a for a in arguments if a is not None), None)
    if name in ("greatest", "least"):
        known = [a for a in arguments if a is not None]
        best = max if name == "greatest" else min
        return best(known, key=_order) if known else None
    if any(argument is None for argument in arguments):
        return None
    if name in _TEXT:
        return _TEXT[name](*arguments)
    if name in _NUMBER:
        return _NUMBER[name](*arguments)
    if name == "date_trunc":
        unit, moment = arguments
        return _truncated(unit, moment, _PER_SECOND[call.type.unit])
    return _part(name, arguments[0], call.arguments[0].type)


def _order(value: Any) -> tuple[bool, Any]:
    """NaN is greater than every other number."""
    nan = value != value
    return nan, 0 if nan else value


def _substring(text: str, position: int, length: int) -> str:
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    return text[max(start, 0) : max(start + length, 0)]


_TEXT: dict[str, Callable[..., Any]] = {
    "length": len,
    "lower": str.lower,
    "upper": str.upper,
    "trim": lambda text: text.strip(" "),
    "ltrim": lambda text: text.lstrip(" "),
    "rtrim": lambda text: text.rstrip(" "),
    "concat": lambda *texts: "".join(texts),
    "substring": _substring,
    "replace": lambda text, old, new: text.replace(old, new),
    "startswith": str.startswith,
    "endswith": str.endswith,
    "contains": lambda text, part: part in text,
}


def _rounded(value: Any, places: int) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return value
    unit = Decimal(1).scaleb(-places)
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    rounded = exact.quantize(unit, ROUND_HALF_UP, _WIDE)
    return rounded if isinstance(value, Decimal) else type(value)(rounded)


def _whole(rounding: str) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        if isinstance(value, float):
            if not math.isfinite(value):
                raise PenstockError(f"{value} is no whole number")
            return int(Decimal(value).to_integral_value(rounding))
        return value.quantize(Decimal(1), rounding, _WIDE)

    return run


def _absolute(value: Any) -> Any:
    return value.copy_abs() if isinstance(value, Decimal) else abs(value)


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        odd = exponent % 2 == 1
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        if base == 0.0:
            odd = exponent % 2 == 1
            return math.copysign(math.inf, base) if odd else math.inf
        return math.nan


def _exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _sign(value: float) -> float:
    return value if value != value or value == 0 else math.copysign(1.0, value)


_NUMBER: dict[str, Callable[..., Any]] = {
    "abs": _absolute,
    "floor": _whole(ROUND_FLOOR),
    "ceil": _whole(ROUND_CEILING),
    "round": _rounded,
    "sqrt": lambda value: math.nan if value < 0 else math.sqrt(value),
    "exp": _exponential,
    "ln": lambda value: None if value <= 0 else math.log(value),
    "log10": lambda value: None if value <= 0 else math.log10(value),
    "power": _power,
    "sign": _sign,
}


def _truncated(unit: str, moment: int, per_second: int) -> int:
    """The start of the ``unit`` that ``moment`` (ticks, ``per_second`` of them) lies in."""
    fixed = {
        "microsecond": per_second // 1_000_000,
        "millisecond": per_second // 1_000,
        "second": per_second,
        "minute": 60 * per_second,
        "hour": 3_600 * per_second,
        "day": _DAY * per_second,
    }
    if unit in fixed:
        return moment - moment % max(fixed[unit], 1)
    day = _EPOCH + datetime.timedelta(days=moment // (_DAY * per_second))
    if unit == "week":
        start = day - datetime.timedelta(days=day.weekday())
    elif unit == "month":
        start = day.replace(day=1)
    elif unit == "quarter":
        start = day.replace(month=day.month - (day.month - 1) % 3, day=1)
    else:
        start = day.replace(month=1, day=1)
    return (start - _EPOCH).days * _DAY * per_second


def _part(name: str, moment: Any, kind: pa.DataType) -> Any:
    if isinstance(moment, datetime.date):
        day, within, per_second = moment, 0, 1
    else:
        per_second = _PER_SECOND[kind.unit]
        days, within = divmod(moment, _DAY * per_second)
        day = _EPOCH + datetime.timedelta(days=days)
    if name == "seconds":
        microseconds = within % (60 * per_second) * 1_000_000 // per_second
        return Decimal(microseconds).scaleb(-6)
    return {
        "year": day.year,
        "quarter": (day.month + 2) // 3,
        "month": day.month,
        "week": day.isocalendar().week,
        "day": day.day,
        "dayofweek": day.isoweekday() % 7 + 1,
        "dayofyear": day.timetuple().tm_yday,
        "hour": within // (3_600 * per_second),
        "minute": within // (60 * per_second) % 60,
        "second": within // per_second % 60,
    }[name]
