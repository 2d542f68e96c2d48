"""Kernels are compiled beside other work: waited for where they are needed, left where not."""

from __future__ import annotations

import io
import threading
from typing import Any

import pytest
from rich.console import Console

from penstock.cli import kernels_beside as module
from penstock.cli.kernels_beside import kernels_beside


class Compiler:
    """Compiles until it may end, or until nobody wants it any more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_end = threading.Event()
        self.was_given_up = threading.Event()
        monkeypatch.setattr(module, "compile_ahead", self)

    def __call__(self, first: bool, progress: Any, is_over: threading.Event) -> int:
        assert first
        progress(0.0, 10.0)
        while not self.may_end.wait(0.01):
            if is_over.is_set():
                self.was_given_up.set()
                return 0
        return 1


@pytest.mark.parametrize("terminal", [True, False])
def test_they_are_waited_for(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    compiler = Compiler(monkeypatch)
    said = io.StringIO()
    asked = 0

    def is_enough() -> bool:
        nonlocal asked
        asked += 1
        if asked == 2:
            compiler.may_end.set()
        return False

    with kernels_beside(Console(file=said, force_terminal=terminal, width=100)) as wait:
        wait(is_enough)
    assert asked >= 2
    assert not compiler.was_given_up.is_set()
    told = "10 s left" if terminal else "once: about 14 s …"
    assert told in said.getvalue()


def test_nobody_waits_who_has_been_asked_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = Compiler(monkeypatch)
    with kernels_beside(Console(file=io.StringIO())) as wait:
        wait(lambda: True)
        assert not compiler.was_given_up.is_set()
    assert compiler.was_given_up.wait(60)
