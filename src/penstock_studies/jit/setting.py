"""Tables II and III of the paper: plans, parameters and what its figures vary."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

import penstock
from penstock_studies.jit.clique import Arrival, arrivals, clique_query

Shape = Literal["bushy", "left-deep"]

PLANS: dict[Shape, dict[int, str]] = {
    "bushy": {
        4: "((A B)(C D))",
        5: "(((A B)(C D)) E)",
        6: "(((A B)(C D))(E F))",
        7: "(((A B)(C D))((E F) G))",
        8: "(((A B)(C D))((E F)(G H)))",
    },
    "left-deep": {
        3: "((A B) C)",
        4: "(((A B) C) D)",
        5: "((((A B) C) D) E)",
        6: "(((((A B) C) D) E) F)",
    },
}


@dataclass(frozen=True)
class Setting:
    """One point of a figure: a clique join and its data."""

    shape: Shape
    streams: int
    window: float
    """Minutes."""
    rate: float
    """Tuples per second, of each stream."""
    largest: int
    """The largest value, d_max."""

    @property
    def plan(self) -> str:
        return PLANS[self.shape][self.streams]

    @cached_property
    def query(self) -> penstock.JoinGraph:
        return clique_query(self.streams, round(60_000 * self.window))

    @property
    def largest_of(self) -> dict[str, int]:
        """Left-deep plans have a selective stream: D, or C if there are three."""
        aliases = self.query.aliases
        largest = dict.fromkeys(aliases, self.largest)
        if self.shape == "left-deep":
            largest[aliases[min(3, self.streams - 1)]] *= 100
        return largest

    def tuples(self, hours: float, seed: int) -> list[Arrival]:
        return arrivals(self.query, self.rate, 3600 * hours, self.largest_of, seed)

    def statistics(self, pushes: float) -> penstock.Statistics:
        """What the data is drawn from, for a planner; ``pushes`` are per second."""
        largest = self.largest_of
        return penstock.Statistics(
            rates=dict.fromkeys(largest, self.rate),
            selectivities={
                (a, b): 1 / max(largest[a], largest[b]) for a, b in combinations(largest, 2)
            },
            pushes=pushes,
        )

    def __str__(self) -> str:
        return (
            f"{self.shape} {self.plan}, w = {self.window:g} min, λ = {self.rate:g}/s, "
            f"d_max = {self.largest}"
        )


BUSHY = Setting("bushy", 6, 20, 1, 200)
LEFT_DEEP = Setting("left-deep", 4, 10, 1, 50)

FIGURES: dict[int, tuple[Setting, str, tuple[float, ...]]] = {
    10: (BUSHY, "window", (10, 15, 20, 25, 30)),
    11: (BUSHY, "rate", (0.4, 0.7, 1, 1.3, 1.6)),
    12: (BUSHY, "streams", (4, 5, 6, 7, 8)),
    13: (BUSHY, "largest", (100, 150, 200, 250, 300)),
    14: (LEFT_DEEP, "window", (5, 7.5, 10, 12.5, 15)),
    15: (LEFT_DEEP, "rate", (0.4, 0.7, 1, 1.3, 1.6)),
    16: (LEFT_DEEP, "streams", (3, 4, 5, 6)),
    17: (LEFT_DEEP, "largest", (30, 40, 50, 60, 70)),
}
"""The defaults, the parameter that is varied, and its values."""


def points_of(figure: int) -> list[Setting]:
    """The settings of a figure."""
    default, parameter, values = FIGURES[figure]
    kinds: dict[str, Any] = {"streams": int, "largest": int}
    convert = kinds.get(parameter, float)
    return [replace(default, **{parameter: convert(value)}) for value in values]
