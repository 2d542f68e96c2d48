"""Keys of cells that Spark spreads evenly over its partitions.

Spark puts a group into partition ``murmur3(key) mod partitions``, which leaves some partitions
empty and others with several cells if keys are just counted. But the hash of an integer is one to
one: every step of it can be undone. So cell ``i`` gets the one key whose hash is ``i``, and goes to
partition ``i mod partitions``, round robin, however many partitions there are. Keys depend neither
on that number, which a session may change and a checkpoint remembers, nor on the number of cells:
a cell that is restarted finds its state.
"""

from __future__ import annotations

_SEED = 42
_WORD = 0xFFFFFFFF
_LENGTH = 4
"""Bytes that are hashed."""

_SCRAMBLE = (0xCC9E2D51, 0x1B873593)
_MIX = 0xE6546B64
_FINISH = (0x85EBCA6B, 0xC2B2AE35)


def cell_keys(cells: int) -> list[int]:
    """The keys of cells 0 to ``cells`` - 1, as values of an ``int`` column."""
    return [_signed(_unhashed(cell)) for cell in range(cells)]


def _unhashed(value: int) -> int:
    """The one word whose hash is ``value``: the steps of MurmurHash3, undone from the last one."""
    h = value & _WORD
    h = (h ^ h >> 16) * _inverse(_FINISH[1]) & _WORD
    h = (h ^ h >> 13 ^ h >> 26) * _inverse(_FINISH[0]) & _WORD
    h = h ^ h >> 16 ^ _LENGTH
    k = _SEED ^ _rotated((h - _MIX) * _inverse(5) & _WORD, 32 - 13)
    k = _rotated(k * _inverse(_SCRAMBLE[1]) & _WORD, 32 - 15)
    return k * _inverse(_SCRAMBLE[0]) & _WORD


def _inverse(factor: int) -> int:
    """What undoes a multiplication by the odd ``factor``, modulo 2**32."""
    return pow(factor, -1, _WORD + 1)


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & _WORD


def _signed(word: int) -> int:
    return word - (_WORD + 1) if word >> 31 else word
