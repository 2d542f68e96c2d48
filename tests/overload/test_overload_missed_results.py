"""The estimate of missed results against the truth: no bias, and an error that is true."""

from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.overload.missed_results import Missed, Stratum, missed_by_weight, missed_in_strata
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


def test_a_three_way_join_with_thin_states() -> None:
    """((A B) C): an ab exists if its later tuple probed, an abc if its last one did as well."""
    chance = np.random.default_rng(6)
    size = 60
    times = chance.permutation(3 * size).reshape(3, size)
    keys = chance.integers(0, 6, (3, size))
    a, b = np.nonzero(keys[0][:, None] == keys[1][None, :])
    pair_key, pair_time = keys[0][a], np.maximum(times[0][a], times[1][b])
    pair_draw = np.where(times[0][a] > times[1][b], a, size + b)
    pair, c = np.nonzero(pair_key[:, None] == keys[2][None, :])
    last_is_c = times[2][c] > pair_time[pair]
    # Draws: one for each a, b and c, and one for each ab that probes C.
    draws = np.stack([pair_draw[pair], np.where(last_is_c, 2 * size + c, 3 * size + pair)], axis=1)
    probabilities = chance.uniform(0.3, 1.0, 3 * size + len(a))
    estimates, truths = [], []
    for _ in range(ROUNDS):
        probed = chance.random(len(probabilities)) < probabilities
        made = draws[probed[draws].all(axis=1)]
        estimates.append(missed_by_weight(made, probabilities))
        truths.append(float(len(draws) - len(made)))
    check(estimates, truths, safe=True)


def test_sure_probes_weigh_nothing() -> None:
    draws = np.array([[-1, 0], [-1, -1]])
    found = missed_by_weight(draws, np.array([0.25]))
    assert found.results == pytest.approx(3)
    assert found.error == pytest.approx(math.sqrt(0.75 * 16))
    assert missed_by_weight(np.empty((0, 2), np.int64), np.array([0.5])) == Missed(0, 0)
