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
from penstock.kernels import ring

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
        order = _in_order(instants, groups)
        touched, last, owner, instant, stop, living = kernels.rows_in_time(
            order, groups, instants, entering, alive, everyone
        )
        return cls(events, entering, order, touched, owner, instant, stop, living, last)


def _in_order(instants: Int64s, groups: Int64s) -> Int64s:
    """Positions that put events in the order of their groups, and of their instants in a group."""
    by_instant = ring.order_of(instants)
    by_group = ring.order_of(groups if by_instant is None else groups[by_instant])
    if by_instant is None:
        return np.arange(len(groups), dtype=np.int64) if by_group is None else by_group
    return by_instant if by_group is None else by_instant[by_group]
