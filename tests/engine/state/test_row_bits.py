"""Bits of rows against a list of flags."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.engine.state.row_bits import RowBits


@pytest.mark.parametrize("first", [0, 5, 10**12 + 3])
def test_bits_are_flags(first: int) -> None:
    chance = np.random.default_rng(first)
    flags = chance.random(37) < 0.4
    bits, expected = RowBits(first, flags), dict(enumerate(flags.tolist(), first))
    for turn in range(60):
        some = chance.choice(list(expected), 5)
        start, stop = sorted(chance.integers(first, bits.stop + 1, 2).tolist())
        match turn % 6:
            case 0:
                opened = [row for row in dict.fromkeys(some.tolist()) if not expected[row]]
                assert bits.close(some).tolist() == opened
                expected.update(dict.fromkeys(opened, True))
            case 1:
                bits.clear(some)
                expected.update(dict.fromkeys(some.tolist(), False))
            case 2:
                bits.put(start, stop, turn % 4 == 0)
                expected.update(dict.fromkeys(range(start, stop), turn % 4 == 0))
            case 3:
                bits.extend(bits.stop + 11)
                expected.update(dict.fromkeys(range(bits.stop - 11, bits.stop), True))
            case 4:
                kept = np.sort(chance.choice(list(expected), len(expected) // 2, replace=False))
                bits = bits.kept(kept, first)
                values = [expected[row] for row in kept.tolist()]
                expected = dict(enumerate(values, first))
        clear = [row for row, flag in expected.items() if not flag]
        assert bits.stop == first + len(expected)
        assert bits.clear_between(first - 9, bits.stop + 9).tolist() == clear
        some = chance.choice(list(expected), 5)
        assert bits.are_clear(some).tolist() == [not expected[row] for row in some.tolist()]
        start, stop = sorted(chance.integers(first, bits.stop + 1, 2).tolist())
        between = [row for row in clear if start <= row < stop]
        assert bits.clear_between(start, stop).tolist() == between


@pytest.mark.parametrize("size", [0, 1, 8, 100])
def test_none_is_set_at_first(size: int) -> None:
    bits = RowBits.zeros(7, size)
    assert bits.clear_between(0, 1_000).tolist() == list(range(7, 7 + size))
