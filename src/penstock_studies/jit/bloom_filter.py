"""A Bloom filter over the values of some columns (section IV.A).

Nothing can be taken out of it: it is made anew from the state now and then, and says "perhaps" for
what has left in between. That delays a suspension, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable

BITS = 1 << 16


class BloomFilter:
    """Two hash functions over a tuple of integers."""

    def __init__(self) -> None:
        self._bits = bytearray(BITS)

    def add(self, values: tuple[int, ...]) -> None:
        for bit in _bits(values):
            self._bits[bit] = 1

    def may_contain(self, values: tuple[int, ...]) -> bool:
        return all(self._bits[bit] for bit in _bits(values))

    def refill(self, all_values: Iterable[tuple[int, ...]]) -> None:
        """Forget everything but ``all_values``."""
        self._bits = bytearray(BITS)
        for values in all_values:
            self.add(values)


def _bits(values: tuple[int, ...]) -> tuple[int, int]:
    mixed = hash(values) * 0x9E3779B97F4A7C15
    return (mixed >> 20) % BITS, (mixed >> 40) % BITS
