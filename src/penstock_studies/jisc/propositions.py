"""Propositions 1 to 3: how many states are complete after two streams have changed places.

A left-deep plan has n joins, at positions 1 to n from the bottom up; the stream that joins at
position i and the one at j > i change places with a probability in proportion to 1 / (j - i). The
states at positions i to j - 1 then hold another set of streams, so C = n - (j - i) are complete.
With H the n-th harmonic number, the normalising factor is 1 / (n H - n), and

- Proposition 1: E[C] = (2 n H - 3 n + 1) / (2 H - 2) and
  Var[C] = (2 n² H - 5 n² + 6 n - 2 H - 1) / (12 (H - 1)²);
- Proposition 2: E[C] = n - n / (2 ln n) + O(n / ln² n) and Var[C] = n² / (6 ln n) + O(n² / ln² n);
- Proposition 3: C / n tends to 1 in probability.

(The error of the mean is printed as O(1 / ln n) in the paper; n / (2 (H - 1)) against
n / (2 ln n) already differ by n / ln² n, up to a constant.) The simulation does not use
n - (j - i): it changes the places in a plan and counts states by Definition 1.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from penstock_studies.jisc.setting import complete_states

Row = dict[str, Any]


def harmonic(n: int) -> float:
    """1 + 1/2 + … + 1/n."""
    return float(np.sum(1.0 / np.arange(1, n + 1)))


def expected_complete(n: int) -> float:
    """Proposition 1, the mean."""
    h = harmonic(n)
    return (2 * n * h - 3 * n + 1) / (2 * h - 2)


def variance_complete(n: int) -> float:
    """Proposition 1, the variance."""
    h = harmonic(n)
    return (2 * n**2 * h - 5 * n**2 + 6 * n - 2 * h - 1) / (12 * (h - 1) ** 2)


def simulated_complete(n: int, draws: int, random: np.random.Generator) -> np.ndarray:
    """Complete states after ``draws`` random exchanges, each in a plan of n joins."""
    distances = np.arange(1, n)
    weights = (n - distances) / distances  # n - d pairs are d apart.
    drawn = random.choice(distances, size=draws, p=weights / weights.sum())
    # Position i joins stream i; position 1 joins streams 0 and 1.
    plan = tuple(str(stream) for stream in range(n + 1))
    counts = np.empty(draws, np.int64)
    for number, distance in enumerate(drawn.tolist()):
        i = int(random.integers(1, n - distance + 1))
        j = i + distance
        changed = list(plan)
        changed[i], changed[j] = changed[j], changed[i]
        counts[number] = complete_states(plan, changed)
    return counts


def propositions_for(n: int, draws: int, seed: int) -> Row:
    """Analysis beside simulation for plans of ``n`` joins."""
    found = simulated_complete(n, draws, np.random.default_rng(seed))
    mean, variance = expected_complete(n), variance_complete(n)
    return {
        "joins": n,
        "expected": mean,
        "simulated": float(found.mean()),
        "error": float(np.sqrt(variance / len(found))),
        "variance": variance,
        "simulated variance": float(found.var(ddof=1)),
        "n - n / (2 ln n)": n - n / (2 * log(n)),
        "n² / (6 ln n)": n**2 / (6 * log(n)),
        "expected share": mean / n,
        "within 10 % of n": float((found >= 0.9 * n).mean()),
    }
