"""Columns of any type in chunks: what is taken is what was put in, wherever it lies."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.values.arrow_chunks import ArrowChunks, Block

TYPES = [
    (pa.string(), lambda n: None if n % 7 == 0 else f"value {n}" * (n % 5)),
    (pa.large_binary(), lambda n: b"x" * (n % 9)),
    (pa.bool_(), lambda n: None if n % 3 == 0 else n % 2 == 0),
    (pa.list_(pa.int64()), lambda n: list(range(n % 4))),
    (pa.struct([("a", pa.int64()), ("b", pa.string())]), lambda n: {"a": n, "b": str(n)}),
    (pa.dictionary(pa.int32(), pa.string()), lambda n: f"word {n % 50}"),
    (pa.decimal128(20, 2), lambda n: None),
]


def stored(values: pa.Array) -> tuple[pa.Array, Block]:
    """A copy, as of a file."""
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([values], names=["v"])
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    buffer = sink.getvalue()
    return pa.ipc.open_file(buffer).get_batch(0).column(0), np.frombuffer(buffer, np.uint8)


@pytest.mark.parametrize("spills", [False, True])
@pytest.mark.parametrize(("type_", "value_of"), TYPES, ids=[str(t) for t, _ in TYPES])
def test_whatever_comes_and_goes(type_: pa.DataType, value_of: Any, spills: bool) -> None:
    chance = random.Random(str(type_))
    chunks, tail = ArrowChunks(type_), 0
    rows: list[Any] = []
    for step in range(120):
        size = chance.choice([0, 1, 1, 7, 300, 1500])
        new = [value_of(len(rows) + n) for n in range(size)]
        rows += new
        chunks.append(pa.array(new, type_))
        if step % 11 == 10:
            head = chance.randint(max(tail, chunks.cold), len(rows))
            del rows[head:]
            chunks.truncate(head)
        if spills and step % 5 == 4:
            assert chunks.spill(chance.randint(tail, len(rows)), stored)
        tail = min(len(rows), tail + chance.choice([0, 0, 400]))
        chunks.drop_before(tail)
        if tail < len(rows):
            wanted = [chance.randrange(tail, len(rows)) for _ in range(chance.choice([1, 5, 200]))]
            wanted = sorted(wanted) if chance.random() < 0.3 else wanted
            taken = chunks.take(np.array(wanted, np.int64))
            assert taken.to_pylist() == [rows[each] for each in wanted]
        chunks.let_go(lambda block: None)
    assert chunks.take(np.arange(tail, len(rows))).to_pylist() == rows[tail:]


def test_rows_of_many_chunks_are_taken_without_a_copy_of_all() -> None:
    text = "x" * 100
    chunks = ArrowChunks(pa.string())
    for _ in range(64):
        chunks.append(pa.array([text] * 10_000))
    pool = pa.default_memory_pool()
    chunks.take(np.array([639_000, 10, 320_000]))
    before, most = pool.bytes_allocated(), pool.max_memory()
    chunks.take(np.array([639_000, 10, 320_000]))
    assert pool.bytes_allocated() <= before + (1 << 20)
    assert pool.max_memory() <= max(most, before + (1 << 20))
    assert len(chunks.chunks) > 4


def test_files_of_single_rows_become_few() -> None:
    chunks = ArrowChunks(pa.string())
    for number in range(2_000):
        chunks.append(pa.array([str(number)]))
        assert chunks.spill(number + 1, stored)
    assert len(chunks.chunks) < 16
    assert chunks.nbytes == 0
    assert chunks.take(np.array([1_999, 0, 1_000])).to_pylist() == ["1999", "0", "1000"]


def test_without_room_all_stays_where_it_is() -> None:
    chunks = ArrowChunks(pa.string())
    chunks.append(pa.array(["a", "b"]))
    assert not chunks.spill(1, lambda values: None)
    assert chunks.cold == 0
    assert chunks.nbytes > 0
    assert chunks.take(np.array([1, 0])).to_pylist() == ["b", "a"]
