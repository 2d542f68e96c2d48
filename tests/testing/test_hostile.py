"""Hostile input, a short form of ``penstock attack``: no signal, no foreign error."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.errors import CheckpointError, InputError
from penstock.testing.hostile import attack_all, batch
from penstock.testing.mutation import signed

SCHEMA = pa.schema([("ts", pa.int64()), ("name", pa.string())])
QUERY = penstock.parse(
    "SELECT A.name AS n FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE A.name = B.name",
    dict.fromkeys("AB", SCHEMA),
)


@pytest.mark.parametrize("kind", ["arrow", "checkpoints"])
def test_attacks_are_survived(kind: str) -> None:
    told: list[str] = []
    outcomes, findings = attack_all(kind, range(400), 8 << 30, told.append)
    assert not findings, told
    assert outcomes["refused"]
    assert outcomes["went on"]
    assert outcomes.total() == 400


def text_array(offsets: list[int], data: bytes) -> pa.Array:
    buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


@pytest.mark.parametrize(
    "names",
    [
        text_array([0, 1 << 30, 2], b"ab"),
        text_array([0, -5, 2], b"ab"),
        text_array([0, 1, 2], b"\xff\xfe"),
        pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int32()), ["a", "b"], safe=False),
    ],
    ids=["far", "negative", "not UTF-8", "dictionary"],
)
def test_what_kernels_would_follow_is_refused(names: pa.Array) -> None:
    engine = penstock.Engine(QUERY)
    fine = pa.table({"ts": [1, 2], "name": ["a", "b"]})
    engine.push({"A": fine})
    hostile = pa.Table.from_arrays([pa.array([3, 4]), names], names=["ts", "name"])
    with pytest.raises(InputError, match="the batch of B is damaged"):
        engine.push({"B": hostile})
    assert engine.push({"B": fine}).num_rows == 2


def of_other_type(indices: list[int]) -> pa.Table:
    """Numbers by indices into a dictionary, where the query was declared for plain ones."""
    found = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), [1, 2], safe=False)
    return pa.Table.from_arrays([found, pa.array(["a"] * len(indices))], names=["ts", "name"])


def test_what_conversions_would_follow_is_refused() -> None:
    """The second time, batches are converted before anything else is done with them."""
    engine = penstock.Engine(QUERY)
    for _ in range(2):
        with pytest.raises(InputError, match=r"'ts' of B .* out of bounds"):
            engine.push({"B": of_other_type([0, 1 << 30])})
        with pytest.raises(InputError, match=r"'ts' of B .* out of bounds"):
            next(engine.push_in_pieces({"B": of_other_type([0, 1 << 30])}))
        engine.push({"B": of_other_type([0, 1])})


def test_a_damaged_batch_with_a_row_far_ahead_is_refused() -> None:
    engine = penstock.Engine(QUERY, max_ahead="1 DAY")
    hostile = pa.Table.from_arrays(
        [pa.array([1, 1 << 60]), text_array([0, 1 << 30, 2], b"ab")], names=["ts", "name"]
    )
    with pytest.raises(InputError, match="the batch of B is damaged"):
        engine.push({"B": hostile})


def test_a_compressed_table_in_a_checkpoint_is_refused() -> None:
    engine = penstock.Engine(QUERY)
    engine.push({"A": pa.table({"ts": [1], "name": ["a"]})})
    blob = engine.checkpoint()
    (length,) = struct.unpack_from("<I", blob, 8)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    zeros = pa.table({"birth": np.zeros(10_000_000, np.int64)})
    with pa.ipc.new_stream(sink, zeros.schema, options=options) as writer:
        writer.write_table(zeros)
    bomb = sink.getvalue().to_pybytes()
    first = 12 + length
    (size,) = struct.unpack_from("<Q", blob, first)
    hostile = blob[:first] + struct.pack("<Q", len(bomb)) + bomb + blob[first + 8 + size :]
    with pytest.raises(CheckpointError, match="compressed"):
        penstock.Engine.restore(QUERY, signed(hostile))


def test_batches_of_attacks_are_fine_before_they_are_mutated() -> None:
    for push in range(3):
        for stream in "ABC":
            batch(push, stream).validate(full=True)


def test_signals_at_any_moment_change_no_answer() -> None:
    told: list[str] = []
    outcomes, findings = attack_all("signals", range(60), 8 << 30, told.append)
    assert not findings, told
    assert outcomes["exact"] == 60
    assert outcomes["signals"] > 100


def test_no_request_for_memory_that_fails_leaves_a_trace() -> None:
    """Each push of each query fails at its first request, its second and so on; one query in eight
    is large enough that groups, values and nodes are swept and packed."""
    told: list[str] = []
    outcomes, findings = attack_all("memory", range(17), 8 << 30, told.append)
    assert not findings, told
    assert outcomes["exact"] == 17
    assert outcomes["failures"] > 2_000


@pytest.mark.parametrize("kind", ["arrow", "checkpoints"])
def test_what_long_attacks_have_found(kind: str) -> None:
    """Decimals with a scale of millions; counters of a checkpoint under other names; results that
    are held for EXCEPT longer than their rows."""
    numbers = {
        "arrow": [168_073, 257_727],
        "checkpoints": [478_900, 480_363, 493_323, 1_002_773, 1_004_448, 1_008_080, 1_009_671],
    }[kind]
    for number in numbers:
        told: list[str] = []
        _, findings = attack_all(kind, range(number, number + 1), 8 << 30, told.append)
        assert not findings, told
