"""Rows that have lost their partner go back to sleep: what is forgotten, and what it saves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.feedback import back_to_sleep
from penstock.engine.feedback.feedback import Feedback
from penstock.engine.feedback.waiting_in_window import WaitingInWindow
from penstock.testing.compare import assert_same_rows, rows_of
from penstock.testing.fuzz import fuzz
from penstock.testing.oracle import Oracle

COLUMNS = {"A": "id ts x y", "B": "id ts x", "C": "id ts y"}
SCHEMAS = {
    name: pa.schema([(column, pa.int64()) for column in columns.split()])
    for name, columns in COLUMNS.items()
}
QUERY = penstock.parse(
    """SELECT A.id AS a, B.id AS b, C.id AS c
    FROM A [RANGE 6 SECONDS], B [RANGE 6 SECONDS], C [RANGE 500 MILLISECONDS]
    WHERE A.x = B.x AND A.y = C.y""",
    schemas=SCHEMAS,
)
SECOND = 1_000


def pushes(keys_return: bool, seconds: int = 20) -> list[dict[str, pa.Table]]:
    """A thousand A and B and a hundred C a second; keys of C last for 100 ms, or are random."""
    random = np.random.default_rng(7)
    found = []
    for second in range(seconds):
        push = {}
        for name, every in (("A", 1), ("B", 1), ("C", 10)):
            clock = np.arange(second * SECOND, (second + 1) * SECOND, every)
            key = random.integers(0, 50, len(clock)) if keys_return else clock // 100
            columns = {"id": clock, "ts": clock, "x": random.integers(0, 300, len(clock)), "y": key}
            push[name] = pa.table([columns[c] for c in COLUMNS[name].split()], SCHEMAS[name])
        found.append(push)
    return found


def run(feedback: Any, given: list[dict[str, pa.Table]]) -> tuple[list[Any], dict[str, Any]]:
    engine = penstock.Engine(QUERY, plan="((A B) C)", feedback=feedback)
    answers = [rows_of(engine.push(push)) for push in given]
    return [sorted(map(str, answer)) for answer in answers], engine.metrics()


def test_rows_go_back_where_keys_pass_by() -> None:
    given = pushes(keys_return=False, seconds=30)
    (expected, plain), (found, told) = (run(kind, given) for kind in ("off", "jit"))
    assert found == expected
    (guard,) = [g for g in told["feedback"]["guards"] if g["on"]]
    assert (guard["input"], guard["waits_for"]) == ("{A}", "{C}")
    assert guard["returned"] > 5_000
    assert told["joins"][0]["made"] < 0.8 * plain["joins"][0]["made"]
    assert told["state"]["bytes"] < plain["state"]["bytes"] / 2


def test_rows_stay_where_keys_return() -> None:
    _, told = run("jit", pushes(keys_return=True))
    assert told["feedback"]["returned"] == 0


def small(engine: penstock.Engine, oracle: Oracle, **rows: list[tuple[int, ...]]) -> None:
    batches = {
        name: pa.Table.from_pylist(
            [dict(zip(COLUMNS[name].split(), each, strict=True)) for each in values],
            schema=SCHEMAS[name],
        )
        for name, values in rows.items()
    }
    assert_same_rows(engine.push(batches), oracle.push(batches), QUERY, instants=oracle.instants)


def awake() -> tuple[penstock.Engine, Oracle]:
    """A row of A that has met two of B and one of C, which has died."""
    engine = penstock.Engine(QUERY, plan="((A B) C)", feedback=Feedback(adaptive=False))
    oracle = Oracle(QUERY)
    small(engine, oracle, A=[(1, 0, 1, 1)], B=[(1, 0, 1), (2, 0, 1)], C=[(1, 0, 1)])
    small(engine, oracle, A=[(2, 800, 9, 9)], B=[(3, 800, 8)], C=[(2, 800, 7)])
    small(engine, oracle, A=[(3, 900, 9, 9)], B=[(4, 900, 8)], C=[(3, 900, 7)])
    return engine, oracle


def test_what_was_made_is_forgotten_and_made_again() -> None:
    engine, oracle = awake()
    tree = engine.trees[0]
    (state,) = tree.states
    assert len(state.whole_rows()) == 2
    asleep = engine.metrics()["feedback"]["asleep"]
    tree.put_back(lambda: True)
    assert len(state.whole_rows()) == 0
    assert engine.metrics()["feedback"]["asleep"] == asleep + 1
    small(engine, oracle, B=[(5, 1_000, 1)])
    assert len(state.whole_rows()) == 0
    small(engine, oracle, C=[(4, 1_100, 1)])
    assert len(state.whole_rows()) == 3


def test_nothing_has_changed_if_there_is_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, oracle = awake()

    def without_memory(*_: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(WaitingInWindow, "put", without_memory)
        with pytest.raises(MemoryError):
            engine.trees[0].put_back(lambda: True)
    assert engine.metrics()["feedback"]["returned"] == 0
    small(engine, oracle, B=[(5, 1_000, 1)], C=[(4, 1_000, 1)])


def test_combinations_that_are_not_forgotten_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(back_to_sleep._Parts, "forget", lambda parts: iter([0] * len(parts._held)))
    with pytest.raises(AssertionError, match="seed"):
        list(fuzz(1, 1043, large_every=1))


@pytest.mark.parametrize("seed", range(4))
def test_combinations_are_found_by_their_parts(seed: int) -> None:
    """By one number for each as long as that can be, and by ranks beyond."""

    class Leaf:
        class rows:  # noqa: N801
            tail, head = 5, 5 + (1 << 40)

    random = np.random.default_rng(seed)
    leaves: Any = dict.fromkeys("ABC", Leaf)
    ids = {alias: random.integers(5, 9, 200) for alias in "ABCD"}
    parts = {alias: random.integers(5, 9, 9) for alias in "ABC"}
    wanted = set(zip(*parts.values(), strict=True))
    expected = [(a, b, c) in wanted for a, b, c in zip(ids["A"], ids["B"], ids["C"], strict=True)]
    assert back_to_sleep._are_made_of(ids, parts, leaves).tolist() == expected
