"""Who tells its inputs what it wants: the table of ``docs/notes/jit.md``, line by line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.testing.compare import assert_same_rows
from penstock.testing.oracle import Oracle

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
STATIC = pa.schema([(name, pa.int64()) for name in ("id", "x", "y")])
CHAIN = "A.x = B.x AND A.y = C.y"
IDS = "A.id AS a, B.id AS b, C.id AS c"
WINDOWS = ("RANGE 30 MILLISECONDS", "ROWS 30", "PARTITION BY x ROWS 8", "UNBOUNDED")


def run(text: str, plan: str, static: str = "", pushes: int = 12) -> dict[str, Any]:
    """The counts of guards that are always on; the answer must be that of the oracle.

    Keys y are many, so that most rows are without a partner there.
    """
    aliases = [name for name in "ABC" if f"FROM {name} " in text or f", {name} " in text]
    names = [*aliases, *static]
    schemas = {name: STATIC if name in static else SCHEMA for name in names}
    query = penstock.parse(text, schemas=schemas)
    engine = penstock.Engine(query, plan=plan, feedback=penstock.Feedback(adaptive=False))
    oracle, random = Oracle(query), np.random.default_rng(7)
    for start in range(0, 10 * pushes, 10):
        push = {}
        for name in names:
            clock = np.sort(random.integers(start, start + 10, 10))
            keys = random.integers(0, 4, 10), random.integers(0, 60, 10)
            if name not in static:
                push[name] = pa.table([start + np.arange(10), clock, *keys], schema=SCHEMA)
            elif start == 0:
                push[name] = pa.table([np.arange(10), *keys], schema=STATIC)
        assert_same_rows(engine.push(push), oracle.push(push), query)
    return dict(engine.metrics()["feedback"])


def slept(feedback: dict[str, Any]) -> dict[str, int]:
    return {
        f"{each['input'][1:-1]} for {each['waits_for'][1:-1]}": each["slept"]
        for each in feedback["guards"]
    }


@pytest.mark.parametrize("window", WINDOWS)
def test_every_kind_of_window_waits(window: str) -> None:
    text = f"SELECT {IDS} FROM A [{window}], B [{window}], C [{window}] WHERE {CHAIN}"
    found = slept(run(text, "((A B) C)"))
    assert found.keys() == {"A for C", "B for C"}
    assert found["A for C"] > 0


def test_a_level_leaves_guards_out() -> None:
    streams = ", ".join(f"{name} [UNBOUNDED]" for name in "ABCD")
    text = f"SELECT {IDS} FROM {streams} WHERE A.x = B.x AND B.y = C.y AND A.y = D.y AND C.x = D.x"
    query = penstock.parse(text, schemas=dict.fromkeys("ABCD", SCHEMA))

    def guards(level: int | None) -> set[str]:
        feedback = penstock.Feedback(adaptive=False, level=level)
        told = penstock.Engine(query, plan="(((A C) B) D)", feedback=feedback).metrics()["feedback"]
        return {f"{each['input'][1:-1]} for {each['waits_for'][1:-1]}" for each in told["guards"]}

    single = {"A for D", "B for D", "C for D", "A for B", "C for B"}
    assert guards(1) == single
    assert guards(2) == guards(None) == single | {"A, C for D"}


def test_now_waits() -> None:
    now = "A [NOW], B [NOW], C [NOW]"
    assert slept(run(f"SELECT {IDS} FROM {now} WHERE {CHAIN}", "((A B) C)"))["A for C"] > 0


def test_a_binary_join_does_not_make_its_own_inputs_wait_and_an_mjoin_does() -> None:
    window = "[RANGE 30 MILLISECONDS]"
    text = f"SELECT {IDS} FROM A {window}, B {window}, C {window} WHERE {CHAIN}"
    assert not {"A for B", "B for A"} & slept(run(text, "((A B) C)")).keys()
    assert "A for C" in slept(run(text, "(A B C)"))


def test_where_anything_is_unequal_rows_wait_for_an_empty_input_only() -> None:
    window = "[RANGE 30 MILLISECONDS]"
    where = "A.x = B.x AND A.y <> C.y"
    text = f"SELECT {IDS} FROM A {window}, B {window}, C {window} WHERE {where}"
    assert slept(run(text, "((A B) C)"))["A for C"] == 0, "there is a C from the first push on"
    query = penstock.parse(text, schemas=dict.fromkeys("ABC", SCHEMA))
    engine = penstock.Engine(
        query, plan="((A B) C)", feedback=penstock.Feedback(adaptive=False, record=True)
    )
    engine.push({"A": pa.table([[1], [1], [1], [1]], schema=SCHEMA)})
    assert [str(each) for each in engine.messages] == ["({A, B, C}) suspend {A} ∅"]


def test_a_static_relation_is_waited_for_by_nobody_and_waits_for_nobody() -> None:
    window = "[RANGE 30 MILLISECONDS]"
    text = f"SELECT {IDS} FROM A {window}, B {window}, C WHERE {CHAIN}"
    feedback = run(text, "((A B) C)", static="C")
    assert slept(feedback)["A for C"] == 0
    assert feedback["dropped"] > 0
    text = f"SELECT {IDS} FROM A, B {window}, C {window} WHERE {CHAIN}"
    assert not [each for each in slept(run(text, "((A B) C)", static="A")) if each[0] == "A"]


def test_neither_side_of_a_difference_waits_for_the_other() -> None:
    window = "[RANGE 30 MILLISECONDS]"
    text = f"SELECT A.x AS x FROM A {window} EXCEPT SELECT B.x AS x FROM B {window}"
    assert slept(run(text, "A")) == {}


def test_rows_may_go_for_good_where_only_the_greatest_value_counts() -> None:
    window = "[RANGE 30 MILLISECONDS]"
    streams = f"FROM A {window}, B {window}, C {window} WHERE {CHAIN}"
    greatest = run(f"SELECT MAX(A.id) AS m {streams}", "((A B) C)")
    assert greatest["surpassed"].keys() == {"A", "B", "C"}
    for more in "COUNT(*)", "SUM(B.id)", "AVG(C.id)":
        text = f"SELECT MAX(A.id) AS m, {more} AS n {streams}"
        assert run(text, "((A B) C)")["surpassed"] == {}
