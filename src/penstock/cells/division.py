"""Division: how many of a number of cells each of several grids gets.

Where hot values have grids of their own and it is known how much of each stream they are, cells are
divided so that the fullest cell of all grids is about as empty as can be (SharesSkew calls for
grids in proportion to what they get). Every grid begins with one cell. Then, as long as there are
cells left, the grid whose cells are fullest gets more of them: to give them to any other would
leave the fullest as full as it is. A grid that cannot be made less full with what is left stays as
it is, and the next fullest has its turn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.cells.shares import best_shares, load

_STEP = 1.1
"""A grid gets a tenth more at a time, and one cell at least."""


@dataclass(frozen=True, slots=True)
class Uncut:
    """A grid to be: the owners of its dimensions, and the tuples that come to it, by stream."""

    owners: Sequence[frozenset[str]]
    rates: Mapping[str, float]

    def load(self, shares: Sequence[int]) -> float:
        return load(self.owners, self.rates, shares)


def divide(grids: Sequence[Uncut], cells: int) -> list[tuple[int, ...]]:
    """The shares of each grid; together they have at most ``cells`` cells, and one each at least.

    >>> pair = [frozenset("AB")]
    >>> divide([Uncut(pair, {"A": 3.0, "B": 3.0}), Uncut(pair, {"A": 1.0, "B": 1.0})], 8)
    [(6,), (2,)]
    """
    shares = [(1,) * len(grid.owners) for grid in grids]
    open_grids = set(range(len(grids)))
    while open_grids:
        fullest = max(open_grids, key=lambda g: (grids[g].load(shares[g]), -g))
        now = math.prod(shares[fullest])
        room = now + cells - sum(math.prod(each) for each in shares)
        better = _less_full(grids[fullest], shares[fullest], now, room)
        if better is None:
            open_grids.remove(fullest)
        else:
            shares[fullest] = better
    return shares


def _less_full(grid: Uncut, shares: tuple[int, ...], now: int, room: int) -> tuple[int, ...] | None:
    """The next larger cut that is less full, within ``room`` cells."""
    size = now
    while size < room:
        size = min(room, max(size + 1, int(size * _STEP)))
        found = best_shares(grid.owners, grid.rates, size)
        if grid.load(found) < grid.load(shares):
            return found
    return None
