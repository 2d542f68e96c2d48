"""Keys that were chosen to meet in one bucket do not, and keys that follow one another never do.

What is counted is buckets, and the steps that walks along their chains take, not time.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import penstock
from penstock.engine.output.output import DifferenceOutput
from penstock.engine.state import hash_factor
from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.rows import Rows
from penstock.kernels import index as kernels

Uint64s = NDArray[np.uint64]
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
def test_chosen_keys_are_spread(flood: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """By most factors: one in seventy fills less than half as many buckets as there are keys."""
    keys = flood()  # type: ignore[operator]
    assert len(set(keys)) == COUNT
    found = []
    for _ in range(9):
        monkeypatch.setattr(hash_factor, "_FACTOR", hash_factor.random_factor())
        found.append(buckets_of(keys, hash_factor.shift_for(CAPACITY)))
    assert np.median(found) > COUNT // 2


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


# -- keys of several columns ---------------------------------------------------------------------

SCHEMA = pa.schema([("ts", pa.int64()), ("x", pa.int64()), ("y", pa.int64())])
ON = "WHERE A.x = B.x AND A.y = B.y"
QUERIES = {
    "join": f"SELECT A.x AS x FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS] {ON}",
    "state": "SELECT A.x AS x FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS], C [RANGE 9 SECONDS] "
    f"{ON} AND B.x = C.x AND B.y = C.y",
    "except": "SELECT A.x AS x, A.y AS y FROM A [RANGE 9 SECONDS] "
    "EXCEPT SELECT B.x AS x, B.y AS y FROM B [RANGE 9 SECONDS]",
}


def mixed(hashed: int, value: int) -> int:
    """The kernel's twin."""
    h = ((hashed + 0x9E3779B97F4A7C15) & WORD) ^ (value & WORD)
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 & WORD
    h = (h ^ h >> 27) * 0x94D049BB133111EB & WORD
    return h ^ h >> 31


def flood_of_pairs(count: int) -> list[tuple[int, int]]:
    """Pairs of numbers of which all have one hash, if hashes begin with zero."""
    pairs = []
    for x in range(count):
        y = ((mixed(0, x) + 0x9E3779B97F4A7C15) & WORD) ^ 4711
        pairs.append((x, y - (1 << 64) if y >> 63 else y))
    return pairs


def random_pairs(count: int) -> list[tuple[int, int]]:
    draw = np.random.default_rng(5)
    return [(int(x), int(y)) for x, y in draw.integers(-(2**63), 2**63 - 1, (count, 2))]


def steps_of(index: HashIndex, rows: Rows) -> int:
    """Rows that are walked past if each of ``rows`` is looked for once."""
    entries = index.entries[np.arange(rows.tail, rows.head) & rows.mask]
    codes = entries.astype(np.int32).astype(np.int64).astype(np.uint64)
    factor = np.uint64((index.shift & ~63 | 1) & WORD)
    buckets = (codes * factor) >> np.uint64(index.shift & 63)
    _, counts = np.unique(buckets, return_counts=True)
    return int((counts**2).sum())


def walked(name: str, execution: str, pairs: list[tuple[int, int]]) -> int:
    """The steps of all indexes over several columns, when ``pairs`` have been pushed."""
    engine = penstock.Engine(
        penstock.parse(QUERIES[name], dict.fromkeys("ABC", SCHEMA)),
        plan="((A B) C)" if name == "state" else "auto",
        feedback="off",
        execution=execution,
    )
    x, y = np.array(pairs, np.int64).T
    batch = pa.table([np.zeros(len(pairs), np.int64), x, y], schema=SCHEMA)
    engine.push(dict.fromkeys(engine.query.sources, batch))
    if name == "except":
        assert isinstance(engine._join.output, DifferenceOutput)
        kept = [(each.index, each.rows) for each in engine._join.output._difference._removers]
    else:
        (tree,) = engine.trees
        kept = [
            (index, each.rows)
            for each in (*tree.leaves.values(), *tree.states)
            for index in each.indexes
        ]
    assert kept
    assert {len(rows) for _, rows in kept} == {len(pairs)}
    return sum(steps_of(index, rows) for index, rows in kept)


def test_crafted_pairs_share_a_hash_that_begins_with_zero() -> None:
    assert len({mixed(mixed(0, x), y) for x, y in flood_of_pairs(100)}) == 1


@pytest.mark.parametrize("execution", ["auto", "reference"])
@pytest.mark.parametrize("name", QUERIES)
def test_crafted_pairs_cost_what_random_ones_do(name: str, execution: str) -> None:
    crafted, usual = (
        walked(name, execution, make(2_000)) for make in (flood_of_pairs, random_pairs)
    )
    assert crafted < 1.5 * usual


def test_no_difference_of_first_columns_is_made_up_for_by_second_ones() -> None:
    """What an attacker could still try: two values of a column whose hashes differ by the same bits
    whatever the hash begins with."""
    draw = np.random.default_rng(7)
    begins = draw.integers(0, 2**64, 2_000, np.uint64)

    def all_mixed(values: Uint64s) -> Uint64s:
        h = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return h ^ (h >> np.uint64(31))

    for bit in range(64):
        for other in (0, 1 << (bit + 1) % 64, 1 << 63):
            difference = np.uint64((1 << bit) ^ other)
            found = all_mixed(begins) ^ all_mixed(begins ^ difference)
            if difference:
                assert np.unique(found, return_counts=True)[1].max() <= 20
