"""Compiled pushes against the same orders step by step."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_streams import streams

import penstock
from penstock.engine.compiled.compiled_push import CompiledPush

SCHEMA = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("z", pa.int64()), ("ts", pa.int64())])
JOINS = {
    "chain": "A.x = B.x AND B.y = C.y",
    "two columns": "A.x = B.x AND A.y = B.y AND B.y = C.y AND B.z = C.z",
    "clique": "A.x = B.x AND B.y = C.y AND A.z = C.z",
    "with a comparison": "A.x = B.x AND A.z < B.z AND B.y = C.y AND A.y <> C.x",
}
PLANS = ["((A B) C)", "(A (B C))", "(A B C)", "(A B C | A:C,B B:C,A C:B,A)"]
WINDOWS = ["[RANGE 300 MILLISECONDS]", "[RANGE 90 MILLISECONDS]", "[ROWS 40]", "[UNBOUNDED]"]


def run(
    text: str, plan: str, feedback: Any, tables: dict[str, pa.RecordBatch], batch: int
) -> tuple[list[list[dict[str, Any]]], list[dict[str, Any]]]:
    engine = penstock.Engine(
        penstock.parse(text, dict.fromkeys("ABC", SCHEMA)), plan=plan, feedback=feedback
    )
    answers = []
    for at in range(0, len(tables["A"]), batch):
        push = {name: table.slice(at, batch) for name, table in tables.items()}
        answers.append(engine.push(push).to_pylist())
        engine.sweep()  # The dead are matches, too, for as long as they are there.
    counts = [
        {"probes": join["probes"], "matches": join["matches"]} for join in engine.metrics()["joins"]
    ]
    return answers, counts


@given(
    st.sampled_from(sorted(JOINS)),
    st.sampled_from(PLANS),
    st.sampled_from(WINDOWS),
    st.sampled_from(["off", penstock.Feedback(adaptive=False)]),
    st.integers(0, 999),
    st.booleans(),
    st.sampled_from([1, 7, 30]),
)
def test_the_same_results_in_the_same_order_and_the_same_counts(
    join: str, plan: str, window: str, feedback: Any, seed: int, wide: bool, batch: int
) -> None:
    text = (
        "SELECT A.ts AS a, A.x AS ax, B.ts AS b, C.ts AS c, C.z AS cz "
        f"FROM A {window}, B {window}, C {window} WHERE {JOINS[join]}"
    )
    tables = streams(seed, 60, 5, wide)
    in_one_call = run(text, plan, feedback, tables, batch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompiledPush, "why_not", lambda edges: "told so")
        stepwise = run(text, plan, feedback, tables, batch)
    assert in_one_call[1] == stepwise[1]
    for one, other in zip(in_one_call[0], stepwise[0], strict=True):
        if "ROWS" not in window:  # There a result is born by arrival, which no column tells.
            assert [_birth(row) for row in one] == [_birth(row) for row in other]
        assert sorted(map(_values, one)) == sorted(map(_values, other))


def _birth(row: dict[str, Any]) -> int:
    return int(max(row["a"], row["b"], row["c"]))


def _values(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.values())


def test_more_matches_than_there_is_room_for() -> None:
    """Every row meets every other: what comes out is more than anybody could expect."""
    count = 400
    same = pa.record_batch(
        {"x": [1] * count, "y": [1] * count, "z": [1] * count, "ts": [0] * count}, schema=SCHEMA
    )
    engine = penstock.Engine(
        penstock.parse(
            "SELECT A.ts AS a FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE A.x = B.x",
            {"A": SCHEMA, "B": SCHEMA},
        ),
        plan="(A B)",
    )
    assert engine.push({"A": same, "B": same}).num_rows == count * count
    assert engine.push({"A": same.slice(0, 1)}).num_rows == count


def test_engines_in_threads_do_not_disturb_each_other() -> None:
    text = (
        "SELECT A.ts AS a, B.ts AS b, C.ts AS c FROM A [RANGE 90 MILLISECONDS], "
        "B [RANGE 90 MILLISECONDS], C [RANGE 90 MILLISECONDS] WHERE " + JOINS["chain"]
    )
    inputs = [streams(seed, 2_000, 50, False) for seed in range(4)]
    expected = [run(text, "((A B) C)", "off", each, 50) for each in inputs]
    found: dict[int, Any] = {}

    def work(number: int) -> None:
        found[number] = run(text, "((A B) C)", "off", inputs[number], 50)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[number] for number in range(4)] == expected
