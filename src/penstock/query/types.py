"""Type families: which values can be compared, and in which common type.

Arrow has many types for one kind of value. They fall into families, and two values can be compared
if their families agree. The rules follow Spark SQL, with two departures that keep answers exact:

- Integers of different width meet in int64; ``uint64`` with a signed integer in decimal(20, 0).
- Decimals meet in a type that holds both *exactly*: where Spark would drop digits to stay within
  38, the common type is a decimal256.

Integer with decimal gives a decimal, anything with a float a double. Strings and binaries have one
plain form each (``string``, ``binary``), and dictionaries the form of their values. Timestamps meet
in the finest unit; one with a time zone is an instant, one without is a clock reading, and the two
do not compare. A date is the midnight it begins with.

Arithmetic: integers give int64, ``/`` always gives a double (also for decimals, where Spark would
give a decimal), decimals follow Spark's precision rules with the scale cut to fit 38 digits. The
difference of two timestamps is a duration, which can be added to a timestamp.
"""

from __future__ import annotations

from enum import Enum

import pyarrow as pa

MOST_DIGITS = 38
"""Precision of the widest decimal that arithmetic gives."""

_UNITS = ("s", "ms", "us", "ns")
_DIGITS = {
    pa.int8(): 3,
    pa.uint8(): 3,
    pa.int16(): 5,
    pa.uint16(): 5,
    pa.int32(): 10,
    pa.uint32(): 10,
    pa.int64(): 20,
    pa.uint64(): 20,
}


class Family(Enum):
    """A kind of value."""

    INTEGER = "a number"
    FLOAT = "a floating-point number"
    DECIMAL = "a decimal number"
    STRING = "a string"
    BINARY = "a binary"
    BOOLEAN = "a boolean"
    DATE = "a date"
    TIMESTAMP = "a timestamp"
    TIME = "a time of day"
    DURATION = "a duration"
    NULL = "NULL"
    OTHER = "a nested value"


NUMBERS = frozenset({Family.INTEGER, Family.FLOAT, Family.DECIMAL})


class TypeMismatch(Exception):  # noqa: N818 - becomes a QueryError where the place is known
    """Two types that do not go together: why, and what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def family(kind: pa.DataType) -> Family:
    """The family of ``kind``."""
    kind = plain(kind)
    types = pa.types
    if types.is_integer(kind):
        return Family.INTEGER
    if types.is_floating(kind):
        return Family.FLOAT
    if types.is_decimal(kind):
        return Family.DECIMAL
    for test, found in (
        (types.is_string, Family.STRING),
        (types.is_binary, Family.BINARY),
        (types.is_boolean, Family.BOOLEAN),
        (types.is_date, Family.DATE),
        (types.is_timestamp, Family.TIMESTAMP),
        (types.is_time, Family.TIME),
        (types.is_duration, Family.DURATION),
        (types.is_null, Family.NULL),
    ):
        if test(kind):
            return found
    return Family.OTHER


def plain(kind: pa.DataType) -> pa.DataType:
    """The one form in which values of this kind are compared."""
    types = pa.types
    if types.is_dictionary(kind):
        return plain(kind.value_type)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if (
        types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    ):
        return pa.binary()
    if types.is_float16(kind):
        return pa.float64()
    if types.is_date64(kind):
        return pa.date32()
    if types.is_decimal32(kind) or types.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    return kind


def is_comparable(kind: pa.DataType) -> bool:
    """Whether values of ``kind`` can be compared with each other."""
    return family(kind) not in (Family.OTHER, Family.NULL)


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type in which ``left`` and ``right`` are compared.

    :class:`TypeMismatch` if there is none; its message, which may be empty, is the reason why.
    """
    left, right = plain(left), plain(right)
    families = (family(left), family(right))
    if Family.OTHER in families or families == (Family.NULL, Family.NULL):
        raise TypeMismatch("")
    if left == right:
        return left
    if Family.NULL in families:
        return right if families[0] is Family.NULL else left
    if set(families) <= NUMBERS:
        return _common_number(left, right)
    if families == (Family.TIMESTAMP, Family.TIMESTAMP):
        return _common_timestamp(left, right)
    if set(families) == {Family.DATE, Family.TIMESTAMP}:
        moment = left if families[0] is Family.TIMESTAMP else right
        if moment.tz is not None:
            raise TypeMismatch("a date has no time zone", "CAST the timestamp to DATE")
        return moment
    if families == (Family.TIME, Family.TIME):
        return time_type(finest(left.unit, right.unit))
    if families == (Family.DURATION, Family.DURATION):
        return pa.duration(finest(left.unit, right.unit))
    raise TypeMismatch("", _advice(*families))


