"""Packed rows: one for each cell and batch, in pieces that Arrow can hold."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.cells import Packer, packing, place
from penstock.cells.delivery import from_chunk

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("x", pa.int64())])


def packed(rows: int, cells: int) -> list[pa.RecordBatch]:
    """B of a theta join goes to all cells."""
    query = penstock.parse(
        "SELECT A.id AS a FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS] WHERE A.x < B.x",
        schemas={"A": SCHEMA, "B": SCHEMA},
    )
    placement = place(query, cells, {"A": 1e6, "B": 1.0})
    assert placement.replicas == {"A": 1, "B": cells}
    keys = tuple(range(100, 100 + cells))
    packer = Packer(query, placement, keys, "B", SCHEMA, "ts")
    batch = pa.RecordBatch.from_arrays([pa.array(np.arange(rows))] * 3, schema=SCHEMA)
    return list(packer.pack([batch, batch.slice(0, 0), batch], 7))


def test_copies_leave_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = packed(50, 6)
    assert [each.num_rows for each in whole] == [6, 6]
    chunk = len(whole[0].column("chunk")[0].as_py())
    monkeypatch.setattr(packing, "_MOST_BYTES", 4 * chunk)
    pieces = packed(50, 6)
    assert [each.num_rows for each in pieces] == [4, 2, 4, 2]
    assert pa.Table.from_batches(pieces).equals(pa.Table.from_batches(whole))
    # A chunk that is too large alone is a piece of its own.
    monkeypatch.setattr(packing, "_MOST_BYTES", 1)
    assert [each.num_rows for each in packed(50, 6)] == [1] * 12


def test_every_cell_is_told_the_time() -> None:
    rows = pa.Table.from_batches(packed(50, 6)).to_pylist()
    assert [row["cell"] for row in rows] == 2 * list(range(100, 106))
    assert {row["newest"] for row in rows} == {49}
    assert {(row["source"], row["partition"]) for row in rows} == {(1, 7)}
    assert [row["sequence"] for row in rows] == [0] * 6 + [2] * 6
    assert from_chunk(rows[0]["chunk"]).num_rows == 50
