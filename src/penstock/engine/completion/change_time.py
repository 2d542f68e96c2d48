"""CPU seconds that a change of plan takes, measured where the work is done.

That is completing what is missing (on demand, beside pushes, at once), asking for it, and older
plans that run beside. What pushes take beyond those before the change says less: the rows of the
next phase may be dearer by themselves, and noise only ever adds.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class ChangeTime:
    """Adds up the seconds between entering and leaving, those within others once."""

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self.clock = clock
        self.seconds = 0.0
        """CPU seconds since the start."""
        self._depth = 0
        self._began = 0.0

    def __enter__(self) -> None:
        if not self._depth:
            self._began = self.clock()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self.seconds += self.clock() - self._began