def _advice(left: Family, right: Family) -> str | None:
    families = {left, right}
    if Family.STRING in families:
        (other,) = families - {Family.STRING}
        if other in NUMBERS:
            return "CAST one of them: CAST(x AS STRING), or CAST(x AS BIGINT) for numbers in text"
        if other is Family.TIMESTAMP:
            return "write a literal as TIMESTAMP '2026-01-31 12:00:00', or CAST one of them"
        if other is Family.DATE:
            return "write a literal as DATE '2026-01-31', or CAST one of them"
        return "CAST one of them"
    if Family.DURATION in families and families & NUMBERS:
        return "write a length of time as INTERVAL 5 SECONDS"
    if Family.TIMESTAMP in families and families & NUMBERS:
        return "CAST one of them: CAST(x AS BIGINT) gives a timestamp's number in its own unit"
    return None


def _common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if pa.types.is_floating(left) or pa.types.is_floating(right):
        return pa.float64()
    if pa.types.is_integer(left) and pa.types.is_integer(right):
        if pa.uint64() not in (left, right):
            return pa.int64()
        if pa.types.is_unsigned_integer(left) and pa.types.is_unsigned_integer(right):
            return pa.uint64()
    (p1, s1), (p2, s2) = digits(left), digits(right)
    scale = max(s1, s2)
    return decimal_type(max(p1 - s1, p2 - s2) + scale, scale)


def _common_timestamp(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if (left.tz is None) != (right.tz is None):
        raise TypeMismatch(
            "only one of them has a time zone",
            "a literal takes a zone as TIMESTAMP '2026-01-31 12:00:00Z'; a column can be CAST, "
            "as in CAST(x AS TIMESTAMP_NTZ)",
        )
    zone = left.tz if left.tz == right.tz else "UTC"
    return pa.timestamp(finest(left.unit, right.unit), tz=zone)


def finest(*units: str) -> str:
    """The finest of some units of time."""
    return max(units, key=_UNITS.index)


def time_type(unit: str) -> pa.DataType:
    """Time of day in ``unit``."""
    return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)


def digits(kind: pa.DataType) -> tuple[int, int]:
    """Precision and scale of the decimal that holds every value of a decimal or integer type."""
    if pa.types.is_decimal(kind):
        return kind.precision, kind.scale
    return _DIGITS[kind], 0


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """A decimal of exactly this size."""
    make = pa.decimal128 if precision <= MOST_DIGITS else pa.decimal256
    return make(precision, scale)


def capped_decimal(precision: int, scale: int) -> pa.DataType:
    """Spark's adjustPrecisionScale: give up digits after the point, but not the last six."""
    if precision <= MOST_DIGITS:
        return pa.decimal128(precision, scale)
    whole = precision - scale
    return pa.decimal128(MOST_DIGITS, max(MOST_DIGITS - whole, min(scale, 6)))


def arithmetic_decimal(operator: str, left: tuple[int, int], right: tuple[int, int]) -> pa.DataType:
    """The type of ``left operator right`` for decimals of these precisions and scales."""
    (p1, s1), (p2, s2) = left, right
    scale = max(s1, s2)
    whole = max(p1 - s1, p2 - s2)
    if operator == "*":
        return capped_decimal(p1 + p2 + 1, s1 + s2)
    if operator == "%":
        return capped_decimal(whole + scale, scale)
    return capped_decimal(whole + scale + 1, scale)


