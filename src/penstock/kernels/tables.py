"""The arrays that one push works on, handed from kernel to kernel as one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]


class Tables(NamedTuple):
    """Arrays of a push; numba hands them on as it does one by one."""

    code: Int64s
    """Items of the push, as numbers and addresses (:mod:`~penstock.kernels.push`)."""
    rings: NDArray[np.int64]
    """Numbers of each ring (:mod:`~penstock.kernels.rings`)."""
    narrow: Int64s
    """Whether all keys of an index are their own codes, index by index."""
    growth: NDArray[np.float64]
    """Partial results per row that goes through a probe order."""
    counts: Int64s
    """Tally of the whole tree."""
    laps: Int64s
    """Cycles that each item has taken."""
    progress: Int64s
    """Item, stage and row to go on with, and what is lacking."""
    work: NDArray[np.int64]
    """Working space: combinations, from one step of an order to the next."""
    keys: NDArray[np.int64]
    """Working space: keys, or positions, of as many combinations as there is room for."""
    found: NDArray[np.int64]
    """Working space: positions and rows that a probe has found."""
    active: NDArray[np.int64]
    """Working space: chains that are being walked."""
    now: Int64s
    """Working space: where the rings of an order begin and end."""
    tally: Int64s
    """Working space: rows that came to each step of an order and left it."""
    sources: Int64s
    """Working space: addresses of the columns that are stored next."""
    met: NDArray[np.uint8]
    """A byte for each new row of an opposite input: whether any row of the window has its key."""
    results: NDArray[np.int64]
    """Results so far: rows of each stream, births, deaths."""
    rest: Int64s
    """Where an order that was stopped stands (:mod:`~penstock.kernels.probe_order`)."""
    log: Int64s
    """Rows that were woken, guard by guard."""
    shares: NDArray[np.float64]
    """Part of the rows of each order that may probe (:mod:`~penstock.kernels.ration`)."""
    rations: NDArray[np.int64]
    """What became of the rows of each order."""
