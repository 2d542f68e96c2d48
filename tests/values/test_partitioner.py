"""Partitioners give the numbers that writers give: Kafka's clients and Spark's buckets."""

from __future__ import annotations

import random
import zlib

import pyarrow as pa
import pytest

from penstock.values.partitioner import Partitioner

MURMUR2 = {
    "21": -973932308,
    "foobar": -790332482,
    "a-little-bit-long-string": -985981536,
    "a-little-bit-longer-string": -1486304829,
    "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    "abc": 479470107,
}
"""Of the tests of Kafka's client."""


@pytest.mark.parametrize("count", [1, 6, 1_000, 2**31 - 1])
def test_the_java_client(count: int) -> None:
    found = Partitioner("murmur2", count).numbers(pa.array([*MURMUR2, None]))
    expected = [(value & 0x7FFFFFFF) % count for value in MURMUR2.values()]
    assert found.tolist() == [*expected, -1]


def test_librdkafka() -> None:
    chance = random.Random(1)
    texts = ["", "a", *("".join(chance.choices("abcdé", k=n)) for n in range(40))]
    found = Partitioner("crc32", 97).numbers(pa.array(texts)[1:])
    assert found.tolist() == [zlib.crc32(text.encode()) % 97 for text in texts[1:]]


@pytest.mark.parametrize(
    ("encoding", "width"), [("text", 0), ("long", 8), ("int", 4)], ids=["text", "long", "int"]
)
def test_numbers_as_keys(encoding: str, width: int) -> None:
    values = [0, 17, -3, 2**31 - 1, -(2**31)]
    as_bytes = [v.to_bytes(width, "big", signed=True) if width else str(v).encode() for v in values]
    expected = [zlib.crc32(each) % 11 for each in as_bytes]
    for kind in (pa.int32(), pa.int64()):
        found = Partitioner("crc32", 11, encoding).numbers(pa.array([*values, None], kind))
        assert found.tolist() == [*expected, -1]


def test_types_whose_equal_values_have_one_partition() -> None:
    integers, texts = {pa.int32(), pa.int64()}, {pa.string()}
    assert Partitioner("murmur2", 4).why_not(integers) is None
    assert Partitioner("murmur2", 4).why_not(texts) is None
    assert Partitioner("murmur2", 4).why_not(integers | texts) is not None
    assert Partitioner("murmur2", 4, "long").why_not(texts) is not None
    assert Partitioner("murmur2", 4).why_not({pa.float64()}) is not None
    assert Partitioner("spark", 4).why_not(integers) is not None
    assert Partitioner("spark", 4).why_not({pa.int64()}) is None
