"""A direction of a join: all that happens at this join to the new tuples of one input.

Join direction adaptation chooses between the directions of a join. In a binary join a direction is
one half-way join. In an mjoin it is the whole probe order of an input, one half-way join after the
other: what is made on the way is stored nowhere, so tuples that stop half way are lost, and a
sensible allowance for the first step fixes those of the others (:attr:`made` after each step).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul

from penstock.overload.half_way_join import HalfWayJoin
from penstock.plan.stream_set import StreamSet


@dataclass(frozen=True, slots=True)
class Direction:
    """The half-way joins of input ``origin``, whose results are over ``result``.

    ``productivities`` are the matches of one probe (equation 4), ``made`` the tuples that one
    tuple of the origin has become after each step, ``cost`` the probes that it takes.
    """

    origin: StreamSet
    result: StreamSet
    steps: tuple[HalfWayJoin, ...]
    productivities: tuple[float, ...]
    made: tuple[float, ...] = field(init=False)
    cost: float = field(init=False)

    def __post_init__(self) -> None:
        made = tuple(accumulate(self.productivities, mul))
        object.__setattr__(self, "made", made)
        object.__setattr__(self, "cost", 1.0 + sum(made[:-1]))

    @property
    def output(self) -> float:
        """Results of the join for one tuple of the origin."""
        return self.made[-1]

    @property
    def productivity(self) -> float:
        """Results of the join per probe: ρh for a binary join."""
        return self.output / self.cost
