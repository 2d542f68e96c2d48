"""CPU and memory that a run gets, fixed before anything of it has run.

The cost model, with unit costs calibrated on this machine, says what the plans of a workload need.
A bound that is to bind is drawn, once and by the seed, uniform in its logarithm from what the
cheapest needs to what the dearest needs, widened by :data:`WIDENED` on either side, so that it can
fall where no plan fits and where all do. A bound that is not to bind is :data:`TIMES_THE_NEED`
times what the dearest needs. Draws of one workload are stratified: draw i of n comes from the i-th
part of the range.

The model can be wrong, and then a plan that it calls qualified does not keep up, or one that it
refuses does. Runs decide that, not the bounds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from penstock.planning.block import Cost

WIDENED = 1.2
"""Times the dearest need, and one over it times the cheapest: the ends of a range."""
TIMES_THE_NEED = 1.5
"""Times the dearest need that a plan has of what is not short."""
RESERVE = 12 << 20
"""Bytes that a process may have beside its state: batches, results of a push, Python's objects."""
GROWTH = 1.5
"""Times its state that a process may have: while a ring doubles, its old half is there too."""


@dataclass(frozen=True)
class Bounds:
    """What a process gets."""

    cpu: float
    """CPU seconds for each second of event time."""
    memory: int
    """Bytes of windows and states, as in ``Limits``."""

    @property
    def room(self) -> int:
        """Bytes of data that the process may have more than at its start (``RLIMIT_DATA``)."""
        return int(GROWTH * self.memory) + RESERVE

    def admits(self, cost: Cost) -> bool:
        """Whether the model calls a plan of this cost qualified."""
        return cost.cpu <= self.cpu and cost.memory <= self.memory


def draw(
    chance: random.Random, costs: Mapping[str, Cost], short: Collection[str], part: int, of: int
) -> Bounds:
    """Draw ``part`` of ``of``; ``short`` has ``"cpu"``, ``"memory"``, both or none."""
    places = {"cpu": part, "memory": (part + of // 2) % of}
    drawn = {}
    for resource, place in places.items():
        needs = [getattr(cost, resource) for cost in costs.values()]
        share = (place + chance.random()) / of
        low, high = math.log(min(needs) / WIDENED), math.log(max(needs) * WIDENED)
        within = math.exp(low + share * (high - low))
        drawn[resource] = within if resource in short else TIMES_THE_NEED * max(needs)
    return Bounds(drawn["cpu"], max(1, int(drawn["memory"])))
