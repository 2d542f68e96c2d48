"""An index of an earlier time finds what the index of now finds, on a shorter way."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from penstock.engine.state import earlier_heads
from penstock.engine.state.earlier_heads import bound_at, index_before
from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.probing import probe_all, probe_keys
from penstock.engine.state.rows import BIRTH, DEATH, Rows

Int64s = NDArray[np.int64]


def grown(chance: np.random.Generator, count: int, wide: bool = False) -> tuple[Rows, HashIndex]:
    """A ring that has moved on, packed itself and grown, with an index on the key."""
    rows = Rows()
    key = rows.add_column(np.int64)
    index = rows.add_index()
    made = 0
    while made < count:
        n = int(chance.integers(1, 1 + count // 4))
        keys = chance.integers(0, 9, n) + (chance.integers(0, 2, n) << 40 if wide else 0)
        births = made + np.arange(n)
        rows.reserve(n)
        for column, values in ((BIRTH, births), (DEATH, births + count), (key, keys)):
            rows.put(column, rows.head, values)
        rows.insert(index, rows.head, keys)
        rows.head += n
        made += n
        if chance.random() < 0.3:
            rows.advance(int(chance.integers(rows.tail, rows.head)))
        if chance.random() < 0.2:
            alive = np.arange(rows.tail, rows.head)
            rows.keep_only(alive[chance.random(len(alive)) < 0.8])
    return rows, index


def pairs(found: Int64s) -> list[tuple[int, ...]]:
    return sorted(map(tuple, found.T.tolist()))


@pytest.mark.parametrize("seed", range(40))
def test_the_same_rows_are_found(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(earlier_heads, "_WALKED_ROWS", 0)
    chance = np.random.default_rng(seed)
    rows, index = grown(chance, 400, wide=seed % 4 == 0)
    asked = chance.integers(0, 12, 50)
    births = np.zeros(50, np.int64)
    deaths = chance.integers(0, 800, 50)
    used = 0
    for bound in sorted(chance.integers(rows.tail, rows.head + 1, 6).tolist(), reverse=True):
        earlier = index_before(rows, index, bound)
        used += earlier is not index
        assert pairs(probe_keys(asked, rows, earlier, bound, 10)) == pairs(
            probe_keys(asked, rows, index, bound, 10)
        )
        now = bound_at(rows, bound, deaths)
        earlier = index_before(rows, index, now)
        assert pairs(probe_all(asked, births, deaths, rows, earlier, now, 10)) == pairs(
            probe_all(asked, births, deaths, rows, index, bound, 10)
        )
    assert used or rows.head - rows.tail < 20


def test_heads_serve_until_too_much_lies_on_the_way() -> None:
    rows, index = grown(np.random.default_rng(1), 200_000)
    bound = rows.tail + (rows.head - rows.tail) // 2
    first = index_before(rows, index, bound)
    assert first is not index
    assert index_before(rows, index, bound - 100) is first
    later = index_before(rows, index, rows.tail + 10)
    assert later is not first
    assert later.stop == rows.tail + 10
    assert index_before(rows, index, rows.head) is index


def test_a_ring_that_moves_makes_heads_anew() -> None:
    rows, index = grown(np.random.default_rng(2), 50_000)
    bound = rows.tail + 2_000
    assert index_before(rows, index, bound) is index_before(rows, index, bound)
    before = index_before(rows, index, bound)
    rows.reserve(10 * rows.capacity)
    assert index_before(rows, index, bound) is not before
    assert rows.nbytes > 0
    rows.truncate(bound - 1)
    assert index.earlier is None


def test_heads_are_given_back() -> None:
    rows, index = grown(np.random.default_rng(3), 50_000)
    held = rows.nbytes
    index_before(rows, index, rows.tail + 2_000)
    assert rows.nbytes > held
    rows.forget_earlier()
    assert rows.nbytes == held
