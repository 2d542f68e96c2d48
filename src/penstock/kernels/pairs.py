"""What happens to candidate pairs after a probe: verify, compare, refresh lifespans, compact."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import inlined, kernel
from penstock.kernels.probe import GONE, holds

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]


@kernel
def reject(
    operator: int,
    left: Int64s,
    left_mask: int,
    left_rows: Int64s,
    right: Int64s,
    right_mask: int,
    right_rows: Int64s,
    keep: Bools,
) -> int:
    """Clear ``keep`` where ``left operator right`` does not hold; how many were cleared."""
    rejected = 0
    for i in range(keep.shape[0]):
        if keep[i] and not holds(
            operator, left[left_rows[i] & left_mask], right[right_rows[i] & right_mask]
        ):
            keep[i] = False
            rejected += 1
    return rejected


@kernel
def shorten(deaths: Int64s, rows: Int64s, leaf_deaths: Int64s, mask: int, tail: int) -> None:
    """Bring ``deaths`` down to those of the leaf rows by now; below the tail all are gone."""
    for i in range(rows.shape[0]):
        s = rows[i]
        death = leaf_deaths[s & mask] if s >= tail else GONE
        deaths[i] = min(deaths[i], death)


@inlined
def mixed(hashed: int, value: int) -> np.int64:
    """``value`` folded into a hash: splitmix64's finaliser after each column."""
    h = (np.uint64(hashed) + np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(value)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64(h ^ (h >> np.uint64(31)))


@kernel
def mix_into(hashes: Int64s, column: Int64s, mask: int, rows: Int64s) -> None:
    """Fold ``column[rows]`` into ``hashes``."""
    for i in range(rows.shape[0]):
        hashes[i] = mixed(hashes[i], column[rows[i] & mask])
