"""Scalar functions: what each takes, and the type that it gives.

One entry of :data:`FUNCTIONS` per name. Its builder is given typed arguments and returns a typed
expression, with casts made explicit, as :mod:`penstock.query.typed` promises; some functions are
other expressions in short (``IF`` and ``NULLIF`` are CASE, ``NVL`` is COALESCE, ``MOD`` is ``%``).
What remains is a :class:`~penstock.query.expression.Function`, which
:mod:`penstock.values.functions` computes on columns and :mod:`penstock.testing.row_functions` on
one row.

Names, types and values are Spark SQL's, in ANSI mode and with the session's time zone at UTC. Three
departures: a moment is cut and taken apart without a detour through another type (so DATE_TRUNC of
a clock reading is a clock reading), positions, patterns and units are constants, and GREATEST and
LEAST of integers are a BIGINT, as all arithmetic on integers is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from penstock.query import types
from penstock.query.constant import UNKNOWN
from penstock.query.expression import Constant, Expression, Function
from penstock.query.typed import (
    alike,
    arithmetic,
    case,
    cast,
    common,
    compare,
    condition,
    convert,
    is_null_constant,
    shown,
)
from penstock.query.types import NUMBERS, Family, TypeMismatch, family

Builder = Callable[[str, Sequence[Expression]], Expression]

TRUNCATED_TO = {
    "YEAR": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "WEEK": "week",
    "DAY": "day",
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
    "MILLISECOND": "millisecond",
    "MICROSECOND": "microsecond",
}
"""The units of DATE_TRUNC, by Arrow's names. A week begins on Monday."""

PARTS = (
    "YEAR",
    "QUARTER",
    "MONTH",
    "WEEK",
    "DAY",
    "DAYOFWEEK",
    "DOW",
    "DAYOFYEAR",
    "DOY",
    "HOUR",
    "MINUTE",
    "SECOND",
)
"""What EXTRACT takes out of a moment. Weeks are those of ISO 8601; Sunday is the first weekday."""

_PART_NAMES = {
    "DAYOFMONTH": "day",
    "WEEKOFYEAR": "week",
    "DOW": "dayofweek",
    "DOY": "dayofyear",
}

SECONDS = pa.decimal128(8, 6)
"""The type of EXTRACT(SECOND FROM x): seconds with microseconds, as Spark has it."""

_MOST_PLACES = 38
"""Digits that ROUND takes on either side of the point: those of the widest decimal."""


def function(name: str, arguments: Sequence[Expression]) -> Expression:
    """A call of the function ``name`` of :data:`FUNCTIONS`, in upper case."""
    builder, least, most = FUNCTIONS[name]
    count = len(arguments)
    if count < least or (most is not None and count > most):
        raise TypeMismatch(f"{name} takes {_arguments(least, most)}, not {count}")
    return builder(name, arguments)


def extract(part: str, moment: Expression) -> Expression:
    """``EXTRACT(part FROM moment)``; the seconds have a fraction, those of SECOND have none."""
    part = part.upper()
    if part not in PARTS:
        raise TypeMismatch(f"EXTRACT has no {part}", f"parts are {', '.join(PARTS)}")
    if part == "SECOND":
        return Function(SECONDS, "seconds", (_moment("EXTRACT(SECOND)", moment, clock=True),))
    return _part(part, [moment])


def concatenated(arguments: Sequence[Expression]) -> Expression:
    """``a || b …``; what is no string becomes one."""
    return _concat("||", arguments)


def _arguments(least: int, most: int | None) -> str:
    if most is None:
        return f"{least} arguments or more" if least != 1 else "an argument or more"
    if least == most:
        return "one argument" if least == 1 else f"{least} arguments"
    return f"{least} to {most} arguments"


# ---- arguments -------------------------------------------------------------------------------


def _text(name: str, argument: Expression) -> Expression:
    if family(argument.type) not in (Family.STRING, Family.NULL):
        raise TypeMismatch(
            f"{name} needs a string; {shown(argument)} is none", "CAST(x AS STRING) makes it one"
        )
    return convert(argument, pa.string())


def _number(name: str, argument: Expression) -> Expression:
    if family(argument.type) not in NUMBERS and not is_null_constant(argument):
        raise TypeMismatch(f"{name} needs a number; {shown(argument)} is none")
    return argument


def _double(name: str, argument: Expression) -> Expression:
    return convert(_number(name, argument), pa.float64())


def _moment(name: str, argument: Expression, clock: bool = False) -> Expression:
    """A timestamp, or a date where no time of day is needed."""
    found = family(argument.type)
    if found is Family.NULL:
        return convert(argument, pa.timestamp("us"))
    if found is Family.DATE:
        return convert(argument, pa.timestamp("us") if clock else pa.date32())
    if found is not Family.TIMESTAMP:
        raise TypeMismatch(
            f"{name} needs a timestamp or a date; {shown(argument)} is none",
            "CAST(x AS TIMESTAMP) makes one of text",
        )
    return argument


