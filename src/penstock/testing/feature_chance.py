"""Coins for generators: thrown with a probability, and only for features that are allowed.

A coin shows heads for *large* random numbers. Hypothesis shrinks random numbers towards zero, so a
shrunk case has few features.
"""

from __future__ import annotations

import random

from penstock.testing.knobs import Knobs


class FeatureChance:
    """Base of the generators: ``used`` collects the features that were put in."""

    def __init__(self, chance: random.Random, knobs: Knobs) -> None:
        self.chance = chance
        self.knobs = knobs
        self.used: set[str] = set()

    def flip(self, probability: float) -> bool:
        """True with this probability."""
        return self.chance.random() >= 1 - probability

    def may(self, feature: str, probability: float) -> bool:
        """Whether to use ``feature`` now."""
        if feature not in self.knobs.features or not self.flip(probability):
            return False
        self.used.add(feature)
        return True
