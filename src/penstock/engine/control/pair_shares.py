"""Which share of the pairs of two samples match: what selectivities are made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]

_COMPARED = {
    0: np.equal,
    1: np.not_equal,
    2: np.less,
    3: np.less_equal,
    4: np.greater,
    5: np.greater_equal,
}


def equal_share(one: Int64s, two: Int64s) -> float:
    """The share of all pairs that are equal: Σ p(v) q(v)."""
    values, counts = np.unique(one, return_counts=True)
    others, other_counts = np.unique(two, return_counts=True)
    _, at, other_at = np.intersect1d(values, others, assume_unique=True, return_indices=True)
    matches = float(np.dot(counts[at].astype(float), other_counts[other_at].astype(float)))
    return matches / (len(one) * len(two))


def compare_all(operator: int, one: Int64s, two: Int64s) -> NDArray[np.bool_]:
    """Each of ``one`` compared with each of ``two``: a table."""
    table: NDArray[np.bool_] = _COMPARED[operator](one[:, None], two[None, :])
    return table
