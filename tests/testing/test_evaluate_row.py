"""Spark SQL's rules, value by value."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import PenstockError
from penstock.query.expression import (
    Aggregate,
    And,
    Arithmetic,
    Cast,
    Column,
    Comparison,
    Constant,
    Expression,
    Function,
    IsNull,
    Like,
    Negative,
    Not,
    Or,
)
from penstock.testing.evaluate_aggregate import evaluate_aggregate
from penstock.testing.evaluate_row import arithmetic, cast, compare, evaluate, like

NAN, INF = math.nan, math.inf
INT, DOUBLE, BOOL = pa.int64(), pa.float64(), pa.bool_()


def truth(value: bool | None) -> Expression:
    return Constant(BOOL, value)


@pytest.mark.parametrize(
    ("left", "operator", "right", "expected"),
    [
        (NAN, "=", NAN, True),
        (NAN, ">", INF, True),
        (NAN, "<", 1.0, False),
        (1.0, "<", NAN, True),
        (NAN, ">=", NAN, True),
        (NAN, "<>", NAN, False),
        (-0.0, "=", 0.0, True),
        (-0.0, "<", 0.0, False),
        (None, "=", None, None),
        (1, "<>", None, None),
        ("a", "<", "ä", True),
        ("B", "<", "a", True),
        (b"\x7f", "<", b"\xff", True),
        (False, "<", True, True),
        (Decimal("1.00"), "=", Decimal(1), True),
        (datetime.date(2020, 1, 2), ">", datetime.date(2020, 1, 1), True),
        (2**64 - 1, ">", 2**63, True),
    ],
)
def test_comparison(left: Any, operator: str, right: Any, expected: bool | None) -> None:
    assert compare(operator, left, right) is expected


def test_three_valued_logic() -> None:
    values = (True, False, None)
    pairs = [(a, b) for a in values for b in values]
    unknown = {(True, None), (None, True), (None, None)}
    both = {(a, b): evaluate(And(BOOL, (truth(a), truth(b))), {}) for a, b in pairs}
    assert [pair for pair, value in both.items() if value is True] == [(True, True)]
    assert {pair for pair, value in both.items() if value is None} == unknown
    unknown = {(False, None), (None, False), (None, None)}
    either = {(a, b): evaluate(Or(BOOL, (truth(a), truth(b))), {}) for a, b in pairs}
    assert [pair for pair, value in either.items() if value is False] == [(False, False)]
    assert {pair for pair, value in either.items() if value is None} == unknown
    assert [evaluate(Not(BOOL, truth(v)), {}) for v in values] == [False, True, None]
    assert [evaluate(IsNull(BOOL, truth(v)), {}) for v in values] == [False, False, True]


@pytest.mark.parametrize(
    ("left", "operator", "right", "kind", "expected"),
    [
        (7, "%", 3, INT, 1),
        (-7, "%", 3, INT, -1),
        (7, "%", -3, INT, 1),
        (-7.5, "%", 2.0, DOUBLE, -1.5),
        (7.0, "/", 2.0, DOUBLE, 3.5),
        (None, "/", 0, INT, None),
        (1, "+", None, INT, None),
        (Decimal("1.25"), "*", Decimal("1.1"), pa.decimal128(10, 2), Decimal("1.38")),
        (Decimal("-1.25"), "*", Decimal("1.1"), pa.decimal128(10, 2), Decimal("-1.38")),
        (Decimal("-7.5"), "%", Decimal(2), pa.decimal128(10, 1), Decimal("-1.5")),
        (Decimal(10) ** 37, "+", Decimal(1), pa.decimal128(38, 0), Decimal(10**37 + 1)),
        (16777216.0, "+", 1.0, pa.float32(), 16777216.0),
        (3e38, "*", 10.0, pa.float32(), INF),
    ],
)
def test_arithmetic(left: Any, operator: str, right: Any, kind: pa.DataType, expected: Any) -> None:
    assert arithmetic(operator, left, right, kind) == expected


@pytest.mark.parametrize(
    ("left", "operator", "right", "kind"),
    [
        (2**63 - 1, "+", 1, INT),
        (-(2**63), "-", 1, INT),
        (2**62, "*", 2, INT),
        (0, "-", 1, pa.uint64()),
        (1.0, "/", 0.0, DOUBLE),
        (1, "%", 0, INT),
        (Decimal(1), "%", Decimal(0), pa.decimal128(5, 0)),
        (Decimal(9), "+", Decimal(1), pa.decimal128(1, 0)),
    ],
)
def test_overflow_and_division_by_zero(left: Any, operator: str, right: Any, kind: Any) -> None:
    with pytest.raises(PenstockError):
        arithmetic(operator, left, right, kind)


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (None, INT, DOUBLE, None),
        (2**53 + 1, INT, DOUBLE, float(2**53)),
        (0.1, DOUBLE, pa.float32(), 0.10000000149011612),
        (2**64 - 1, pa.uint64(), pa.decimal128(20, 0), Decimal(2**64 - 1)),
        (Decimal("1.25"), pa.decimal128(3, 2), pa.decimal128(3, 1), Decimal("1.3")),
        (Decimal("-1.99"), pa.decimal128(3, 2), INT, -1),
        (-1.99, DOUBLE, INT, -1),
        (Decimal("0.1"), pa.decimal128(2, 1), DOUBLE, 0.1),
        (-1, pa.timestamp("s"), pa.timestamp("ns"), -1_000_000_000),
        (-1, pa.timestamp("ms"), pa.timestamp("s"), -1),
        (1, pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Vienna"), 1),
        (datetime.date(1969, 12, 31), pa.date32(), pa.timestamp("ms"), -86_400_000),
        (-1, pa.timestamp("ms"), pa.date32(), datetime.date(1969, 12, 31)),
        ("a", pa.large_string(), pa.string(), "a"),
        (b"a", pa.large_binary(), pa.binary(), b"a"),
        ("a", pa.dictionary(pa.int8(), pa.string()), pa.string(), "a"),
        (True, BOOL, INT, 1),
        (2, INT, BOOL, True),
        (12, INT, pa.string(), "12"),
        (True, BOOL, pa.string(), "true"),
        (Decimal("1.50"), pa.decimal128(3, 2), pa.string(), "1.50"),
        ("12", pa.string(), INT, 12),
        (5, pa.duration("ms"), pa.duration("us"), 5_000),
    ],
)
def test_cast(value: Any, source: pa.DataType, target: pa.DataType, expected: Any) -> None:
    found = cast(value, source, target)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        (300, INT, pa.int8()),
        (-1, INT, pa.uint64()),
        (NAN, DOUBLE, INT),
        (1e30, DOUBLE, INT),
        (Decimal(100), pa.decimal128(3, 0), pa.decimal128(3, 1)),
        ("x", pa.string(), INT),
    ],
)
def test_casts_that_do_not_fit(value: Any, source: pa.DataType, target: pa.DataType) -> None:
    with pytest.raises(PenstockError):
        cast(value, source, target)


@pytest.mark.parametrize(
    ("value", "pattern", "expected"),
    [
        ("abc", "a%", True),
        ("abc", "%b%", True),
        ("abc", "_b_", True),
        ("abc", "b", False),
        ("a.c", "a.c", True),
        ("abc", "a.c", False),
        ("a\nb", "a%b", True),
        ("50%", r"50\%", True),
        ("500", r"50\%", False),
        ("", "%", True),
        ("é", "_", True),
    ],
)
def test_like(value: str, pattern: str, expected: bool) -> None:
    assert like(value, pattern) is expected


def test_expressions_read_the_row() -> None:
    row: dict[str, dict[str, Any]] = {"A": {"x": -3, "s": "Ab", "t": 5}, "B": {"x": None}}
    a_x, b_x = Column(INT, "A", "x"), Column(INT, "B", "x")
    text = Column(pa.string(), "A", "s")
    assert evaluate(Arithmetic(INT, "*", a_x, Constant(INT, 2)), row) == -6
    assert evaluate(Negative(INT, a_x), row) == 3
    assert evaluate(Comparison(BOOL, "<", a_x, b_x), row) is None
    assert evaluate(Function(INT, "abs", (a_x,)), row) == 3
    assert evaluate(Function(INT, "coalesce", (b_x, a_x)), row) == -3
    assert evaluate(Function(pa.string(), "lower", (text,)), row) == "ab"
    assert evaluate(Function(pa.string(), "upper", (text,)), row) == "AB"
    assert evaluate(Function(INT, "length", (text,)), row) == 2
    assert evaluate(Function(INT, "abs", (b_x,)), row) is None
    assert evaluate(Like(BOOL, text, "A_"), row) is True
    assert evaluate(Cast(DOUBLE, a_x), row) == -3.0
    moment = Constant(pa.timestamp("ms"), datetime.datetime(1970, 1, 1, 0, 0, 0, 6_000))
    assert evaluate(Comparison(BOOL, "<", Column(pa.timestamp("ms"), "A", "t"), moment), row)


def test_the_absolute_value_of_the_lowest_integer_overflows() -> None:
    with pytest.raises(PenstockError):
        evaluate(Function(INT, "abs", (Constant(INT, -(2**63)),)), {})


@pytest.mark.parametrize(
    ("function", "kind", "values", "expected"),
    [
        ("count", INT, [1, None, 2], 2),
        ("count", INT, [None], 0),
        ("sum", INT, [1, None, 2], 3),
        ("sum", INT, [None, None], None),
        ("avg", DOUBLE, [1, 2, None], 1.5),
        ("avg", DOUBLE, [None], None),
        ("min", DOUBLE, [NAN, 1.0, None], 1.0),
        ("max", DOUBLE, [INF, 1.0], INF),
        ("min", pa.string(), ["b", "B", None], "B"),
        ("max", BOOL, [False, True], True),
        ("sum", DOUBLE, [1e16, 1.0, -1e16], 1.0),
        ("sum", DOUBLE, [INF, 1.0], INF),
        ("sum", pa.decimal128(12, 2), [Decimal("0.10"), Decimal("0.20")], Decimal("0.30")),
        ("avg", pa.decimal128(6, 4), [Decimal(1), Decimal(1), Decimal(0)], Decimal("0.6667")),
    ],
)
def test_aggregates(function: Any, kind: pa.DataType, values: list[Any], expected: Any) -> None:
    aggregate = Aggregate(kind, function, Column(kind, "A", "x"))
    assert evaluate_aggregate(aggregate, values) == expected


def test_aggregates_of_special_values() -> None:
    double = Column(DOUBLE, "A", "x")
    for values in ([INF, -INF], [NAN, 1.0], [INF, NAN]):
        assert math.isnan(evaluate_aggregate(Aggregate(DOUBLE, "sum", double), values))
    assert math.isnan(evaluate_aggregate(Aggregate(DOUBLE, "max", double), [1.0, NAN, INF]))
    assert evaluate_aggregate(Aggregate(INT, "count", None), [None, None]) == 2
    with pytest.raises(PenstockError):
        evaluate_aggregate(Aggregate(INT, "sum", Column(INT, "A", "x")), [2**63 - 1, 1])
