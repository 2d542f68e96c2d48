"""What has come for windows and is in none yet: where it lies, and where it goes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.engine.compiled.plain_answer import PlainAnswer
from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.rows import Rows
from penstock.kernels.lifespan import BEGINNING

_NEVER = int(BEGINNING)


class Arrivals:
    """New rows of windows: where they lie, and where they go
    (:mod:`penstock.kernels.whole_push`)."""

    def __init__(self, table: NDArray[np.int64], facts: NDArray[np.int64]) -> None:
        self.table = table
        self.facts = facts
        self.hashes = np.empty(0, np.int64)
        """Working space for as many numbers as a window gets rows."""
        self.before = _NEVER
        """The instant before which rows that died are given back."""
        self.since = _NEVER
        """The instant before which rows that died are hidden from probes."""
        self.filled: list[tuple[HashIndex, Rows]] = []
        """The indexes that get the new rows."""
        self.are_whole = False
        """Whether it is known that all of it may be in results."""
        self.asks_age = False
        """Whether the age of the rows in the results is needed, for freshness."""
        self.answer: PlainAnswer | None = None
        """The columns that are made of the results in the same call, if that is simple."""
