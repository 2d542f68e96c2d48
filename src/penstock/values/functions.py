"""Scalar functions on whole columns, by Arrow's kernels where they say what Spark SQL says.

Where they do not:

- LOWER and UPPER map whole strings (``ß`` becomes ``SS``), so text beyond ASCII goes to Python.
- ROUND of a double to some places rounds the decimal that its shortest text names, half away from
  zero: 2.675 becomes 2.68, though the double is a little less. Value by value, and slow, as the
  cast of a double to a decimal is.
- LN and LOG10 of what is not positive are NULL. SQRT of a negative number is NaN in both.
- GREATEST takes NaN for the greatest number; Arrow's would only prefer it to NULL.
- A moment is cut and taken apart in UTC, whatever zone its type names.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import InvariantBroken
from penstock.query.expression import Constant, Expression, Function
from penstock.values.arrow_kernel import (
    DIGITS_128,
    WIDE,
    Kernel,
    is_text,
    kernel_of,
    pair_kernel_of,
    same,
    simple_type,
    then,
)
from penstock.values.cast import caster

_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}

_PARTS = {
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "week": "iso_week",
    "day": "day",
    "dayofyear": "day_of_year",
    "hour": "hour",
    "minute": "minute",
    "second": "second",
}
"""Arrow's names for the parts of a moment."""

_SEARCHES = {
    "startswith": "starts_with",
    "endswith": "ends_with",
    "contains": "match_substring",
}


def function(node: Function) -> Callable[..., pa.Array]:
    """A function on the arguments of ``node``, each an array or a scalar."""
    name = node.name
    types = [simple_type(argument.type) for argument in node.arguments]
    if name == "abs":
        unsigned = pa.types.is_unsigned_integer(types[0])
        return same if unsigned else kernel_of("abs_checked")
    if name == "length":
        kernel = "utf8_length" if is_text(types[0]) else "binary_length"
        counted = pa.int64() if types[0] in (pa.large_string(), pa.large_binary()) else pa.int32()
        return then(kernel_of(kernel), caster(counted, node.type))
    if name in ("lower", "upper"):
        return then(_change_case(name), caster(types[0], node.type))
    if name in ("trim", "ltrim", "rtrim"):
        return kernel_of(f"utf8_{name}", pc.TrimOptions(" "))
    if name == "concat":
        join = pc.get_function("binary_join_element_wise").call
        return lambda *texts: join([*texts, pa.scalar("", pa.string())])
    if name == "substring":
        return _first(_substring(_value(node, 1), _value(node, 2)))
    if name == "replace":
        options = pc.ReplaceSubstringOptions(_value(node, 1), _value(node, 2))
        return _first(kernel_of("replace_substring", options))
    if name in _SEARCHES:
        return _first(kernel_of(_SEARCHES[name], pc.MatchSubstringOptions(_value(node, 1))))
    if name in ("greatest", "least"):
        return _extreme(name, node.type)
    if name in ("floor", "ceil"):
        wide = _one_digit_more(types[0])
        return then(caster(types[0], wide), kernel_of(name), caster(wide, node.type))
    if name == "round":
        return _first(_round(types[0], node.type, _value(node, 1)))
    if name in ("sqrt", "exp", "sign"):
        return then(kernel_of(name), caster(pa.float64(), node.type))
    if name == "power":
        return pair_kernel_of("power")
    if name in ("ln", "log10"):
        return _logarithm(name)
    if name == "date_trunc":
        options = pc.RoundTemporalOptions(unit=_value(node, 0))
        floor = then(_in_utc(types[1]), kernel_of("floor_temporal", options), _cast_to(node.type))
        return lambda unit, values: floor(values)
    if name in _PARTS:
        return then(_in_utc(types[0]), kernel_of(_PARTS[name]), _cast_to(node.type))
    if name == "dayofweek":
        options = pc.DayOfWeekOptions(count_from_zero=False, week_start=7)
        return then(_in_utc(types[0]), kernel_of("day_of_week", options), _cast_to(node.type))
    if name == "seconds":
        return _seconds(types[0], node.type)
    raise InvariantBroken(f"no rule for the function {name}")


def _value(node: Function, position: int) -> Any:
    """The argument at ``position``, which the parser has seen to be a constant."""
    argument: Expression = node.arguments[position]
    if not isinstance(argument, Constant):
        raise InvariantBroken(f"{argument} in {node} is no constant")
    return argument.value


def _first(kernel: Kernel) -> Callable[..., pa.Array]:
    """``kernel`` on the first argument; the others are constants that it knows."""
    return lambda values, *constants: kernel(values)


def _cast_to(target: pa.DataType) -> Kernel:
    return kernel_of("cast", pc.CastOptions(target_type=target))


# -- text ------------------------------------------------------------------------------------------


