"""A small exact solver for linear programs: the judge of the allocators.

The two-phase simplex method on a dense tableau, with Bland's rule, so it cannot cycle. Slow and
boring on purpose.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_SLIGHT = 1e-9


def maximise(gain: Floats, rows: Floats, limits: Floats) -> tuple[float, Floats] | None:
    """The greatest ``gain @ x`` with ``rows @ x <= limits`` and ``x >= 0``; None if there is none.

    The problem must be bounded, and scaled so that numbers are around 1.
    """
    count, width = rows.shape
    # Columns: x, the slacks, one artificial variable, the limits.
    table = np.hstack(
        [rows, np.eye(count), -np.ones((count, 1)), limits[:, None].astype(np.float64)]
    )
    basis = list(range(width, width + count))
    artificial = width + count
    if limits.min() < 0:
        _pivot(table, basis, int(np.argmin(limits)), artificial)
        aim = np.zeros(artificial + 1)
        aim[artificial] = -1.0
        _climb(table, basis, aim)
        if artificial in basis:
            row = basis.index(artificial)
            if table[row, -1] > _SLIGHT:
                return None
            _pivot(table, basis, row, int(np.argmax(np.abs(table[row, :artificial]))))
    table = np.delete(table, artificial, axis=1)
    aim = np.concatenate([gain, np.zeros(count)])
    _climb(table, basis, aim)
    found = np.zeros(artificial)
    found[basis] = table[:, -1]
    return float(gain @ found[:width]), found[:width]


def _climb(table: Floats, basis: list[int], aim: Floats) -> None:
    while True:
        reduced = aim - aim[basis] @ table[:, :-1]
        better = np.flatnonzero(reduced > 1e-12)
        if len(better) == 0:
            return
        entering = int(better[0])
        column = table[:, entering]
        rows = np.flatnonzero(column > 1e-11)
        assert len(rows), "the problem is unbounded"
        ratios = table[rows, -1] / column[rows]
        least = rows[ratios <= ratios.min() + 1e-12]
        leaving = min(least, key=lambda row: basis[row])
        _pivot(table, basis, int(leaving), entering)


def _pivot(table: Floats, basis: list[int], row: int, column: int) -> None:
    table[row] /= table[row, column]
    others = np.arange(len(table)) != row
    table[others] -= np.outer(table[others, column], table[row])
    basis[row] = column
