"""What is loaded before Python processes are forked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_nothing_runs_beside_the_thread_that_forks() -> None:
    program = (
        "import os; os.environ['OPENBLAS_NUM_THREADS'] = '1'\n"
        "from penstock.spark.processes.preload import preload; preload()\n"
        "tasks = [open(f'/proc/self/task/{t}/comm').read().strip() "
        "for t in os.listdir('/proc/self/task')]\n"
        "print(len([t for t in tasks if 'jemalloc' not in t]))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ),
    )
    assert told.stdout.split() == ["1"], told.stderr
