"""Residual predicates in the compiled push, against the reference: results, counts and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock
from penstock.errors import InputError

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("x", pa.int64()),
        ("y", pa.int64()),
        ("f", pa.float64()),
        ("i", pa.int32()),
        ("s", pa.string()),
        ("ts", pa.int64()),
    ]
)
FROM = (
    "SELECT A.id AS a, B.id AS b, C.id AS c FROM A [RANGE {w} MILLISECONDS], "
    "B [RANGE {w} MILLISECONDS], C [RANGE {w} MILLISECONDS] WHERE A.x = B.x AND A.y = C.y AND "
)
PREDICATES = (
    "A.f < B.f + C.f",
    "A.id + B.id > C.id OR A.i < 0",
    "NOT (A.f >= B.f OR C.i IS NULL)",
    "A.s LIKE 'a%' OR A.s < B.s",
    "A.i * B.i <> C.i AND (A.s = B.s OR B.f > 1)",
    "COALESCE(A.i, B.i, 1) <= C.i AND A.id % 3 <> B.id % 3",
    "A.f * B.f / 3 >= C.f",
    "LENGTH(A.s) + B.i > C.i",
)
ALWAYS = penstock.Feedback(adaptive=False)


def batches(seed: int, count: int, xs: int, start: int) -> dict[str, pa.RecordBatch]:
    random = np.random.default_rng(seed)
    found = {}
    for name in "ABC":
        clock = start + np.arange(count)
        floats = random.choice([0.0, -0.0, np.nan, np.inf, 1.5, -2.0, 0.25], count)
        columns: list[Any] = [clock, random.integers(0, xs, count), random.integers(0, xs, count)]
        columns.append(pa.array(floats, mask=random.random(count) < 0.1))
        columns.append(
            pa.array(
                random.integers(-3, 4, count).astype(np.int32), mask=random.random(count) < 0.1
            )
        )
        texts = random.choice(["a", "ab", "b", ""], count).tolist()
        columns.append(pa.array([None if random.random() < 0.1 else text for text in texts]))
        found[name] = pa.record_batch([*columns, clock], schema=SCHEMA)
    return found


def engine_for(predicate: str, plan: str, feedback: Any, way: str, w: int) -> penstock.Engine:
    text = FROM.format(w=w) + f"({predicate})"
    query = penstock.parse(text, dict.fromkeys("ABC", SCHEMA))
    return penstock.Engine(query, plan=plan, feedback=feedback, execution=way)


def answer(engine: penstock.Engine, push: dict[str, pa.RecordBatch]) -> list[tuple[Any, ...]]:
    table = engine.push(push)
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def counts(engine: penstock.Engine) -> list[Any]:
    metrics = engine.metrics()
    return [[(join["made"], join["matches"]) for join in metrics["joins"]], metrics["feedback"]]


@settings(max_examples=25)
@given(
    st.sampled_from(PREDICATES),
    st.sampled_from(["((A B) C)", "(A B C)", "((A C) B)"]),
    st.sampled_from(["off", ALWAYS]),
    st.integers(0, 99),
    st.sampled_from([1, 7, 40]),
)
def test_the_answers_are_those_of_the_reference(
    predicate: str, plan: str, feedback: Any, seed: int, size: int
) -> None:
    engines = [engine_for(predicate, plan, feedback, way, 300) for way in ("auto", "reference")]
    for number in range(6):
        push = batches(seed + number, size, 6, number * size)
        found, expected = (answer(engine, push) for engine in engines)
        assert found == expected
    if feedback == "off":
        assert engines[0].metrics()["execution"]["reference"] == 0


@pytest.mark.parametrize("predicate", PREDICATES)
def test_so_they_are_at_size(predicate: str) -> None:
    """Rings wrap, grow and are packed; candidates go in several blocks."""
    engines = [
        engine_for(predicate, "((A B) C)", "off", way, 6000) for way in ("auto", "reference")
    ]
    total = 0
    for number in range(9):
        push = batches(number, 900, 3000, number * 900)
        tables = [engine.push(push) for engine in engines]
        rows = [sorted(zip(*(c.to_pylist() for c in t.columns), strict=True)) for t in tables]
        assert rows[0] == rows[1]
        total += len(rows[0])
    assert total > 100
    assert engines[0].metrics()["execution"]["compiled"] == 9


def one(x: int, ts: int, i: int | None = 1, f: float | None = 1.0) -> pa.RecordBatch:
    columns = [[ts], [x], [x], [f], [i], ["a"], [ts]]
    return pa.record_batch(
        [pa.array(c, t) for c, t in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA
    )


@pytest.mark.parametrize("predicate", ["A.f / B.i > 2", "A.f / B.i > 2 AND C.s LIKE 'a'"])
@pytest.mark.parametrize("plan", ["((A B) C)", "(A B C)"])
def test_an_error_is_one_only_for_rows_that_meet_alive(predicate: str, plan: str) -> None:
    said = []
    for way in ("auto", "reference"):
        engine = engine_for(predicate, plan, "off", way, 1000)
        engine.push({"B": one(1, 0, 0), "C": one(1, 0)})
        # B is dead by now, though it is still seen: a division by zero that nobody needs.
        engine.push({"A": one(1, 1001, f=6.0), "C": one(1, 1001)})
        assert answer(engine, {"B": one(1, 1002, 2)}) == [(1001, 1002, 1001)]
        with pytest.raises(InputError) as caught:
            engine.push({"B": one(1, 1003, 0)})
        said.append(str(caught.value))
        # Nothing has changed.
        assert answer(engine, {"B": one(1, 1004, 1)}) == [(1001, 1004, 1001)]
        execution = engine.metrics()["execution"]
        assert execution["compiled" if way == "auto" else "reference"] == 4
    assert said[0] == said[1]
    assert "division by zero" in said[0]


def test_an_error_does_not_count_where_the_rest_has_decided() -> None:
    for way in ("auto", "reference"):
        engine = engine_for("B.i <> 0 AND A.f / B.i > 2", "(A B C)", "off", way, 1000)
        engine.push({"A": one(1, 0, f=6.0), "C": one(1, 0)})
        assert answer(engine, {"B": one(1, 1, 0)}) == []
        assert answer(engine, {"B": one(1, 2, None)}) == []
        assert answer(engine, {"B": one(1, 3, 1)}) == [(0, 3, 0)]


def test_candidates_of_composites_are_those_that_were_tested() -> None:
    """Beside a theta join orders run one by one; one that asks goes on with what it had found."""
    text = (
        "SELECT A.id AS a, B.id AS b, C.id AS c, D.id AS d, E.id AS e FROM A [RANGE 1 SECOND], "
        "B [RANGE 1 SECOND], C [RANGE 1 SECOND], D [RANGE 1 SECOND], E [RANGE 1 SECOND] WHERE "
        "A.x = B.x AND A.y = C.y AND B.y = D.y AND C.s < D.s AND E.id > A.id AND E.id < A.id + 9"
    )
    query = penstock.parse(text, schemas=dict.fromkeys("ABCDE", SCHEMA))
    ways = [
        penstock.Engine(query, plan="(((A B) C D) E)", adapt="off", execution=way)
        for way in ("auto", "reference")
    ]
    chance = np.random.default_rng(5)
    total = 0
    for number in range(6):
        push = {}
        for name in "ABCDE":
            ids = range(100 * number, 100 * number + 20)
            x, y = chance.integers(0, 4, 20), chance.integers(0, 3, 20)
            s = [chance.choice(["a", "b", "c"]) for _ in ids]
            columns = [ids, x, y, [1.0] * 20, [1] * 20, s, [100 * number] * 20]
            arrays = [pa.array(c, t) for c, t in zip(columns, SCHEMA.types, strict=True)]
            push[name] = pa.record_batch(arrays, schema=SCHEMA)
        results = [sorted(map(str, engine.push(push).to_pylist())) for engine in ways]
        assert results[0] == results[1]
        total += len(results[0])
    assert total > 100