def _whole_constant(name: str, what: str, argument: Expression) -> int:
    value = argument.value if isinstance(argument, Constant) else None
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeMismatch(f"{name} needs a whole number as its {what}; {argument} is none")
    return value


def _text_constant(name: str, what: str, argument: Expression) -> Constant:
    if not isinstance(argument, Constant) or family(argument.type) is not Family.STRING:
        raise TypeMismatch(f"{name} needs a text in quotes as its {what}; {argument} is none")
    return Constant(pa.string(), argument.value)


# ---- builders --------------------------------------------------------------------------------


def _coalesce(name: str, arguments: Sequence[Expression]) -> Expression:
    known = [a for a in arguments if not is_null_constant(a)]
    if len(known) < 2:
        return known[0] if known else arguments[0]
    kind = alike(known)
    return Function(kind, "coalesce", tuple(convert(a, kind) for a in known))


def _nullif(name: str, arguments: Sequence[Expression]) -> Expression:
    value, unwanted = arguments
    return case([compare("=", value, unwanted)], [Constant(pa.null(), None)], value)


def _if(name: str, arguments: Sequence[Expression]) -> Expression:
    test, value, otherwise = arguments
    return case([condition(test, "IF")], [value], otherwise)


def _extreme(name: str, arguments: Sequence[Expression]) -> Expression:
    known = [a for a in arguments if not is_null_constant(a)]
    if len(known) < 2:
        return known[0] if known else arguments[0]
    kind = common(known)
    return Function(kind, name.lower(), tuple(convert(a, kind) for a in known))


def _abs(name: str, arguments: Sequence[Expression]) -> Expression:
    (argument,) = arguments
    null = is_null_constant(_number(name, argument))
    kind = pa.int64() if null else types.number_type(argument.type)
    return Function(kind, "abs", (convert(argument, kind),))


def _mod(name: str, arguments: Sequence[Expression]) -> Expression:
    left, right = arguments
    return arithmetic("%", left, right)


def _to_whole(name: str, arguments: Sequence[Expression]) -> Expression:
    """FLOOR and CEIL: of a decimal a decimal, else a BIGINT."""
    argument = _number(name, arguments[0])
    kind = types.number_type(argument.type) if not is_null_constant(argument) else pa.int64()
    if kind == pa.int64():
        return convert(argument, kind)
    target = pa.int64()
    if pa.types.is_decimal(kind):
        target = types.capped_decimal(kind.precision - kind.scale + 1, 0)
    return Function(target, "floor" if name == "FLOOR" else "ceil", (convert(argument, kind),))


def _round(name: str, arguments: Sequence[Expression]) -> Expression:
    argument = _number(name, arguments[0])
    places = _whole_constant(name, "places", arguments[1]) if len(arguments) > 1 else 0
    if abs(places) > _MOST_PLACES:
        raise TypeMismatch(f"{name} takes -{_MOST_PLACES} to {_MOST_PLACES} places, not {places}")
    null = is_null_constant(argument)
    kind = pa.int64() if null else types.number_type(argument.type)
    target = kind
    if pa.types.is_decimal(kind):
        scale = min(kind.scale, max(places, 0))
        whole = max(kind.precision - kind.scale + 1, 1 - min(places, 0))
        target = types.capped_decimal(whole + scale, scale)
    elif kind == pa.int64() and places >= 0:
        return convert(argument, kind)
    return Function(target, "round", (convert(argument, kind), Constant(pa.int64(), places)))


def _of_double(name: str, arguments: Sequence[Expression]) -> Expression:
    canonical = "power" if name == "POW" else name.lower()
    return Function(pa.float64(), canonical, tuple(_double(name, a) for a in arguments))


def _of_text(name: str, arguments: Sequence[Expression]) -> Expression:
    kind = pa.int32() if name in ("LENGTH", "CHAR_LENGTH") else pa.string()
    canonical = "length" if kind == pa.int32() else name.lower()
    return Function(kind, canonical, (_text(name, arguments[0]),))


def _concat(name: str, arguments: Sequence[Expression]) -> Expression:
    if any(is_null_constant(a) for a in arguments):
        return Constant(pa.string(), None)
    texts: list[Expression] = []
    for argument in arguments:
        if family(argument.type) in (Family.BINARY, Family.OTHER):
            raise TypeMismatch(f"{name} needs strings; {shown(argument)} is none")
        text = cast(argument, pa.string())
        nested = isinstance(text, Function) and text.name == "concat"
        texts += text.arguments if nested else (text,)  # type: ignore[attr-defined]
    if len(texts) < 2:
        return texts[0] if texts else Constant(pa.string(), "")
    return Function(pa.string(), "concat", tuple(texts))


