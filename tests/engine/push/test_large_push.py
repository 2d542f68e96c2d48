"""Pushes that are taken in part by part: compiled, and one transaction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.push.whole_push import WholePush
from penstock.engine.state.composites import Composites
from penstock.errors import NotEnoughMemory, TooManyResults
from penstock.testing.compare import difference, rows_of

QUERY = """SELECT A.id AS a, B.id AS b, B.s AS s FROM A [RANGE 50 MILLISECONDS],
    B [RANGE 30 MILLISECONDS] WHERE A.k = B.k"""
ROWS = 40_000
"""Rows of each stream in a push."""


def stream(seed: int, start: int, rows: int = ROWS) -> pa.Table:
    """Rows of a fifth of ``rows`` milliseconds, some of them out of order or with NULLs."""
    random = np.random.default_rng(seed)
    ts = np.sort(random.integers(start, start + rows // 5, rows))
    ts[random.random(rows) < 0.01] -= 40
    columns = {
        "id": np.arange(rows),
        "ts": pa.array(ts, mask=random.random(rows) < 0.001),
        "k": pa.array(random.integers(0, 2_000, rows), mask=random.random(rows) < 0.01),
        "s": [f"s{each}" for each in random.integers(0, 9, rows)],
    }
    return pa.table(columns)


def engine_of(**options: Any) -> penstock.Engine:
    schema = stream(0, 0, 10).schema
    query = penstock.parse(QUERY, {"A": schema, "B": schema}, event_time="ts")
    return penstock.Engine(query, plan="(A B)", lateness=20, **options)


def test_a_large_push_is_compiled_and_gives_what_the_reference_gives() -> None:
    compiled, reference = engine_of(), engine_of(execution="reference")
    for number in range(2):
        push = {name: stream(number + ord(name), number * ROWS // 5) for name in "AB"}
        answer, expected = compiled.push(push), reference.push(push)
        assert len(expected) > 5_000
        assert difference(rows_of(answer), rows_of(expected)) is None
    counts = ["late", "filtered", "rows"]
    told, wanted = compiled.metrics(), reference.metrics()
    assert [told[name] for name in counts] == [wanted[name] for name in counts]
    assert told["late"] > 0
    assert told["execution"]["compiled"] == 2
    assert not told["execution"]["reasons"]


def test_what_fails_in_a_later_part_takes_all_back(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, push = engine_of(), {name: stream(ord(name), 0, 200) for name in "AB"}
    expected = rows_of(engine_of(execution="reference").push(push))
    assert engine._join.whole is not None
    engine._join.whole.most_rows = engine._join.whole.part_rows = 90
    results, calls = WholePush.results, []

    def short(self: WholePush, *arguments: Any) -> list[Composites]:
        calls.append(1)
        if len(calls) == 3:
            raise MemoryError
        return results(self, *arguments)

    monkeypatch.setattr(WholePush, "results", short)
    with pytest.raises(NotEnoughMemory):
        engine.push(push)
    assert engine.metrics()["rows"] == 0
    assert len(calls) == 3
    answer = engine.push(push)
    assert len(calls) == 3 + 5
    assert difference(rows_of(answer), expected) is None


def test_results_of_all_parts_count() -> None:
    push = {name: stream(ord(name), 0, 200) for name in "AB"}
    made = len(engine_of().push(push))
    for most, refuses in ((made, False), (made - 1, True)):
        engine = engine_of(max_results=most)
        assert engine._join.whole is not None
        engine._join.whole.most_rows = engine._join.whole.part_rows = 90
        if refuses:
            with pytest.raises(TooManyResults):
                engine.push(push)
        else:
            assert len(engine.push(push)) == made


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("feedback", ["off", penstock.Feedback(adaptive=False)])
def test_a_later_part_may_be_older_while_states_lack_rows(feedback: Any, restarts: bool) -> None:
    """What the first part is too new for is still wanted by the second."""

    def rows(seed: int, *spans: tuple[int, int]) -> pa.Table:
        random = np.random.default_rng(seed)
        ts = np.concatenate([np.sort(random.integers(*span, 400)) for span in spans])
        k, m = random.integers(0, 60, (2, len(ts)))
        return pa.table({"id": np.arange(len(ts)) + 10_000 * seed, "ts": ts, "k": k, "m": m})

    schema = rows(0, (0, 10)).schema
    query = penstock.parse(
        """SELECT A.id AS a, B.id AS b, C.id AS c FROM A [RANGE 300 MILLISECONDS],
        B [RANGE 300 MILLISECONDS], C [RANGE 300 MILLISECONDS] WHERE A.k = B.k AND B.m = C.m""",
        dict.fromkeys("ABC", schema),
        event_time="ts",
    )
    answers = []
    for execution in ("auto", "reference"):
        options: dict[str, Any] = {"execution": execution, "feedback": feedback, "lateness": 20}
        engine = penstock.Engine(query, plan="((A B) C)", **options)
        engine.push({name: rows(ord(name), (0, 250)) for name in "ABC"})
        if restarts:
            engine = penstock.Engine.restore(query, engine.checkpoint())
        else:
            engine.migrate("(A (B C))", strategy="jisc")
        if execution == "auto":
            assert engine._join.whole is not None
            engine._join.whole.most_rows = engine._join.whole.part_rows = 1_200
        push = {name: rows(ord(name) + 9, (5_000, 5_300), (230, 600)) for name in "ABC"}
        answers.append(rows_of(engine.push(push)))
    compiled, expected = answers
    assert len(expected) > 10_000
    assert difference(compiled, expected) is None
