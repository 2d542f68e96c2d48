"""Checkpoints: small, checked, and only for their own query. (Exactness: test_exactness.py.)"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.errors import CheckpointError

SCHEMA = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("x", pa.string())])
TEXT = "SELECT A.id AS a, B.id AS b FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE A.x = B.x"


def query(text: str = TEXT, schema: pa.Schema = SCHEMA) -> penstock.JoinGraph:
    return penstock.parse(text, dict.fromkeys("AB", schema))


def filled() -> penstock.Engine:
    engine = penstock.Engine(query(), plan="(A B | A:B B:A)", lateness=50)
    for i in range(10):
        table = pa.table({"ts": [i * 200], "id": [i], "x": [f"key {i % 3}"]})
        engine.push({"A": table, "B": table})
    return engine


def test_everything_goes_on() -> None:
    before = filled()
    after = penstock.Engine.restore(query(), before.checkpoint())
    assert after.plan == before.plan
    assert after.options == before.options
    assert after.watermark == before.watermark
    kept = ("pushes", "rows", "results", "late", "watermark", "now", "sources")
    assert {k: after.metrics()[k] for k in kept} == {k: before.metrics()[k] for k in kept}
    probe = {"A": pa.table({"ts": [1_900], "id": [99], "x": ["key 0"]})}
    assert after.push(probe).equals(before.push(probe))


def test_another_plan() -> None:
    engine = penstock.Engine.restore(query(), filled().checkpoint(), plan="(B A)")
    assert str(engine.plan) == "(B A)"


def test_a_checkpoint_is_a_snapshot() -> None:
    engine = filled()
    blob = engine.checkpoint()
    engine.push({"A": pa.table({"ts": [1_950], "id": [5], "x": ["key 0"]})})
    assert penstock.Engine.restore(query(), blob).metrics()["rows"] == 20


def test_only_leaf_windows() -> None:
    """A join with a large intermediate state has a small checkpoint."""
    schema = pa.schema([("ts", pa.int64()), ("x", pa.int64())])
    graph = penstock.parse(
        """SELECT A.x AS x FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND], C [RANGE 1 SECOND]
           WHERE A.x = B.x AND B.x = C.x""",
        dict.fromkeys("ABC", schema),
    )
    engine = penstock.Engine(graph, plan="((A B) C)")
    zeros = pa.table({"ts": np.zeros(500, int), "x": np.zeros(500, int)})
    engine.push({"A": zeros, "B": zeros})
    assert engine.metrics()["state"]["joins"]["{A, B}"]["rows"] == 250_000
    blob = engine.checkpoint()
    assert len(blob) < 50_000
    restored = penstock.Engine.restore(graph, blob)
    assert restored.push({"C": zeros.slice(0, 1)}).num_rows == 250_000


@pytest.mark.parametrize("damage", [b"", b"PENSTOCK", b"something else entirely" * 10])
def test_not_a_checkpoint(damage: bytes) -> None:
    with pytest.raises(CheckpointError):
        penstock.Engine.restore(query(), damage)


def test_damage_is_noticed() -> None:
    blob = bytearray(filled().checkpoint())
    with pytest.raises(CheckpointError, match="damaged"):
        penstock.Engine.restore(query(), bytes(blob[:-20]))
    blob[len(blob) // 2] ^= 1
    with pytest.raises(CheckpointError, match="damaged"):
        penstock.Engine.restore(query(), bytes(blob))


def test_of_another_query() -> None:
    blob = filled().checkpoint()
    with pytest.raises(CheckpointError, match="another query") as caught:
        penstock.Engine.restore(query(TEXT.replace("1 SECOND]", "2 SECONDS]", 1)), blob)
    assert TEXT in str(caught.value)
    other = pa.schema([("ts", pa.int64()), ("id", pa.int32()), ("x", pa.string())])
    with pytest.raises(CheckpointError, match="another query"):
        penstock.Engine.restore(query(schema=other), blob)
