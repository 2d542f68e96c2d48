"""The estimate of missed results against the truth: no bias, and an error that is true."""

from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.overload.missed_results import Missed, Stratum, missed_in_strata
from penstock.overload.probe_choice import choose_random, choose_ranked

ROUNDS = 600


def check(estimates: list[Missed], truths: list[float], *, safe: bool = False) -> None:
    """Mean of the estimates, their spread and the share of the truth within two errors."""
    differences = np.array([e.results - t for e, t in zip(estimates, truths, strict=True)])
    errors = np.array([e.error for e in estimates])
    spread = differences.std()
    assert abs(differences.mean()) < 4 * spread / math.sqrt(len(estimates))
    told = math.sqrt(float((errors**2).mean()))
    assert told > 0.9 * spread
    if not safe:
        assert told < 1.1 * spread
    within = np.abs(differences) <= 2 * errors
    assert within.mean() > 0.9


@pytest.mark.parametrize("order", ["random", "newest"])
def test_one_half_way_join(order: str) -> None:
    """Skewed keys in batches; older tuples find less, which an audit must notice."""
    chance = np.random.default_rng(5)
    estimates, truths = [], []
    batches = []
    for _ in range(8):
        size = int(chance.integers(100, 300))
        births = chance.integers(0, 1000, size)
        batches.append((births, chance.poisson(chance.exponential(3.0, size) * births / 500)))
    for _ in range(ROUNDS):
        strata, truth = [], 0.0
        for births, matches in batches:
            allowed = len(births) // 3
            choice = (
                choose_random(len(births), allowed, chance)
                if order == "random"
                else choose_ranked(births, allowed, chance, audit=0.3)
            )
            strata.append(Stratum.of(choice.others, matches[choice.sampled]))
            truth += float(matches.sum() - matches[choice.positions].sum())
        estimates.append(missed_in_strata(strata))
        truths.append(truth)
    check(estimates, truths)


def test_results_behind_a_match_count_with_their_worth() -> None:
    matches = np.array([1, 3])
    one, ten = (missed_in_strata([Stratum.of(4, matches, worth)]) for worth in (1.0, 10.0))
    assert one.results == pytest.approx(2 * 2.0)
    assert ten.results == pytest.approx(10 * one.results)
    assert ten.error == pytest.approx(10 * one.error)


def test_strata_that_say_little() -> None:
    assert missed_in_strata([]) == Missed(0, 0)
    assert missed_in_strata([Stratum.of(2, np.array([5, 5]))]) == Missed(0, 0)
    assert missed_in_strata([Stratum.of(2, np.array([], np.int64))]).error == math.inf
    alone = missed_in_strata([Stratum.of(3, np.array([4]))])
    assert alone.results == pytest.approx(8)
    assert alone.error > 4
    assert str(Missed(1234.5, 56.7)) == "1,234 ± 57"
