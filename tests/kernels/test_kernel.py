"""What is kept on disk of a kernel is not used when another kernel, part of it, has changed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import numba

import penstock.kernels
from penstock.kernels import kernel as decorators

_INNER = """from penstock.kernels.kernel import kernel

STEP = {step}


@kernel
def inner(x):
    return x + STEP
"""
_OUTER = """from penstock.kernels.inner import inner
from penstock.kernels.kernel import kernel


@kernel
def outer(x):
    return 10 * inner(x)
"""
_PROGRAM = """
from penstock.kernels.outer import outer
answer = outer(1)
print(answer, sum(outer.stats.cache_hits.values()))
"""


def test_a_change_in_one_file_reaches_the_kernels_of_others(tmp_path: Path) -> None:
    package = tmp_path / "penstock" / "kernels"
    package.mkdir(parents=True)
    (tmp_path / "penstock" / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    for name in ("held_signals.py", "kernel.py", "kernel_files.py"):
        shutil.copy(Path(penstock.kernels.__path__[0]) / name, package)
    (package / "outer.py").write_text(_OUTER)

    def run(step: int) -> str:
        (package / "inner.py").write_text(_INNER.format(step=step))
        for file in package.glob("*.py"):
            os.utime(file, (1, 1))  # As a wheel does it: one time for all, and the sizes are equal.
        told = subprocess.run(
            [sys.executable, "-B", "-c", _PROGRAM],
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        return told.stdout.strip()

    assert run(1) == "20 0"
    assert run(1) == "20 1", "kept on disk"
    assert run(2) == "30 0"


def test_signals_wait_until_a_kernel_is_there() -> None:
    happened: list[str] = []

    def doubled(x: int) -> int:
        return 2 * x

    def interrupt(number: int, frame: FrameType | None) -> None:
        happened.append("signal")

    dispatcher: Any = numba.njit(cache=True)(doubled)
    compile_ = dispatcher.compile

    def disturbed(signature: Any) -> Any:
        signal.raise_signal(signal.SIGALRM)
        entry = compile_(signature)
        happened.append("compiled")
        return entry

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        dispatcher.compile = disturbed
        assert decorators._kept(dispatcher)(21) == 42
        for _ in range(1000):
            if len(happened) == 2:
                break
            time.sleep(0.01)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert happened == ["compiled", "signal"]