def number_type(kind: pa.DataType) -> pa.DataType:
    """The type in which a number is negated or summed: int64, double or a decimal."""
    kind = plain(kind)
    if kind == pa.uint64():
        return pa.decimal128(20, 0)
    if pa.types.is_integer(kind):
        return pa.int64()
    return pa.float64() if pa.types.is_floating(kind) else kind


def sum_type(kind: pa.DataType) -> pa.DataType:
    """The type of SUM over values of ``kind`` (which :func:`number_type` has widened)."""
    if pa.types.is_decimal(kind):
        return pa.decimal128(min(MOST_DIGITS, kind.precision + 10), kind.scale)
    return kind


def average_type(kind: pa.DataType) -> pa.DataType:
    """The type of AVG: four more digits for a decimal, else a double."""
    if pa.types.is_decimal(kind):
        return pa.decimal128(min(MOST_DIGITS, kind.precision + 4), min(MOST_DIGITS, kind.scale + 4))
    return pa.float64()


_NAMED = {
    "BOOLEAN": pa.bool_(),
    "BOOL": pa.bool_(),
    "TINYINT": pa.int8(),
    "BYTE": pa.int8(),
    "INT8": pa.int8(),
    "SMALLINT": pa.int16(),
    "SHORT": pa.int16(),
    "INT16": pa.int16(),
    "INT": pa.int32(),
    "INTEGER": pa.int32(),
    "INT32": pa.int32(),
    "BIGINT": pa.int64(),
    "LONG": pa.int64(),
    "INT64": pa.int64(),
    "UINT8": pa.uint8(),
    "UINT16": pa.uint16(),
    "UINT32": pa.uint32(),
    "UINT64": pa.uint64(),
    "FLOAT": pa.float32(),
    "REAL": pa.float32(),
    "FLOAT32": pa.float32(),
    "DOUBLE": pa.float64(),
    "FLOAT64": pa.float64(),
    "STRING": pa.string(),
    "TEXT": pa.string(),
    "VARCHAR": pa.string(),
    "BINARY": pa.binary(),
    "BYTES": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
    "TIMESTAMP_LTZ": pa.timestamp("us", tz="UTC"),
    "TIMESTAMPTZ": pa.timestamp("us", tz="UTC"),
}

TYPE_NAMES = (
    "BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), STRING, BINARY, DATE, "
    "TIMESTAMP, TIMESTAMPTZ"
)


def named_type(name: str, sizes: tuple[str, ...]) -> pa.DataType:
    """The type that CAST names, or :class:`TypeMismatch`."""
    if name in ("DECIMAL", "NUMERIC", "DEC"):
        if len(sizes) > 2 or not all(size.isdecimal() and len(size) < 4 for size in sizes):
            raise TypeMismatch(f"{name} takes a precision and a scale", "as in DECIMAL(10, 2)")
        precision = int(sizes[0]) if sizes else 10
        scale = int(sizes[1]) if len(sizes) > 1 else 0
        if not 1 <= precision <= MOST_DIGITS or scale > precision:
            raise TypeMismatch(
                f"DECIMAL({precision}, {scale}) does not exist",
                f"the precision is 1 to {MOST_DIGITS}, the scale at most the precision",
            )
        return pa.decimal128(precision, scale)
    if name not in _NAMED:
        raise TypeMismatch(f"unknown type {name}", f"types are {TYPE_NAMES}")
    if sizes:
        raise TypeMismatch(f"{name} takes no size", f"write {name} alone")
    return _NAMED[name]


def can_cast(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether Arrow knows a conversion from ``source`` to ``target``."""
    try:
        pa.nulls(0, source).cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return False
    return True
