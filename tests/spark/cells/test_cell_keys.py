"""Cells go round robin over partitions, whatever their number."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from penstock.spark.cells.cell_keys import cell_keys

pytestmark = pytest.mark.xdist_group("spark")
WORD = 0xFFFFFFFF


def murmur3(value: int) -> int:
    """Spark's hash of an ``int`` column (MurmurHash3, 32 bits, seed 42), as it is written."""
    k = rotated((value & WORD) * 0xCC9E2D51, 15) * 0x1B873593 & WORD
    h = (rotated(42 ^ k, 13) * 5 + 0xE6546B64) & WORD
    h ^= 4  # Bytes that are hashed.
    h = (h ^ h >> 16) * 0x85EBCA6B & WORD
    h = (h ^ h >> 13) * 0xC2B2AE35 & WORD
    h ^= h >> 16
    return h - (WORD + 1) if h >> 31 else h


def rotated(word: int, bits: int) -> int:
    word &= WORD
    return (word << bits | word >> (32 - bits)) & WORD


@pytest.mark.parametrize("partitions", [1, 2, 7, 32, 200, 400, 1_009])
def test_no_partition_has_two_cells_more_than_another(partitions: int) -> None:
    for cells in (1, partitions, partitions + 3, 3 * partitions):
        counts = Counter(murmur3(key) % partitions for key in cell_keys(cells))
        sizes = [counts[partition] for partition in range(partitions)]
        assert max(sizes) - min(sizes) <= 1


def test_a_key_tells_its_cell() -> None:
    keys = cell_keys(5_000)
    assert [murmur3(key) for key in keys] == list(range(5_000))
    assert keys[:20] == cell_keys(20)
    assert all(-(2**31) <= key < 2**31 for key in keys)


def test_the_hash_is_sparks(spark: SparkSession) -> None:
    chance = random.Random(3)
    values = [0, 1, -1, 2**31 - 1, -(2**31)]
    values += [chance.randint(-(2**31), 2**31 - 1) for _ in range(200)]
    frame = spark.createDataFrame([(value,) for value in values], "v INT")
    assert [row[0] for row in frame.select(sql.hash("v")).collect()] == list(map(murmur3, values))


def test_spark_puts_cells_where_they_belong(spark: SparkSession) -> None:
    keys = cell_keys(200)
    frame = spark.createDataFrame([(key,) for key in keys], "cell INT").repartition(200, "cell")
    rows = frame.select("cell", sql.spark_partition_id()).collect()
    found = {row[0]: row[1] for row in rows}
    assert found == {key: cell for cell, key in enumerate(keys)}
