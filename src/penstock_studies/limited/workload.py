"""A join that a limited process runs: rates, values, a window, and how it is cut into pushes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import penstock
from penstock.planning.problem import Problem
from penstock.planning.statistics import Statistics
from penstock.planning.unit_costs import UnitCosts
from penstock_studies.random_graph import Pair, chain_query
from penstock_studies.stream_data import Batches, uniform_batches


@dataclass(frozen=True)
class Workload:
    """Streams with uniform columns, one for each pair that is joined."""

    rates: Mapping[str, float]
    """Rows per second."""
    values: Mapping[Pair, int]
    """Different values of the column of a pair."""
    window: float
    """Seconds."""
    seconds: int
    """Event time of a run."""
    slices: int
    """Pushes per second of event time."""
    join: str = "hash"

    @property
    def query(self) -> penstock.JoinGraph:
        return chain_query(tuple(self.rates), tuple(self.values), self.window)

    @property
    def rows_per_push(self) -> float:
        """Rows of all streams."""
        return sum(self.rates.values()) / self.slices

    def problem(self, costs: UnitCosts) -> Problem:
        """What planners see of it."""
        shares = {pair: 1 / count for pair, count in self.values.items()}
        statistics = Statistics(self.rates, shares, pushes=self.slices)
        return Problem(self.query, statistics, costs, join=self.join)

    def batches(self, seed: int) -> list[Batches]:
        """All pushes."""
        return list(uniform_batches(self.rates, self.values, self.seconds, seed, self.slices))

    def to_json(self) -> dict[str, Any]:
        pairs = [[*pair, count] for pair, count in self.values.items()]
        return {**vars(self), "rates": dict(self.rates), "values": pairs}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Workload:
        return cls(**{**given, "values": {(a, b): count for a, b, count in given["values"]}})
