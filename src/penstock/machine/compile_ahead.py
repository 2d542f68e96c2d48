"""Compiling kernels by several processes, with an estimate of how long that takes.

One process takes more than a minute for all of them. Here every core takes the next kernel of the
list (:mod:`penstock.machine.kernel_list`); who needs one that another process has begun with waits
for it (:mod:`penstock.kernels.kernel_files`). The estimate begins with the figures of the list and
follows what this machine has taken so far.

A worker is this module as a program: it reads numbers of entries, and says when each is done. (A
pool of :mod:`concurrent.futures` would run the caller's script once more in every process.)
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from numba.core.errors import NumbaError

from penstock.machine.kernel_list import Entry, kernel_list

Progress = Callable[[float, float], None]
"""Is told the share that is done, and seconds until the end."""
_TRUST = 5.0
"""Seconds of work for which the figures of the list count as much as what is measured here."""
_MOST_PROCESSES = 8
"""Beyond so many, processes wait for each other: the largest kernels call one another in a row."""


def compile_ahead(
    first: bool = False, progress: Progress | None = None, is_over: threading.Event | None = None
) -> int:
    """Compile what is not on disk yet, with ``first`` only what a plain join needs; how many
    kernels that were. It ends early when it ``is_over``."""
    entries = kernel_list()
    wanted = [n for n, each in enumerate(entries) if each.is_first or not first]
    missing = [number for number in wanted if not _is_kept(entries[number])]
    if not missing:
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    processes = max(1, min(cores or 1, _MOST_PROCESSES, len(missing)))
    total = sum(entries[number].seconds for number in missing)
    began, done, lock = time.monotonic(), 0.0, threading.Lock()
    if progress is not None:
        progress(0.0, total / processes)
    left = iter(missing)

    def next_one() -> int | None:
        with lock:
            return None if is_over is not None and is_over.is_set() else next(left, None)

    def note(number: int) -> None:
        nonlocal done
        with lock:
            done += entries[number].seconds
            if progress is not None:
                pace = (time.monotonic() - began + _TRUST) / (done / processes + _TRUST)
                progress(min(1.0, done / total), pace * max(0.0, total - done) / processes)

    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(lambda _: _feed(next_one, note), range(processes)))
    return len(missing)


def _feed(next_one: Callable[[], int | None], note: Callable[[int], None]) -> None:
    """Have a process compile one entry after another."""
    worker = [sys.executable, "-m", "penstock.machine.compile_ahead"]
    pipe = subprocess.PIPE
    with subprocess.Popen(worker, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        while (number := next_one()) is not None:
            with contextlib.suppress(BrokenPipeError):
                print(number, file=process.stdin, flush=True)
            if not process.stdout.readline():
                return  # It has died: what it was to do is compiled when it is called.
            note(number)


def _work() -> None:
    """A worker: Ctrl-C is for the process that has started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    entries = kernel_list()
    for line in sys.stdin:
        _compile(entries[int(line)])
        print(line.strip(), flush=True)


def _compile(entry: Entry) -> None:
    # If the list is older than the kernel, that is compiled when it is called.
    with contextlib.suppress(NumbaError, TypeError):
        _kernel(entry).compile(entry.types())


def _is_kept(entry: Entry) -> bool:
    """Whether there is nothing to compile, or no kernel of that name any more."""
    try:
        return bool(_kernel(entry).is_kept(entry.types()))
    except (ImportError, AttributeError):
        return True


def _kernel(entry: Entry) -> Any:
    module, function = entry.kernel.split(".")
    return getattr(importlib.import_module(f"penstock.kernels.{module}"), function)


if __name__ == "__main__":
    _work()
