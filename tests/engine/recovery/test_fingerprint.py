"""The fingerprint of a query: what it means, not how it is written."""

from __future__ import annotations

import pyarrow as pa
import pytest

import penstock
from penstock.engine.recovery.fingerprint import fingerprint
from penstock.errors import CheckpointError

TEXT = """SELECT A.id AS a, B.id AS b FROM A [RANGE 1 MINUTE], B [RANGE 1 MINUTE]
          WHERE A.x = B.x AND A.y < 3"""
COLUMNS = [("id", pa.int64()), ("ts", pa.int64()), ("x", pa.string()), ("y", pa.int64())]


def parsed(
    text: str = TEXT, columns: list[tuple[str, pa.DataType]] = COLUMNS
) -> penstock.JoinGraph:
    return penstock.parse(text, schemas=dict.fromkeys("AB", pa.schema(columns)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SELECT A.id AS a,", "SELECT  A.id\n AS a,"),
        ("WHERE", "where"),
        ("[RANGE 1 MINUTE], B", "[RANGE 60 SECONDS], B"),
        ("A.y < 3", "(A.y < 3)"),
    ],
)
def test_how_it_is_written_does_not_matter(old: str, new: str) -> None:
    assert old in TEXT
    assert fingerprint(parsed(TEXT.replace(old, new))) == fingerprint(parsed())


def test_columns_that_are_not_read_do_not_matter() -> None:
    more = [("new", pa.duration("s")), *reversed(COLUMNS), ("other", pa.string())]
    assert fingerprint(parsed(columns=more)) == fingerprint(parsed())
    rows = {n: pa.table({"id": [1], "ts": [5], "x": ["k"], "y": [2]}) for n in "AB"}
    engine = penstock.Engine(parsed())
    engine.push({"A": rows["A"]})
    later = penstock.Engine.restore(parsed(columns=more), engine.checkpoint())
    wide = rows["B"].append_column("other", pa.array(["z"]))
    wide = wide.append_column("new", pa.array([1], pa.duration("s")))
    assert later.push({"B": wide}).to_pylist() == [{"a": 1, "b": 1}]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A.id AS a", "A.y AS a"),
        ("A.id AS a", "A.id AS c"),
        ("A.y < 3", "A.y < 4"),
        ("A [RANGE 1 MINUTE]", "A [RANGE 2 MINUTES]"),
        ("SELECT A.id AS a", "SELECT DSTREAM A.id AS a"),
    ],
)
def test_what_it_means_does(old: str, new: str) -> None:
    assert old in TEXT
    other = parsed(TEXT.replace(old, new))
    assert fingerprint(other) != fingerprint(parsed())
    with pytest.raises(CheckpointError, match="another query"):
        penstock.Engine.restore(other, penstock.Engine(parsed()).checkpoint())


@pytest.mark.parametrize("name", ["id", "x", "ts"])
def test_the_types_of_what_is_read_do(name: str) -> None:
    other = {"id": pa.int32(), "x": pa.binary(), "ts": pa.timestamp("ms")}
    changed = [(c, other[c] if c == name else kind) for c, kind in COLUMNS]
    assert fingerprint(parsed(columns=changed)) != fingerprint(parsed())
