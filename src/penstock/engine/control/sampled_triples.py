"""How many combinations of three streams match, by joining samples: correlation, before it is run.

Selectivities of pairs multiply up only where they are independent. A row of A that has partners in
B may be just the one that has none in C, and a plan that visits B and C first then ends there. Step
counts (:mod:`penstock.engine.control.step_watch`) tell this of the sets that the running plan
visits; which plan to change to depends on those that it does not.

So for a stream X that equalities link to Y and to Z, which nothing links to each other, each recent
row x of X has b(x) partners in a sample of Y and c(x) in one of Z: Σ b(x)·c(x) combinations, where
independence would give Σb·Σc / n. The ratio is the factor that pairs do not explain. Both samples
are drawn apart, so it is no more biased than they are. It is told only if it is far from 1, both as
a factor and against the chance that a sample leaves: a factor for a set makes planning dearer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from penstock.engine.control.stream_sample import StreamSample
from penstock.engine.state.leaf_window import LeafWindow
from penstock.plan.stream_set import StreamSet
from penstock.values.wiring import Linking, Wiring

NEWS = 1.5
"""Times more or fewer combinations than independence gives that are worth telling."""
DEVIATIONS = 3.0
"""Standard deviations by which a factor must differ from 1."""
COMBINATIONS_TO_BELIEVE = 8.0
"""Combinations of the samples that independence must give, if a factor is to be believed."""


def correlated_triples(
    samples: Mapping[str, StreamSample],
    wiring: Wiring,
    selectivities: Mapping[StreamSet, float],
    leaves: Mapping[str, LeafWindow],
) -> Iterator[tuple[StreamSet, float]]:
    """Sets of three streams with the share of their combinations that match, where the
    ``selectivities`` of pairs do not tell it."""
    for middle, sample in samples.items():
        partners = {}
        for other in samples:
            linking = wiring.between(StreamSet.of(middle), StreamSet.of(other))
            if other != middle and _is_equality(linking):
                partners[other] = sample.partners_in(samples[other], linking.keys, leaves)
        for one, two in combinations(partners, 2):
            if not _is_linked(wiring.between(StreamSet.of(one), StreamSet.of(two))):
                factor = dependence(partners[one], partners[two])
                pairs = (StreamSet.of(middle, one), StreamSet.of(middle, two))
                if factor is not None and all(pair in selectivities for pair in pairs):
                    share = selectivities[pairs[0]] * selectivities[pairs[1]] * factor
                    yield StreamSet.of(middle, one, two), min(1.0, share)


def dependence(one: NDArray[np.int64], two: NDArray[np.int64]) -> float | None:
    """Σ b·c over what independence gives; None if there is too little to tell, or no news."""
    count = len(one)
    expected = float(one.sum()) * float(two.sum()) / count if count else 0.0
    if expected < COMBINATIONS_TO_BELIEVE:
        return None
    factor = max(0.5, float(np.dot(one.astype(float), two.astype(float)))) / expected
    chance = float(one.std() * two.std()) * math.sqrt(count) / expected
    is_news = not 1 / NEWS < factor < NEWS and abs(factor - 1) > DEVIATIONS * chance
    return factor if is_news else None


def _is_equality(linking: Linking) -> bool:
    return bool(linking.keys) and not linking.conditions and not linking.residuals


def _is_linked(linking: Linking) -> bool:
    return bool(linking.keys or linking.conditions or linking.residuals)
