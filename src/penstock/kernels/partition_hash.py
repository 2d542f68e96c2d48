"""The hashes by which others have put rows into partitions: Kafka's producers, and Spark's buckets.

They are what they are: a row is where its producer has put it, and who computes the same number
knows where. Each is a 32-bit hash of bytes, computed in 64 bits and cut.

- ``murmur2``: the default partitioner of Kafka's Java client (murmur2, made positive).
- ``crc32``: the default of librdkafka, which the clients in C, Python, Go and .NET are made of.
- ``murmur3``: buckets of Spark, whose variant of murmur3 takes the last bytes one by one, signed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import kernel

Bytes = NDArray[np.uint8]
Int64s = NDArray[np.int64]
Booleans = NDArray[np.bool_]

MURMUR2, CRC32, MURMUR3 = range(3)
"""The functions."""

_WORD = np.uint64(0xFFFFFFFF)
_POSITIVE = np.uint64(0x7FFFFFFF)
_M2 = np.uint64(0x5BD1E995)
_SEED2 = np.uint64(0x9747B28C)
_C1 = np.uint64(0xCC9E2D51)
_C2 = np.uint64(0x1B873593)
_C3 = np.uint64(0xE6546B64)
_SEED3 = np.uint64(42)
_POLYNOMIAL = np.uint64(0xEDB88320)


@kernel
def _word(data: Bytes, at: int) -> np.uint64:
    """Four bytes, the least significant first."""
    found = np.uint64(0)
    for i in range(4):
        found |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return found


@kernel
def _rotated(value: np.uint64, bits: int) -> np.uint64:
    high = value << np.uint64(bits)
    return (high | (value >> np.uint64(32 - bits))) & _WORD


@kernel
def _with_word(h: np.uint64, word: np.uint64) -> np.uint64:
    """A hash of murmur3 with one more word."""
    k = (_rotated((word * _C1) & _WORD, 15) * _C2) & _WORD
    found: np.uint64 = (_rotated(h ^ k, 13) * np.uint64(5) + _C3) & _WORD
    return found


@kernel
def _murmur2(data: Bytes, at: int, size: int) -> np.uint64:
    h = _SEED2 ^ np.uint64(size)
    for i in range(size // 4):
        k = (_word(data, at + 4 * i) * _M2) & _WORD
        k ^= k >> np.uint64(24)
        h = ((h * _M2) & _WORD) ^ ((k * _M2) & _WORD)
    rest = size % 4
    if rest:
        for i in range(rest):
            h ^= np.uint64(data[at + size - rest + i]) << np.uint64(8 * i)
        h = (h * _M2) & _WORD
    h ^= h >> np.uint64(13)
    h = (h * _M2) & _WORD
    return (h ^ (h >> np.uint64(15))) & _POSITIVE


@kernel
def _crc32(data: Bytes, at: int, size: int) -> np.uint64:
    h = _WORD
    for i in range(size):
        h ^= np.uint64(data[at + i])
        for _ in range(8):
            is_odd = h & np.uint64(1)
            h >>= np.uint64(1)
            if is_odd:
                h ^= _POLYNOMIAL
    return h ^ _WORD


@kernel
def _murmur3(data: Bytes, at: int, size: int) -> np.uint64:
    h = _SEED3
    for i in range(size // 4):
        h = _with_word(h, _word(data, at + 4 * i))
    for i in range(size - size % 4, size):
        byte = np.uint64(data[at + i])
        h = _with_word(h, byte if byte < np.uint64(128) else byte | np.uint64(0xFFFFFF00))
    h ^= np.uint64(size)
    h ^= h >> np.uint64(16)
    h = (h * np.uint64(0x85EBCA6B)) & _WORD
    h ^= h >> np.uint64(13)
    h = (h * np.uint64(0xC2B2AE35)) & _WORD
    return h ^ (h >> np.uint64(16))


@kernel
def partitions(function: int, data: Bytes, offsets: Int64s, valid: Booleans, count: int) -> Int64s:
    """The partition of each value, of ``count``. Where there is none it is -1, for Spark's buckets
    that of its seed."""
    nothing = np.int64(_SEED3) % count if function == MURMUR3 else np.int64(-1)
    out = np.full(len(offsets) - 1, nothing, np.int64)
    for row in range(len(out)):
        if not valid[row]:
            continue
        at, size = offsets[row], offsets[row + 1] - offsets[row]
        if function == MURMUR2:
            number = np.int64(_murmur2(data, at, size))
        elif function == CRC32:
            number = np.int64(_crc32(data, at, size))
        else:
            h = _murmur3(data, at, size)
            number = np.int64(h) - (np.int64(1) << 32 if h > _POSITIVE else np.int64(0))
        out[row] = number % count
    return out
