"""Pairs found in sorted rows are those that trying all would find, few beside them, each once."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.join import ordered_pairs as module
from penstock.engine.join.ordered_pairs import ordered_pairs, pass_all
from penstock.kernels import probe

SIGNS = {
    probe.EQUAL: operator.eq,
    probe.NOT_EQUAL: operator.ne,
    probe.LESS: operator.lt,
    probe.LESS_EQUAL: operator.le,
    probe.GREATER: operator.gt,
    probe.GREATER_EQUAL: operator.ge,
}
CODES = st.lists(st.sampled_from(list(SIGNS)), min_size=1, max_size=3)
EXTREME = (-(2**63), 2**63 - 1)


@settings(max_examples=200, deadline=None)
@given(CODES, st.integers(0, 12), st.integers(0, 12), st.integers(0, 2**32 - 1), st.booleans())
def test_nothing_is_left_out_and_nothing_comes_twice(
    codes: list[int], tuples: int, rows: int, seed: int, one_by_one: bool
) -> None:
    draw = np.random.default_rng(seed)
    lefts = draw.choice([*range(5), *EXTREME], (len(codes), tuples))
    rights = draw.choice([*range(5), *EXTREME], (len(codes), rows))
    operators = np.array(codes, np.int64)
    found = ordered_pairs(operators, lefts, rights)
    if found is None:
        assert set(codes) == {probe.NOT_EQUAL}
        return
    at_once, module._PAIRS_AT_ONCE = module._PAIRS_AT_ONCE, 1 if one_by_one else 1 << 18
    try:
        parts = list(found.parts())
    finally:
        module._PAIRS_AT_ONCE = at_once
    assert sum(len(at) for at, _ in parts) == found.total <= tuples * rows
    pairs = [
        pair
        for at, row in parts
        for pair, keep in zip(
            zip(at.tolist(), row.tolist(), strict=True),
            pass_all(operators, lefts, rights, at, row).tolist(),
            strict=True,
        )
        if keep
    ]
    expected = {
        (i, j)
        for i in range(tuples)
        for j in range(rows)
        if all(SIGNS[code](lefts[c, i], rights[c, j]) for c, code in enumerate(codes))
    }
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == expected


@pytest.mark.parametrize("width", [1, 3])
def test_both_ends_of_a_band_narrow_it(width: int) -> None:
    values = np.random.default_rng(1).permutation(1_000)
    lefts = np.stack([values, values])
    rights = np.stack([np.arange(1_000) - width, np.arange(1_000) + width])
    operators = np.array([probe.GREATER_EQUAL, probe.LESS_EQUAL], np.int64)
    found = ordered_pairs(operators, lefts, rights)
    assert found is not None
    assert found.total <= (2 * width + 1) * 1_000
