"""Changing the plan of a running query: what is carried over, what is completed, and when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.change_of_plan import STRATEGIES
from penstock.testing.compare import assert_same_rows
from penstock.testing.oracle import Oracle

STREAMS = "ABCD"
SCHEMAS = {
    s: pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("k", pa.int64())]) for s in STREAMS
}


def query(streams: str = STREAMS, seconds: int = 60) -> Any:
    selected = ", ".join(f"{s}.id AS {s.lower()}" for s in streams)
    sources = ", ".join(f"{s} [RANGE {seconds} SECONDS]" for s in streams)
    equal = " AND ".join(f"{streams[0]}.k = {s}.k" for s in streams[1:])
    return penstock.parse(f"SELECT {selected} FROM {sources} WHERE {equal}", schemas=SCHEMAS)


class Run:
    """An engine beside the oracle."""

    def __init__(self, plan: str, streams: str = STREAMS, **options: Any) -> None:
        self.graph = query(streams)
        self.engine = penstock.Engine(self.graph, plan=plan, **options)
        self.oracle = Oracle(self.graph, None)
        self.clock = 0

    def push(self, stream: str, *keys: int) -> int:
        """Rows of ``stream`` with these keys; how many results there were."""
        times = [self.clock + i for i in range(len(keys))]
        self.clock += len(keys)
        batch = {stream: pa.table([times, times, list(keys)], schema=SCHEMAS[stream])}
        answer = self.engine.push(batch)
        assert_same_rows(answer, self.oracle.push(batch, None), self.graph)
        return int(answer.num_rows)

    def states(self) -> dict[str, int]:
        return {
            name: each["rows"] for name, each in self.engine.metrics()["state"]["joins"].items()
        }

    @property
    def incomplete(self) -> set[str]:
        return {str(m.state.streams) for tree in self.engine._trees for m in tree.missing}


def test_complete_states_are_carried_over_and_others_dropped() -> None:
    """Section 2.2: ((A B) C) D becomes ((A B) D) C; only {A, B} exists in both."""
    run = Run("(((A B) C) D)", feedback="off")
    for stream in "ABC":
        run.push(stream, 1, 2)
    run.engine.migrate("(((A B) D) C)")
    assert str(run.engine.plan) == "(((A B) D) C)"
    assert run.states() == {"{A, B}": 2, "{A, B, D}": 0}
    assert run.incomplete == set()  # There is no old D: nothing can be missing.
    assert run.push("D", 1) == 1


def test_what_is_missing_is_completed_for_the_keys_that_are_asked_for() -> None:
    run = Run("(((A B) D) C)", feedback="off")
    for stream in "ABC":
        run.push(stream, *range(10))
    run.engine.migrate("(((B C) A) D)")
    assert run.incomplete == {"{B, C}", "{A, B, C}"}
    assert run.states() == {"{B, C}": 0, "{A, B, C}": 0}
    assert run.push("D", 3) == 1
    assert run.states()["{A, B, C}"] == 1
    assert run.push("D", 3, 4) == 2
    assert run.states()["{A, B, C}"] == 2
    assert run.push("A", 3) == 2


def test_each_row_is_completed_at_most_once() -> None:
    run = Run("((A B) C)", "ABC", feedback="off")
    run.push("A", 1, 1, 2)
    run.push("C", 1, 2)
    run.engine.migrate("((A C) B)")
    (missing,) = run.engine._trees[0].missing
    for _ in range(3):
        run.push("B", 1)
    assert missing.completed == 2
    run.push("B", 2)
    assert missing.completed == 3
    assert run.incomplete == set()  # No row is left: complete by the counter.


def test_a_state_is_complete_when_the_old_rows_of_a_stream_have_died() -> None:
    run = Run("((A B) C)", "ABC", feedback="off")
    run.push("A", *range(5))
    run.push("C", *range(5))
    run.engine.migrate("((A C) B)")
    assert run.incomplete == {"{A, C}"}
    run.clock = 100_000
    for stream in "ABCA":
        run.push(stream, 1)
    assert run.incomplete == set()


def test_overlapped_transitions() -> None:
    """Figure 4: a second transition while states of the first are incomplete."""
    run = Run("(((A B) C) D)", feedback="off")
    for stream in STREAMS:
        run.push(stream, *range(6))
    run.engine.migrate("(((B C) D) A)")
    run.push("A", 1)
    run.engine.migrate("(((C D) B) A)")
    run.push("B", 1, 2)
    run.engine.migrate("(((B C) D) A)")
    for stream in STREAMS:
        run.push(stream, 1, 2, 3)


def test_there_and_back_again_before_anything_came() -> None:
    run = Run("((A B) C)", "ABC", feedback="off")
    run.push("A", 1, 2)
    run.push("B", 1, 2)
    run.engine.migrate("((A C) B)")
    run.engine.migrate("((A B) C)")
    assert run.push("C", 1, 2) == 2


def test_moving_state_leaves_nothing_missing() -> None:
    run = Run("(((A B) C) D)", feedback="off")
    for stream in "ABC":
        run.push(stream, 1, 2, 3)
    run.engine.migrate("(((A C) B) D)", strategy="moving-state")
    assert run.incomplete == set()
    assert run.states() == {"{A, C}": 3, "{A, B, C}": 3}
    assert run.push("D", 1, 2, 3) == 3


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("plan", ["((A B) (C D))", "(A B C D)", "((A C D) B)", "(A ((D B) C))"])
def test_any_shape(plan: str, strategy: str) -> None:
    run = Run("(((A B) C) D)")
    random = np.random.default_rng(3)
    for number in range(24):
        if number == 12:
            run.engine.migrate(plan, strategy=strategy)
        run.push(STREAMS[number % 4], *random.integers(0, 4, 3).tolist())


def test_a_failed_push_completes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run("((A B) C)", "ABC", feedback="off")
    run.push("A", 1, 2)
    run.push("C", 1, 2)
    run.engine.migrate("((A C) B)")

    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    batch = {"B": pa.table([[9], [run.clock], [1]], schema=SCHEMAS["B"])}
    with monkeypatch.context() as patch:
        patch.setattr(type(run.engine._output), "stage", fail)
        with pytest.raises(ZeroDivisionError):
            run.engine.push(batch)
    assert run.states() == {"{A, C}": 0}
    assert run.push("B", 1, 2) == 2


def test_memory_of_the_old_plan_is_given_back() -> None:
    run = Run("((A B) C)", "ABC", feedback="off")
    before = run.engine.metrics()["state"]["bytes"]
    keys = [i % 5 for i in range(100)]
    run.push("A", *keys)
    run.push("B", *keys)
    big = run.engine.metrics()["state"]["bytes"]
    run.engine.migrate("((A C) B)")
    run.push("C", 7)
    assert before < run.engine.metrics()["state"]["bytes"] < big / 2


def test_mistakes_say_so_and_change_nothing() -> None:
    run = Run("((A B) C)", "ABC")
    with pytest.raises(penstock.OptionError, match="strategy='jump' does not exist"):
        run.engine.migrate("((A C) B)", strategy="jump")
    with pytest.raises(penstock.PlanError, match="leaves out C"):
        run.engine.migrate("(A B)")
    assert str(run.engine.plan) == "((A B) C)"
    run.push("A", 1)
