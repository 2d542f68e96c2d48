"""Type families: which types meet, in what, and that Arrow can bring both there without loss."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from penstock.query.types import (
    Family,
    TypeMismatch,
    arithmetic_decimal,
    can_cast,
    capped_decimal,
    common_type,
    family,
    is_comparable,
    plain,
)

NUMBERS = [
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.uint8(),
    pa.uint16(),
    pa.uint32(),
    pa.uint64(),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.decimal32(5, 2),
    pa.decimal64(12, 0),
    pa.decimal128(10, 2),
    pa.decimal128(38, 10),
    pa.decimal256(50, 3),
]
TEXTS = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.large_string()),
]
BYTES = [pa.binary(), pa.large_binary(), pa.binary(4), pa.binary_view()]
READINGS = [pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("ns"), pa.date32(), pa.date64()]
INSTANTS = [pa.timestamp("us", tz="UTC"), pa.timestamp("ms", tz="Europe/Zurich")]
TIMES = [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]
LENGTHS = [pa.duration("s"), pa.duration("us")]
GROUPS = [NUMBERS, TEXTS, BYTES, READINGS, INSTANTS, TIMES, LENGTHS, [pa.bool_()]]
NESTED = [pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.map_(pa.int8(), pa.int8())]


@pytest.mark.parametrize("group", GROUPS, ids=lambda g: str(g[0]))
def test_types_of_one_group_meet(group: list[pa.DataType]) -> None:
    for left, right in itertools.product(group, group):
        kind = common_type(left, right)
        assert can_cast(left, kind), f"{left} to {kind}"
        assert can_cast(right, kind), f"{right} to {kind}"
        assert common_type(kind, left) == kind
        assert plain(kind) == kind
        other = common_type(right, left)
        assert other == kind, f"{left}, {right}"


def test_types_of_different_groups_do_not_meet() -> None:
    for first, second in itertools.permutations(GROUPS, 2):
        for left, right in itertools.product(first, second):
            with pytest.raises(TypeMismatch):
                common_type(left, right)


@pytest.mark.parametrize("kind", NESTED)
def test_nested_types_are_not_compared(kind: pa.DataType) -> None:
    assert family(kind) is Family.OTHER
    assert not is_comparable(kind)
    with pytest.raises(TypeMismatch):
        common_type(kind, kind)


@pytest.mark.parametrize("kind", [kind for group in GROUPS for kind in group])
def test_null_meets_everything(kind: pa.DataType) -> None:
    assert common_type(pa.null(), kind) == plain(kind) == common_type(kind, pa.null())


@pytest.mark.parametrize(
    ("left", "right", "common"),
    [
        (pa.int8(), pa.int32(), pa.int64()),
        (pa.int32(), pa.int32(), pa.int32()),
        (pa.uint64(), pa.int8(), pa.decimal128(20, 0)),
        (pa.uint64(), pa.uint8(), pa.uint64()),
        (pa.float32(), pa.float32(), pa.float32()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.float16(), pa.float16(), pa.float64()),
        (pa.float32(), pa.int8(), pa.float64()),
        (pa.decimal128(10, 2), pa.decimal128(5, 4), pa.decimal128(12, 4)),
        (pa.decimal128(10, 2), pa.int64(), pa.decimal128(22, 2)),
        (pa.decimal128(10, 2), pa.float32(), pa.float64()),
        (pa.decimal128(38, 0), pa.decimal128(38, 38), pa.decimal256(76, 38)),
        (pa.date64(), pa.date64(), pa.date32()),
        (pa.date32(), pa.timestamp("s"), pa.timestamp("s")),
        (pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("ns")),
        (pa.timestamp("s", tz="UTC"), pa.timestamp("us", tz="Asia/Tokyo"), None),
        (pa.large_string(), pa.large_string(), pa.string()),
        (pa.binary(4), pa.binary(8), pa.binary()),
        (pa.time32("s"), pa.time64("us"), pa.time64("us")),
    ],
)
def test_common_type(left: pa.DataType, right: pa.DataType, common: pa.DataType | None) -> None:
    assert common_type(left, right) == (common or pa.timestamp("us", tz="UTC"))


def test_decimal_arithmetic_is_sparks() -> None:
    # the examples of Spark's DecimalPrecision
    assert arithmetic_decimal("+", (10, 2), (5, 4)) == pa.decimal128(13, 4)
    assert arithmetic_decimal("*", (10, 2), (5, 4)) == pa.decimal128(16, 6)
    assert arithmetic_decimal("%", (10, 2), (5, 4)) == pa.decimal128(12, 4)
    assert arithmetic_decimal("*", (38, 10), (38, 10)) == pa.decimal128(38, 6)
    assert arithmetic_decimal("+", (38, 10), (38, 10)) == pa.decimal128(38, 9)
    assert capped_decimal(40, 2) == pa.decimal128(38, 2)
