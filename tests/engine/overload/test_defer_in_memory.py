"""``defer`` under a limit to memory: what cannot wait is given up, and told."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
ROWS, KEYS = 120, 240
TEXT = """
    SELECT A.id AS a, B.id AS b, C.id AS c
    FROM A [RANGE 4 SECONDS] FRESHNESS 1 HOUR, B [RANGE 4 SECONDS] FRESHNESS 1 HOUR,
         C [RANGE 4 SECONDS] FRESHNESS 1 HOUR
    WHERE A.x = B.x AND B.y = C.y"""
QUERY = penstock.parse(TEXT, schemas=dict.fromkeys("ABC", SCHEMA))


def batch(chance: np.random.Generator, second: int) -> dict[str, pa.Table]:
    return {
        stream: pa.table(
            [
                np.arange(ROWS) + ROWS * second,
                np.sort(chance.integers(1000 * second, 1000 * second + 1000, ROWS)),
                chance.integers(0, KEYS, ROWS),
                chance.integers(0, KEYS, ROWS),
            ],
            schema=SCHEMA,
        )
        for stream in "ABC"
    }


def run(
    plan: str, seed: int, memory: int | None, restart: bool = False
) -> tuple[Counter[Any], Counter[Any], dict[str, Any], int]:
    """What exact and ``defer`` made, what this told, and the most bytes that it held."""
    chance = np.random.default_rng(seed)
    exact = penstock.Engine(QUERY, plan, adapt="off")
    limits = None if memory is None else penstock.Limits(memory=memory)
    engine = penstock.Engine(QUERY, plan, adapt="off", overload="defer", limits=limits)
    made: tuple[Counter[Any], Counter[Any]] = (Counter(), Counter())
    most = 0
    for second in range(60):
        rows = batch(chance, second)
        made[0].update(map(tuple, zip(*exact.push(rows).to_pydict().values(), strict=True)))
        answer = engine.push(rows, probes=0.5 * ROWS)
        made[1].update(map(tuple, zip(*answer.to_pydict().values(), strict=True)))
        most = max(most, engine.metrics()["state"]["bytes"])
        if restart and second == 30:
            engine = penstock.Engine.restore(QUERY, engine.checkpoint())
    made[1].update(map(tuple, zip(*engine.finish().to_pydict().values(), strict=True)))
    return *made, engine.metrics()["overload"], most


@pytest.mark.parametrize("plan", ["((A B) C)", "(A B C)"])
@pytest.mark.parametrize("restart", [False, True])
def test_what_does_not_fit_is_given_up_and_told(plan: str, restart: bool) -> None:
    whole, late, told, most = run(plan, 5, None)
    assert late == whole
    assert told["forgotten"] == 0
    limit = most // 3
    whole, late, told, held = run(plan, 5, limit, restart)
    assert not late - whole, "nothing wrong, and nothing twice"
    missing = sum(whole.values()) - sum(late.values())
    assert held <= 1.05 * limit
    assert told["forgotten"] > 0
    assert missing > 0
    lost = told["lost"]
    assert abs(lost["results"] - missing) < 3 * lost["error"]
