"""Dividing cells among grids against a twin that tries every division."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from penstock.cells.division import Uncut, divide
from penstock.cells.shares import best_shares


def least_full(grids: list[Uncut], cells: int) -> float:
    """The load of the fullest cell in the best of all divisions."""
    sizes = range(1, cells + 1)
    loads = [
        [grid.load(best_shares(grid.owners, grid.rates, size)) for size in sizes] for grid in grids
    ]
    return min(
        max(loads[g][size - 1] for g, size in enumerate(chosen))
        for chosen in itertools.product(sizes, repeat=len(grids))
        if sum(chosen) <= cells
    )


@pytest.mark.parametrize("block", range(4))
def test_no_division_is_less_full(block: int) -> None:
    chance = random.Random(block)
    for _ in range(20):
        grids = []
        for _ in range(chance.randint(1, 3)):
            owners = [
                frozenset(chance.sample("ABC", chance.randint(1, 3)))
                for _ in range(chance.randint(1, 3))
            ]
            rates = {each: chance.choice([0.0, 1.0, 5.0, 40.0]) for each in "ABC"}
            grids.append(Uncut(owners, rates))
        cells = chance.randint(len(grids), 12)
        shares = divide(grids, cells)
        assert sum(math.prod(each) for each in shares) <= cells
        fullest = max(grid.load(each) for grid, each in zip(grids, shares, strict=True))
        assert fullest == pytest.approx(least_full(grids, cells))


def test_each_grid_has_a_cell_even_if_there_are_none_left() -> None:
    grid = Uncut([frozenset("A")], {"A": 1.0})
    assert divide([grid] * 3, 2) == [(1,), (1,), (1,)]


def test_what_cannot_be_cut_leaves_cells_to_others() -> None:
    stuck = Uncut([], {"A": 100.0})
    assert divide([stuck, Uncut([frozenset("A")], {"A": 1.0})], 9) == [(), (8,)]
