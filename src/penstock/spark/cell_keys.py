"""Keys of cells that Spark spreads evenly over its partitions.

Spark puts a group into partition ``murmur3(key) mod partitions``, which leaves some partitions
empty and others with several cells if keys are just counted. Cell ``i`` gets a key whose hash is
``i`` modulo :data:`EVENLY`, a number with many divisors: with any number of partitions that
divides it, cells go round robin. Keys do not depend on the number of partitions or of cells, so
those of a restarted query are the same, and cell 0 has one key in every placement.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

EVENLY = 10_080
"""Divided by all numbers up to 10, and by 12, 14, 15, 16, 18, 20, 24, 28, 30, 32, …"""

_SEED = 42
_SEARCHED = 1 << 20


def cell_keys(cells: int) -> list[int]:
    """The keys of cells 0 to ``cells`` - 1, all different."""
    candidates = np.arange(_SEARCHED, dtype=np.uint32)
    residues = murmur3(candidates).astype(np.int64) % EVENLY
    order = np.argsort(residues, kind="stable")
    starts = np.searchsorted(residues[order], np.arange(EVENLY))
    return [int(order[starts[cell % EVENLY] + cell // EVENLY]) for cell in range(cells)]


def murmur3(values: NDArray[np.uint32]) -> NDArray[np.int32]:
    """Spark's hash of an ``int`` column (MurmurHash3, 32 bits, seed 42)."""
    k = values * np.uint32(0xCC9E2D51)
    k = _rotated(k, 15) * np.uint32(0x1B873593)
    h = _rotated(np.uint32(_SEED) ^ k, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    h ^= np.uint32(4)
    h ^= h >> np.uint32(16)
    h *= np.uint32(0x85EBCA6B)
    h ^= h >> np.uint32(13)
    h *= np.uint32(0xC2B2AE35)
    h ^= h >> np.uint32(16)
    return h.view(np.int32)


def _rotated(values: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
