"""Engines that share the tuples of a query share one clock through ``push(newest=…)``."""

from __future__ import annotations

import pyarrow as pa

import penstock

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("x", pa.int64())])
QUERY = penstock.parse(
    "SELECT A.id AS a, B.id AS b FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE A.x = B.x",
    schemas={"A": SCHEMA, "B": SCHEMA},
)


def rows(*values: tuple[int, int, int]) -> pa.Table:
    columns = zip(*values, strict=True) if values else ([], [], [])
    return pa.table([pa.array(c, pa.int64()) for c in columns], schema=SCHEMA)


def test_the_clock_moves_with_tuples_that_went_elsewhere() -> None:
    engine = penstock.Engine(QUERY, lateness=1_000)
    engine.push({"A": rows((1, 1_000, 7))}, newest={"A": 9_000, "B": 20_000})
    assert engine.newest == {"A": 9_000, "B": 20_000}
    assert engine.watermark == 8_000
    late = engine.push({"B": rows((2, 7_999, 7), (3, 8_000, 8))})
    assert late.num_rows == 0
    assert engine.metrics()["sources"]["B"]["late"] == 1


def test_older_news_changes_nothing() -> None:
    engine = penstock.Engine(QUERY)
    engine.push({"A": rows((1, 9_000, 7))})
    engine.push({}, newest={"A": 1_000})
    assert engine.newest == {"A": 9_000}


def test_columns_are_those_that_are_read() -> None:
    read = penstock.Engine(QUERY).columns
    assert {name: set(columns) for name, columns in read.items()} == {
        "A": {"id", "ts", "x"},
        "B": {"id", "ts", "x"},
    }
