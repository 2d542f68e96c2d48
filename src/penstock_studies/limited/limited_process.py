"""A process with a share of one core and a bound on its memory.

It is pinned to one core, and the parent keeps it to its share: like the quota of a cgroup, but with
signals, which need no rights. Every :data:`TICK` the process earns CPU time and pays what it has
used; in debt it is stopped (``SIGSTOP``), out of debt it goes on. What it does not use is lost but
for :data:`SAVED` seconds' worth. Its memory it bounds itself, by ``RLIMIT_DATA``, when everything
that belongs to the start is loaded (:mod:`penstock_studies.limited.child`).

On a busy machine a process may get less than its share. ``got`` says what it had while it had work
to do, so that a reader can tell.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

SHARE = 0.5
"""Of a core, for every process: half, so that it is there on a machine that does other things."""
TICK = 0.002
"""Seconds between two looks at the clock of the process."""
SAVED = 0.05
"""Seconds for which unused CPU time is kept."""
_QUIET = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""Environment with which memory that is freed goes back to the system, and threads have no stacks
that count."""


@dataclass
class Ended:
    """What a process has told, and how it ended."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    """One for each second of event time."""
    end: dict[str, Any] = field(default_factory=dict)
    """Its last word; empty if it had none."""
    code: int = 0


def run_limited(request: dict[str, Any], share: float = SHARE) -> Ended:
    """Run the child on ``request`` with ``share`` of a core."""
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock_studies.limited.child", json.dumps(request)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **_QUIET},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    ended = Ended()
    done = threading.Event()
    keeper: threading.Thread | None = None
    try:
        for line in process.stdout:
            told = json.loads(line)
            if told == "ready":
                keeper = threading.Thread(target=_keep, args=(process, share, done))
                keeper.start()
                process.stdin.write("go\n")
                process.stdin.flush()
            elif "second" in told:
                ended.rows.append(told)
            else:
                ended.end = told
    finally:
        done.set()
        if keeper is not None:
            keeper.join()
        if sys.exc_info()[0] is not None:
            process.kill()
        process.stdin.close()
        process.stdout.close()
        ended.code = process.wait()
    return ended


def _keep(process: subprocess.Popen[str], share: float, done: threading.Event) -> None:
    """Keep ``process`` to ``share`` of a core until it is done; then it goes on without."""
    clock = (~process.pid << 3) | 2  # Linux: the CPU clock of another process.
    is_stopped = False
    credit = 0.0
    try:
        then, used = time.monotonic(), time.clock_gettime(clock)
        while not done.wait(TICK) and process.poll() is None:
            now, spent = time.monotonic(), time.clock_gettime(clock)
            credit = min(credit + share * (now - then), share * SAVED) - (spent - used)
            then, used = now, spent
            if (credit <= 0) is not is_stopped:
                is_stopped = not is_stopped
                process.send_signal(signal.SIGSTOP if is_stopped else signal.SIGCONT)
    except OSError:  # It has ended in between.
        pass
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
