"""Memory follows the windows, not the history."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock

WINDOW = 1_000
PER_PUSH = 100
SCHEMA = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("x", pa.int64()), ("s", pa.string())])


def batch(push: int, stream: int, keys: int) -> pa.Table:
    """One tuple per millisecond; every string is new: nothing is shared with the past."""
    rng = np.random.default_rng([push, stream])
    ts = np.arange(push * PER_PUSH, (push + 1) * PER_PUSH)
    x = rng.integers(0, keys, PER_PUSH)
    strings = [f"value {t // keys} of key {k}" for t, k in zip(ts, x, strict=True)]
    return pa.table({"ts": ts, "id": ts, "x": x, "s": strings})


QUERIES = {
    "tree": ("RANGE 1 SECOND", "A.x = B.x AND B.x = C.x", "((A B) C)", ""),
    "mjoin": ("RANGE 1 SECOND", "A.x = B.x AND B.x = C.x", "(A B C)", ""),
    "strings": ("RANGE 1 SECOND", "A.s = B.s AND B.s = C.s", "((A B) C)", ""),
    "theta": ("RANGE 100 MILLISECONDS", "A.x = B.x AND B.id < C.id AND C.x < 2", "((A B) C)", ""),
    "rows": ("ROWS 1000", "A.x = B.x AND B.x = C.x", "((A B) C)", ""),
    "partition": ("PARTITION BY x ROWS 2", "A.x = B.x AND B.x = C.x", "((A B) C)", ""),
    "dstream": ("RANGE 1 SECOND", "A.x = B.x AND B.x = C.x", "(A B C)", "DSTREAM"),
    "groups": ("RANGE 1 SECOND", "A.x = B.x AND B.x = C.x", "(A B C)", "group"),
}


def state_after(name: str, windows: int, lateness: int | None) -> list[int]:
    """State bytes after each push of the last three windows."""
    window, where, plan, kind = QUERIES[name]
    selected = "A.id AS a, B.s AS b, C.id AS c"
    if kind == "group":
        selected, kind = "A.s AS a, COUNT(*) AS n", ""
        where += " GROUP BY A.s"
    text = f"""SELECT {kind} {selected} FROM A [{window}], B [{window}], C [{window}]
               WHERE {where}"""
    graph = penstock.parse(text, dict.fromkeys("ABC", SCHEMA))
    engine = penstock.Engine(graph, plan=plan, lateness=lateness)
    sizes = []
    pushes = windows * WINDOW // PER_PUSH
    for push in range(pushes):
        engine.push({s: batch(push, i, 400) for i, s in enumerate("ABC")})
        if push >= pushes - 3 * WINDOW // PER_PUSH:
            sizes.append(engine.metrics()["state"]["bytes"])
    return sizes


SETTLED = {"dstream": 50}
"""Windows after which memory has its final size, if not 6: results that wait lie in blocks, and how
many of these are full depends on the digits of the instants."""


@pytest.mark.parametrize("lateness", [None, 200])
@pytest.mark.parametrize("name", QUERIES)
def test_many_windows_hold_no_more_than_some(name: str, lateness: int | None) -> None:
    settled = SETTLED.get(name, 6)
    some, many = state_after(name, settled, lateness), state_after(name, settled + 45, lateness)
    assert max(many) <= 1.25 * max(some)


def test_a_rare_partition_pins_nothing() -> None:
    """One key that never comes again must not keep the tuples after it alive."""
    graph = penstock.parse(
        "SELECT A.id AS a, B.id AS b FROM A [PARTITION BY x ROWS 2], B [ROWS 5] WHERE A.x = B.x",
        dict.fromkeys("AB", SCHEMA),
    )
    engine = penstock.Engine(graph)
    rare: dict[str, Any] = {"ts": [0], "id": [-1], "x": [-1], "s": ["rare"]}
    engine.push({"A": pa.table(rare)})
    for push in range(100):
        engine.push({"A": batch(push, 0, 10)})
    assert engine.metrics()["state"]["windows"]["A"]["rows"] < 300
    found = engine.push({"B": pa.table({"ts": [99_999], "id": [1], "x": [-1], "s": ["b"]})})
    assert found["a"].to_pylist() == [-1]


def test_rings_shrink_when_the_rate_falls() -> None:
    graph = penstock.parse(
        "SELECT A.id AS a FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE A.x = B.x",
        dict.fromkeys("AB", SCHEMA),
    )
    engine = penstock.Engine(graph)
    crowd = pa.table(
        {"ts": np.zeros(50_000, int), "id": np.arange(50_000), "x": np.arange(50_000)}
    ).append_column("s", pa.array([""] * 50_000))
    engine.push({"A": crowd, "B": crowd.slice(0, 1)})
    busy = engine.metrics()["state"]["bytes"]
    for push in range(20, 60):
        engine.push({"A": batch(push, 0, 10), "B": batch(push, 1, 10)})
    assert engine.metrics()["state"]["bytes"] < busy / 10
