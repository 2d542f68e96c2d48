"""Every key type of the design, with NULLs; payload columns of any Arrow type, untouched."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock

UTC = dt.UTC
EARLY, LATE = dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(2262, 1, 1)
NAN = float("nan")

KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [-128, 127, 0, None]),
    "int16": (pa.int16(), [-32768, 32767, None]),
    "int32": (pa.int32(), [-(2**31), 2**31 - 1, None]),
    "int64": (pa.int64(), [-(2**63), 2**63 - 1, 2**53 + 1, 2**53, None]),
    "uint8": (pa.uint8(), [0, 255, None]),
    "uint64": (pa.uint64(), [0, 2**64 - 1, 2**63, None]),
    "bool": (pa.bool_(), [True, False, None]),
    "string": (pa.string(), ["", "a", "A", "a ", "é", "e\u0301", "x" * 100, None]),
    "large_string": (pa.large_string(), ["", "a", "\0", "\0\0", None]),
    "string_view": (pa.string_view(), ["short", "much longer than twelve bytes", None]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", "b", None]),
    "binary": (pa.binary(), [b"", b"\0", b"\0\0", b"a", None]),
    "fixed binary": (pa.binary(3), [b"abc", b"ab\0", None]),
    "decimal small": (pa.decimal128(9, 2), [Decimal("1.10"), Decimal("-1.10"), None]),
    "decimal wide": (
        pa.decimal128(38, 10),
        [Decimal(10) ** 27, Decimal(10) ** 27 + 1, Decimal("1e-10"), None],
    ),
    "decimal256": (pa.decimal256(60, 0), [Decimal(10) ** 50, Decimal(10) ** 50 + 1, None]),
    "date32": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "date64": (pa.date64(), [dt.date(1970, 1, 1), dt.date(2024, 2, 29), None]),
    "timestamp s": (pa.timestamp("s"), [EARLY, LATE, None]),
    "timestamp us": (pa.timestamp("us"), [EARLY, EARLY.replace(microsecond=1), None]),
    "timestamp tz": (
        pa.timestamp("us", "Europe/Vienna"),
        [dt.datetime(2024, 1, 1, tzinfo=UTC), dt.datetime(2024, 1, 2, tzinfo=UTC), None],
    ),
    "time64": (pa.time64("us"), [dt.time(0), dt.time(23, 59, 59, 999999), None]),
    "duration": (pa.duration("ms"), [dt.timedelta(0), dt.timedelta(days=-1), None]),
    "float": (pa.float32(), [0.0, -0.0, NAN, 1.5, math.inf, -math.inf, None]),
    "double": (pa.float64(), [0.0, -0.0, NAN, 0.1, 0.1 + 2**-55, 5e-324, -math.inf, None]),
}


def equal(left: Any, right: Any) -> bool:
    """Spark SQL's equality."""
    if left is None or right is None:
        return False
    if isinstance(left, float) and math.isnan(left):
        return isinstance(right, float) and math.isnan(right)
    return bool(left == right)


def table(type_: pa.DataType, values: list[Any]) -> pa.Table:
    n = len(values)
    return pa.table(
        {"ts": np.arange(n), "id": np.arange(n), "k": pa.array(values, type_)},
        schema=pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("k", type_)]),
    )


def joined(type_: pa.DataType, values: list[Any], where: str, one_by_one: bool) -> set[Any]:
    data = table(type_, values)
    graph = penstock.parse(
        f"SELECT A.id AS a, B.id AS b FROM A [UNBOUNDED], B [UNBOUNDED] WHERE {where}",
        {"A": data.schema, "B": data.schema},
    )
    engine = penstock.Engine(graph)
    pushes = [data.slice(i, 1) for i in range(len(data))] if one_by_one else [data]
    found = [row for push in pushes for row in engine.push({"A": push, "B": push}).to_pylist()]
    pairs = {(row["a"], row["b"]) for row in found}
    assert len(pairs) == len(found)
    return pairs


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("name", KEYS)
def test_equality_of_every_key_type(name: str, one_by_one: bool) -> None:
    type_, distinct = KEYS[name]
    values = distinct * 2
    held = table(type_, values)["k"].to_pylist()
    if name == "duration":
        held = values
    expected = {
        (i, j) for i, left in enumerate(held) for j, right in enumerate(held) if equal(left, right)
    }
    assert joined(type_, values, "A.k = B.k", one_by_one) == expected
    assert len(expected) >= len(distinct) - 1


@pytest.mark.parametrize("name", [n for n in KEYS if n not in ("dictionary", "bool")])
def test_order_of_every_key_type(name: str) -> None:
    type_, distinct = KEYS[name]

    def less(left: Any, right: Any) -> bool:
        if left is None or right is None:
            return False
        if isinstance(left, float) and math.isnan(left):
            return False
        if isinstance(right, float) and math.isnan(right):
            return True
        if isinstance(left, str):
            return bool(left.encode() < right.encode())
        return bool(left < right)

    held = distinct if name == "duration" else table(type_, distinct)["k"].to_pylist()
    expected = {
        (i, j) for i, left in enumerate(held) for j, right in enumerate(held) if less(left, right)
    }
    assert joined(type_, distinct, "A.k < B.k", False) == expected


