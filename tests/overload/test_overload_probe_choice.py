"""Which tuples probe: newest, random, by time correlation; each against its slow twin."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import OptionError
from penstock.overload.probe_choice import choose_random, choose_ranked
from penstock.overload.time_correlation import LagProfile


@settings(deadline=None)
@given(
    births=st.lists(st.integers(0, 20), max_size=40),
    allowed=st.integers(0, 45),
    audit=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    seed=st.integers(0, 5),
)
def test_ranked(births: list[int], allowed: int, audit: float, seed: int) -> None:
    found = choose_ranked(np.array(births, np.int64), allowed, np.random.default_rng(seed), audit)
    best = sorted(range(len(births)), key=lambda i: (births[i], i))
    chosen = list(found.positions)
    assert len(chosen) == len(set(chosen)) == min(allowed, len(births))
    assert chosen == sorted(chosen)
    assert len(found.sure) + found.others == len(births)
    sure = len(found.sure)
    assert list(found.sure) == sorted(best[len(best) - sure :])
    assert not set(found.sure) & set(found.sampled)
    if allowed < len(births):
        wanted = min(allowed, max(2, int(np.ceil(audit * allowed)))) if audit else 0
        assert len(found.sampled) == wanted
    again = choose_ranked(np.array(births, np.int64), allowed, np.random.default_rng(seed), audit)
    assert list(again.positions) == chosen


def test_random_is_fair_and_follows_its_seed() -> None:
    chance = np.random.default_rng(7)
    hits = np.zeros(20)
    for _ in range(4000):
        found = choose_random(20, 5, chance)
        assert found.probability == 0.25
        hits[found.positions] += 1
    assert np.abs(hits / 4000 - 0.25).max() < 0.03
    one, other = (choose_random(1000, 10, np.random.default_rng(s)).positions for s in (1, 2))
    assert list(one) != list(other)
    assert list(choose_random(3, 5, chance).positions) == [0, 1, 2]
    assert list(choose_random(3, -1, chance).positions) == []


@settings(deadline=None)
@given(
    births=st.lists(st.integers(0, 60), min_size=1, max_size=15),
    stored=st.lists(st.integers(0, 60), max_size=15),
    matching=st.lists(st.booleans(), min_size=225, max_size=225),
)
def test_a_lag_profile_counts_pairs_and_matches(
    births: list[int], stored: list[int], matching: list[bool]
) -> None:
    stored = sorted(stored)
    edges = [-10, 0, 3, 25]
    lags = [
        b - s
        for number, (b, s) in enumerate((b, s) for b in births for s in stored)
        if matching[number]
    ]
    profile = LagProfile.empty(np.array(edges)).observe(
        np.array(births), np.array(stored, np.int64), np.array(lags, np.int64)
    )
    for position, (low, high) in enumerate(itertools.pairwise(edges)):
        assert profile.pairs[position] == sum(low <= b - s < high for b in births for s in stored)
        assert profile.matches[position] == sum(low <= lag < high for lag in lags)
    expected = profile.expected_matches(np.array(births), np.array(stored, np.int64))
    for birth, value in zip(births, expected, strict=True):
        total = 0.0
        for share, low, high in zip(profile.shares, edges[:-1], edges[1:], strict=True):
            total += share * sum(low <= birth - s < high for s in stored)
        assert value == pytest.approx(total)


def test_correlated_probes_find_more_than_random_ones() -> None:
    """B answers A after 40 to 60 ticks; partners of B arrive in bursts."""
    chance = np.random.default_rng(3)
    stored = np.sort(np.concatenate([chance.integers(s, s + 50, 200) for s in (0, 500, 1000)]))
    births = np.sort(chance.integers(0, 1200, 2000))
    lags = births[:, None] - stored[None, :]
    truth = ((lags >= 40) & (lags < 60)) & (chance.random(lags.shape) < 0.3)
    profile = LagProfile.empty(np.arange(0, 201, 10))
    half = len(births) // 2
    seen, later = np.sort(chance.choice(len(births), half, replace=False)), np.arange(len(births))
    later = np.setdiff1d(later, seen)
    profile = profile.observe(births[seen], stored, lags[seen][truth[seen]])
    found = truth.sum(axis=1)[later]
    expected = profile.expected_matches(births[later], stored)
    ranked = choose_ranked(expected, 150, chance).positions
    anyone = choose_random(len(later), 150, chance).positions
    assert found[ranked].sum() > 3 * found[anyone].sum()


def test_what_is_refused() -> None:
    with pytest.raises(OptionError, match="audit is 2"):
        choose_ranked(np.arange(3), 1, np.random.default_rng(1), 2)
    with pytest.raises(OptionError, match="must ascend"):
        LagProfile.empty(np.array([3, 3]))
