"""How many pairs of two samples agree: an open hash table that counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import kernel

Int64s = NDArray[np.int64]

_MIX = np.uint64(0x9E3779B97F4A7C15)


@kernel
def tally(values: Int64s, keys: Int64s, counts: Int64s, shift: int) -> None:
    """Count each of ``values`` in a table of ``2 ** (64 - shift)`` places, all empty before.

    A place with the count 0 is empty. There must be more places than values.
    """
    mask = np.uint64(counts.shape[0] - 1)
    for i in range(values.shape[0]):
        value = values[i]
        place = (np.uint64(value) * _MIX) >> np.uint64(shift)
        while counts[place] != 0 and keys[place] != value:
            place = (place + np.uint64(1)) & mask
        keys[place] = value
        counts[place] += 1


@kernel
def agreeing(values: Int64s, keys: Int64s, counts: Int64s, shift: int) -> int:
    """Pairs of one of ``values`` and an equal value that was counted."""
    mask = np.uint64(counts.shape[0] - 1)
    total = 0
    for i in range(values.shape[0]):
        value = values[i]
        place = (np.uint64(value) * _MIX) >> np.uint64(shift)
        while counts[place] != 0 and keys[place] != value:
            place = (place + np.uint64(1)) & mask
        total += counts[place]
    return total
