"""What results stand for when rows were left out, with shares that change from push to push."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from penstock.engine.overload.row_weights import RowWeights
from penstock.engine.state.composites import Composites

ROWS, WINDOW, PUSHES, KEYS = 60, 4, 12, 25


def run(seed: int, resume: bool = False) -> tuple[float, float, float]:
    """Results of all rows, those estimated from the rows that were taken in, and the error."""
    chance = np.random.default_rng(seed)
    weights = RowWeights()
    leaves: Any = {s: SimpleNamespace(rows=SimpleNamespace(head=0, tail=0)) for s in "AB"}
    keys: dict[str, list[np.ndarray]] = {"A": [], "B": []}
    kept: dict[str, list[np.ndarray]] = {"A": [], "B": []}
    true = told = error = 0.0
    for push in range(PUSHES):
        coming = {}
        for stream, leaf in leaves.items():
            share = chance.choice([1.0, 0.7, 0.3])
            new = chance.zipf(1.6, ROWS) % KEYS
            is_in = chance.random(ROWS) < share
            is_in[0] = True
            keys[stream].append(new)
            kept[stream].append(is_in)
            if not is_in.all():
                coming[stream] = ROWS / float(is_in.sum())
            leaf.rows.tail = sum(int(each.sum()) for each in kept[stream][: max(0, push - WINDOW)])
        weights.begin(leaves, coming)
        for stream, leaf in leaves.items():
            leaf.rows.head += int(kept[stream][-1].sum())
        pairs = {stream: _alive(keys[stream], kept[stream]) for stream in "AB"}
        match = pairs["A"][0][:, None] == pairs["B"][0][None, :]
        newest = np.maximum(pairs["A"][2][:, None], pairs["B"][2][None, :]) == push
        match &= newest
        true += match.sum()
        a, b = np.nonzero(match & (pairs["A"][1] >= 0)[:, None] & (pairs["B"][1] >= 0)[None, :])
        results = Composites.undated({"A": pairs["A"][1][a], "B": pairs["B"][1][b]})
        weight = weights.weigh(results, chance)
        told += len(a) * weight.mean
        error += len(a) * weight.mean * weight.blur + len(a) * math.sqrt(weight.variance)
        if resume and push == PUSHES // 2:
            saved = weights.averages(leaves)
            weights = RowWeights()
            weights.resume(saved)
    return true, told, error


def _alive(keys: list[np.ndarray], kept: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Of all rows of a window: key, number in the ring or -1, and push."""
    numbers = np.cumsum(np.concatenate(kept)) - 1
    ids = np.where(np.concatenate(kept), numbers, -1)
    of_push = np.repeat(np.arange(len(keys)), ROWS)
    alive = of_push >= len(keys) - 1 - WINDOW
    return np.concatenate(keys)[alive], ids[alive], of_push[alive]


@pytest.mark.parametrize("resume", [False, True])
def test_estimates_are_right_on_average_and_errors_are_honest(resume: bool) -> None:
    runs = np.array([run(seed, resume) for seed in range(60)])
    ratios = runs[:, 1] / runs[:, 0]
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / math.sqrt(len(runs)) + 0.01 * resume
    off = (runs[:, 1] - runs[:, 0]) / runs[:, 2]
    assert 0.2 < math.sqrt((off**2).mean()) < 1.2


def test_nothing_is_kept_about_windows_that_have_all() -> None:
    weights = RowWeights()
    leaves: Any = {"A": SimpleNamespace(rows=SimpleNamespace(head=0, tail=0))}
    weights.begin(leaves, {"A": 2.0})
    leaves["A"].rows.head = 10
    weights.begin(leaves, {})
    thin = [weights.is_thin]
    assert weights.share("A", leaves) == 0.5
    leaves["A"].rows.head, leaves["A"].rows.tail = 30, 5
    weights.begin(leaves, {})
    assert weights.share("A", leaves) == pytest.approx(25 / 30)
    leaves["A"].rows.tail = 12
    weights.begin(leaves, {})
    assert [*thin, weights.is_thin] == [True, False]
    assert weights.averages(leaves) == {}
