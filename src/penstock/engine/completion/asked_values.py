"""Values that an incomplete state has been asked for: nobody needs to look for them again.

JISC attempts each key once (section 4.4 of the paper). Its marks on the rows that were completed
say so for values that were found; but most values find nothing, and each time that one of them
comes it would have to be looked up again, past all the rows that are newer than the transition.

To forget a value is harmless, as it is only looked up once more. So there is no list that grows,
but a table with one place for all values of the same hash, which keeps the last one. It begins
small, since new memory is dear in the first push after a change of plan; and when it is replaced by
a larger one, what it held is forgotten.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels import asked

Int64s = NDArray[np.int64]

_MOST_PLACES = 1 << 16
"""Places: as many as a cache near the processor holds."""
_FEWEST_PLACES = 1 << 8
_NOT_HERE = 1
"""The first place is that of 0, and never that of 1."""


class AskedValues:
    """Remembers values of a column of an input with ``rows`` rows."""

    def __init__(self, rows: int) -> None:
        self._most = max(_FEWEST_PLACES, min(_MOST_PLACES, 1 << rows.bit_length()))
        self._make(_FEWEST_PLACES)

    def _make(self, size: int) -> None:
        self._places = np.zeros(size, np.int64)
        self._shift = 65 - size.bit_length()
        self._places[0] = _NOT_HERE
        self._taken = 0
        """Values that were put in."""

    def clear(self) -> None:
        """Nothing has been asked for. (There may be no memory when a push is undone.)"""
        self._places.fill(0)
        self._places[0] = _NOT_HERE
        self._taken = 0

    def fresh(self, values: Int64s) -> Int64s:
        """Those of ``values`` that are not known to have been asked for; now all of them are."""
        size = len(self._places)
        if self._taken + len(values) > size < self._most:
            while self._taken + len(values) > size < self._most:
                size *= 4
            self._make(min(size, self._most))
        out = np.empty(len(values), np.int64)
        found = out[: asked.fresh(values, self._places, self._shift, out)]
        self._taken += len(found)
        return found
