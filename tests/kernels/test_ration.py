"""Which rows may probe, drawn by kernels: so many, each with the same chance, whoever asks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from penstock.kernels import ration
from penstock.overload.missed_results import Stratum

MASK = 2**64 - 1
STEP = 0x9E3779B97F4A7C15


def hashed_twin(number: int) -> int:
    mixed = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & MASK
    return mixed ^ (mixed >> 31)


def draw_twin(share: float, carried: float, seed: int, total: int) -> list[int]:
    """All rows of a push, 256 at a time: so many of those that are left, by lot."""

    def allowed(rows: int) -> int:
        return min(rows, int(rows * share + carried))

    found = []
    for low in range(0, total, 256):
        high = min(low + 256, total)
        wanted = allowed(high) - allowed(low)
        state = hashed_twin((seed + low * STEP) & MASK)
        for row in range(low, high):
            state = (state + STEP) & MASK
            is_one = (hashed_twin(state) >> 11) * 2.0**-53 * (high - row) < wanted
            wanted -= is_one
            found.append(int(is_one))
    return found


def drawn(shares: NDArray[np.float64], seed: int, total: int, sizes: list[int]) -> list[int]:
    """The same, by parts of the given sizes."""
    found: list[int] = []
    while len(found) < total:
        size = min(sizes[len(found) % len(sizes)], total - len(found))
        picked = np.full(size, 9, np.uint8)
        ration.draw(shares, seed, total, len(found), size, picked)
        found += picked.tolist()
    return found


@pytest.mark.parametrize("seed", range(30))
def test_it_draws_as_its_twin_by_parts_of_any_size(seed: int) -> None:
    chance = np.random.default_rng(seed)
    share, carried = chance.random() ** 2, chance.random()
    total, number = int(chance.integers(1, 2_000)), int(chance.integers(1 << 62))
    shares = np.array([share, carried])
    expected = draw_twin(share, carried, number, total)
    assert sum(expected) == ration.allowed(shares, total)
    assert sum(expected) == min(total, int(total * share + carried))
    for sizes in ([total], [1], chance.integers(1, 700, 5).tolist()):
        assert drawn(shares, number, total, sizes) == expected


def test_every_row_has_the_same_chance() -> None:
    shares, picked = np.array([0.3, 0.5]), np.empty(600, np.uint8)
    often = np.zeros(600)
    for seed in range(4_000):
        ration.draw(shares, seed * 0x5851F42D4C957F2D % (1 << 62), 600, 0, 600, picked)
        often += picked
    # 4,000 draws of a chance of about 0.3: a standard deviation of 29, of 600 rows.
    assert abs(often.mean() - 1_200) < 10
    assert np.abs(often - often.mean()).max() < 5 * 29
    # Rows that follow one another have nothing to do with one another.
    ration.draw(shares, 7, 600, 0, 600, picked)
    assert abs(np.corrcoef(picked[1:], picked[:-1])[0, 1]) < 0.2


def test_without_a_share_all_may() -> None:
    assert ration.allowed(np.array([-1.0, 0.3]), 17) == 17


def test_groups_count_rows_and_what_they_find_together() -> None:
    chance = np.random.default_rng(3)
    rows = chance.integers(0, 1 << 40, (2, 500))
    probed, found = np.zeros((2, ration.GROUPS), np.int64)
    ration.count_groups(rows, 2, 500, probed)
    ration.count_groups(np.repeat(rows, 3, axis=1), 2, 1_500, found)
    assert probed.sum() == 500
    assert (found == 3 * probed).all()
    assert np.count_nonzero(probed) > 60


@pytest.mark.parametrize("rows", [2, 40, 3_000])
def test_groups_tell_the_spread(rows: int) -> None:
    """As the findings of each row do, on average."""
    chance = np.random.default_rng(rows)
    spreads = []
    for _ in range(400):
        matches = chance.poisson(3.0, rows) * chance.integers(0, 2, rows)
        groups = chance.integers(0, ration.GROUPS, rows)
        probed = np.bincount(groups, minlength=ration.GROUPS).astype(np.float64)
        found = np.bincount(groups, matches, ration.GROUPS).astype(np.float64)
        one, other = Stratum.of_groups(2 * rows, probed, found), Stratum.of(2 * rows, matches)
        assert (one.tuples, one.probed, one.matches) == (other.tuples, other.probed, other.matches)
        spreads.append([s.squares - s.matches**2 / rows for s in (one, other)])
    by_group, by_row = np.mean(spreads, axis=0)
    assert by_group == pytest.approx(by_row, rel=0.15)


def test_nothing_and_one_row() -> None:
    nobody = np.zeros(ration.GROUPS)
    assert Stratum.of_groups(7, nobody, nobody) == Stratum(7, 0, 0.0, 0.0)
    one = nobody.copy()
    one[5] = 1
    assert Stratum.of_groups(7, one, 4 * one) == Stratum.of(7, np.array([4]))
