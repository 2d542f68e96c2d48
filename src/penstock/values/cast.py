"""Casts between Arrow types, as those of Spark SQL in ANSI mode.

Rounding is half up, a cast to an integer truncates, text may have spaces around it. Timestamps are
read, printed and cut in UTC and floored to coarser units; numbers are seconds. NaN and infinity
have no decimal and become NULL. What does not fit is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.values.arrow_kernel import (
    COMPARE,
    DIGITS_128,
    DIGITS_256,
    Kernel,
    fit_decimal,
    is_text,
    kernel_of,
    plain_cast,
    same,
    simple_type,
    then,
)
from penstock.values.arrow_layout import numbers_of, validity_of
from penstock.values.key_types import key_type_of

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_TRUE = ("t", "true", "y", "yes", "1")
_FALSE = ("f", "false", "n", "no", "0")


def caster(source: pa.DataType, target: pa.DataType) -> Kernel:
    """A function that casts arrays of type ``source`` to ``target``."""
    types = pa.types
    if source == target:
        return same
    if types.is_dictionary(source):
        return then(lambda values: values.dictionary_decode(), caster(source.value_type, target))
    if types.is_dictionary(target):
        return then(caster(source, target.value_type), plain_cast(target))
    if types.is_null(source):
        return lambda values: pa.nulls(len(values), target)
    if types.is_string_view(source) or types.is_binary_view(source):
        simple = simple_type(source)
        return then(plain_cast(simple), caster(simple, target))
    if is_text(source):
        return _from_text(source, target)
    if is_text(target):
        return _to_text(source, target)
    if types.is_boolean(target) and types.is_decimal(source):
        zero = pa.scalar(Decimal(0), source)
        return lambda values: COMPARE["<>"](values, zero)
    if types.is_float16(source):
        return then(plain_cast(pa.float32()), caster(pa.float32(), target))
    if types.is_decimal(target):
        return _to_decimal(source, target)
    if types.is_floating(target):
        return _to_float(source, target)
    if types.is_integer(target):
        return _to_integer(source, target)
    if types.is_timestamp(target):
        return _to_timestamp(source, target)
    if types.is_timestamp(source):
        return then(plain_cast(pa.timestamp(source.unit)), plain_cast(target))
    if types.is_temporal(target):
        return plain_cast(target, allow_time_truncate=True)
    return plain_cast(target)


def _to_integer(source: pa.DataType, target: pa.DataType) -> Kernel:
    if pa.types.is_floating(source):
        return then(kernel_of("trunc"), plain_cast(target))
    if pa.types.is_decimal(source):
        return then(plain_cast(_wider(source)), kernel_of("trunc"), plain_cast(target))
    if pa.types.is_timestamp(source):
        return then(_to_timestamp(source, pa.timestamp("s")), plain_cast(target))
    return plain_cast(target)


def _to_float(source: pa.DataType, target: pa.DataType) -> Kernel:
    if not pa.types.is_decimal(source):
        return plain_cast(target, allow_float_truncate=True)
    narrow = plain_cast(target) if target != pa.float64() else same
    if source.precision <= 15 and 0 <= source.scale <= 22:
        # Both are exact as doubles, so the one rounding of the division is the right one.
        # Arrow multiplies by an inexact power of ten instead.
        divisor = float(10**source.scale)
        encode = key_type_of(source).encode

        def divided(values: pa.Array) -> pa.Array:
            unscaled, validity = encode(values)
            return pa.array(unscaled / divisor, mask=None if validity is None else ~validity)

        return then(divided, narrow)
    return then(plain_cast(pa.string()), plain_cast(pa.float64()), narrow)


def _to_decimal(source: pa.DataType, target: pa.DataType) -> Kernel:
    types = pa.types
    if types.is_boolean(source):
        return then(plain_cast(pa.int8()), _to_decimal(pa.int8(), target))
    if types.is_integer(source):
        whole = pa.decimal128(20, 0)
        return then(plain_cast(whole), _to_decimal(whole, target))
    if types.is_floating(source):

        def from_double(values: pa.Array) -> pa.Array:
            doubles = values.to_pylist()
            decimals = (
                None if x is None or x - x != 0 else fit_decimal(Decimal(repr(x)), target)
                for x in doubles
            )
            return pa.array(decimals, target, size=len(doubles))

        return from_double
    if types.is_decimal(source) and target.scale < source.scale:
        options = pc.RoundOptions(target.scale, "half_towards_infinity")
        return then(plain_cast(_wider(source)), kernel_of("round", options), plain_cast(target))
    return plain_cast(target)


def _wider(type: pa.DataType) -> pa.DataType:
    """``type`` with a digit more, where there is one."""
    if type.precision < DIGITS_128:
        return pa.decimal128(type.precision + 1, type.scale)
    return pa.decimal256(min(type.precision + 1, DIGITS_256), type.scale)


def _to_timestamp(source: pa.DataType, target: pa.DataType) -> Kernel:
    types = pa.types
    if types.is_integer(source):
        seconds = pa.timestamp("s")
        return then(plain_cast(pa.int64()), plain_cast(seconds), _to_timestamp(seconds, target))
    if not types.is_timestamp(source):
        return then(plain_cast(pa.timestamp(target.unit)), plain_cast(target))
    factor = _PER_SECOND[source.unit] // _PER_SECOND[target.unit]
    if factor <= 1:
        return plain_cast(target)

    def rounded_down(values: pa.Array) -> pa.Array:
        ticks = numbers_of(values, np.int64, 8) // factor
        validity = validity_of(values)
        return pa.array(ticks, mask=None if validity is None else ~validity).view(target)

    return rounded_down


def _to_text(source: pa.DataType, target: pa.DataType) -> Kernel:
    types = pa.types
    if types.is_floating(source):
        shortest = np.float32 if types.is_float32(source) else float
        return _by_value(lambda x: _java_text(x, str(shortest(x))), target)
    if types.is_decimal(source) and not 0 <= source.scale <= 6:
        return _by_value(lambda x: f"{x:f}", target)
    if types.is_timestamp(source):
        return then(
            plain_cast(pa.timestamp(source.unit)),
            plain_cast(pa.string()),
            kernel_of(
                "replace_substring_regex", pc.ReplaceSubstringOptions(r"\.(\d*?)0*$", r".\1")
            ),
            kernel_of("utf8_rtrim", pc.TrimOptions(".")),
            caster(pa.string(), target),
        )
    return plain_cast(target)


def _java_text(value: float, shortest: str) -> str:
    """``value`` as Java prints it, given its shortest text in any notation."""
    if value - value != 0:
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = f"{Decimal(shortest):f}"
        return text if "." in text else text + ".0"
    sign, digits, _ = Decimal(shortest).normalize().as_tuple()
    mantissa = "".join(map(str, digits))
    exponent = Decimal(shortest).adjusted()
    return f"{'-' * sign}{mantissa[0]}.{mantissa[1:] or '0'}E{exponent}"


def _by_value(convert: Callable[[Any], Any], target: pa.DataType) -> Kernel:
    def run(values: pa.Array) -> pa.Array:
        converted = (None if v is None else convert(v) for v in values.to_pylist())
        return pa.array(converted, target, size=len(values))

    return run


def _from_text(source: pa.DataType, target: pa.DataType) -> Kernel:
    types = pa.types
    trim = kernel_of("utf8_trim_whitespace")
    if is_text(target) or types.is_binary(target) or types.is_large_binary(target):
        return plain_cast(target)
    if types.is_integer(target):
        without_plus = pc.ReplaceSubstringOptions(r"^\+(\d)", r"\1")
        return then(
            trim,
            _only_matching(r"^[+-]?\d+$", target),
            kernel_of("replace_substring_regex", without_plus),
            plain_cast(target),
        )
    if types.is_float16(target):
        return then(_from_text(source, pa.float32()), plain_cast(target))
    if types.is_decimal(target):
        return then(trim, _by_value(lambda text: _parse_decimal(text, target), target))
    if types.is_boolean(target):
        lower = kernel_of("utf8_lower")
        words = _only_matching(f"^({'|'.join(_TRUE + _FALSE)})$", target)
        true = kernel_of("is_in", pc.SetLookupOptions(pa.array(_TRUE, source)))
        null = pa.scalar(None, pa.bool_())

        def parse(values: pa.Array) -> pa.Array:
            return pc.if_else(values.is_valid(), true(values), null)

        return then(trim, lower, words, parse)
    if types.is_date(target):
        day = pc.ReplaceSubstringOptions(r"^(\d{4}-\d{2}-\d{2})[ T].*$", r"\1")
        return then(trim, kernel_of("replace_substring_regex", day), plain_cast(target))
    if types.is_timestamp(target):
        return then(trim, _parse_timestamps(target))
    if types.is_fixed_size_binary(target) or types.is_binary_view(target):
        return then(plain_cast(pa.binary()), plain_cast(target))
    return then(trim, plain_cast(target))


def _only_matching(pattern: str, target: pa.DataType) -> Kernel:
    matches = kernel_of("match_substring_regex", pc.MatchSubstringOptions(pattern))

    def check(values: pa.Array) -> pa.Array:
        matching = matches(values)
        if not pc.all(matching, min_count=0).as_py():
            first = values[matching.index(False).as_py()].as_py()
            raise pa.ArrowInvalid(f"'{first}' is not a value of type {target}")
        return values

    return check


def _parse_decimal(text: str, target: pa.DataType) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or "_" in text:
        raise pa.ArrowInvalid(f"'{text}' is not a value of type {target}")
    return fit_decimal(value, target)


def _parse_timestamps(target: pa.TimestampType) -> Kernel:
    """Text with a zone offset names an instant; text without one is taken to be in UTC."""
    unit = "ns" if target.unit == "ns" else "us"
    has_zone = kernel_of(
        "match_substring_regex", pc.MatchSubstringOptions(r":\d\d(\.\d*)?(Z|[+-]\d\d(:?\d\d)?)$")
    )
    zoned = then(plain_cast(pa.timestamp(unit, "UTC")), plain_cast(pa.timestamp(unit)))
    plain = plain_cast(pa.timestamp(unit))
    finish = _to_timestamp(pa.timestamp(unit), target)

    def parse(values: pa.Array) -> pa.Array:
        with_zone = has_zone(values)
        nothing = pa.scalar(None, values.type)
        return finish(
            pc.coalesce(
                zoned(pc.if_else(with_zone, values, nothing)),
                plain(pc.if_else(with_zone, nothing, values)),
            )
        )

    return parse
