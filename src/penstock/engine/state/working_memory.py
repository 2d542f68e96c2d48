"""The memory that one push may work with, asked for before it is taken.

A frequent key in both of two streams makes the product of its rows: 32,000 in each are a thousand
million results. Probes count before they write, so it is known how much room they need before there
is any. Whoever is about to make room for combinations asks here first, and if a push would take
more than its share, it ends with an error that says so, with everything as before, instead of being
ended by the system with nothing left.

The share is half of the memory of the machine (of the container, or of the process, where these
have less), or what a limit on memory says, with room for work beside the states that the limit is
about.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from penstock.errors import TooManyResults

WORK_PER_STATE = 4
"""A push may work with so many times the limit on windows and states, as long as the machine has
it: what it makes is mostly gone when it returns."""
LEAST = 256 << 20
"""Bytes that any push may work with."""
IN_PARTS_AND_WHOLE = 2
"""Times that what was found is in memory, when its parts are put together."""
_NUMBER = 8
_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")

NO_ROOM = (MemoryError, TooManyResults)
"""What is raised where there is not enough memory, or would not be."""


class WorkingMemory:
    """Bytes that the push at hand may take for combinations at once."""

    def __init__(self) -> None:
        self._machine = 0
        self.most = 0
        self.at_once = 0
        """Combinations that a push may make at once whatever they take; 0: as many as fit in."""

    def begin(self, limit: int | None) -> None:
        """A push begins, under a ``limit`` on windows and states in bytes."""
        if not self._machine:
            self._machine = max(LEAST, memory_of_machine() // 2)
        self.most = self._machine
        if limit is not None:
            self.most = min(self.most, max(LEAST, WORK_PER_STATE * limit))

    def ask(self, combinations: int, numbers: int) -> None:
        """:class:`TooManyResults` unless there is room for ``numbers`` of 64 bits in each."""
        needed = combinations * numbers * _NUMBER
        if combinations > self.at_once > 0:
            raise TooManyResults(f"a push would make more than {self.at_once:,} combinations")
        if needed > self.most > 0:
            raise TooManyResults(
                f"a push would make {combinations:,} combinations at once, which take "
                f"{_shown(needed)}, where {_shown(self.most)} are allowed"
            )


WORKING = WorkingMemory()


def memory_of_machine() -> int:
    """Bytes of memory that this process can have at most."""
    found = []
    with contextlib.suppress(ValueError, OSError, AttributeError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for file in _CONTAINER:
        with contextlib.suppress(ValueError, OSError):
            found.append(int(Path(file).read_text()))
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        bound = resource.getrlimit(resource.RLIMIT_AS)[0]
        if bound != resource.RLIM_INFINITY:
            found.append(bound)
    return min(found, default=8 << 30)


def _shown(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.0f} MiB"
