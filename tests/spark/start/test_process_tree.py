"""CPU seconds and memory of a tree of processes."""

from __future__ import annotations

import os
import subprocess
import sys

import one_process
import pytest

from penstock.spark.start import process_tree

pytestmark = pytest.mark.skipif(not process_tree.is_known(), reason="reads /proc")


def test_children_count() -> None:
    program = "b = bytearray(64 << 20); sum(range(10**7)); print('ready', flush=True); input()"
    before = process_tree.cpu_seconds(os.getpid())
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        assert child.pid in process_tree.processes(os.getpid())
        assert one_process.parent(child.pid) == os.getpid()
        assert "bytearray" in one_process.command_line(child.pid)
        assert process_tree.memory(child.pid) > 64 << 20
        own = process_tree.cpu_seconds(child.pid)
        assert own > 0.05
        assert process_tree.cpu_seconds(os.getpid()) >= before + own
        child.communicate("end\n")
    assert process_tree.processes(child.pid) == []
    assert one_process.command_line(child.pid) == ""
    assert one_process.parent(child.pid) == 0
