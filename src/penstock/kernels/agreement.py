"""How many pairs of two samples agree: an open hash table that counts.

Its hash is keyed as that of an index is, by the factor in ``shift``
(:mod:`penstock.kernels.index`): nobody can send values that all want one place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.index import bucket_of, hash_of
from penstock.kernels.kernel import kernel

Int64s = NDArray[np.int64]


@kernel
def tally(values: Int64s, keys: Int64s, counts: Int64s, shift: int) -> None:
    """Count each of ``values`` in a table with as many places as ``shift`` says, all empty before.

    A place with the count 0 is empty. There must be more places than values.
    """
    mask = np.uint64(counts.shape[0] - 1)
    for i in range(values.shape[0]):
        value = values[i]
        place = bucket_of(hash_of(value, shift), shift)
        while counts[place] != 0 and keys[place] != value:
            place = (place + np.uint64(1)) & mask
        keys[place] = value
        counts[place] += 1


@kernel
def agreeing(values: Int64s, keys: Int64s, counts: Int64s, shift: int) -> Int64s:
    """For each of ``values``, the equal values that were counted."""
    mask = np.uint64(counts.shape[0] - 1)
    found = np.empty(values.shape[0], np.int64)
    for i in range(values.shape[0]):
        value = values[i]
        place = bucket_of(hash_of(value, shift), shift)
        while counts[place] != 0 and keys[place] != value:
            place = (place + np.uint64(1)) & mask
        found[i] = counts[place]
    return found
