"""A hash of bytes that never changes: it decides the cell of a row, on every machine.

It is not keyed and can be inverted. Who sends crafted values can make one cell busier than others,
as with any frequent value, and no more than that: what searches by hashes has its own, keyed ones
(:mod:`penstock.kernels.intern`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.intern import part_of_word_at, word_at
from penstock.kernels.kernel import kernel

Bytes = NDArray[np.uint8]

_K0 = np.uint64(0x9E3779B97F4A7C15)
_K1 = np.uint64(0xFF51AFD7ED558CCD)
_K2 = np.uint64(0xC4CEB9FE1A85EC53)
_32 = np.uint64(32)


@kernel
def stable_hash(data: Bytes, start: int, size: int) -> np.int64:
    """A 64-bit hash of the ``size`` bytes from ``start`` on, as int64."""
    h = np.uint64(size) * _K0
    position = start
    left = size
    while left >= 8:
        h = (h ^ word_at(data, position)) * _K1
        h ^= h >> _32
        position += 8
        left -= 8
    if left > 0:
        h = (h ^ part_of_word_at(data, position, left)) * _K1
        h ^= h >> _32
    h *= _K2
    h ^= h >> _32
    return np.int64(h)
