"""Hashes of partitions against slow twins, written as Kafka and Spark write them."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable

import numpy as np
import pytest

from penstock.kernels.partition_hash import CRC32, MURMUR2, MURMUR3, partitions

WORD = 0xFFFFFFFF


def signed(value: int) -> int:
    return value - (1 << 32) if value & 0x80000000 else value


def murmur2(data: bytes, count: int) -> int:
    """``Utils.murmur2`` of Kafka's client, made positive."""
    m, h = 0x5BD1E995, 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & WORD
        k = (k ^ k >> 24) * m & WORD
        h = h * m & WORD ^ k
    if data[whole:]:
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & WORD
    h = (h ^ h >> 13) * m & WORD
    return ((h ^ h >> 15) & 0x7FFFFFFF) % count


def crc32(data: bytes, count: int) -> int:
    return zlib.crc32(data) % count


def murmur3(data: bytes, count: int) -> int:
    """``Murmur3_x86_32.hashUnsafeBytes`` of Spark with the seed 42, and ``pmod``."""

    def rotated(value: int, bits: int) -> int:
        return (value << bits | value >> (32 - bits)) & WORD

    whole = len(data) // 4 * 4
    words = [int.from_bytes(data[at : at + 4], "little") for at in range(0, whole, 4)]
    words += [(byte - 256 if byte > 127 else byte) & WORD for byte in data[whole:]]
    h = 42
    for word in words:
        k = rotated(word * 0xCC9E2D51 & WORD, 15) * 0x1B873593 & WORD
        h = (rotated(h ^ k, 13) * 5 + 0xE6546B64) & WORD
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & WORD
    h = (h ^ h >> 13) * 0xC2B2AE35 & WORD
    return signed(h ^ h >> 16) % count


@pytest.mark.parametrize(
    ("function", "twin", "nothing"),
    [
        (MURMUR2, murmur2, lambda _: -1),
        (CRC32, crc32, lambda _: -1),
        (MURMUR3, murmur3, lambda count: 42 % count),
    ],
)
def test_values_of_all_lengths(
    function: int,
    twin: Callable[[bytes, int], int],
    nothing: Callable[[int], int],
) -> None:
    chance = random.Random(1)
    values = [chance.randbytes(length) for length in range(40) for _ in range(8)]
    data = np.frombuffer(b"".join(values), np.uint8)
    offsets = np.cumsum([0, *map(len, values)])
    valid = np.array([chance.random() < 0.9 for _ in values])
    for count in (1, 7, 64, 2**31 - 1):
        expected = [
            twin(value, count) if there else nothing(count)
            for value, there in zip(values, valid, strict=True)
        ]
        assert partitions(function, data, offsets, valid, count).tolist() == expected
