"""Memory of dropped states: new states take it over, and it is given back in time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.state import spare_memory
from penstock.engine.state.spare_memory import SpareMemory

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "k")])
QUERY = penstock.parse(
    """SELECT A.id AS a, B.id AS b, C.id AS c FROM A [RANGE 1500 MILLISECONDS],
       B [RANGE 1500 MILLISECONDS], C [RANGE 1500 MILLISECONDS] WHERE A.k = B.k AND A.k = C.k""",
    schemas=dict.fromkeys("ABC", SCHEMA),
)


def blocks(*sizes: int) -> list[spare_memory.Block]:
    return [np.empty(size << 20, np.uint8) for size in sizes]


def test_the_smallest_block_that_is_large_enough_is_taken() -> None:
    given = blocks(9, 3, 40)
    memory = SpareMemory([*given, np.empty(100, np.uint8)])
    assert memory.nbytes == 52 << 20
    taken = memory.take(2 << 20)
    assert len(taken) == 2 << 20
    assert np.shares_memory(taken, given[1])
    assert np.shares_memory(memory.take(4 << 20), given[0])
    assert memory.has(12 << 20)
    assert not memory.has(4 << 20)
    other = memory.take(4 << 20)
    assert len(other) == 4 << 20
    assert not np.shares_memory(other, given[2])  # Ten times too large.
    memory.clear()
    assert memory.nbytes == 0


def batch(start: int, rows: int, keys: int) -> dict[str, pa.Table]:
    chance = np.random.default_rng(start)
    times = np.arange(start, start + rows)
    return {
        name: pa.table([times, times, chance.integers(0, keys, rows)], schema=SCHEMA)
        for name in "ABC"
    }


def test_a_new_state_grows_in_the_memory_of_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare_memory, "_FEWEST_BYTES", 1)
    engine = penstock.Engine(QUERY, plan="((A B) C)", feedback="off")
    for start in range(0, 4_500, 100):  # Until the state is as large as it becomes.
        engine.push(batch(start, 100, 150))
    (old,) = engine.trees[0].states
    block = old.rows.block
    assert block is not None
    engine.migrate("((A C) B)", strategy="jisc")
    tree = engine.trees[0]
    assert [len(each) for each in tree.completion.spare.blocks] == [len(block)]
    assert tree.nbytes > len(block)
    (new,) = tree.states
    other = penstock.Engine(QUERY, plan="((A C) B)", feedback="off")
    for start in range(0, 4_500, 100):
        other.push(batch(start, 100, 150))
    start, shared = 4_500, False
    while tree.missing:
        assert engine.push(batch(start, 40, 150)).num_rows == (
            other.push(batch(start, 40, 150)).num_rows
        )
        start += 40
        grown = new.rows.block
        shared |= grown is not None and np.shares_memory(grown, block)
    assert shared
    assert tree.completion.spare.nbytes == 0


def test_nothing_is_spared_if_nothing_is_missing() -> None:
    engine = penstock.Engine(QUERY, plan="((A B) C)", feedback="off")
    engine.push(batch(0, 1_500, 20))
    engine.migrate("(A B C)", strategy="jisc")
    assert engine.trees[0].completion.spare.nbytes == 0
