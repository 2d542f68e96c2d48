"""Keys that were chosen to meet in one bucket do not, and keys that follow one another never do."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.engine.state import hash_factor
from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.rows import Rows
from penstock.kernels import index as kernels

COUNT = 8_000
CAPACITY = 1 << 16
WORD = (1 << 64) - 1
GOLDEN = 11400714819323198485


def fibonacci(number: int) -> int:
    a, b = 0, 1
    for _ in range(number):
        a, b = b, a + b
    return a


def flood_of_narrow_keys() -> list[int]:
    """Multiples of Fibonacci numbers, which times the golden ratio are near whole numbers."""
    return [a * fibonacci(35) + b * fibonacci(36) for a in range(100) for b in range(80)]


def flood_of_wide_keys() -> list[int]:
    """Keys that splitmix64's finaliser gives the same upper half, by going its way back."""

    def back(h: int) -> int:
        h = h * pow(0x94D049BB133111EB, -1, 1 << 64) & WORD
        h ^= h >> 27 ^ h >> 54
        h = h * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) & WORD
        return h ^ h >> 30 ^ h >> 60

    keys = [back(7 << 32 | low) for low in range(COUNT)]
    return [key - (1 << 64) if key >> 63 else key for key in keys]


def buckets_of(keys: list[int], word: int) -> int:
    """Buckets that ``keys`` go to."""
    index = HashIndex.of(CAPACITY)
    index.shift = word
    kernels.insert(index.heads, index.entries, word, CAPACITY - 1, 0, 0, np.array(keys, np.int64))
    return int(np.count_nonzero(index.heads))


@pytest.mark.parametrize("flood", [flood_of_narrow_keys, flood_of_wide_keys])
def test_chosen_keys_are_spread(flood: object) -> None:
    keys = flood()  # type: ignore[operator]
    assert len(set(keys)) == COUNT
    assert buckets_of(keys, hash_factor.shift_for(CAPACITY)) > COUNT // 2


def test_a_known_factor_can_be_flooded() -> None:
    """The test above can fail: the golden ratio as the factor, which everybody knows."""
    word = (GOLDEN >> 6 << 6) - (1 << 64) | 65 - CAPACITY.bit_length()
    assert buckets_of(flood_of_narrow_keys(), word) < COUNT // 100


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_keys_that_follow_one_another_are_spread_by_every_factor(
    stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(20):
        monkeypatch.setattr(hash_factor, "_FACTOR", hash_factor.random_factor())
        keys = [stride * n for n in range(CAPACITY // 2)]
        assert buckets_of(keys, hash_factor.shift_for(CAPACITY)) > CAPACITY // 5


def test_the_word_of_an_index_follows_its_size() -> None:
    rows = Rows()
    index = rows.add_index()
    before = index.shift
    rows.reserve(5_000)
    assert index.shift & 63 < before & 63
    assert index.shift & ~63 == before & ~63 == hash_factor._FACTOR
