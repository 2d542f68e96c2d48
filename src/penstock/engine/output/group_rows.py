"""The rows of a grouped relation in time, as one push makes them.

For each group that is touched, one row for its state before the push and one for every instant at
which a result enters or leaves: see :mod:`penstock.kernels.aggregate`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels import aggregate as kernels

Int64s = NDArray[np.int64]


class GroupRows:
    """``owner``, ``instants``, ``stops`` and ``living`` are by row, ``touched`` and ``last`` by
    group, the rest by event."""

    __slots__ = (
        *("all", "count", "entering", "events", "instants", "last"),
        *("living", "order", "owner", "stops", "touched"),
    )

    def __init__(
        self, events: Int64s, instants: Int64s, entering: int, alive: Int64s, everyone: int
    ) -> None:
        """The rows that ``events`` at ``instants`` make, of all groups with events; with
        ``everyone``, of all groups below that number.

        ``alive`` is how many results each group had before.
        """
        self.events = events
        """Results that enter, then those that leave: one column each."""
        self.entering = entering
        count = len(instants)
        order = np.empty((2, count), np.int64)
        self.all = rows = np.empty((kernels.END + 1, count + max(count, everyone)), np.int64)
        which, groups, self.count = kernels.rows_in_time(
            events, instants, entering, alive, everyone, order, rows
        )
        self.order = order[which]
        self.owner = rows[kernels.OWNER, : self.count]
        self.instants = rows[kernels.INSTANT, : self.count]
        self.stops = rows[kernels.STOP, : self.count]
        self.living = rows[kernels.LIVING, : self.count]
        self.touched = rows[kernels.TOUCHED, :groups]
        self.last = rows[kernels.END, :groups]
        """The last row of each touched group."""
