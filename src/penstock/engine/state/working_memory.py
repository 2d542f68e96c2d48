"""What one push may make: results, and memory to work with, asked for before it is taken.

A frequent key in both of two streams makes the product of its rows: 32,000 in each are a thousand
million results. Probes count before they write, so it is known how much room they need before there
is any. Whoever is about to make room for combinations asks here first, and if a push would take
more than its share, it ends with an error that says so, with everything as before, instead of being
ended by the system with nothing left.

The share of memory is half of the machine's (of the container's, or of the process's, where these
have less), or what a limit on memory says, with room for work beside the states that the limit is
about. It is never more than there is left: who asks for much has the system looked at, once in a
push.

``max_results`` is a bound on results that somebody has set: combinations of rows of all streams
that satisfy the query, before they are grouped. What they are made of does not count, so whether a
push is refused does not depend on the plan.
"""

from __future__ import annotations

from penstock.engine.state.available_memory import available_memory, memory_of_machine
from penstock.errors import TooManyResults

WORK_PER_STATE = 4
"""A push may work with so many times the limit on windows and states, as long as the machine has
it: what it makes is mostly gone when it returns."""
BYTES_OF_ANY_PUSH = 256 << 20
"""Bytes that any push may work with, if there are as many left."""
IN_PARTS_AND_WHOLE = 2
"""Times that what was found is in memory, when its parts are put together."""
BYTES_WITHOUT_A_LOOK = 64 << 20
"""Bytes that are not given without a look at what is left: the look takes some 50 microseconds,
taking so much takes a thousand times as long."""
PART_OF_LEFT = 0.9
"""Part of the memory that is left which a push may take: Arrow and the rest need some as well."""
_NUMBER = 8

NO_ROOM = (MemoryError, TooManyResults)
"""Errors that say that memory is, or would be, too small."""


class WorkingMemory:
    """Bytes that the push at hand may take for combinations at once, and its results."""

    def __init__(self) -> None:
        self._machine = 0
        self._is_looked_at = True
        self.most = 0
        self.at_once = 0
        """Combinations that a push may make at once whatever they take; 0: as many as fit in."""
        self.max_results: int | None = None
        """Results that the joins of the push may make; None: any number."""
        self._results = 0
        """Results of the push so far."""

    def begin(self, limit: int | None) -> None:
        """A push begins, under a ``limit`` on windows and states in bytes."""
        if not self._machine:
            self._machine = max(BYTES_OF_ANY_PUSH, memory_of_machine() // 2)
        self.most = self._machine
        self._is_looked_at = False
        self._results = 0
        if limit is not None:
            self.most = min(self.most, max(BYTES_OF_ANY_PUSH, WORK_PER_STATE * limit))

    def begin_again(self) -> None:
        """The push was taken back, and is made once more."""
        self._results = 0

    def ask(self, combinations: int, numbers: int) -> None:
        """:class:`TooManyResults` unless there is room for ``numbers`` of 64 bits in each."""
        if combinations > self.at_once > 0:
            raise TooManyResults(
                f"a push would make more than {self.at_once:,} combinations", combinations
            )
        self.ask_bytes(combinations, combinations * numbers * _NUMBER)

    def ask_bytes(self, combinations: int, needed: int) -> None:
        """:class:`TooManyResults` unless there are ``needed`` bytes, for ``combinations``."""
        left = None
        if needed > BYTES_WITHOUT_A_LOOK and not self._is_looked_at:
            self._is_looked_at = True
            left = available_memory()
            if left is not None:
                self.most = min(self.most, int(PART_OF_LEFT * left))
        if needed > self.most > 0:
            raise TooManyResults(
                f"a push would make {combinations:,} combinations at once, which take "
                f"{_shown(needed)}, where {_shown(self.most)} are allowed"
                + ("" if left is None else f" ({_shown(left)} of memory are left)"),
                combinations,
            )

    def ask_results(self, more: int) -> None:
        """:class:`TooManyResults` if ``more`` results are more than the push may make."""
        if self.max_results is not None and self._results + more > self.max_results:
            raise TooManyResults(
                f"a push would make more than max_results = {self.max_results:,} results",
                self._results + more,
            )

    def note_results(self, more: int) -> None:
        """The push has made ``more`` results: :class:`TooManyResults` if it must not have."""
        self.ask_results(more)
        self._results += more


WORKING = WorkingMemory()


def _shown(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.0f} MiB"
