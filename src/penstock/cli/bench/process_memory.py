"""How much memory this process has, and has had at most."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def resident() -> int:
    """Bytes in memory now (the peak, where the system does not tell)."""
    return _status("VmRSS") or peak()


def peak() -> int:
    """The most bytes that were in memory at once.

    Linux's ``ru_maxrss`` starts with the size of the process that started this one, so the
    process's own high-water mark is preferred.
    """
    unit = 1 if sys.platform == "darwin" else 1024
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _status(field: str) -> int | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return None
