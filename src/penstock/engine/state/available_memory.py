"""The memory that a process can still take: of the machine, of its container, of its own limit.

``MemAvailable`` is what the kernel thinks can be had without swapping. A container (cgroup, version
1 or 2) may have less left, and any of the groups above it too; what it holds of files is given back
when memory is short and counts as free. ``ulimit -v`` bounds addresses, of which a process has more
than memory, so that this one errs on the safe side.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_SECOND = ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file")
_FIRST = (
    "sys/fs/cgroup/memory",
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "total_inactive_file",
)
_VERSIONS = (_SECOND, _FIRST)
"""Files of each version of cgroups: folder, limit, use, and what can be given back."""


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that can still be taken; None where nothing tells."""
    return min([*_of_machine(root), *_of_containers(root), *_of_process(root)], default=None)


def memory_of_machine(root: Path = Path("/")) -> int:
    """Bytes of memory that this process can have at most."""
    found = []
    with contextlib.suppress(ValueError, OSError, AttributeError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for folder, limit, _, _ in _VERSIONS:
        for group in _groups(root, folder):
            with contextlib.suppress(ValueError, OSError):
                found.append(int((group / limit).read_text()))
    bound = _address_limit()
    return min([*found, *([] if bound is None else [bound])], default=8 << 30)


def _of_machine(root: Path) -> Iterator[int]:
    with contextlib.suppress(ValueError, OSError):
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                yield int(line.split()[1]) << 10


def _of_containers(root: Path) -> Iterator[int]:
    for folder, limit, use, files in _VERSIONS:
        for group in _groups(root, folder):
            with contextlib.suppress(ValueError, OSError):
                left = int((group / limit).read_text()) - int((group / use).read_text())
                with contextlib.suppress(ValueError, OSError):
                    for line in (group / "memory.stat").read_text().splitlines():
                        name, _, value = line.partition(" ")
                        left += int(value) if name == files else 0
                yield max(0, left)


def _groups(root: Path, folder: str) -> list[Path]:
    """The folder of the process's own group, and of those above it."""
    top = root / folder
    own = ""
    with contextlib.suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == ("memory" if folder.endswith("memory") else ""):
                own = path.strip("/")
    # In a container the path may be that of the host, which is not there to see.
    place = top / own if own and (top / own).is_dir() else top
    return [place, *(each for each in place.parents if each.is_relative_to(top))]


def _of_process(root: Path) -> Iterator[int]:
    bound = _address_limit()
    if bound is not None:
        with contextlib.suppress(ValueError, OSError, IndexError):
            pages = int((root / "proc/self/statm").read_text().split()[0])
            yield max(0, bound - pages * os.sysconf("SC_PAGE_SIZE"))


def _address_limit() -> int | None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        bound = resource.getrlimit(resource.RLIMIT_AS)[0]
        return None if bound == resource.RLIM_INFINITY else bound
    return None
