"""Changing the plan of a running query: what is carried over, what is completed, and when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock
from penstock.engine.completion.asked_values import AskedValues
from penstock.engine.migration.change_of_plan import STRATEGIES
from penstock.engine.state import probing
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
        return {str(m.state.streams) for tree in self.engine.trees for m in tree.missing}


def test_complete_states_are_carried_over_and_others_dropped() -> None:
    """Section 2.2: ((A B) C) D becomes ((A B) D) C; only {A, B} exists in both."""
    run = Run("(((A B) C) D)", feedback="off")
    for stream in "ABC":
        run.push(stream, 1, 2)
    run.engine.migrate("(((A B) D) C)", strategy="jisc")
    assert str(run.engine.plan) == "(((A B) D) C)"
    assert run.states() == {"{A, B}": 2, "{A, B, D}": 0}
    assert run.incomplete == set()  # There is no old D: nothing can be missing.
    assert run.push("D", 1) == 1


def test_what_is_missing_is_completed_for_the_keys_that_are_asked_for() -> None:
    run = Run("(((A B) D) C)", feedback="off")
    for stream in "ABC":
        run.push(stream, *range(10))
    run.engine.migrate("(((B C) A) D)", strategy="jisc")
    assert run.incomplete == {"{B, C}", "{A, B, C}"}
    assert run.states() == {"{B, C}": 0, "{A, B, C}": 0}
    assert run.push("D", 3) == 1
    assert run.states()["{A, B, C}"] == 1
    assert run.push("D", 3, 4) == 2
    assert run.states()["{A, B, C}"] == 2
    assert run.push("A", 3) == 2


def test_a_state_is_completed_from_the_incomplete_state_below_it() -> None:
    """Procedure 3: what is made for {A, B, C} stays in {B, C} and serves whoever asks there."""
    run = Run("(((A B) D) C)", feedback="off")
    for stream in "ABCD":
        run.push(stream, *range(10))
    run.engine.migrate("(((B C) A) D)", strategy="jisc")
    lower, upper = run.engine.trees[0].missing
    run.push("D", 3)
    assert run.states() == {"{B, C}": 1, "{A, B, C}": 1}
    run.push("A", 3, 4)
    assert run.states() == {"{B, C}": 2, "{A, B, C}": 3}
    run.push("D", 3, 4)
    assert (lower.completed, upper.completed) == (2, 2)


def test_a_value_with_no_partner_goes_no_further_down() -> None:
    run = Run("(((A B) D) C)", feedback="off")
    for stream in "BC":
        run.push(stream, *range(10))
    run.push("A", 7)
    run.engine.migrate("(((B C) A) D)", strategy="jisc")
    assert run.push("D", *range(10)) == 1
    assert run.states() == {"{B, C}": 1, "{A, B, C}": 1}


def test_the_work_grows_with_the_number_of_incomplete_states() -> None:
    """Each of the stacked states is completed once for each value, whoever asks for it."""
    streams = "ABCDEFGH"
    schemas = dict.fromkeys(streams, SCHEMAS["A"])
    selected = ", ".join(f"{s}.id AS {s.lower()}" for s in streams)
    sources = ", ".join(f"{s} [RANGE 60 SECONDS]" for s in streams)
    equal = " AND ".join(f"A.k = {s}.k" for s in streams[1:])
    graph = penstock.parse(f"SELECT {selected} FROM {sources} WHERE {equal}", schemas=schemas)
    engine = penstock.Engine(graph, plan=left_deep(streams), feedback="off")
    keys = list(range(5))
    engine.push({s: pa.table([keys, keys, keys], schema=SCHEMAS["A"]) for s in streams})
    engine.migrate(left_deep(streams[::-1]), strategy="jisc")
    missing = list(engine.trees[0].missing)
    assert len(missing) == 6
    for number, stream in enumerate(streams):  # From the top of the new plan down.
        row = pa.table([[100 + number], [100 + number], [2]], schema=SCHEMAS["A"])
        assert engine.push({stream: row}).num_rows == 2**number
    assert [each.completed for each in missing] == [1] * 6
    assert sum(each.probes for each in missing) == 6


def left_deep(streams: str) -> str:
    text = streams[0]
    for stream in streams[1:]:
        text = f"({text} {stream})"
    return text


def test_each_row_is_completed_at_most_once() -> None:
    run = Run("((A B) C)", "ABC", feedback="off")
    run.push("A", 1, 1, 2)
    run.push("C", 1, 2)
    run.engine.migrate("((A C) B)", strategy="jisc")
    (missing,) = run.engine.trees[0].missing
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
    run.engine.migrate("((A C) B)", strategy="jisc")
    assert run.incomplete == {"{A, C}"}
    run.clock = 100_000
    for stream in "ABCA":
        run.push(stream, 1)
    assert run.incomplete == set()


def test_a_window_may_be_packed_while_something_is_missing() -> None:
    """Rows of A get new numbers: none of them is newer than the change of plan for that."""
    graph = penstock.parse(
        """SELECT A.id AS a, B.id AS b, C.id AS c, D.id AS d
        FROM A [PARTITION BY p ROWS 1], B [ROWS 500], C [ROWS 500], D [ROWS 500]
        WHERE A.k = B.k AND A.k = C.k AND A.k = D.k""",
        schemas={**SCHEMAS, "A": SCHEMAS["A"].append(pa.field("p", pa.int64()))},
    )
    engine = penstock.Engine(graph, plan="(((A B) C) D)", feedback="off")
    rows = {s: pa.table([[0, 1], [0, 1], [1, 2]], schema=SCHEMAS[s]) for s in "BCD"}
    a = pa.table([[0, 1], [0, 1], [1, 2], [1, 2]], schema=graph.streams[0].schema)
    engine.push({"A": a, **rows})
    engine.migrate("(((A B) D) C)", strategy="jisc")
    assert engine.trees[0].missing
    for number in range(2, 1000, 10):  # All in one partition, and of no value that matters.
        ids = list(range(number, number + 10))
        columns = [ids, ids, [9] * 10, [3] * 10]
        engine.push({"A": pa.table(columns, schema=graph.streams[0].schema)})
    assert len(engine.trees[0].leaves["A"].rows) < 500
    assert engine.push({"C": rows["C"].slice(1)}).num_rows == 1


def test_overlapped_transitions() -> None:
    """Figure 4: a second transition while states of the first are incomplete."""
    run = Run("(((A B) C) D)", feedback="off")
    for stream in STREAMS:
        run.push(stream, *range(6))
    run.engine.migrate("(((B C) D) A)", strategy="jisc")
    run.push("A", 1)
    run.engine.migrate("(((C D) B) A)", strategy="jisc")
    run.push("B", 1, 2)
    run.engine.migrate("(((B C) D) A)", strategy="jisc")
    for stream in STREAMS:
        run.push(stream, 1, 2, 3)


def test_an_incomplete_state_is_carried_over_with_what_it_has() -> None:
    """Section 4.5. {B, C, D} is in both plans, and is made of {B, C} as before, which is not."""
    run = Run("(((A B) C) D)", feedback="off")
    for stream in STREAMS:
        run.push(stream, *range(10))
    run.engine.migrate("(((B C) D) A)", strategy="jisc")
    run.push("A", 1, 2, 3)
    assert run.states() == {"{B, C}": 3, "{B, C, D}": 3}
    run.engine.migrate("(((C D) B) A)", strategy="jisc")
    (tree,) = run.engine.trees
    assert run.states() == {"{C, D}": 0, "{B, C, D}": 3}
    assert [str(each.streams) for each in tree.completion.remnants] == ["{B, C}"]
    run.push("A", 3, 4)
    assert run.states()["{B, C, D}"] == 4
    for stream in STREAMS:
        run.push(stream, 2, 5)
    run.engine.migrate("((D (B C)) A)", strategy="jisc")  # {B, C} is a state of the plan again.
    run.push("B", 1, 6)
    run.push("A", *range(10))
    assert "{B, C, D}" not in run.incomplete
    assert run.engine.trees[0].completion.remnants == []
    for stream in STREAMS:
        run.push(stream, 1, 7)


def test_what_a_carried_state_is_made_of_goes_with_what_it_lacks() -> None:
    run = Run("(((A B) C) D)", feedback="off")
    for stream in STREAMS:
        run.push(stream, *range(6))
    run.engine.migrate("(((B C) D) A)", strategy="jisc")
    run.engine.migrate("(((C D) B) A)", strategy="jisc")
    (tree,) = run.engine.trees
    assert len(tree.completion.remnants) == 1
    assert len(tree.kept) == 3
    run.clock = 100_000
    for stream in "ABCDA":
        run.push(stream, 1)
    assert run.incomplete == set()
    assert tree.completion.remnants == []
    assert len(tree.kept) == 2


@pytest.mark.parametrize("execution", ["auto", "reference"])
@pytest.mark.parametrize("seed", range(8))
def test_many_changes_in_a_row(seed: int, execution: str) -> None:
    run = Run(PLANS[0], feedback="off", execution=execution)
    chance = np.random.default_rng(seed)
    for stream in STREAMS:
        run.push(stream, *chance.integers(0, 8, 20).tolist())
    for _ in range(30):
        run.engine.migrate(PLANS[chance.integers(len(PLANS))], strategy="jisc")
        for stream in chance.permutation(list(STREAMS))[: chance.integers(1, 4)]:
            run.push(stream, *chance.integers(0, 8, chance.integers(1, 3)).tolist())
        if chance.random() < 0.1:
            run.clock += 20_000


PLANS = ["(((A B) C) D)", "(((B C) D) A)", "(((C D) B) A)", "((D (B C)) A)", "((B C) (A D))"]
PLANS += ["((A B C) D)", "(((A D) B) C)", "(A (B (C D)))", "((A B) (C D))"]


def test_a_complete_state_above_an_incomplete_one_is_carried_over_again() -> None:
    """Figure 3d: {A, B, C} is complete though {B, C} below it is not, and stays so."""
    run = Run("(((A B) C) D)", feedback="off")
    for stream in STREAMS:
        run.push(stream, *range(6))
    run.engine.migrate("(((B C) A) D)", strategy="jisc")
    assert run.incomplete == {"{B, C}"}
    run.push("B", 1)
    run.push("A", 2, 3)
    before = run.states()["{A, B, C}"]
    run.engine.migrate("(((A C) B) D)", strategy="jisc")
    assert run.incomplete == {"{A, C}"}
    assert run.states()["{A, B, C}"] == before
    for stream in STREAMS:
        run.push(stream, 1, 2, 3)


def test_there_and_back_again_before_anything_came() -> None:
    run = Run("((A B) C)", "ABC", feedback="off")
    run.push("A", 1, 2)
    run.push("B", 1, 2)
    run.engine.migrate("((A C) B)", strategy="jisc")
    run.engine.migrate("((A B) C)", strategy="jisc")
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


@given(
    st.lists(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9))), st.integers(0, 99)
)
def test_no_value_is_thought_asked_for_that_was_not(pushes: list[list[int]], rows: int) -> None:
    asked, known = AskedValues(rows), set[int]()
    for values in pushes:
        fresh = asked.fresh(np.array(values, np.int64)).tolist()
        assert set(values) - known <= set(fresh) <= set(values)
        known.update(values)
    asked.clear()
    assert asked.fresh(np.arange(-3, 4)).tolist() == list(range(-3, 4))


def test_a_failed_push_completes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run("((A B) C)", "ABC", feedback="off")
    run.push("A", 1, 2)
    run.push("C", 1, 2)
    run.engine.migrate("((A C) B)", strategy="jisc")

    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    batch = {"B": pa.table([[9], [run.clock], [1]], schema=SCHEMAS["B"])}
    with monkeypatch.context() as patch:
        patch.setattr(type(run.engine._join.output), "stage", fail)
        with pytest.raises(ZeroDivisionError):
            run.engine.push(batch)
    assert run.states() == {"{A, C}": 0}
    assert run.push("B", 1, 2) == 2


def changing(a: int, b: int, c: int) -> penstock.Engine:
    """Windows with so many different keys, the plan being changed to ((A B) C)."""
    engine = penstock.Engine(query("ABC"), plan="((A C) B)", feedback="off")
    chance, times = np.random.default_rng(5), np.arange(4_000)
    keys = {"A": a, "B": b, "C": c}
    engine.push(
        {
            name: pa.table([times, times, chance.integers(0, count, 4_000)], schema=SCHEMAS[name])
            for name, count in keys.items()
        }
    )
    engine.migrate("((A B) C)", strategy="jisc")
    while engine._changes.preparation is not None:
        engine.push({})
    return engine


def push_others(engine: penstock.Engine, rows: int) -> None:
    """Rows of C that ask for nothing that there is."""
    times = np.full(rows, 4_000)
    keys = np.full(rows, -1)
    engine.push({"C": pa.table([times, times, keys], schema=SCHEMAS["C"])})


def test_what_nobody_asks_for_is_completed_beside_if_it_is_little() -> None:
    engine = changing(4_000, 4_000, 4_000)
    (missing,) = engine.trees[0].missing
    completions = [0.0]
    while engine.trees[0].missing:
        push_others(engine, 200)
        assert missing.completion > completions[-1]
        completions.append(missing.completion)
    assert len(completions) > 3  # Never all at once.
    whole = penstock.Engine.restore(query("ABC"), engine.checkpoint(), "((A C) B)")
    whole.migrate("((A B) C)", strategy="moving-state")
    assert missing.completed == whole.metrics()["state"]["joins"]["{A, B}"]["rows"] > 1_000


def test_many_combinations_are_left_to_who_asks() -> None:
    engine = changing(100, 100, 4_000)
    (missing,) = engine.trees[0].missing
    for _ in range(50):
        push_others(engine, 600)
    assert 0 < missing.completed < 10_000  # Of 160,000.
    assert missing.completion < 0.1


def test_a_value_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_for: list[int] = []

    def probe_keys(values: Any, *others: Any) -> Any:
        looked_for.extend(values.tolist())
        return probing.probe_keys(values, *others)

    monkeypatch.setattr("penstock.engine.completion.missing.probe_keys", probe_keys)
    run = Run("((A B) C)", "ABC", feedback="off")
    run.push("A", 1, 2)
    run.push("C", 1, 2)
    run.engine.migrate("((A C) B)", strategy="jisc")
    run.push("B", 1, 7, 0, 7)
    run.push("B", 7, 0, 1, 3)
    assert looked_for == [1, 7, 0, 3]


def test_memory_of_the_old_plan_is_given_back() -> None:
    run = Run("((A B) C)", "ABC", feedback="off")
    before = run.engine.metrics()["state"]["bytes"]
    keys = [i % 5 for i in range(100)]
    run.push("A", *keys)
    run.push("B", *keys)
    big = run.engine.metrics()["state"]["bytes"]
    run.engine.migrate("((A C) B)", strategy="jisc")
    run.push("C", 7)
    assert before < run.engine.metrics()["state"]["bytes"] < big / 2


def test_mistakes_say_so_and_change_nothing() -> None:
    run = Run("((A B) C)", "ABC")
    with pytest.raises(penstock.OptionError, match="strategy='jump' does not exist"):
        run.engine.migrate("((A C) B)", strategy="jump")
    with pytest.raises(penstock.PlanError, match="leaves out C"):
        run.engine.migrate("(A B)", strategy="jisc")
    assert str(run.engine.plan) == "((A B) C)"
    run.push("A", 1)
