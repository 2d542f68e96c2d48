"""Types of keys, in families whose members can be compared, with small domains of values.

The values of a family fit all of its types, so that a join of an int8 with an int64 finds
partners; each type may add values of its own, where the corners are (the extremes of a type, -0.0
and NaN, digits that only a wider scale has).
"""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class Family:
    """Comparable types: ``values`` fit all of them, ``own`` are extra values of single types."""

    name: str
    types: tuple[pa.DataType, ...]
    values: tuple[Any, ...]
    own: Mapping[pa.DataType, tuple[Any, ...]] = field(default_factory=dict)

    def pool(
        self, chance: random.Random, kind: pa.DataType, size: int, start: int
    ) -> tuple[Any, ...]:
        """About ``size`` values for a column of type ``kind``.

        The first ones are those from ``start`` on, which all columns with this start share.
        """
        rotated = [self.values[(start + i) % len(self.values)] for i in range(len(self.values))]
        chosen = rotated[:size]
        own = self.own.get(kind, ())
        if own and chance.random() >= 0.5:
            chosen += chance.sample(own, chance.randint(1, min(2, len(own))))
        return tuple(convert(value, kind) for value in chosen)


def convert(value: Any, kind: pa.DataType) -> Any:
    """A value of a family as one of ``kind``; an integer is a timestamp in seconds."""
    if pa.types.is_decimal(kind):
        return Decimal(value).quantize(Decimal(1).scaleb(-kind.scale), context=Context(prec=80))
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_timestamp(kind):
        if isinstance(value, datetime.date):
            value = (value - datetime.date(1970, 1, 1)).days * _DAY
        return value * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
    return value


_HUGE = 2**53
_DAY = 86_400

INTEGER = Family(
    "integer",
    (pa.int64(), pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32()),
    (1, 2, 0, 3, 4, 5, 6, 7),
    {
        pa.int64(): (2**63 - 1, -(2**63), 2**32 + 1, -1),
        pa.int32(): (2**31 - 1, -(2**31), -1),
        pa.int8(): (-128, 127, -1),
    },
)
UNSIGNED = Family("uint64", (pa.uint64(),), (1, 2, 2**64 - 1, 2**63, 0, 3, 2**64 - 2, 2**63 - 1))
TEXT = Family(
    "text",
    (pa.string(), pa.large_string()),
    ("a", "b", "", "A", "ä", "abcdefghijklmnop", "abcdefghijklmnoq", "a\x00"),
)
DICTIONARY = Family(
    "dictionary",
    (pa.dictionary(pa.int32(), pa.string()), pa.string()),
    ("a", "b", "", "A", "ä", "c", "d", "e"),
)
DECIMAL = Family(
    "decimal",
    (pa.decimal128(7, 2), pa.decimal128(12, 4), pa.decimal128(5, 1), pa.decimal128(18, 0)),
    (Decimal(1), Decimal(2), Decimal(0), Decimal(-1), Decimal(10), Decimal(3), Decimal(100)),
    {
        pa.decimal128(7, 2): (Decimal("1.01"), Decimal("1.50"), Decimal("99999.99")),
        pa.decimal128(12, 4): (Decimal("1.0100"), Decimal("1.0001")),
        pa.decimal128(5, 1): (Decimal("1.5"),),
    },
)
WIDE_DECIMAL = Family(
    "wide decimal",
    (pa.decimal128(38, 10), pa.decimal128(33, 10), pa.decimal128(25, 3)),
    (Decimal(1), Decimal(2), Decimal(10**20), Decimal(10**20 + 1), Decimal(0), Decimal(-1)),
    {
        pa.decimal128(38, 10): (Decimal("1.0000000001"), Decimal(10) ** 27),
        pa.decimal128(33, 10): (Decimal("1.0000000001"),),
    },
)
DATE = Family(
    "date",
    (pa.date32(),),
    tuple(datetime.date(1970, 1, 1) + datetime.timedelta(d) for d in (0, 1, -1, 19_000, 2, 3)),
)
BOOLEAN = Family("boolean", (pa.bool_(),), (True, False))
BINARY = Family(
    "binary",
    (pa.binary(), pa.large_binary(), pa.dictionary(pa.int8(), pa.binary())),
    (b"a", b"b", b"", b"\x00", b"\xff", b"a\x00", b"abcdefghijklmnop"),
)
FLOAT = Family(
    "float",
    (pa.float64(), pa.float32()),
    (1.5, 0.0, -0.0, math.nan, 2.0, math.inf, -math.inf, -1.5),
    {pa.float64(): (0.1, 1e300), pa.float32(): (0.5,)},
)
NUMBER = Family(
    "number",
    (pa.int64(), pa.float64(), pa.int32(), pa.decimal128(10, 2), pa.uint64(), pa.float32()),
    (1, 2, 0, 3, 4, 5),
    {
        pa.int64(): (_HUGE, _HUGE + 1),
        pa.float64(): (1.5, float(_HUGE), -0.0, math.nan),
        pa.float32(): (1.5, -0.0, math.nan),
        pa.decimal128(10, 2): (Decimal("1.50"),),
        pa.uint64(): (2**64 - 1,),
    },
)
MOMENT = Family(
    "moment",
    (pa.date32(), pa.timestamp("s"), pa.timestamp("us")),
    tuple(datetime.date(1970, 1, 1) + datetime.timedelta(d) for d in (1, 0, -1, 19_000, 2)),
)


