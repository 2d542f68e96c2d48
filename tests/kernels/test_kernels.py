"""Each kernel against its slow, readable twin, which defines what it means."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from numpy.typing import NDArray

from penstock.engine.state.probing import probe_all
from penstock.engine.state.rows import BIRTH, DEATH, Rows
from penstock.kernels import asked, closing, lifespan, pairs, probe, ring

Int64s = NDArray[np.int64]
RNG = np.random.default_rng(7)
EXTREMES = np.array([-(2**63), -1, 0, 1, 2**63 - 1], np.int64)


def rows_of(keys: Int64s, births: Int64s, deaths: Int64s, start: int = 0) -> tuple[Rows, int]:
    """Rows numbered from ``start``, with an index on column 2."""
    rows = Rows()
    column = rows.add_column(np.int64)
    index = rows.add_index()
    assert rows.indexes == [index]
    rows.tail = rows.low = rows.head = start
    rows.reserve(len(keys))
    rows.put(column, start, keys)
    rows.put(BIRTH, start, births)
    rows.put(DEATH, start, deaths)
    rows.head += len(keys)
    rows.insert(index, start, keys)
    return rows, column


def probe_twin(
    keys: Int64s,
    births: Int64s,
    deaths: Int64s,
    row_keys: Int64s,
    row_births: Int64s,
    row_deaths: Int64s,
    visible: range,
) -> set[tuple[int, int, int, int]]:
    found = set()
    for i in range(len(keys)):
        for s in visible:
            birth = max(births[i], row_births[s])
            death = min(deaths[i], row_deaths[s])
            if keys[i] == row_keys[s] and birth <= death:
                found.add((i, s, int(birth), int(death)))
    return found


@pytest.mark.parametrize("domain", [1, 3, 40, 10_000])
@pytest.mark.parametrize("size", [0, 1, 5, 300])
def test_probe(domain: int, size: int) -> None:
    n, start = 257, 10**12
    row_keys = RNG.integers(0, domain, n)
    row_keys[:5] = EXTREMES
    births = RNG.integers(0, 100, n)
    deaths = births + RNG.integers(0, 30, n)
    rows, _ = rows_of(row_keys, births, deaths, start)
    rows.hide_before(0)
    rows.tail = rows.low = start + 17
    keys = RNG.integers(0, domain, size)
    keys[: min(size, 5)] = EXTREMES[:size]
    mine = RNG.integers(0, 100, size)
    until = mine + RNG.integers(0, 30, size)
    for bound in (start + 17, start + 100, start + n):
        matches = probe_all(keys, mine, until, rows, rows.indexes[0], bound, 0)
        found = {(int(i), int(s) - start, int(b), int(d)) for i, s, b, d in matches.T}
        twin = probe_twin(keys, mine, until, row_keys, births, deaths, range(17, bound - start))
        assert found == twin
        assert matches.shape[1] == len(found), "no match twice"


@pytest.mark.parametrize("size", [1, 7, 100])
def test_nested_loop(size: int) -> None:
    signs = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
    codes = [
        probe.EQUAL,
        probe.NOT_EQUAL,
        probe.LESS,
        probe.LESS_EQUAL,
        probe.GREATER,
        probe.GREATER_EQUAL,
    ]
    m = 50
    for first_sign, first_code in zip(signs, codes, strict=True):
        operators = np.array([first_code, probe.LESS_EQUAL], np.int64)
        lefts, rights = RNG.integers(0, 4, (2, size)), RNG.integers(0, 4, (2, m))
        births, row_births = RNG.integers(0, 20, size), RNG.integers(0, 20, m)
        deaths, row_deaths = births + 3, row_births + 5
        rows = np.arange(1000, 1000 + m)
        expected = {
            (i, 1000 + j)
            for i in range(size)
            for j in range(m)
            if first_sign(lefts[0, i], rights[0, j])
            and lefts[1, i] <= rights[1, j]
            and max(births[i], row_births[j]) <= min(deaths[i], row_deaths[j])
        }
        found: list[tuple[int, int]] = []
        first, calls = 0, 0
        out = np.empty((4, 2 * m), np.int64)
        while first < size:
            count, first = probe.nested_loop(
                operators,
                lefts,
                births,
                deaths,
                rights,
                row_births,
                row_deaths,
                rows,
                first,
                out,
            )
            found += [(int(i), int(s)) for i, s in out[:2, :count].T]
            calls += 1
        assert set(found) == expected
        assert len(found) == len(expected)
        assert calls >= 1


def test_kills_and_revivals_by_count() -> None:
    for count in (1, 3, 8):
        births = np.arange(0, 60, 3, dtype=np.int64)
        n = len(births)
        death = np.full(32, lifespan.FOREVER, np.int64)
        birth = np.zeros(32, np.int64)
        birth[:n] = births
        lifespan.kill_by_count(birth, death, 31, 0, 0, 12, count)
        before = death.copy()
        lifespan.kill_by_count(birth, death, 31, 0, 12, n, count)
        for s in range(n):
            killer = s + count
            assert death[s] == (births[killer] - 1 if killer < n else lifespan.FOREVER)
        lifespan.revive_by_count(death, 31, 0, 12, n, count)
        assert (death[:12] == before[:12]).all()


def partition_twin(partitions: list[int], births: list[int], count: int) -> list[int]:
    deaths = []
    for s, partition in enumerate(partitions):
        later = [t for t in range(s + 1, len(births)) if partitions[t] == partition]
        killed = len(later) >= count
        deaths.append(births[later[count - 1]] - 1 if killed else int(lifespan.FOREVER))
    return deaths


@pytest.mark.parametrize("count", [1, 2, 5])
def test_kills_and_revivals_by_partition(count: int) -> None:
    n, split = 40, 23
    partitions = RNG.integers(0, 4, 64)
    birth = np.arange(64, dtype=np.int64) * 2
    death = np.full(64, lifespan.FOREVER, np.int64)
    later, victims, earlier = (np.zeros(64, np.int64) for _ in range(3))
    lists = [np.full(4, -1, np.int64), np.full(4, -1, np.int64)]
    sizes = np.zeros(4, np.int64)

    def kill(start: int, stop: int) -> None:
        lifespan.kill_by_partition(
            birth, death, later, victims, partitions, 63, start, stop, count, *lists, earlier, sizes
        )

    kill(0, split)
    twin = partition_twin(partitions.tolist()[:split], birth.tolist()[:split], count)
    assert death[:split].tolist() == twin
    saved = [each.copy() for each in (death[:split], *lists, sizes)]
    for _ in range(2):
        kill(split, n)
        twin = partition_twin(partitions.tolist()[:n], birth.tolist()[:n], count)
        assert death[:n].tolist() == twin
        lifespan.revive_by_partition(
            death, later, victims, partitions, 63, split, n, *lists, earlier, sizes
        )
        death[split:] = lifespan.FOREVER
        for now, then in zip((death[:split], *lists, sizes), saved, strict=True):
            live = sizes > 0 if len(now) == 4 else slice(None)
            assert (now[live] == then[live]).all()


def test_after_stops_at_the_end_of_time() -> None:
    births = np.array([0, 5, 2**63 - 3], np.int64)
    assert lifespan.after(births, 10).tolist() == [10, 15, 2**63 - 2]


def test_reject_and_shorten() -> None:
    left, right = np.array([1, 2, 3, 4]), np.array([2, 2, 2, 2])
    rows = np.arange(4, dtype=np.int64)
    keep = np.array([True, True, True, False])
    assert pairs.reject(probe.GREATER_EQUAL, left, 3, rows, right, 3, rows, keep) == 1
    assert keep.tolist() == [False, True, True, False]
    deaths = np.array([9, 9, 9], np.int64)
    pairs.shorten(deaths, np.array([4, 5, 6]), np.array([50, 3, 9, 9]), 3, 5)
    assert deaths.tolist() == [int(probe.GONE), 3, 9]


def test_hash_of_columns_depends_on_order_and_every_column() -> None:
    columns = RNG.integers(-5, 5, (3, 64))
    rows = np.arange(64, dtype=np.int64)

    def hashed(order: list[int]) -> list[int]:
        hashes = np.zeros(64, np.int64)
        for c in order:
            pairs.mix_into(hashes, columns[c], 63, rows)
        return hashes.tolist()

    by_value: dict[tuple[int, ...], int] = {}
    for value, h in zip(columns.T.tolist(), hashed([0, 1, 2]), strict=True):
        assert by_value.setdefault(tuple(value), h) == h
    assert len(set(by_value.values())) == len(by_value)
    assert hashed([0, 1, 2]) != hashed([1, 0, 2])


def test_rings() -> None:
    column = np.zeros(8, np.int64)
    ring.put(column, 7, 6, np.array([1, 2, 3, 4]))
    assert column.tolist() == [3, 4, 0, 0, 0, 0, 1, 2]
    assert ring.take(column, 7, np.array([9, 6])).tolist() == [4, 1]
    assert ring.pick(np.array([5, 6, 7]), np.array([2, 0])).tolist() == [7, 5]
    out, since = np.zeros(3, np.int64), np.array([True, True, False])
    assert ring.take_since(column, 7, np.array([9, 6, 8]), 3, out, since) == 1
    assert out.tolist() == [4, 1, 3]
    assert since.tolist() == [True, False, False]
    larger = np.zeros(16, np.int64)
    ring.move(column, 7, larger, 15, 6, 10)
    assert larger[6:10].tolist() == [1, 2, 3, 4]
    assert ring.first_alive(column, 7, 6, 10, 3) == 8
    assert ring.alive_rows(column, 7, 6, 10, 3).tolist() == [8, 9]
    assert ring.is_sorted(np.array([1, 1, 2]))
    assert not ring.is_sorted(np.array([1, 0]))
    assert ring.is_sorted(np.array([], np.int64))


@pytest.mark.parametrize("count", [0, 1, 5, 199, 200, 3_000])
@pytest.mark.parametrize("domain", [1, 2, 500, 70_000, 2**40, 2**62])
@pytest.mark.parametrize("lowest", [0, -(10**12), 10**15])
def test_order_is_stable(count: int, domain: int, lowest: int) -> None:
    values = np.random.default_rng(count).integers(0, domain, count) + lowest
    order = ring.order_of(values)
    if order is None:
        assert (np.diff(values) >= 0).all()
    else:
        assert order.tolist() == np.argsort(values, kind="stable").tolist()


def test_a_run_has_no_gap_and_no_turn() -> None:
    for rows, expected in (([7], True), ([7, 8, 9], True), ([3, 9, 5], False), ([4, 4, 6], False)):
        assert ring.is_run(np.array(rows, np.int64)) is expected


@pytest.mark.parametrize("start", [0, 5, 60, 64, 1_000_000_000_063])
@pytest.mark.parametrize("count", [0, 1, 4, 64])
def test_put_goes_on_at_the_beginning(start: int, count: int) -> None:
    column = np.full(64, -1, np.int64)
    values = np.arange(100, 100 + count)
    ring.put(column, 63, start, values)
    slots = (start + np.arange(count)) & 63
    assert column[slots].tolist() == values.tolist()
    assert np.count_nonzero(column == -1) == 64 - count


def _bits(flags: np.ndarray) -> np.ndarray:
    """Eight flags to a byte, the first in its lowest bit."""
    numbers = [
        sum(int(flag) << i for i, flag in enumerate(flags[n : n + 8]))
        for n in range(0, len(flags), 8)
    ]
    return np.array(numbers, np.uint8)


@pytest.mark.parametrize("size", [0, 1, 7, 200])
def test_close(size: int) -> None:
    first, closed = 10**12, RNG.random(50) < 0.3
    rows = first + RNG.integers(0, 50, size)
    opened, expected, bits = ~closed, [], _bits(closed)
    there = np.empty(size, np.bool_)
    closing.are_open(rows, first, bits, there)
    assert there.tolist() == [opened[row - first] for row in rows.tolist()]
    for row in rows.tolist():
        if opened[row - first]:
            opened[row - first] = False
            expected.append(row)
    out = np.empty(size, np.int64)
    count = closing.close(rows, first, bits, out)
    assert out[:count].tolist() == expected
    assert bits.tolist() == _bits(~opened).tolist()
    closing.reopen(out[:count], first, bits)
    assert bits.tolist() == _bits(closed).tolist()


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (0, 50), (3, 6), (7, 41), (16, 24), (49, 50)])
@pytest.mark.parametrize("value", [True, False])
def test_put_bits(start: int, stop: int, value: bool) -> None:
    flags = RNG.random(50) < 0.5
    bits = _bits(flags)
    closing.put(bits, start, stop, value)
    flags[start:stop] = value
    assert bits.tolist() == _bits(flags).tolist()


@pytest.mark.parametrize("domain", [3, 40, 10**9])
def test_fresh(domain: int) -> None:
    bits = 5
    values = RNG.integers(-domain, domain, 300)
    places = np.full(1 << bits, 2 * domain)
    there, expected = places.tolist(), []
    for value in values.tolist():
        place = (value * 11400714819323198485 % 2**64) >> (64 - bits)
        if there[place] != value:
            there[place] = value
            expected.append(value)
    out = np.empty(len(values), np.int64)
    count = asked.fresh(values, places, 64 - bits, out)
    assert out[:count].tolist() == expected
    assert places.tolist() == there
