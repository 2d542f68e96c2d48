"""The plan that is told is the plan that runs: with EXCEPT, under ``defer``, from the first change
in a process on."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.migration import preparation
from penstock.testing.compare import assert_same_rows
from penstock.testing.oracle import Oracle

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
EXCEPT = """SELECT A.id AS a FROM A [RANGE 1 SECONDS], B [RANGE 1 SECONDS], C [RANGE 1 SECONDS]
WHERE A.x = B.x AND A.y = C.y
EXCEPT SELECT D.id AS a FROM D [RANGE 1 SECONDS], E [RANGE 1 SECONDS], F [RANGE 1 SECONDS]
WHERE D.x = E.x AND D.y = F.y
EXCEPT SELECT G.id AS a FROM G [RANGE 1 SECONDS]"""


def batch(
    streams: str, chance: np.random.Generator, clock: int, rows: int, keys: int = 9
) -> dict[str, pa.Table]:
    times = np.arange(clock, clock + rows)
    return {
        name: pa.table([times, times, *chance.integers(0, keys, (2, rows))], schema=SCHEMA)
        for name in streams
    }


def test_a_change_of_one_block_leaves_the_others_as_they_are() -> None:
    graph = penstock.parse(EXCEPT, schemas=dict.fromkeys("ABCDEFG", SCHEMA))
    engine = penstock.Engine(graph, plan="((A B) C) - ((D E) F) - G", feedback="off")
    oracle, chance = Oracle(graph, None), np.random.default_rng(1)
    changes = {
        "((A C) B)": "((A C) B) - ((D E) F) - G",
        "((A C) B) - G - ((D F) E)": "((A C) B) - G - ((D F) E)",
        "(A B C)": "(A B C) - G - ((D F) E)",
    }
    clock = 0
    for plan, told in changes.items():
        engine.migrate(plan, strategy="jisc")
        assert str(engine.plan) == str(engine.running_plan) == told
        for _ in range(3):
            pushed = batch("ABCDEFG", chance, clock, 10)
            clock += 10
            assert_same_rows(
                engine.push(pushed), oracle.push(pushed, None), graph, instants=oracle.instants
            )
    events = [each for each in engine.history if each.action == "set"]
    assert [each.plan for each in events] == list(changes.values())


def test_the_order_of_subtraction_is_that_of_the_plan() -> None:
    graph = penstock.parse(EXCEPT, schemas=dict.fromkeys("ABCDEFG", SCHEMA))
    engine = penstock.Engine(graph, plan="(A B C) - G - (D E F)")
    assert str(engine.plan) == str(engine.running_plan) == "(A B C) - G - (D E F)"
    engine.migrate("cacq")
    assert str(engine.plan) == str(engine.running_plan) == "cacq (A B C) - G - (D E F)"
    assert str(penstock.Engine(graph, plan="(A B C)").plan) == "(A B C) - (D E F) - G"


def test_a_plan_changes_while_probes_are_owed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that is prepared takes over all the same; what it had to make up for leaves once."""
    monkeypatch.setattr(preparation, "_ROWS_PER_PUSH", 120)
    monkeypatch.setattr(preparation, "_ROWS_PER_ROW", 0)
    monkeypatch.setattr(preparation, "_ROWS_PER_MATCH", 0)
    sources = ", ".join(f"{name} [RANGE 500 MILLISECONDS]" for name in "ABC")
    graph = penstock.parse(
        f"SELECT A.id AS a, B.id AS b, C.id AS c FROM {sources} WHERE A.x = B.x AND A.y = C.y",
        schemas=dict.fromkeys("ABC", SCHEMA),
    )
    overload = penstock.Overload("defer", probes=3_000)
    engine = penstock.Engine(graph, plan="((A B) C)", feedback="off", overload=overload)
    other = penstock.Engine(graph, plan="((A B) C)", feedback="off")
    chance, owed = np.random.default_rng(3), []
    found: list[tuple[int, ...]] = []
    expected: list[tuple[int, ...]] = []
    for number in range(40):
        pushed = batch("ABC", chance, 30 * number, 30 if number < 30 else 1, 100)
        for each, rows in ((engine, found), (other, expected)):
            answer = each.push(pushed)
            rows += zip(*(answer[name].to_pylist() for name in "abc"), strict=True)
        if number == 18:
            engine.migrate("((A C) B)", strategy="jisc")
        if number >= 18 and str(engine.running_plan) == "((A B) C)":
            owed.append(engine.owes)
    assert all(owed[1:])
    assert 2 < len(owed) < 15
    assert str(engine.running_plan) == "((A C) B)"
    assert len(set(found)) == len(found) > len(expected) // 2
    assert set(found) <= set(expected)


LOADING = """
import sys
import pyarrow as pa
from numba.core import caching
import penstock

loaded = []
load = caching.Cache.load_overload

def noting(cache, *arguments):
    loaded.append(str(cache._name))
    return load(cache, *arguments)

caching.Cache.load_overload = noting
schema = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
where, feedback, strategy = sys.argv[1:]
sources = ", ".join(f"{name} [RANGE 1 SECONDS]" for name in "ABC")
graph = penstock.parse(
    f"SELECT A.id AS a, B.id AS b, C.id AS c FROM {sources} WHERE {where}",
    schemas=dict.fromkeys("ABC", schema),
)
plans = ("((A B) C)", "((A C) B)") if where.count("=") > 1 else ("((A B) C)", "(A (B C))")
engine = penstock.Engine(graph, plan=plans[0], feedback=feedback)
for number in range(30):
    if number == 10:
        loaded.clear()
    if number % 5 == 0 and number >= 10:
        engine.migrate(plans[number // 5 % 2 == 0], strategy=strategy)
    times = list(range(20 * number, 20 * number + 20))
    keys = [time % 7 for time in times]
    rows = pa.table([times, times, keys, keys], schema=schema)
    engine.push({name: rows for name in "ABC"})
print(loaded)
"""


@pytest.mark.parametrize(
    ("where", "feedback", "strategy"),
    [
        ("A.x = B.x AND A.y = C.y", "off", "jisc"),
        ("A.x = B.x AND A.y = C.y", "jit", "jisc"),
        ("A.x = B.x AND A.y = C.y", "off", "auto"),
        ("A.x < B.y AND B.x < C.y", "off", "jisc"),
        ("A.x BETWEEN B.y - 1 AND B.y + 1 AND B.x BETWEEN C.y - 1 AND C.y + 1", "off", "jisc"),
        ("A.x < B.y AND (A.y + B.x + C.x) % 3 = 0", "off", "jisc"),
    ],
    ids=["equal", "jit", "auto", "theta", "band", "residual"],
)
def test_no_kernel_is_loaded_by_the_first_change_in_a_process(
    where: str, feedback: str, strategy: str
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LOADING, where, feedback, strategy],
        capture_output=True,
        text=True,
        check=True,
        timeout=1_800,
    )
    assert ran.stdout.strip() == "[]"
