"""What a signal does that comes while handlers are held back."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

import pytest

from penstock.kernels.held_signals import uninterrupted


@pytest.fixture
def handled() -> Iterator[list[int]]:
    """The signals whose handler has run."""
    numbers: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        numbers.append(number)

    before = signal.signal(signal.SIGALRM, handle)
    yield numbers
    signal.signal(signal.SIGALRM, before)


def test_a_signal_is_handled_when_what_it_came_into_has_ended(handled: list[int]) -> None:
    @uninterrupted
    def interrupted() -> list[int]:
        signal.raise_signal(signal.SIGALRM)
        return list(handled)

    assert interrupted() == []
    assert _soon(handled) == [signal.SIGALRM]


def test_no_signal_is_lost_when_gates_open_slowly(
    handled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(threading.Timer):
        def start(self) -> None:
            super().start()
            time.sleep(0.1)  # The other thread goes on, as it may on a busy machine.

    monkeypatch.setattr(threading, "Timer", Slow)
    uninterrupted(signal.raise_signal)(signal.SIGALRM)
    assert _soon(handled) == [signal.SIGALRM]


def _soon(handled: list[int]) -> list[int]:
    """The signals that were handled, when the first has been, or after a long time."""
    for _ in range(6_000):
        if handled:
            break
        time.sleep(0.01)
    return handled
