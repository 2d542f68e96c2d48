"""A push that would make too much ends early, names the key, and leaves the engine as it was."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.state.available_memory import memory_of_machine
from penstock.engine.state.working_memory import BYTES_OF_ANY_PUSH, WORKING
from penstock.errors import TooManyResults

SCHEMA = pa.schema([("ts", pa.int64()), ("x", pa.int64()), ("name", pa.string())])
TWO = "FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] "
QUERIES = {
    "plain": f"SELECT A.ts AS a, B.ts AS b {TWO}WHERE A.x = B.x",
    "text": f"SELECT A.ts AS a, B.ts AS b {TWO}WHERE A.name = B.name",
    "count": f"SELECT COUNT(*) AS n {TWO}WHERE A.x = B.x GROUP BY A.x",
    "residual": f"SELECT A.ts AS a {TWO}WHERE A.x = B.x AND A.ts + B.ts < 1000 + A.x * B.x",
    "answer": f"SELECT RSTREAM A.ts AS a {TWO}WHERE A.x = B.x",
}


def batch(count: int, value: int = 7) -> pa.Table:
    columns = [np.zeros(count, np.int64), np.full(count, value), [f"value {value}"] * count]
    return pa.table(columns, schema=SCHEMA)


@pytest.mark.parametrize("feedback", ["off", "jit"])
@pytest.mark.parametrize("name", QUERIES)
def test_an_explosion_is_refused(name: str, feedback: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = penstock.parse(QUERIES[name], dict.fromkeys("AB", SCHEMA))
    engine, other = (penstock.Engine(graph, feedback=feedback) for _ in range(2))
    monkeypatch.setattr(WORKING, "_machine", 1 << 22)
    for each in (engine, other):
        each.push({"A": batch(1_000)})
    rows = engine.metrics()["rows"]
    with pytest.raises(TooManyResults, match=r"1,000 of 1,000 rows of B have B\.(x|name) = .*7"):
        engine.push({"B": batch(1_000)})
    assert engine.metrics()["rows"] == rows
    for push in (batch(3), batch(5, 8), batch(2)):
        assert engine.push({"B": push}).equals(other.push({"B": push}))


@pytest.mark.parametrize("condition", ["A.x < B.x", "A.x <> B.x", "A.x + 1 < B.x * B.x"])
def test_an_explosion_without_equality_is_refused(
    condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nested loops ask as they go on: what they have found so far never takes more than allowed."""
    text = f"SELECT A.ts AS a, B.ts AS b {TWO}WHERE {condition}"
    graph = penstock.parse(text, dict.fromkeys("AB", SCHEMA))
    engine, other = (penstock.Engine(graph) for _ in range(2))
    monkeypatch.setattr(WORKING, "_machine", 1 << 22)
    for each in (engine, other):
        each.push({"A": batch(1_000, 6)})
    with pytest.raises(TooManyResults, match="no equality joins these streams"):
        engine.push({"B": batch(1_000, 9)})
    for push in (batch(3), batch(5, 8), batch(2)):
        assert engine.push({"B": push}).equals(other.push({"B": push}))


def test_the_share_of_a_push(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WORKING, "_machine", 0)
    WORKING.begin(None)
    assert WORKING.most == max(BYTES_OF_ANY_PUSH, memory_of_machine() // 2)
    WORKING.begin(1)
    assert WORKING.most == BYTES_OF_ANY_PUSH


def test_memory_that_the_system_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not every request is foreseen: what numpy or Arrow say is told as our own error."""
    engine = penstock.Engine(penstock.parse(QUERIES["plain"], dict.fromkeys("AB", SCHEMA)))
    engine.push({"A": batch(2)})

    def refuse(*_: object) -> None:
        raise MemoryError("Unable to allocate 5.20 GiB")

    with monkeypatch.context() as patch:
        patch.setattr(WORKING, "begin", refuse)
        told = (
            r"not enough memory for this push \(Unable to allocate 5.20 GiB\); in the join A\.x = "
        )
        with pytest.raises(TooManyResults, match=told) as refused:
            engine.push({"B": batch(3)})
    assert isinstance(refused.value, MemoryError)
    assert engine.push({"B": batch(3)}).num_rows == 6
