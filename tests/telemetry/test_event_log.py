"""The event log: what is written is read, across restarts, half lines and rotation."""

from __future__ import annotations

import json
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError, PenstockError
from penstock.telemetry import (
    Alert,
    Batch,
    CellBatch,
    Event,
    EventLog,
    Failure,
    Idle,
    Order,
    OverloadChange,
    PlanDecision,
    Restart,
    Start,
    Stop,
    Warned,
    Wave,
    read_events,
)
from penstock.telemetry.events import KINDS, VERSION, from_json, to_json

ABOUT = ("job", "SELECT …", "((A B) C)", 2, "2 cells", {"A": "parquet"}, "kafka", {"spark": "4"})
CELL = CellBatch(1, {"A": 3}, 2, {"A": 1}, 100, 50, 0.5, 0.75, "live", "((A B) C)")
EVENTS: tuple[Event, ...] = (
    Start("2026-01-01T00:00:00.000Z", "run 1", *ABOUT),
    Batch("t", "run 1", 0, 1.5, {"A": 3}, 2, {"A": 1}, 100, 50, 0.5, {"addBatch": 9}, (CELL,)),
    PlanDecision(
        "t",
        "run 1",
        0,
        1,
        "migrate",
        "((A B) C)",
        "((A C) B)",
        "it pays",
        8.5,
        1000,
        "((A C) B)",
        ("memory",),
        {"cpu": 0.5},
    ),
    Order("t", "run 1", "pin", 7, "((A B) C)"),
    OverloadChange("t", "run 1", 0, 1, "short", "defer", "9 probes/s", {"needed": 5.0}),
    Idle("t", "run 1"),
    Alert("t", "run 1", "late", "5 % of the rows of A came late", False, "A", 0.05, 0.01),
    Warned("t", "run 1", "silent", "B is far behind", ("B",)),
    Wave("t", "run 1", 0, "suspend", 500, 20.5, 700, {"{A}": 500}),
    Failure("t", "run 1", "out of luck", "a\nlong\nstory"),
    Restart("t", "run 2", *ABOUT, after=0),
    Stop("t", "run 2", "finished", 1, 3, 2, 9.5),
)


def batch(number: int) -> Batch:
    return Batch("t", "r", number, 0.1, {"A": number}, 0, {}, 0, 0, 0.0)


def test_every_kind_goes_both_ways() -> None:
    assert {type(event) for event in EVENTS} == set(KINDS.values())
    for event in EVENTS:
        line = to_json(event)
        assert "\n" not in line
        assert from_json(line) == event


def test_runs_add_to_the_log(tmp_path: Path) -> None:
    path = tmp_path / "new" / "log.jsonl"
    for part in (EVENTS[:3], EVENTS[3:]):
        with EventLog(path) as log:
            for event in part:
                log.write(event)
    assert tuple(read_events(path)) == EVENTS


def test_half_a_line_is_ended_and_skipped(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(to_json(EVENTS[0]) + "\n" + to_json(EVENTS[1])[:40])
    with EventLog(path) as log:
        log.write(EVENTS[4])
    assert tuple(read_events(path)) == (EVENTS[0], EVENTS[4])


def test_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with EventLog(path), pytest.raises(PenstockError, match="this job runs already"):
        EventLog(path)
    EventLog(path).close()


@settings(max_examples=30)
@given(limit=st.integers(1, 2_000), kept=st.integers(1, 50), count=st.integers(1, 30))
def test_rotation_keeps_the_newest_in_order(
    tmp_path_factory: pytest.TempPathFactory, limit: int, kept: int, count: int
) -> None:
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    with EventLog(path, limit, kept) as log:
        for number in range(count):
            log.write(batch(number))
    parts = sorted(path.parent.iterdir())
    assert len(parts) <= kept + 1
    longest = max(len(to_json(batch(number))) + 1 for number in range(count))
    assert all(part.stat().st_size <= max(limit, longest) for part in parts)
    numbers = [event.batch for event in read_events(path) if isinstance(event, Batch)]
    assert numbers == list(range(count))[-len(numbers) :]
    if len(parts) <= kept:
        assert len(numbers) == count


def test_the_lock_survives_rotation(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with EventLog(path, largest=10) as log:
        log.write(batch(1))
        log.write(batch(2))
        with pytest.raises(PenstockError, match="runs already"):
            EventLog(path)


@given(st.dictionaries(st.text(string.ascii_lowercase, min_size=5), st.integers()))
def test_fields_of_later_versions_are_skipped(more: dict[str, int]) -> None:
    fields = json.loads(to_json(EVENTS[1]))
    assert from_json(json.dumps(more | fields)) == EVENTS[1]


def test_events_and_versions_that_are_not_known() -> None:
    assert from_json(json.dumps({"version": VERSION, "event": "migration"})) is None
    with pytest.raises(InputError, match="use a newer one"):
        from_json(json.dumps({"version": VERSION + 1, "event": "batch"}))
