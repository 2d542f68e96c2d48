"""Which values have been asked for before: one place per value, the last that came there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import kernel

Int64s = NDArray[np.int64]

_PHI = np.uint64(11400714819323198485)


@kernel
def fresh(values: Int64s, places: Int64s, shift: int, out: Int64s) -> int:
    """Put those of ``values`` into ``out`` that are not in their place, and into their place; how
    many. There are ``2 ** (64 - shift)`` places."""
    count = 0
    for i in range(values.shape[0]):
        value = values[i]
        place = (np.uint64(value) * _PHI) >> np.uint64(shift)
        if places[place] != value:
            places[place] = value
            out[count] = value
            count += 1
    return count
