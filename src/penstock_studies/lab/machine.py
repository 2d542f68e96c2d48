"""Where and with what something was measured: what goes beside every number."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

import penstock

PACKAGES = ("numpy", "numba", "pyarrow", "sqlglot")


def this_machine() -> dict[str, str]:
    """Processor, cores, memory, system and versions, each as a line of text."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{_memory() / 2**30:.0f} GiB" if _memory() else "unknown",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "penstock": penstock.__version__,
        **{name: metadata.version(name) for name in PACKAGES},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0