def _substring(name: str, arguments: Sequence[Expression]) -> Expression:
    """SUBSTRING(text, position[, length]): from 1 on, negative from the end; LEFT and RIGHT."""
    text = _text(name, arguments[0])
    if name in ("LEFT", "RIGHT"):
        length = max(_whole_constant(name, "length", arguments[1]), 0)
        position = -length if name == "RIGHT" and length else 1
    else:
        position = _whole_constant(name, "position", arguments[1])
        length = 2**31 - 1
        if len(arguments) > 2:
            length = max(_whole_constant(name, "length", arguments[2]), 0)
    bounds = (Constant(pa.int64(), position), Constant(pa.int64(), length))
    return Function(pa.string(), "substring", (text, *bounds))


def _replace(name: str, arguments: Sequence[Expression]) -> Expression:
    text = _text(name, arguments[0])
    old = _text_constant(name, "text to search for", arguments[1])
    new = Constant(pa.string(), "")
    if len(arguments) > 2:
        new = _text_constant(name, "replacement", arguments[2])
    return text if old.value == "" else Function(pa.string(), "replace", (text, old, new))


def _contains(name: str, arguments: Sequence[Expression]) -> Expression:
    text, part = arguments
    if is_null_constant(part):
        return UNKNOWN
    searched = _text_constant(name, "text to search for", part)
    return Function(pa.bool_(), name.lower(), (_text(name, text), searched))


def _date_trunc(name: str, arguments: Sequence[Expression]) -> Expression:
    unit = _text_constant(name, "unit", arguments[0])
    written = str(unit.value).upper()
    if written not in TRUNCATED_TO:
        raise TypeMismatch(
            f"{name} has no unit {unit}",
            f"units are {', '.join(TRUNCATED_TO)}, in quotes: DATE_TRUNC('HOUR', x)",
        )
    moment = _moment(name, arguments[1], clock=True)
    return Function(
        moment.type, "date_trunc", (Constant(pa.string(), TRUNCATED_TO[written]), moment)
    )


def _part(name: str, arguments: Sequence[Expression]) -> Expression:
    canonical = _PART_NAMES.get(name, name.lower())
    clock = canonical in ("hour", "minute", "second")
    return Function(pa.int32(), canonical, (_moment(name, arguments[0], clock),))


FUNCTIONS: dict[str, tuple[Builder, int, int | None]] = {
    "ABS": (_abs, 1, 1),
    "CEIL": (_to_whole, 1, 1),
    "CEILING": (_to_whole, 1, 1),
    "CHAR_LENGTH": (_of_text, 1, 1),
    "COALESCE": (_coalesce, 1, None),
    "CONCAT": (_concat, 0, None),
    "CONTAINS": (_contains, 2, 2),
    "DATE_TRUNC": (_date_trunc, 2, 2),
    "DAY": (_part, 1, 1),
    "DAYOFMONTH": (_part, 1, 1),
    "DAYOFWEEK": (_part, 1, 1),
    "DAYOFYEAR": (_part, 1, 1),
    "ENDSWITH": (_contains, 2, 2),
    "EXP": (_of_double, 1, 1),
    "FLOOR": (_to_whole, 1, 1),
    "GREATEST": (_extreme, 2, None),
    "HOUR": (_part, 1, 1),
    "IF": (_if, 3, 3),
    "IFNULL": (_coalesce, 2, 2),
    "LEAST": (_extreme, 2, None),
    "LEFT": (_substring, 2, 2),
    "LENGTH": (_of_text, 1, 1),
    "LN": (_of_double, 1, 1),
    "LOG10": (_of_double, 1, 1),
    "LOWER": (_of_text, 1, 1),
    "LTRIM": (_of_text, 1, 1),
    "MINUTE": (_part, 1, 1),
    "MOD": (_mod, 2, 2),
    "MONTH": (_part, 1, 1),
    "NULLIF": (_nullif, 2, 2),
    "NVL": (_coalesce, 2, 2),
    "POW": (_of_double, 2, 2),
    "POWER": (_of_double, 2, 2),
    "QUARTER": (_part, 1, 1),
    "REPLACE": (_replace, 2, 3),
    "RIGHT": (_substring, 2, 2),
    "ROUND": (_round, 1, 2),
    "RTRIM": (_of_text, 1, 1),
    "SECOND": (_part, 1, 1),
    "SIGN": (_of_double, 1, 1),
    "SQRT": (_of_double, 1, 1),
    "STARTSWITH": (_contains, 2, 2),
    "SUBSTR": (_substring, 2, 3),
    "SUBSTRING": (_substring, 2, 3),
    "TRIM": (_of_text, 1, 1),
    "UPPER": (_of_text, 1, 1),
    "WEEK": (_part, 1, 1),
    "WEEKOFYEAR": (_part, 1, 1),
    "YEAR": (_part, 1, 1),
}
"""Builder, fewest and most arguments of each function; None for any number."""