def _timestamp_family(name: str, *zones: str | None) -> Family:
    """Timestamps of all units: values are whole seconds, ``own`` has finer ones."""
    return Family(
        name,
        tuple(pa.timestamp(unit, zone) for unit in ("us", "ms", "ns", "s") for zone in zones),
        (0, 1, _DAY, -1, 1_700_000_000, 2),
    )


TIMESTAMP = _timestamp_family("timestamp", None)
ZONED = _timestamp_family("zoned timestamp", "UTC", "Europe/Vienna")

MIXED = (NUMBER, MOMENT)
FAMILIES = (
    INTEGER,
    UNSIGNED,
    TEXT,
    DICTIONARY,
    DECIMAL,
    WIDE_DECIMAL,
    DATE,
    BOOLEAN,
    BINARY,
    FLOAT,
    TIMESTAMP,
    ZONED,
)

PAYLOADS: tuple[tuple[pa.DataType, tuple[Any, ...]], ...] = (
    (pa.list_(pa.int32()), ((1, None), (), (1, 2, 3))),
    (pa.large_list(pa.string()), (("a",), ("", None))),
    (pa.list_(pa.float64(), 2), ((1.0, math.nan), (0.5, -0.0))),
    (pa.struct([("a", pa.int8()), ("b", pa.string())]), ((1, "x"), (None, None))),
    (pa.struct([("t", pa.timestamp("ns")), ("l", pa.list_(pa.int8()))]), ((1, (1,)), (2, None))),
    (pa.map_(pa.string(), pa.int32()), ((("a", 1), ("b", None)), ())),
    (pa.dictionary(pa.int8(), pa.string()), ("red", "green", "blue")),
    (pa.timestamp("ns", "UTC"), (1, -1, 1_700_000_000_000_000_001)),
    (pa.float32(), (0.1, math.nan, -0.0)),
    (pa.binary(4), (b"abcd", b"\x00\x01\x02\x03")),
    (pa.time64("us"), (0, 1, 86_399_999_999)),
    (pa.duration("ns"), (0, -1)),
    (pa.decimal256(50, 5), (Decimal("1.00000"), Decimal(10) ** 40)),
    (pa.null(), (None,)),
    (pa.large_binary(), (b"", b"xyz")),
    (pa.uint64(), (2**64 - 1, 0)),
    (pa.date64(), (datetime.date(2020, 1, 1),)),
)
