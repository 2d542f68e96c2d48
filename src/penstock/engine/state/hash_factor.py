"""The factor by which keys are hashed: a secret of the process, and as good as the golden ratio.

Multiplying by an odd number and keeping the highest bits spreads keys over buckets
(:mod:`penstock.kernels.index`). With a factor that everybody knows, anybody can compute thousands
of integers for one bucket, and each probe walks past all of them. With a random one, two given keys
meet in a bucket with a chance of at most two to its number (Dietzfelbinger et al. 1997), whoever
chose them. But most random factors are worse than the golden ratio where keys follow one another,
as numbers that a database gives do: their multiples lie in clusters, the wider the larger the
partial quotients of the factor's continued fraction are (the three-gap theorem); those of the
golden ratio are all 1. So the quotients are drawn, from the smallest numbers: about 2^40 factors,
none of which makes clusters. No answer depends on the factor.
"""

from __future__ import annotations

import secrets
from fractions import Fraction

_QUOTIENTS = (1, 2, 3)
_DEPTH = 48
"""Quotients that are drawn: more than 64 bits can hold."""
_SHIFT_BITS = 6


def random_factor() -> int:
    """A factor of 64 bits whose lowest six are zero, as a signed number."""
    part = Fraction(1, 1)
    for _ in range(_DEPTH):
        part = 1 / (secrets.choice(_QUOTIENTS) + part)
    factor = int(part * 2**64) >> _SHIFT_BITS << _SHIFT_BITS
    return factor - 2**64 if factor >= 2**63 else factor


_FACTOR = random_factor()

SEED = _FACTOR
"""Start value of the hash of several columns: :func:`penstock.kernels.index.seed_of`."""


def shift_for(capacity: int) -> int:
    """The word by which an index of ``capacity`` (a power of two) buckets hashes."""
    return _FACTOR | (65 - capacity.bit_length())
