"""What Linux tells of a process in ``/proc``: its parent, how it was started, its name."""

from __future__ import annotations

from pathlib import Path

_PROC = Path("/proc")


def parent(pid: int) -> int:
    """The parent of ``pid``; 0 if it has ended."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return 0
    return int(text[text.rindex(")") + 2 :].split()[1])


def command_line(pid: int) -> str:
    """How ``pid`` was started; empty if it has ended."""
    try:
        return (_PROC / str(pid) / "cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def name(pid: int) -> str:
    """The name that the system shows for ``pid``, 15 letters at most; empty if it has ended."""
    try:
        return (_PROC / str(pid) / "comm").read_text().strip()
    except OSError:
        return ""
