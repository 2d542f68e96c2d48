"""Shares of pairs by ranges and on sampled rows, against comparing everything with everything."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.plan.stream_set import StreamSet

SCHEMA = pa.schema([(name, pa.int64()) for name in ("ts", "k", "v")])
ROWS = 600


def pushed(where: str, streams: str = "AB", **options: Any) -> tuple[penstock.Engine, Any]:
    """An engine that has seen one batch, and the columns of that batch."""
    windows = ", ".join(f"{name} [RANGE 10 SECONDS]" for name in streams)
    query = penstock.parse(
        f"SELECT {streams[0]}.ts FROM {windows} WHERE {where}",
        schemas=dict.fromkeys(streams, SCHEMA),
        **options,
    )
    chance = np.random.default_rng(5)
    columns = {
        name: {
            "ts": np.arange(ROWS, dtype=np.int64),
            "k": chance.integers(0, 30, ROWS),
            "v": chance.integers(0, 1000, ROWS),
        }
        for name in streams
    }
    engine = penstock.Engine(query, adapt="off", feedback="off")
    engine.push({name: pa.table(each, schema=SCHEMA) for name, each in columns.items()})
    return engine, columns


@pytest.mark.parametrize(
    ("where", "test"),
    [
        ("A.v BETWEEN B.v - 5 AND B.v + 5", lambda a, b: abs(a - b) <= 5),
        ("A.v < B.v", lambda a, b: a < b),
        ("A.v >= B.v + 900", lambda a, b: a >= b + 900),
        ("B.v > A.v - 3 AND B.v < A.v + 1", lambda a, b: (b > a - 3) & (b < a + 1)),
        ("A.v <= B.v AND A.v >= B.v", lambda a, b: a == b),
        ("A.v < B.v AND A.k <= B.v", None),
    ],
)
def test_comparisons_are_counted_for_all_pairs(where: str, test: Any) -> None:
    engine, columns = pushed(where)
    share = engine.statistics().selectivities[StreamSet.of("A", "B")]
    if test is None:
        assert 0 < share < 1
        return
    table = test(columns["A"]["v"][:, None], columns["B"]["v"][None, :])
    assert share == pytest.approx(table.mean())


def test_a_residual_is_tried_on_pairs_that_agree() -> None:
    """Where the keys agree it nearly always fails, elsewhere it nearly always holds."""
    where = "A.k = B.k AND (A.v + B.v) % 50 = 0"
    engine, columns = pushed(where)
    a, b = columns["A"], columns["B"]
    agree = a["k"][:, None] == b["k"][None, :]
    holds = (a["v"][:, None] + b["v"][None, :]) % 50 == 0
    share = engine.statistics().selectivities[StreamSet.of("A", "B")]
    assert share == pytest.approx((agree & holds).mean(), rel=0.8)
    assert share < agree.mean() / 10


def test_a_residual_over_three_streams_is_a_share_of_combinations() -> None:
    engine, _ = pushed("A.k = B.k AND B.k = C.k AND (A.v + B.v + C.v) % 20 = 0", streams="ABC")
    share = engine.statistics().selectivities[StreamSet.of("A", "B", "C")]
    assert share == pytest.approx(1 / 20, rel=0.5)


def test_what_cannot_be_evaluated_on_any_pair_is_left_out() -> None:
    """Rows that agree on the key never divide by zero; rows drawn at random may."""
    engine, _ = pushed("A.k = B.k AND A.v / (1 + B.k - A.k) > 3")
    assert math.isfinite(engine.statistics().selectivities[StreamSet.of("A", "B")])


def test_counts_of_steps_know_that_partners_exclude_each_other() -> None:
    """A row of A has partners in B or in C, never in both; pairs cannot tell."""
    windows = ", ".join(f"{name} [RANGE 10 SECONDS]" for name in "ABC")
    schema = pa.schema([(name, pa.int64()) for name in ("ts", "x", "y")])
    query = penstock.parse(
        f"SELECT A.ts FROM {windows} WHERE A.x = B.x AND A.y = C.y",
        schemas=dict.fromkeys("ABC", schema),
    )
    engine = penstock.Engine(query, plan="(A B C)", feedback="off")
    watch = engine._changes.control._watch
    chance = np.random.default_rng(2)
    for second in range(6):
        times = 1000 * second + np.arange(300, dtype=np.int64)
        keys, side = chance.integers(0, 20, 300), chance.integers(0, 2, 300)
        own = pa.table([times, np.where(side, keys, -1), np.where(side, -1, keys)], schema=schema)
        other = pa.table([times, keys, keys], schema=schema)
        engine.push({"A": own, "B": other, "C": other})
        if second == 2:
            watch.glance(engine.trees, 1)
    found = watch.seen_together(engine.trees)
    pairs = engine.statistics().selectivities
    product = pairs[StreamSet.of("A", "B")] * pairs[StreamSet.of("A", "C")]
    assert found[StreamSet.of("A", "B", "C")] < product / 100


def test_the_first_batch_is_planned_before_it_is_joined() -> None:
    """The fan-out is first in FROM: joined as it is written, every row would make hundreds."""
    columns = ("ts", "ab", "bc", "cd", "da")
    schema = pa.schema([(name, pa.int64()) for name in columns])
    windows = ", ".join(f"{name} [RANGE 10 SECONDS]" for name in "ABCD")
    query = penstock.parse(
        f"""SELECT A.ts FROM {windows}
            WHERE A.ab = B.ab AND B.bc = C.bc AND C.cd = D.cd AND A.da = D.da""",
        schemas=dict.fromkeys("ABCD", schema),
    )
    chance = np.random.default_rng(4)

    def batch(second: int) -> dict[str, pa.Table]:
        times = 1000 * second + np.arange(500, dtype=np.int64) * 2
        sizes = (2, 3, 1000, 1000)
        return {
            name: pa.table([times, *(chance.integers(0, s, 500) for s in sizes)], schema=schema)
            for name in "ABCD"
        }

    first = batch(0)
    made = {}
    for adapt in ("auto", "off"):
        engine = penstock.Engine(query, feedback="off", adapt=adapt)
        table = engine.push(first)
        matches = sum(each["matches"] for each in engine.metrics()["joins"])
        made[adapt] = (matches, sorted(table["ts"].to_pylist()))
    assert made["auto"][1] == made["off"][1]
    assert made["auto"][0] < made["off"][0] / 5
    small = penstock.Engine(query, feedback="off")
    small.push({name: table.slice(0, 3) for name, table in first.items()})
    assert small.history == ()
    few = penstock.Engine(query, feedback="off")
    few.push({name: first[name] for name in "ABC"})
    assert few.history == ()
