"""Pushes that are made straight through: which they are, and what happens when they fail.

That they give the answers of other ways is in ``test_plain_batches.py``; and all property tests of
the engine go this way wherever they can.
"""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.compiled.compiled_push import CompiledPush
from penstock.engine.compiled.plain_answer import PlainAnswer
from penstock.engine.engine import Engine
from penstock.engine.running.compiled_way import push_compiled
from penstock.errors import InputError, PenstockError
from penstock.kernels import whole_push

SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("n", pa.int32()),
        ("h", pa.float16()),
        ("s", pa.string()),
        ("ts", pa.int64()),
    ]
)
JOIN = "SELECT A.ts AS a, B.n AS b FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE A.k = B.k"


def engine(text: str = JOIN, **options: Any) -> Engine:
    return Engine(penstock.parse(text, dict.fromkeys("ABC", SCHEMA), event_time="ts"), **options)


def batch(keys: list[int | None], times: list[int]) -> pa.RecordBatch:
    count = len(times)
    columns = [
        pa.array(keys, pa.int64()),
        pa.array(range(count), pa.int32()),
        pa.array(np.arange(count, dtype=np.float16)),
        pa.array([None] * count, pa.string()),
        pa.array(times, pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each push was made straight through."""
    seen: list[bool] = []

    def watched(*arguments: Any) -> Any:
        made = push_compiled(*arguments)
        seen.append(not isinstance(made, str))
        return made

    monkeypatch.setattr("penstock.engine.running.either_way.push_compiled", watched)
    return seen


def test_which_pushes_are_whole(whole: list[bool]) -> None:
    running = engine(lateness=10)
    running.push({"A": batch([1, 2], [5, 5])})
    running.push({"A": batch([1, 2], [5, 7]), "B": batch([], [])})
    assert running.push({"B": pa.Table.from_batches([batch([1], [20])])}).num_rows == 2
    chunks = pa.Table.from_batches([batch([1], [20]), batch([1], [20])])
    assert running.push({"A": chunks}).num_rows == 2
    assert running.push({"A": batch([1], [5])}).num_rows == 0  # It is late.
    running.push({"A": batch([1, 1], [21, 20])})
    running.push({"A": batch([1, None], [21, 21])})
    running.push({"A": batch([], [])})
    running.push({})
    assert whole == [True] * 9
    assert running.metrics()["late"] == 1


def test_promised_and_shared_time_are_no_reason(whole: list[bool]) -> None:
    running = engine()
    running.push({"A": batch([1], [5])}, watermark=3)
    assert running.watermark == 3
    running.push({"A": batch([1], [5])}, newest={"A": 9, "B": 7})
    assert (running.newest, running.watermark) == ({"A": 9, "B": 7}, 7)
    assert whole == [True, True]
    assert running.metrics()["execution"] == {"compiled": 2, "reference": 0, "reasons": {}}


def test_the_reference_is_an_option() -> None:
    running = engine(execution="reference")
    running.push({"A": batch([1], [5])})
    assert running.push({"B": batch([1], [5])}).num_rows == 1
    told = running.metrics()["execution"]
    assert told == {"compiled": 0, "reference": 2, "reasons": {"execution='reference'": 2}}
    with pytest.raises(PenstockError, match="execution='fast' does not exist"):
        engine(execution="fast")


@pytest.mark.parametrize(
    "text",
    [
        JOIN.replace("RANGE 1 SECOND", "ROWS 5"),
        JOIN.replace("A.k = B.k", "A.k < B.k"),
    ],
)
def test_other_kinds_of_joins_are_whole_as_well(text: str, whole: list[bool]) -> None:
    running = engine(text)
    for time in (5, 6):
        running.push({"A": batch([1], [time]), "B": batch([2], [time])})
    assert whole == [True, True]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (JOIN.replace("A.ts AS a", "A.ts + 1 AS a"), [{"a": 6, "b": 0}]),
        (JOIN.replace("A.ts AS a, B.n AS b", "COUNT(*) AS n"), [{"n": 1}]),
        (JOIN.replace("SELECT", "SELECT DSTREAM"), [{"a": 5, "b": 0}]),
    ],
)
def test_what_is_done_with_results_makes_no_difference(
    text: str, expected: list[dict[str, int]], whole: list[bool]
) -> None:
    running = engine(text)
    running.push({"A": batch([1], [5])})
    found = running.push({"B": batch([1], [5])}).to_pylist()
    found += running.push({"A": batch([7], [9_000]), "B": batch([8], [9_000])}).to_pylist()
    assert found[: len(expected)] == expected
    assert whole == [True] * 3


def test_a_payload_with_a_null(whole: list[bool]) -> None:
    running = engine()
    unknown = batch([1], [5]).set_column(1, "n", pa.nulls(1, pa.int32()))
    running.push({"A": batch([1], [5])})
    assert running.push({"B": unknown}).to_pylist() == [{"a": 5, "b": None}]
    assert running.push({"A": batch([1], [6])}).to_pylist() == [{"a": 6, "b": None}]
    assert running.push({"B": batch([1], [7])}).num_rows == 2
    assert whole == [True] * 4


def test_one_source_read_twice(whole: list[bool]) -> None:
    running = engine(
        "SELECT X.ts AS x, Y.ts AS y FROM A [RANGE 1 SECOND] X, A [RANGE 5 SECONDS] Y "
        "WHERE X.k = Y.k"
    )
    assert running.push({"A": batch([1, 2], [5, 6])}).num_rows == 2
    found = running.push({"A": batch([1], [2_000])}).to_pylist()
    assert sorted(found, key=str) == [{"x": 2_000, "y": 2_000}, {"x": 2_000, "y": 5}]
    assert whole == [True, True]


def test_results_of_one_push_that_lie_years_apart(whole: list[bool]) -> None:
    """Too many digits to be sorted by: the table is made step by step, of the same results."""
    running = engine(JOIN.replace("RANGE 1 SECOND", "UNBOUNDED"))
    far = 1 << 50
    running.push({"A": batch([8], [0]), "B": batch([7], [0])})
    table = running.push({"A": batch([1, 7], [3, far]), "B": batch([1, 8], [4, far])})
    assert sorted(table["a"].to_pylist()[1:]) == [0, far]
    assert table["a"][0].as_py() == 3
    assert whole == [True, True]


def test_many_results_leave_no_large_table_behind(whole: list[bool]) -> None:
    running = engine()
    many = batch([1] * 300, [5] * 300)
    assert running.push({"A": many, "B": many}).num_rows == 90_000
    compiled = running.trees[0].in_one_call()
    assert compiled is not None
    assert compiled._results.nbytes == 0
    assert whole == [True]


def test_a_small_answer_holds_no_more_memory_than_it_needs(whole: list[bool]) -> None:
    """Room is made for as many results as the last push had."""
    running = engine()
    many = batch([1] * 100, [5] * 100)
    assert running.push({"A": many, "B": many}).num_rows == 10_000
    small = running.push({"A": batch([7], [6]), "B": batch([7], [6])})
    assert small.num_rows == 1
    assert small.get_total_buffer_size() == 16
    more = running.push({"A": batch([1], [7])})
    assert more["a"].to_pylist() == [7] * 100
    assert whole == [True] * 3


@pytest.mark.parametrize("times", [[5, 6], [6, 5]], ids=["in order", "out of order"])
def test_the_batches_are_let_go_of(times: list[int], whole: list[bool]) -> None:
    running = engine(lateness=10)
    given = batch([1, 2], times)
    running.push({"A": given})
    known = weakref.ref(given)
    del given
    gc.collect()
    assert known() is None
    assert whole == [True]


def interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def after(function: Any) -> Any:
    """``function``, interrupted when it has done its work."""

    def both(*arguments: Any) -> None:
        function(*arguments)
        raise KeyboardInterrupt

    return both


@pytest.mark.parametrize(
    "place",
    [
        (CompiledPush, "_call", interrupted),
        (PlainAnswer, "table", interrupted),
        (whole_push, "push", after(whole_push.push)),
    ],
    ids=["before", "late", "as soon as the kernel is done"],
)
def test_a_push_that_fails_changes_nothing(
    place: tuple[Any, str, Any], monkeypatch: pytest.MonkeyPatch, whole: list[bool]
) -> None:
    running, reference = engine(), engine()
    for each in (running, reference):
        each.push({"A": batch([1, 2, 3], [5, 5, 5])})
    before = running.metrics()
    with monkeypatch.context() as patch:
        patch.setattr(*place)
        with pytest.raises(KeyboardInterrupt):
            running.push({"A": batch([1, 2], [6, 6]), "B": batch([1], [6])})
    assert running.metrics() == before
    more = {"A": batch([2, 1], [6, 7]), "B": batch([1, 2, 2], [6, 6, 8])}
    expected = reference.push(more).to_pylist()
    assert running.push(more).to_pylist() == expected
    assert len(expected) == 6


def test_who_cannot_go_back_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    running = engine()
    running.push({"A": batch([1], [5])})
    with monkeypatch.context() as patch:
        patch.setattr(CompiledPush, "_synchronise", interrupted)
        with pytest.raises(KeyboardInterrupt):
            running.push({"A": batch([2], [6])})
    with pytest.raises(PenstockError, match=r"Engine\.restore"):
        running.push({"A": batch([2], [6])})


def test_nor_can_who_is_interrupted_while_something_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Windows are filled by one call then, and the joins run by another."""
    running = engine(
        "SELECT A.ts AS a FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND], C [RANGE 1 SECOND] "
        "WHERE A.k = B.k AND B.k = C.k",
        plan="((A B) C)",
        feedback="off",
    )
    for name in "ABC":
        running.push({name: batch([1, 2, 3], [5, 5, 5])})
    running.migrate("((B C) A)", strategy="jisc")
    running.push({"A": batch([9], [6])})
    assert running.trees[0].missing
    synchronise, calls = CompiledPush._synchronise, []

    def second(self: CompiledPush, *arguments: Any) -> None:
        calls.append(self)
        if len(calls) > 1:
            raise KeyboardInterrupt
        synchronise(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(CompiledPush, "_synchronise", second)
        with pytest.raises(KeyboardInterrupt):
            running.push({"A": batch([1], [7])})
    assert len(calls) > 1
    with pytest.raises(PenstockError, match=r"Engine\.restore"):
        running.push({"A": batch([2], [8])})


def test_mistakes_are_found_before_anything_has_changed() -> None:
    running = engine()
    running.push({"A": batch([1], [5])})
    with pytest.raises(InputError, match="no column 'k'"):
        running.push({"A": batch([1], [6]), "B": batch([1], [6]).drop_columns(["k"])})
    with pytest.raises(InputError, match="unknown stream"):
        running.push({"A": batch([1], [6]), "Z": batch([1], [6])})
    assert running.push({"B": batch([1], [7])}).num_rows == 1
