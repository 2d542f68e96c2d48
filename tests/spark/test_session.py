"""A session that is interrupted while Spark starts leaves no process behind."""

from __future__ import annotations

import subprocess
import sys

import pytest

from penstock.spark import process_tree
from penstock.spark.session import _no_orphans

pytestmark = pytest.mark.skipif(not process_tree.is_known(), reason="needs /proc")


def sleeping() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


def interrupted(started: list[subprocess.Popen[bytes]]) -> None:
    with _no_orphans():
        started.append(sleeping())
        raise KeyboardInterrupt


def test_what_was_started_meanwhile_ends_and_nothing_else() -> None:
    older = sleeping()
    started: list[subprocess.Popen[bytes]] = []
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted(started)
        assert started[0].wait(30) != 0
        assert older.poll() is None
    finally:
        older.kill()
        older.wait()


def test_without_an_interrupt_all_goes_on() -> None:
    with _no_orphans():
        started = sleeping()
    assert started.poll() is None
    started.kill()
    started.wait()
