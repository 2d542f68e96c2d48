"""A follower sees every event once, in order: across calls, half lines and rotations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.telemetry import EventFollower, EventLog, Failure


def failure(number: int) -> Failure:
    return Failure("2026-01-01T00:00:00.000Z", "r", str(number))


def seen(follower: EventFollower) -> list[str]:
    return [event["reason"] for event in follower.new()]


def test_events_come_once_and_half_a_line_later(tmp_path: Path) -> None:
    path = tmp_path / "log"
    follower = EventFollower(path)
    assert seen(follower) == []
    with EventLog(path) as log:
        log.write(failure(1))
        assert seen(follower) == ["1"]
        assert seen(follower) == []
        log.write(failure(2))
    text = path.read_bytes()
    with path.open("ab") as file:
        half = text.splitlines()[0].replace(b'"1"', b'"3"')
        file.write(half[:20])
        file.flush()
        assert seen(follower) == ["2"]
        file.write(half[20:] + b"\n")
        file.flush()
        assert seen(follower) == ["3"]


@pytest.mark.parametrize("every", [1, 3, 7, 100])
def test_rotations_lose_nothing(tmp_path: Path, every: int) -> None:
    path = tmp_path / "log"
    follower = EventFollower(path)
    found: list[str] = []
    with EventLog(path, largest=400, kept=60) as log:
        for number in range(100):
            log.write(failure(number))
            if number % every == 0:
                found += seen(follower)
    assert (tmp_path / "log.5").exists()
    assert found + seen(follower) == [str(number) for number in range(100)]


def test_unknown_kinds_and_garbage(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text('{"version": 1, "event": "eclipse", "reason": "x"}\n{"versi\n[1]\n{}\n')
    assert seen(EventFollower(path)) == ["x"]
    path.write_text(json.dumps({"version": 99, "event": "stop"}) + "\n")
    with pytest.raises(InputError, match="version 99"):
        seen(EventFollower(path))
