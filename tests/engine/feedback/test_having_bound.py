"""HAVING tells the inputs which rows can be in no group that is shown."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.engine.feedback import having_bound
from penstock.engine.feedback.having_bound import with_bounds
from penstock.testing.compare import assert_same_rows
from penstock.testing.oracle import Oracle

COLUMNS = {"ts": pa.int64(), "x": pa.int64(), "v": pa.float64(), "s": pa.string()}
SCHEMAS = {name: pa.schema(list(COLUMNS.items())) for name in "AB"}
FLOATS = (None, -1.0, -0.0, 0.0, 1.0, 2.0, float("nan"))
SINGLE = (
    "MAX(A.v) > 0",
    "0 <= MAX(A.v)",
    "MAX(A.v) >= A.x",
    "MAX(A.v) > 0 AND B.s LIKE 'a%'",
    "MAX(A.v) < 2",
    "MAX(A.v) = 1",
    "MAX(A.v) <> 1",
    "NOT MAX(A.v) <= 0",
    "MAX(A.v) > 0 OR A.x = 1",
    "MAX(A.v) IS NOT NULL AND B.s IS NOT NULL",
    "A.x = 1 AND (B.s = 'a' OR B.s IS NULL)",
    "MAX(A.v) > MAX(A.v)",
)


def query(having: str, aggregates: str = "MAX(A.v) AS m", emission: str = "{}") -> str:
    text = f"""SELECT A.x AS x, B.s AS s, {aggregates}
    FROM A [RANGE 12 MILLISECONDS], B [RANGE 8 MILLISECONDS]
    WHERE A.x = B.x GROUP BY A.x, B.s HAVING {having}"""
    return emission.format(text)


def bounds(text: str) -> list[str]:
    graph = penstock.parse(text, schemas=SCHEMAS)
    return [str(each) for each in with_bounds(graph).predicates[len(graph.predicates) :]]


@pytest.mark.parametrize(
    ("having", "aggregates", "expected"),
    [
        ("MAX(A.v) > 0", "MAX(A.v) AS m", ["A.v > 0.0"]),
        ("1 >= MIN(A.v)", "MIN(A.v) AS m", ["1.0 >= A.v"]),
        ("MAX(A.v) > 0 AND A.x < 3", "MAX(A.v) AS m", ["A.v > 0.0", "A.x < 3"]),
        ("COUNT(*) > 2 AND B.s = 'a'", "SUM(A.v) AS m", ["B.s = 'a'"]),
        ("MAX(A.v) < 0", "MAX(A.v) AS m", []),
        ("MIN(A.v) > 0", "MIN(A.v) AS m", []),
        ("MAX(A.v) > 0", "MAX(A.v) AS m, MAX(B.v) AS n", []),
        ("MAX(A.v) > 0", "MAX(A.v) AS m, COUNT(*) AS n", []),
        ("MAX(A.v + B.v) > 0", "MAX(A.v + B.v) AS m", []),
        ("COUNT(*) > 0", "COUNT(*) AS n", []),
        ("1 / A.x > 0", "MAX(A.v) AS m", []),
    ],
)
def test_what_is_told(having: str, aggregates: str, expected: list[str]) -> None:
    assert bounds(query(having, aggregates)) == expected


def random_rows(chance: random.Random, start: int) -> pa.Table:
    rows: list[dict[str, Any]] = [
        {
            "ts": start + chance.randrange(6),
            "x": chance.randrange(3),
            "v": chance.choice(FLOATS),
            "s": chance.choice(["a", "ab", "", None]),
        }
        for _ in range(chance.randint(0, 6))
    ]
    return pa.Table.from_pylist(sorted(rows, key=lambda row: row["ts"]), SCHEMAS["A"])


def run_cases(seeds: range) -> int:
    """Run these against the oracle; rows that came into no window."""
    filtered = 0
    for seed in seeds:
        chance = random.Random(seed)
        having, aggregates = chance.choice(SINGLE), "MAX(A.v) AS m"
        if chance.random() < 0.4:
            having, aggregates = having.replace("MAX", "MIN"), "MIN(A.v) AS m"
        elif chance.random() < 0.4:
            aggregates += ", MAX(B.v) AS n" if chance.random() < 0.5 else ", COUNT(*) AS n"
        emission = chance.choice(["{}", "DSTREAM ({})", "RSTREAM ({})"])
        text = query(having, aggregates, emission)
        if chance.random() < 0.2:
            text = text.replace("RANGE 12 MILLISECONDS", "ROWS 9")
            text = text.replace("RANGE 8 MILLISECONDS", "ROWS 6")
        graph = penstock.parse(text, schemas=SCHEMAS)
        lateness = None if graph.by_rows else chance.choice([None, 3])
        engine = penstock.Engine(graph, lateness=lateness)
        oracle = Oracle(graph, lateness)
        for number in range(6):
            batches = {name: random_rows(chance, 5 * number) for name in SCHEMAS}
            answer, expected = engine.push(batches), oracle.push(batches)
            context = f"seed {seed}, push {number}\n{text}"
            assert_same_rows(answer, expected, graph, instants=oracle.instants, context=context)
            if number == 3:
                blob = engine.checkpoint()
                filtered += engine.metrics()["filtered"]
                engine = penstock.Engine.restore(graph, blob)
        answer, expected = engine.finish(), oracle.finish()
        context = f"seed {seed}, finish\n{text}"
        assert_same_rows(answer, expected, graph, instants=oracle.instants, context=context)
    return filtered


def test_answers_are_those_of_the_oracle() -> None:
    assert run_cases(range(150)) > 300


@pytest.mark.parametrize("function", ["max", "min"])
def test_a_bound_that_tells_nothing_is_found(
    monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    monkeypatch.setitem(having_bound._TELLING, function, (">", ">=", "<", "<=", "=", "<>"))
    with pytest.raises(AssertionError, match="seed"):
        run_cases(range(150))


def test_rows_that_cannot_be_shown_are_in_no_window() -> None:
    graph = penstock.parse(query("MAX(A.v) > 0"), schemas=SCHEMAS)
    row = {"ts": 1, "x": 1, "v": -1.0, "s": "a"}
    for feedback, held in (("jit", 1), ("off", 2)):
        engine = penstock.Engine(graph, feedback=feedback)
        table = pa.Table.from_pylist([row, {**row, "v": 1.0}], SCHEMAS["A"])
        assert engine.push({"A": table, "B": table}).to_pylist() == [{"x": 1, "s": "a", "m": 1.0}]
        assert engine.metrics()["state"]["windows"]["A"]["rows"] == held
