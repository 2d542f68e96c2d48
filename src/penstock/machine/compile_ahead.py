"""Compiling kernels by several processes, with an estimate of how long that takes.

One process takes more than a minute for all of them. Here every core takes the next kernel of the
list (:mod:`penstock.machine.kernel_list`); who needs one that another process has begun with waits
for it (:mod:`penstock.kernels.kernel_files`). The estimate begins with the figures of the list and
follows what this machine has taken so far.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from threading import Event
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
    first: bool = False, progress: Progress | None = None, is_over: Event | None = None
) -> int:
    """Compile what is not on disk yet, with ``first`` only what a plain join needs; how many
    kernels that were. It ends early when it ``is_over``."""
    entries = [each for each in kernel_list() if not (first and not each.is_first)]
    missing = [each for each in entries if not _is_kept(each)]
    if not missing:
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    processes = max(1, min(cores or 1, _MOST_PROCESSES))
    total = sum(each.seconds for each in missing)
    began, done = time.monotonic(), 0.0
    if progress is not None:
        progress(0.0, total / processes)
    pool = ProcessPoolExecutor(processes, get_context("spawn"), initializer=_begin)
    try:
        futures = {pool.submit(_compile, each): each for each in missing}
        for future in as_completed(futures):
            future.result()
            if is_over is not None and is_over.is_set():
                break
            done += futures[future].seconds
            if progress is not None:
                spent = time.monotonic() - began
                pace = (spent + _TRUST) / (done / processes + _TRUST)
                progress(done / total, pace * (total - done) / processes)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return len(missing)


def _begin() -> None:
    """A process that compiles leaves Ctrl-C to the one that has started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


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
