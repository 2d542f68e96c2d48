"""Limits are measured: told in the push in which they break, and taken back when they hold."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.control.limit_watch import LimitWatch
from penstock.engine.running.push_clock import PushClock

SCHEMA = pa.schema([("ts", pa.int64()), ("x", pa.int64())])
QUERY = penstock.parse(
    "SELECT A.ts AS a, B.ts AS b FROM A [RANGE 2 SECONDS], B [RANGE 2 SECONDS] WHERE A.x = B.x",
    schemas=dict.fromkeys("AB", SCHEMA),
)


def batch(second: int, rows: int) -> dict[str, pa.Table]:
    times = 1000 * second + np.arange(rows) * 1000 // rows
    return {name: pa.table([times, times % 97], schema=SCHEMA) for name in "AB"}


@pytest.mark.parametrize("options", [{}, {"plan": "(A B)"}, {"adapt": "off"}])
def test_bytes_are_compared_after_every_push(options: dict[str, Any]) -> None:
    free = penstock.Engine(QUERY, feedback="off")
    for second in range(4):
        free.push(batch(second, 200))
    limit = 2 * free.metrics()["state"]["bytes"]
    engine = penstock.Engine(QUERY, feedback="off", limits=penstock.Limits(memory=limit), **options)
    seen = []
    for second, rows in enumerate([200] * 4 + [6_000] * 4 + [200] * 12):
        engine.push(batch(second, rows))
        is_over = engine._changes.nbytes > limit
        assert engine.metrics()["control"]["exceeded"] == (["memory"] if is_over else [])
        seen.append(is_over)
    assert not seen[3]
    assert seen[7]
    changes = [a != b for a, b in itertools.pairwise([False, *seen])]
    told = [each for each in engine.drain_events() if each.reason.startswith("measured: ")]
    assert len(told) == sum(changes)
    assert told[0].exceeded == ("memory",)
    assert "% over the limit" in told[0].reason
    assert told[0].numbers["memory"] > limit


def test_values_of_text_keys_count() -> None:
    schema = pa.schema([("ts", pa.int64()), ("x", pa.string())])
    query = penstock.parse(
        "SELECT A.ts AS a FROM A [RANGE 2 SECONDS], B [RANGE 2 SECONDS] WHERE A.x = B.x",
        schemas=dict.fromkeys("AB", schema),
    )
    engine = penstock.Engine(query, limits=penstock.Limits(memory=800_000, disk=0))
    texts = [f"{number} {'x' * 1000}" for number in range(1000)]
    engine.push({name: pa.table([range(1000), texts], schema=schema) for name in "AB"})
    state = engine.metrics()["state"]
    assert state["values"]["bytes"] > 1_000_000
    assert state["bytes"] > state["values"]["bytes"]
    assert engine.metrics()["control"]["exceeded"] == ["memory"]


def test_cpu_is_measured_by_the_clock() -> None:
    step = [0.0]

    def clock() -> float:
        step[0] += pace
        return step[0]

    pace = 0.001
    engine = penstock.Engine(QUERY, plan="(A B)", limits=penstock.Limits(cpu=0.1))
    engine._changes.clock = PushClock(clock, lambda: step[0])
    exceeded = []
    for second in range(9):
        pace = 0.5 if 3 <= second < 5 else 0.001
        engine.push(batch(second, 10))
        exceeded.append(engine.metrics()["control"]["exceeded"])
    assert exceeded[2] == []
    assert exceeded[3] == exceeded[4] == ["cpu"]
    assert exceeded[8] == []


def over(*pushes: tuple[float | None, float, int | None]) -> tuple[str, ...]:
    """What is over a tenth of a core and a hundred bytes after ``pushes``."""
    watch = LimitWatch(penstock.Limits(cpu=0.1, memory=100))
    for push in pushes:
        watch.note(*push)
    assert set(watch.over) <= watch.known
    return watch.over


def test_nothing_is_known_too_early_or_on_the_arrival_line() -> None:
    assert over((0.0, 9.0, 50)) == ()
    assert over((0.0, 9.0, 50), (1.0, 9.0, 101)) == ("cpu", "memory")
    assert over((0.0, 0.01, 50), (1.0, 0.01, 100)) == ()
    assert over(*[(None, 9.0, None)] * 3) == ()
