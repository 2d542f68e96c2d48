"""The door: which rows of a batch come in, of those that may be left out.

Rows are chosen by their keys, if the hash of each lies in an arc of a circle
(:mod:`penstock.engine.overload.key_arcs` has the reason), or they are drawn, if a hash of their
place and a seed is below a limit. Either way a row costs some multiplications, a tenth of what it
takes to store one, and the same rows are chosen when a push is made again.

A source has a row of numbers: how its rows are chosen, where the arc begins (or the seed), how long
it is (or the limit), as parts of 2^64; the number of its keys; and of each the number of its column
and the odd factor that turns the hashes of its class.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import inlined, kernel
from penstock.kernels.pointer import int64s

Int64s = NDArray[np.int64]

ALL, BY_KEY, DRAWN = range(3)
KIND, START, LIMIT, KEYS, FIRST_KEY = range(5)
KEY = 2
"""Numbers of a key."""
MOST_KEYS = 8
"""Keys of a source for which there is room."""
DOOR = FIRST_KEY + KEY * MOST_KEYS

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
"""Those of splitmix64 (Steele, Lea and Flood 2014)."""


@inlined
def _mixed(number: np.uint64) -> np.uint64:
    """What :func:`penstock.values.value_hash.mixed` makes of a key."""
    h = number + _GOLDEN
    h = (h ^ (h >> np.uint64(30))) * _FIRST
    h = (h ^ (h >> np.uint64(27))) * _SECOND
    return h ^ (h >> np.uint64(31))


@kernel
def keep(door: Int64s, found: Int64s, places: Int64s, number: int, newest: int) -> int:
    """Leave in ``places``, which has a ``number`` of rows, those that come in; how many these are.

    ``found`` has the addresses of columns. The ``newest`` row comes in whatever its keys are.
    """
    start, limit = np.uint64(door[START]), np.uint64(door[LIMIT])
    if door[KIND] == DRAWN:
        kept = np.uint64(0)
        for i in range(number):
            place = places[np.uint64(i)]
            places[kept] = place
            drawn = _mixed(start + np.uint64(place) * _GOLDEN) < limit
            kept += np.uint64(drawn | (place == newest))
        return int(kept)
    for key in range(door[KEYS]):
        values = int64s(found[door[FIRST_KEY + KEY * key]], 1 << 40)
        factor = np.uint64(door[FIRST_KEY + KEY * key + 1])
        kept = np.uint64(0)
        for i in range(number):
            place = places[np.uint64(i)]
            places[kept] = place
            at = _mixed(np.uint64(values[np.uint64(place)])) * factor - start
            kept += np.uint64((at < limit) | (place == newest))
        number = int(kept)
    return number


@kernel
def draw(seed: np.uint64, limit: np.uint64, drawn: NDArray[np.bool_]) -> None:
    """Fill ``drawn`` with which rows come in, of as many as there is room for."""
    for i in range(drawn.shape[0]):
        drawn[np.uint64(i)] = _mixed(seed + np.uint64(i) * _GOLDEN) < limit
