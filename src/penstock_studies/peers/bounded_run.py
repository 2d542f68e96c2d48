"""One run of a peer: a process tree with bounds on time and memory, and clocks read from outside.

The script follows the protocol of ``scripts/hand_over.py``: it says when it is ready and when it is
done, and waits until this side has read the CPU seconds of the tree. So all peers are measured the
same way, whatever they start. Memory is looked at several times a second, what processes share
counted once; a peak between two looks shows in the processes' own high-water marks. However a run
ends, no process of it stays behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_LOOK = 0.25
"""Seconds between two looks at memory."""
_REASON = 300
"""Characters."""

DONE = "done"
FAILED = "failed"
TOO_LONG = "too long"
TOO_LARGE = "too large"


@dataclass(frozen=True)
class Bounds:
    """What a run may take, from its start to its end."""

    seconds: float
    memory: int
    """Bytes."""


@dataclass
class Outcome:
    """How a run ended, and what was measured. Without an end the figures are of the part."""

    status: str = FAILED
    reason: str = ""
    start_cpu: float = 0.0
    """CPU seconds before the join: loading, compiling, the rehearsal."""
    cpu: float = 0.0
    wall: float = 0.0
    peak_bytes: int = 0
    told: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def run_bounded(
    command: Sequence[str],
    orders: Mapping[str, Any],
    bounds: Bounds,
    environment: Mapping[str, str],
    log: Path,
) -> Outcome:
    """Run a peer script on ``orders``; what it prints goes to ``log``."""
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=dict(environment),
            cwd=log.parent,
            start_new_session=True,  # An interrupt reaches this process alone, which ends the tree.
        )
    watch = _Watch(process, bounds)
    try:
        watch.follow(orders)
    finally:
        watch.end()
    if watch.outcome.status == FAILED and not watch.outcome.reason:
        watch.outcome.reason = _last_words(log, process.returncode)
    return watch.outcome


class _Watch:
    def __init__(self, process: subprocess.Popen[bytes], bounds: Bounds) -> None:
        from penstock.spark.start import process_tree

        self._tree = process_tree
        self._process = process
        self._bounds = bounds
        self._began = time.monotonic()
        self._since: float | None = None
        self._known: set[int] = {process.pid}
        self.outcome = Outcome()

    def follow(self, orders: Mapping[str, Any]) -> None:
        """Until the script has told its answer, has failed, or has passed a bound."""
        assert self._process.stdout is not None
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            self._send(json.dumps(orders))
            while self._inside():
                if not selector.select(_LOOK):
                    if self._process.poll() is not None:
                        return  # It has ended, and left somebody behind who holds the pipe.
                    continue
                piece = os.read(self._process.stdout.fileno(), 1 << 16)
                if not piece:
                    return  # It has ended without an answer.
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if self._hear(json.loads(line)):
                        return

    def _hear(self, message: dict[str, Any]) -> bool:
        """Take in one line of the script; whether it was the last."""
        if message.get("at") == "ready":
            self.outcome.start_cpu = self._tree.cpu_seconds(self._process.pid)
            self._since = time.monotonic()
            self._send("")
        elif message.get("at") == "done":
            self._take_figures()
            self._look()
            self._since = None
            self._send("")
        elif "told" in message:
            self.outcome.told = message["told"]
            self.outcome.status = DONE
            return True
        else:
            self.outcome.reason = str(message.get("failed"))[:_REASON]
            return True
        return False

    def _inside(self) -> bool:
        """Look at the clock and the memory; False after saying which bound was passed."""
        size = self._look()
        if size > self._bounds.memory:
            self._stopped(TOO_LARGE, f"more than {self._bounds.memory / 1e9:.3g} GB of memory")
            return False
        if time.monotonic() - self._began > self._bounds.seconds:
            self._stopped(TOO_LONG, f"more than {self._bounds.seconds:.0f} s")
            return False
        return True

    def _stopped(self, status: str, reason: str) -> None:
        if self._since is not None:
            self._take_figures()
        self.outcome.status, self.outcome.reason = status, reason

    def _take_figures(self) -> None:
        assert self._since is not None
        self.outcome.wall = time.monotonic() - self._since
        self.outcome.cpu = self._tree.cpu_seconds(self._process.pid) - self.outcome.start_cpu

    def _look(self) -> int:
        """Bytes in memory now; keeps the peak and the processes for later."""
        size = self._tree.memory(self._process.pid)
        pids = self._tree.processes(self._process.pid)
        self._known.update(pids)
        marks = [_high_water(pid) for pid in pids]
        self.outcome.peak_bytes = max(self.outcome.peak_bytes, size, *marks, 0)
        return size

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()

    def end(self) -> None:
        """No process of the tree stays behind."""
        root = self._process.pid
        alive = set(self._tree.processes(root))
        for pid in (
            self._known - alive
        ):  # Orphans of a script that has ended, if still of its session.
            with contextlib.suppress(ProcessLookupError):
                if os.getsid(pid) == root:
                    alive.add(pid)
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


def _high_water(pid: int) -> int:
    """The most bytes that ``pid`` has had in memory; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def _last_words(log: Path, code: int | None) -> str:
    if code is not None and code < 0 and code != -signal.SIGKILL:
        return f"ended by signal {-code}"
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    words = [line for line in lines if line]
    return words[-1][:_REASON] if words else f"ended with code {code} and no word"
