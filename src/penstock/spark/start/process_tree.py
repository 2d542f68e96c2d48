"""CPU seconds and memory of a process and all that it started, as Linux tells in ``/proc``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")


def is_known() -> bool:
    """Whether this system tells."""
    return (_PROC / "self" / "stat").is_file()


def cpu_seconds(root: int) -> float:
    """CPU seconds of ``root``, its living descendants, and those that they have waited for."""
    tick = os.sysconf("SC_CLK_TCK")
    return sum(sum(map(int, fields[11:15])) for _, fields in _tree(root)) / tick


def memory(root: int) -> int:
    """Bytes in memory. What processes share counts once."""
    total = 0
    for pid, _ in _tree(root):
        try:
            lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def processes(root: int) -> list[int]:
    """``root`` and its living descendants."""
    return [pid for pid, _ in _tree(root)]


def _tree(root: int) -> Iterator[tuple[int, list[str]]]:
    """The process ``root`` and its descendants, with the fields of ``stat`` from the state on."""
    found: dict[int, list[str]] = {}
    children: dict[int, list[int]] = {}
    for entry in os.listdir(_PROC):
        if entry.isdigit():
            try:
                text = (_PROC / entry / "stat").read_text()
            except OSError:
                continue  # It has ended meanwhile.
            fields = text[text.rindex(")") + 2 :].split()
            found[int(entry)] = fields
            children.setdefault(int(fields[1]), []).append(int(entry))
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        if pid in found:
            yield pid, found[pid]
            waiting += children.get(pid, ())
