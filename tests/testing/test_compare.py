"""Values in canonical form, and differences that say what is wrong."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from penstock.query.parse import parse
from penstock.testing.compare import assert_same_rows, difference, inexact_columns, rows_of
from penstock.testing.python_values import canonical, python_values

NAN = math.nan


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, None], pa.timestamp("ns", "UTC"), [1, None]),
        ([1_700_000_000_000_000_001], pa.timestamp("ns"), [1_700_000_000_000_000_001]),
        ([5, None], pa.duration("us"), [5, None]),
        ([5], pa.time32("ms"), [5]),
        (["a", None, "a"], pa.dictionary(pa.int8(), pa.string()), ["a", None, "a"]),
        ([[1, None], None, []], pa.list_(pa.int32()), [(1, None), None, ()]),
        ([[1, 2], None], pa.list_(pa.int32(), 2), [(1, 2), None]),
        ([{"a": 1, "b": [2]}, None], pa.struct([("a", pa.int8()), ("b", pa.list_(pa.int8()))]),
         [(1, (2,)), None]),
        ([{"t": 7}], pa.struct([("t", pa.timestamp("ns"))]), [(7,)]),
        ([[("k", 1)], None], pa.map_(pa.string(), pa.int32()), [(("k", 1),), None]),
        ([None], pa.null(), [None]),
    ],
)  # fmt: skip
def test_python_values(values: list[Any], kind: pa.DataType, expected: list[Any]) -> None:
    array = pa.array(values, kind)
    assert python_values(array) == expected
    assert python_values(array.slice(1)) == expected[1:]
    assert python_values(pa.chunked_array([array, array])) == expected * 2


def test_canonical() -> None:
    assert canonical((NAN, [NAN])) == canonical((NAN, (NAN,)))
    assert math.copysign(1, float(str(canonical(-0.0)))) == 1
    assert canonical((None, 1)) == (None, 1)
    assert len({canonical((NAN,)), canonical((NAN,))}) == 1


def test_equal_multisets_have_no_difference() -> None:
    assert difference([(1, NAN), (2, -0.0)], [(2, 0.0), (1, NAN)]) is None
    assert difference([], []) is None


def test_a_difference_names_rows_and_counts() -> None:
    text = difference([(1,), (1,), (3,)], [(1,), (2,), (2,)])
    assert text is not None
    assert text.splitlines() == [
        "3 rows, expected 3",
        "missing: 2",
        "  2 x (2,)",
        "surplus: 2",
        "  1 x (1,)",
        "  1 x (3,)",
    ]


def test_a_long_difference_is_cut() -> None:
    text = difference([], [(i,) for i in range(100)])
    assert text is not None
    assert "missing: 100" in text
    assert "… and 92 more" in text


def test_only_inexact_columns_have_a_tolerance() -> None:
    third = 1 / 3
    near = third * (1 + 1e-12)
    assert difference([(1, near)], [(1, third)], inexact=[1]) is None
    assert difference([(near, 1)], [(third, 1)], inexact=[1]) is not None
    assert difference([(1, third + 1e-6)], [(1, third)], inexact=[1]) is not None
    assert difference([(2, near)], [(1, third)], inexact=[1]) is not None
    assert difference([(1, near), (1, near)], [(1, third)], inexact=[1]) is not None
    assert difference([(1, None)], [(1, third)], inexact=[1]) is not None


def test_float_sums_and_averages_are_inexact() -> None:
    schema = pa.schema([("ts", pa.int64()), ("d", pa.float64()), ("n", pa.int64())])
    graph = parse(
        "SELECT A.n, SUM(A.d) + 1 AS s, SUM(A.n) AS t, AVG(A.n) AS a, MAX(A.d) AS m, A.n AS g "
        "FROM A [UNBOUNDED] GROUP BY A.n",
        {"A": schema},
    )
    assert inexact_columns(graph) == {1, 3}


def test_order_counts_between_instants_and_not_within() -> None:
    table = pa.table({"x": [1, 2, 3]})
    assert rows_of(table) == [(1,), (2,), (3,)]
    assert_same_rows(table, [(2,), (1,), (3,)])
    assert_same_rows(table, [(2,), (1,), (3,)], instants=[5, 5, 6])
    with pytest.raises(AssertionError, match="order"):
        assert_same_rows(table, [(2,), (1,), (3,)], instants=[5, 6, 6])


def test_the_schema_is_compared() -> None:
    schema = pa.schema([("ts", pa.int64()), ("x", pa.int32())])
    graph = parse("SELECT A.x FROM A [UNBOUNDED]", {"A": schema})
    assert_same_rows(pa.table({"x": pa.array([1], pa.int32())}), [(1,)], graph)
    with pytest.raises(AssertionError, match="schema"):
        assert_same_rows(pa.table({"x": pa.array([1], pa.int64())}), [(1,)], graph)
