"""New rows of a window against lists: where they go, when they die, and around the ring's end."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.kernels import window
from penstock.kernels.lifespan import FOREVER

SIZE = 16
"""Rows of the ring."""


@pytest.mark.parametrize("span", [0, 7, -1])
@pytest.mark.parametrize("seed", range(10))
def test_rows_go_into_the_ring_one_after_the_other(seed: int, span: int) -> None:
    random = np.random.default_rng(seed)
    births, deaths = np.zeros(SIZE, np.int64), np.zeros(SIZE, np.int64)
    wide, narrow = np.zeros(SIZE, np.int64), np.zeros(SIZE, np.int32)
    code = np.zeros(window.FIRST + 2 * window.COLUMN, np.int64)
    code[window.MASK], code[window.SPAN], code[window.COLUMNS] = SIZE - 1, span, 2
    code[window.BIRTHS], code[window.DEATHS] = births.ctypes.data, deaths.ctypes.data
    code[window.FIRST :] = wide.ctypes.data, 8, narrow.ctypes.data, 4
    expected: dict[int, tuple[int, int, int, int]] = {}
    start, clock = int(random.integers(0, 100)), 0
    for _ in range(30):
        count, ticks = int(random.integers(0, SIZE + 1)), int(random.choice([1, 1000]))
        times = clock + np.sort(random.integers(0, 50, count))
        numbers = random.integers(-(1 << 60), 1 << 60, count)
        small = random.integers(-100, 100, count).astype(np.int32)
        sources = np.array([numbers.ctypes.data, small.ctypes.data], np.int64)
        space = np.empty(count, np.int64)
        is_wide = window.append(
            code, start, max(0, start - SIZE), times.ctypes.data, ticks, count, sources, space, 0
        )
        assert is_wide == 0  # There is no index.
        for i, time in enumerate(times.tolist()):
            death = time * ticks + span if span >= 0 else int(FOREVER)
            row = time * ticks, death, int(numbers[i]), int(small[i])
            expected[(start + i) % SIZE] = row
        start, clock = start + count, clock + 50
        for slot, row in expected.items():
            assert (births[slot], deaths[slot], wide[slot], narrow[slot]) == row