def test_composite_keys() -> None:
    values = ["a", "b", None]
    n = 27
    data = pa.table(
        {
            "ts": np.zeros(n, int),
            "id": np.arange(n),
            "s": [values[i % 3] for i in range(n)],
            "d": [None if i % 7 == 0 else float(i % 4) for i in range(n)],
            "n": [i % 2 for i in range(n)],
        }
    )
    graph = penstock.parse(
        """SELECT A.id AS a, B.id AS b FROM A [NOW], B [NOW]
           WHERE A.s = B.s AND A.d = B.d AND A.n = B.n""",
        {"A": data.schema, "B": data.schema},
    )
    found = penstock.Engine(graph).push({"A": data, "B": data}).to_pylist()
    rows = data.to_pylist()
    expected = [
        {"a": x["id"], "b": y["id"]}
        for x in rows
        for y in rows
        if all(equal(x[c], y[c]) for c in ("s", "d", "n"))
    ]
    key = lambda row: (row["a"], row["b"])  # noqa: E731
    assert sorted(found, key=key) == sorted(expected, key=key)
    assert expected


@pytest.mark.parametrize(
    ("left", "right", "pairs"),
    [
        ((pa.int8(), [1, 2]), (pa.int64(), [2, 3]), {(1, 0)}),
        ((pa.int64(), [2**53 + 1]), (pa.float64(), [2.0**53]), {(0, 0)}),
        ((pa.int64(), [2**63 - 1]), (pa.uint64(), [2**63 - 1, 2**63]), {(0, 0)}),
        ((pa.int64(), [-1]), (pa.uint64(), [2**64 - 1]), set()),
        (
            (pa.decimal128(5, 1), [Decimal("1.5")]),
            (pa.decimal128(30, 20), [Decimal("1.5"), Decimal("1.50000000000000000001")]),
            {(0, 0)},
        ),
        ((pa.int32(), [3]), (pa.decimal128(4, 1), [Decimal("3.0"), Decimal("3.1")]), {(0, 0)}),
        ((pa.string(), ["x"]), (pa.large_string(), ["x"]), {(0, 0)}),
        ((pa.float32(), [0.1]), (pa.float64(), [0.1, float(np.float32(0.1))]), {(0, 1)}),
        (
            (pa.timestamp("s"), [dt.datetime(2024, 1, 1)]),
            (pa.timestamp("ns"), [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 1)]),
            {(0, 0)},
        ),
        (
            (pa.date32(), [dt.date(2024, 1, 1)]),
            (pa.timestamp("us"), [dt.datetime(2024, 1, 1)]),
            {(0, 0)},
        ),
    ],
)
def test_keys_of_two_types(left: Any, right: Any, pairs: set[tuple[int, int]]) -> None:
    a, b = table(*left), table(*right)
    graph = penstock.parse(
        "SELECT A.id AS a, B.id AS b FROM A [UNBOUNDED], B [UNBOUNDED] WHERE A.k = B.k",
        {"A": a.schema, "B": b.schema},
    )
    found = penstock.Engine(graph).push({"A": a, "B": b}).to_pylist()
    assert {(row["a"], row["b"]) for row in found} == pairs


PAYLOADS: list[pa.Array] = [
    pa.array([1, None, 3], pa.int8()),
    pa.array([1.5, None, -0.0], pa.float16()),
    pa.array([True, None, False]),
    pa.array(["a", None, "ccc"], pa.string_view()),
    pa.array([b"a", None, b""], pa.large_binary()),
    pa.array([Decimal("1.1"), None, Decimal("2.2")], pa.decimal256(50, 3)),
    pa.array(["x", None, "y"]).dictionary_encode(),
    pa.array([[1, 2], None, []], pa.list_(pa.int32())),
    pa.array([[1], None, [2]], pa.large_list(pa.int8())),
    pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)),
    pa.array([[1], None, []], pa.list_view(pa.int64())),
    pa.array([{"a": 1, "b": [None]}, None, {"a": None, "b": []}]),
    pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32())),
    pa.nulls(3),
    pa.array([pa.MonthDayNano([1, 2, 3]), None, pa.MonthDayNano([0, 0, 0])]),
    pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", None])),
    pa.UnionArray.from_sparse(
        pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 3]), pa.array(["x", "y", "z"])]
    ),
    pa.UnionArray.from_dense(
        pa.array([0, 1, 0], pa.int8()),
        pa.array([0, 0, 1], pa.int32()),
        [pa.array([1, 2]), pa.array(["x"])],
    ),
    pa.ExtensionArray.from_storage(
        pa.uuid(), pa.array([b"0" * 16, None, b"1" * 16], pa.binary(16))
    ),
    pa.array([dt.time(1, 2, 3), None, dt.time(0)], pa.time32("s")),
    pa.array([5_000, None, -5_000], pa.duration("ns")),
    pa.array([5_000, None, -5_000], pa.timestamp("ns", "America/New_York")),
]


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda a: str(a.type)[:30])
def test_payload_passes_through_untouched(payload: pa.Array, restart: bool) -> None:
    schema = pa.schema([("ts", pa.int64()), ("x", pa.int64()), ("p", payload.type)])
    graph = penstock.parse(
        "SELECT A.x AS x, A.p AS left, B.p AS right FROM A [RANGE 1 DAY], B [RANGE 1 DAY] "
        "WHERE A.x = B.x",
        {"A": schema, "B": schema},
    )
    engine = penstock.Engine(graph)
    rounds = 4
    for i in range(rounds):
        x = np.arange(3 * i, 3 * i + 3)
        engine.push({"A": pa.table([x, x, payload], schema=schema)})
    if restart:
        engine = penstock.Engine.restore(graph, engine.checkpoint())
    n = 3 * rounds
    x = np.arange(n)
    whole = pa.concat_arrays([payload] * rounds)
    answer = engine.push({"B": pa.table([x * 0 + n, x, whole], schema=schema)})
    assert answer.schema.field("left").type == payload.type
    answer = answer.to_pylist()
    answer.sort(key=lambda row: row["x"])
    values = whole.to_pylist()
    assert repr([row["left"] for row in answer]) == repr(values)
    assert repr([row["right"] for row in answer]) == repr(values)
