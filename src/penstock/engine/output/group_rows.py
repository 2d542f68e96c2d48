"""The rows of a grouped relation in time, as one push makes them.

For each group that is touched, one row for its state before the push and one for every instant at
which somebody enters or leaves: see :mod:`penstock.kernels.aggregate`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.engine.output.agenda import GROUP
from penstock.kernels import aggregate as kernels

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class GroupRows:
    """``owner``, ``instants``, ``stops`` and ``living`` are by row, the rest by event or group."""

    events: Int64s
    """Whoever enters, then whoever leaves: one column each
    (:mod:`penstock.engine.output.agenda`)."""
    entering: int
    order: Int64s
    touched: Int64s
    owner: Int64s
    instants: Int64s
    stops: Int64s
    living: Int64s
    last: Int64s
    """The last row of each touched group."""

    @classmethod
    def of(
        cls,
        events: Int64s,
        entering: int,
        instants: Int64s,
        alive: Int64s,
        everyone: int = 0,
    ) -> GroupRows:
        """The rows that ``events`` at ``instants`` make, of all groups with events.

        With ``everyone``, of all groups below that number. ``alive`` is how many results each group
        had before.
        """
        groups = events[GROUP]
        order = np.lexsort((instants, groups))
        touched, last, owner, instant, stop, living = kernels.rows_in_time(
            order, groups, instants, entering, alive, everyone
        )
        return cls(events, entering, order, touched, owner, instant, stop, living, last)
