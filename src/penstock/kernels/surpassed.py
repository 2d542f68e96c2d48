"""Which rows of a window are surpassed by a later one of their class: the loop behind
:mod:`penstock.engine.feedback.surpassed`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import kernel

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]


@kernel
def find_surpassed(
    classes: Int64s, merits: Int64s, known: Bools, best: Int64s, gone: Bools
) -> None:
    """Set ``gone`` for each row after which one of its class comes that has no less merit.

    A row that is not ``known`` has less merit than any that is. ``best`` is -1 for each class.
    """
    for row in range(classes.shape[0] - 1, -1, -1):
        later = best[classes[row]]
        if later >= 0 and (not known[row] or (known[later] and merits[row] <= merits[later])):
            gone[row] = True
        else:
            best[classes[row]] = row