def _change_case(name: str) -> Kernel:
    """Full case mapping, as Java and Python have it; Arrow's own leaves ``ß`` one letter."""
    ascii_only = kernel_of("string_is_ascii")
    change_ascii = kernel_of(f"ascii_{name}")
    change = str.lower if name == "lower" else str.upper

    def run(values: pa.Array) -> pa.Array:
        if pc.all(ascii_only(values), min_count=0).as_py():
            return change_ascii(values)
        texts = (None if text is None else change(text) for text in values.to_pylist())
        return pa.array(texts, values.type, size=len(values))

    return run


def _substring(position: int, length: int) -> Kernel:
    """``length`` characters from ``position`` on; from the end if that is negative.

    A negative position before the beginning uses up some of the length there.
    """
    start = position - 1 if position > 0 else position
    stop: int | None = start + length
    if length == 0:
        start = stop = 0
    elif position < 0 and start + length >= 0:
        stop = None
    return kernel_of("utf8_slice_codeunits", pc.SliceOptions(start, stop))


# -- numbers ---------------------------------------------------------------------------------------


def _extreme(name: str, type: pa.DataType) -> Callable[..., pa.Array]:
    """The greatest or least of the arguments that are not NULL."""
    known = _with_extremes(type)
    if known != type:
        there, back = _cast_to(known), _cast_to(type)
        compared = _extreme(name, known)
        return lambda *values: back(compared(*(there(value) for value in values)))
    which = "max_element_wise" if name == "greatest" else "min_element_wise"
    call = pc.get_function(which).call
    options = pc.ElementWiseAggregateOptions(skip_nulls=True)
    if name == "least" or not pa.types.is_floating(type):
        return lambda *values: call(list(values), options)
    either = pair_kernel_of("or_kleene")
    is_nan = kernel_of("is_nan")
    choose = pc.get_function("if_else").call
    nan = pa.scalar(float("nan"), type)

    def run(*values: Any) -> pa.Array:
        greatest = call(list(values), options)
        found = is_nan(values[0])
        for value in values[1:]:
            found = either(found, is_nan(value))
        return choose([pc.fill_null(found, False), nan, greatest])

    return run


def _with_extremes(type: pa.DataType) -> pa.DataType:
    """The type in place of which Arrow knows the greatest and least of some values."""
    if pa.types.is_boolean(type):
        return pa.int8()
    return pa.timestamp(type.unit) if pa.types.is_timestamp(type) else type


def _one_digit_more(type: pa.DataType, digits: int = 0) -> pa.DataType:
    """A decimal in which 99 can become 100, and that has ``digits`` at least."""
    if not pa.types.is_decimal(type):
        return type
    digits = max(type.precision + 1, digits)
    make = pa.decimal128 if digits <= DIGITS_128 else pa.decimal256
    return make(digits, type.scale)


def _round(source: pa.DataType, target: pa.DataType, places: int) -> Kernel:
    """Half away from zero, to ``places`` digits after the point."""
    options = pc.RoundOptions(ndigits=places, round_mode="half_towards_infinity")
    if pa.types.is_floating(source):
        return kernel_of("round", options) if places == 0 else _round_doubles(target, places)
    exact = source if pa.types.is_decimal(source) else pa.decimal128(19, 0)
    wide = _one_digit_more(exact, exact.scale - places + 1)
    return then(caster(source, wide), kernel_of("round", options), caster(wide, target))


def _round_doubles(target: pa.DataType, places: int) -> Kernel:
    unit = Decimal(1).scaleb(-places)

    def rounded(value: float | None) -> float | None:
        if value is None or not math.isfinite(value):
            return value
        return float(Decimal(repr(value)).quantize(unit, ROUND_HALF_UP, WIDE))

    return lambda values: pa.array(map(rounded, values.to_pylist()), target, size=len(values))


def _logarithm(name: str) -> Kernel:
    logarithm = kernel_of(name)
    choose = pc.get_function("if_else").call
    zero, null = pa.scalar(0.0), pa.scalar(None, pa.float64())
    not_positive = pair_kernel_of("less_equal")
    return lambda values: choose([not_positive(values, zero), null, logarithm(values)])


# -- time ------------------------------------------------------------------------------------------


def _in_utc(type: pa.DataType) -> Kernel:
    if pa.types.is_timestamp(type) and type.tz not in (None, "UTC"):
        return _cast_to(pa.timestamp(type.unit, tz="UTC"))
    return same


def _seconds(type: pa.DataType, target: pa.DataType) -> Kernel:
    """Seconds of the minute with their microseconds."""
    per_minute = 60 * _TICKS[type.unit]

    def run(values: pa.Array) -> pa.Array:
        ticks = values.cast(pa.int64())
        within = np.mod(ticks.fill_null(0).to_numpy(), per_minute)
        microseconds = within * 1_000_000 // _TICKS[type.unit]
        whole = pa.array(microseconds).cast(pa.decimal128(19, 0))
        scaled = pc.multiply(whole, pa.scalar(Decimal("0.000001"), pa.decimal128(7, 6)))
        return pc.if_else(values.is_valid(), scaled.cast(target), pa.scalar(None, target))

    return run
