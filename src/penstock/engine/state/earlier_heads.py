"""An index as it stood some time ago, for probes that should have been made then.

Chains lead from the newest row to older ones, so a probe that may only see the rows before a bound
walks over all that came behind it first. Where probes are owed that can be a thousand times what
they see. But what a row is linked to never changes, whatever comes later: an index of long ago is
the entries of today with the heads of then, and these are found by one run over the rows before the
bound. Owed probes are made from the youngest on (:mod:`penstock.engine.rationing.debt`), so bounds
go down, and heads serve until a probe walks over as much as it sees, or over a sixteenth of all
that is held: so the rows are run over a few times in all, not once per probe.

A result that is made late meets partners of its own time. Rows that were born after it had died
are behind a bound as well (:func:`bound_at`), though that one is not written down.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.page_by_page import zeros
from penstock.engine.state.rows import Rows
from penstock.kernels import index as index_kernels
from penstock.kernels import ring

_WALKED_ROWS = 1024
"""Rows that are walked over sooner than run over."""


def index_before(rows: Rows, index: HashIndex, bound: int) -> HashIndex:
    """An index that leads to the rows before ``bound`` with little else on the way."""
    few = max(_WALKED_ROWS, (bound - rows.low) // 2, (bound - rows.tail) // 16)
    if index.stop - bound <= few:
        return index
    earlier = index.earlier
    if (
        earlier is None
        or earlier.entries is not index.entries  # The ring has moved.
        or not bound <= earlier.stop <= bound + few
    ):
        heads = zeros(rows.capacity, np.uint32)
        index_kernels.heads_of(heads, index.entries, index.shift, rows.mask, rows.tail, bound)
        earlier = HashIndex(heads, index.entries, index.shift, index.narrow, bound)
        index.earlier = earlier
    earlier.narrow = index.narrow
    return earlier


def bound_at(rows: Rows, bound: int, deaths: NDArray[np.int64]) -> int:
    """The bound of those that die at ``deaths``: later rows were born when all of them had died."""
    latest = int(deaths.max(initial=np.iinfo(np.int64).min))
    found: int = ring.last_born(rows.births, rows.mask, rows.low, bound, latest)
    return found
