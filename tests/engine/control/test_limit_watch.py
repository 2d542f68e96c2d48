"""Limits are measured: told in the push in which they break, and taken back when they hold."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.control import controller
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


def test_a_limit_is_approached_once_until_there_is_room_again() -> None:
    watch = LimitWatch(penstock.Limits(memory=1000))
    told = []
    for used in (900, 951, 990, 900, 960, 1100, 840, 960):
        watch.note(None, 0.0, used)
        told.append(watch.approached())
    assert told == [set(), {"memory"}, set(), set(), set(), set(), set(), {"memory"}]


@pytest.mark.parametrize("looks_ahead", [True, False])
def test_a_filling_window_changes_the_plan_before_the_limit_breaks(
    monkeypatch: pytest.MonkeyPatch, looks_ahead: bool
) -> None:
    """No look is due by its budget; the plan stores a join that an mjoin does without."""
    for name, value in (("SHARE", 1e-9), ("SAVED", 0.0), ("FIRST_ROWS", 1 << 30)):
        monkeypatch.setattr(controller, name, value)
    if not looks_ahead:
        monkeypatch.setattr(LimitWatch, "approached", lambda _: set())
    query = penstock.parse(
        """SELECT A.ts AS a FROM A [RANGE 20 SECONDS], B [RANGE 20 SECONDS], C [RANGE 20 SECONDS]
           WHERE A.x = B.x AND B.x = C.x""",
        schemas=dict.fromkeys("ABC", SCHEMA),
    )

    def batch(second: int) -> dict[str, pa.Table]:
        times = 1000 * second + np.arange(100) * 10
        keys = {"A": times // 100, "B": times // 100, "C": -times}
        return {name: pa.table([times, keys[name]], schema=SCHEMA) for name in "ABC"}

    free = penstock.Engine(query, "((A B) C)", feedback="off")
    for second in range(12):
        free.push(batch(second))
    limit = int(free._changes.nbytes / 0.97)  # Rings double: what it holds next is twice as much.
    engine = penstock.Engine(
        query, "((A B) C)", adapt="on", feedback="off", limits=penstock.Limits(memory=limit, disk=0)
    )
    measured: list[int] = []
    note = LimitWatch.note

    def noted(watch: LimitWatch, seconds: float | None, spent: float, nbytes: int | None) -> None:
        measured.append(nbytes or 0)
        note(watch, seconds, spent, nbytes)

    monkeypatch.setattr(LimitWatch, "note", noted)
    for second in range(24):
        engine.push(batch(second))
    assert (max(measured) > limit) != looks_ahead
    assert str(engine.plan) != "((A B) C)"
    assert engine.history[0].exceeded == ()


def test_shed_does_not_keep_a_limit_on_memory_and_says_so() -> None:
    limits = penstock.Limits(memory=100_000, disk=0)
    with pytest.warns(penstock.PenstockWarning, match="'shed' does not keep Limits"):
        shed = penstock.Engine(QUERY, limits=limits, overload="shed", feedback="off")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exact = penstock.Engine(QUERY, limits=limits, feedback="off")
        for others in (penstock.Limits(memory=100_000), penstock.Limits(cpu=0.5, disk=0)):
            penstock.Engine(QUERY, limits=others, overload="shed")
    for second in range(3):
        for engine in (shed, exact):
            engine.push(batch(second, 6_000))
    assert shed._changes.nbytes == pytest.approx(exact._changes.nbytes, rel=0.05)
    assert shed.metrics()["control"]["exceeded"] == ["memory"]
