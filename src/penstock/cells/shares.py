"""Shares: how many ways each dimension of the grid of cells is cut.

Afrati and Ullman (Optimizing Joins in a Map-Reduce Environment, EDBT 2010) give each dimension
``d`` a share ``s_d``; a tuple of stream ``i`` is sent to the product of the shares of the
dimensions that it has no coordinate in. With rates ``r_i`` the tuples sent per time unit are
``sum_i r_i * prod_{d not of i} s_d``. They relax the shares to real numbers and solve with Lagrange
multipliers; here they are integers from the start, and few, so all combinations are tried. The
one chosen has the least load per cell, tuples sent divided by cells, among those with at most the
wanted number of cells; that is the work of the busiest core where there is a core for each cell.
Among equals it is the one with fewer tuples sent, then with more cells, then the first in the order
of shares.

For a thousand cells, all combinations are many, and two remarks keep the search short. The load per
cell is ``sum_i r_i / prod_{d of i} s_d``: a cut in ``d`` divides the load of its owners. So a
dimension whose owners are some of the owners of another is never cut: to cut the other one instead
divides the same and more. That rules out the random coordinate of every stream that has a class.
And the loads of all grids with as many dimensions are one product of a matrix, the same for
whichever dimensions, with the rates of the streams that own the same ones of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

MOST_CUT = 4
"""No more dimensions than this are cut, which bounds the search."""

_NEAR = 1e-6
"""Loads that differ by less are compared once more, exactly."""


def best_shares(
    owners: Sequence[frozenset[str]], rates: Mapping[str, float], cells: int
) -> tuple[int, ...]:
    """The share of each dimension; ``owners[d]`` are the streams with a coordinate in it."""
    best = (1,) * len(owners)
    lowest = _cost(best, owners, rates)
    useful = _useful(owners, rates)
    for count in range(1, min(MOST_CUT, len(useful)) + 1):
        grids = _grids(count, cells)
        if not len(grids):
            break
        parts = _parts(grids)
        for chosen in itertools.combinations(useful, count):
            weights = np.zeros(1 << count)
            for alias, rate in rates.items():
                weights[sum(1 << i for i, d in enumerate(chosen) if alias in owners[d])] += rate
            loads = parts @ weights
            bound = min(loads.min(), lowest[0])
            for row in np.flatnonzero(loads <= bound + _NEAR * (1 + bound)):
                shares = [1] * len(owners)
                for d, share in zip(chosen, grids[row].tolist(), strict=True):
                    shares[d] = share
                cost = _cost(shares, owners, rates)
                if (cost, tuple(shares)) < (lowest, best):
                    best, lowest = tuple(shares), cost
    return best


def replication(alias: str, owners: Sequence[frozenset[str]], shares: Sequence[int]) -> int:
    """To how many cells a tuple of ``alias`` goes."""
    return math.prod(s for s, streams in zip(shares, owners, strict=True) if alias not in streams)


def load(
    owners: Sequence[frozenset[str]], rates: Mapping[str, float], shares: Sequence[int]
) -> float:
    """Tuples that come to each cell."""
    return sum(
        rate * replication(alias, owners, shares) for alias, rate in rates.items()
    ) / math.prod(shares)


def _cost(
    shares: Sequence[int], owners: Sequence[frozenset[str]], rates: Mapping[str, float]
) -> tuple[float, float, int]:
    sent = sum(rate * replication(alias, owners, shares) for alias, rate in rates.items())
    cells = math.prod(shares)
    return round(sent / cells, 9), round(sent, 9), -cells


def _useful(owners: Sequence[frozenset[str]], rates: Mapping[str, float]) -> list[int]:
    """The dimensions with a load to divide that no other divides too.

    Of several with the same owners the last: the first in the order of shares cuts that one alone.
    """
    loaded = [frozenset(o for o in each if rates.get(o, 0.0) > 0) for each in owners]
    last = {each: d for d, each in enumerate(loaded)}
    return sorted(d for each, d in last.items() if each and not any(each < other for other in last))


def _grids(count: int, cells: int) -> NDArray[np.int64]:
    """All shares above 1 of ``count`` dimensions with at most ``cells`` cells: a row each."""
    grids = np.ones((1, 0), np.int64)
    for _ in range(count):
        room = cells // grids.prod(axis=1)
        counts = np.maximum(room - 1, 0)
        ends = np.cumsum(counts)
        firsts = np.repeat(ends - counts, counts)
        shares = np.arange(len(firsts), dtype=np.int64) - firsts + 2
        grids = np.column_stack([np.repeat(grids, counts, axis=0), shares])
    return grids


def _parts(grids: NDArray[np.int64]) -> NDArray[np.float64]:
    """What a cell gets of a stream: a row for each grid, a column for each set of dimensions that
    the stream may own, numbered by its bits."""
    parts = np.ones((len(grids), 1 << grids.shape[1]))
    for owned in range(1, parts.shape[1]):
        lowest = (owned & -owned).bit_length() - 1
        parts[:, owned] = parts[:, owned & (owned - 1)] / grids[:, lowest]
    return parts
