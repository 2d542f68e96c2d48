"""An input path: the half-way joins from one stream to the output of the query.

Definition 3 and equations 5 to 7 of JAQPOT. One probing tuple of the stream becomes φ₁ tuples after
the first half-way join, φ₂ after the second, and so on; as every intermediate tuple probes (the
producer-consumer match), it costs 1 + φ₁ + … + φ₍ₙ₋₁₎ probes and gives φₙ results. The quotient is
the path productivity.

Binary trees: one half-way join for each join on the way. Mjoins: the probe order of the input, so
k-1 half-way joins in a row; jtrees mix both. The equations need no more than the chain of
productivities, and do not ask which of the intermediate tuples are stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul

from penstock.overload.direction import Direction
from penstock.overload.half_way_join import HalfWayJoin
from penstock.plan.stream_set import StreamSet


@dataclass(frozen=True, slots=True)
class InputPath:
    """The path of ``stream``, of which ``rate`` tuples per second arrive.

    ``phi[j]`` are the tuples after j + 1 half-way joins per probing tuple (equation 5).
    """

    stream: str
    rate: float
    directions: tuple[Direction, ...]
    phi: tuple[float, ...] = field(init=False)
    cost: float = field(init=False)

    def __post_init__(self) -> None:
        productivities = [p for direction in self.directions for p in direction.productivities]
        phi = tuple(accumulate(productivities, mul))
        object.__setattr__(self, "phi", phi)
        object.__setattr__(self, "cost", 1.0 + sum(phi[:-1]))

    @property
    def half_way_joins(self) -> tuple[HalfWayJoin, ...]:
        return tuple(step for direction in self.directions for step in direction.steps)

    @property
    def output(self) -> float:
        """Results of the query for one probing tuple of the stream."""
        return self.phi[-1]

    @property
    def productivity(self) -> float:
        """ρp, results of the query per probe anywhere on the path (equation 7)."""
        return self.output / self.cost

    @property
    def resources(self) -> float:
        """Probes per second if every tuple of the stream probes."""
        return self.rate * self.cost

    @property
    def throughput(self) -> float:
        """Results per second if every tuple of the stream probes."""
        return self.rate * self.output

    def division(self, resources: float) -> tuple[float, ...]:
        """``resources`` split over the half-way joins so that nothing is wasted (equation 6)."""
        first = resources / self.cost
        return (first, *(first * phi for phi in self.phi[:-1]))

    @property
    def refreshed(self) -> tuple[tuple[StreamSet, float], ...]:
        """The stored joins that the path feeds, with the tuples inserted per probing tuple."""
        fed, made = [], 1.0
        for direction in self.directions[:-1]:
            made *= direction.output
            fed.append((direction.result, made))
        return tuple(fed)
