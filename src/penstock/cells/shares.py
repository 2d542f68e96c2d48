"""Shares: how many ways each dimension of the grid of cells is cut.

Afrati and Ullman (Optimizing Joins in a Map-Reduce Environment, EDBT 2010) give each dimension
``d`` a share ``s_d``; a tuple of stream ``i`` is sent to the product of the shares of the
dimensions that it has no coordinate in. With rates ``r_i`` the tuples sent per time unit are
``sum_i r_i * prod_{d not of i} s_d``. They relax the shares to real numbers and solve with Lagrange
multipliers; here they are integers from the start, and few, so all combinations are tried. The
one chosen has the least load per cell, tuples sent divided by cells, among those with at most the
wanted number of cells; that is the work of the busiest core where there is a core for each cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

MOST_CUT = 4
"""No more dimensions than this are cut, which bounds the search."""


def best_shares(
    owners: Sequence[frozenset[str]], rates: Mapping[str, float], cells: int
) -> tuple[int, ...]:
    """The share of each dimension; ``owners[d]`` are the streams with a coordinate in it."""
    best = (1,) * len(owners)
    lowest = _cost(best, owners, rates)
    for shares in _combinations(len(owners), cells):
        cost = _cost(shares, owners, rates)
        if cost < lowest:
            best, lowest = shares, cost
    return best


def replication(alias: str, owners: Sequence[frozenset[str]], shares: Sequence[int]) -> int:
    """To how many cells a tuple of ``alias`` goes."""
    return math.prod(s for s, streams in zip(shares, owners, strict=True) if alias not in streams)


def _cost(
    shares: Sequence[int], owners: Sequence[frozenset[str]], rates: Mapping[str, float]
) -> tuple[float, float, int]:
    sent = sum(rate * replication(alias, owners, shares) for alias, rate in rates.items())
    cells = math.prod(shares)
    return round(sent / cells, 9), round(sent, 9), -cells


def _combinations(count: int, cells: int, cut: int = MOST_CUT) -> Iterator[tuple[int, ...]]:
    """All shares of ``count`` dimensions with at most ``cells`` cells, ``cut`` of them above 1."""
    if count == 0:
        yield ()
        return
    for share in range(1, (cells if cut else 1) + 1):
        left = cut if share == 1 else cut - 1
        for rest in _combinations(count - 1, cells // share, left):
            yield (share, *rest)
