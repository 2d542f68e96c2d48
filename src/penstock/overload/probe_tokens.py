"""From probes per second to whole probes per batch, with what is left carried over.

Tokens of a half-way join grow by its allowance for every second of event time that a batch covers,
and each probe takes one. A batch may use the whole tokens that are there; fractions and tokens
that found no tuple stay for the next batch, up to ``burst`` seconds' worth (and always up to one
token, else an allowance below one probe per burst would never be spent). So over any time t with
enough tuples between r·t - 1 and r·(t + burst) + 1 probes are made at rate r, however the stream
is cut into batches.

A value: each step gives new tokens, so a batch that fails leaves the old ones as they were.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.errors import InvariantBroken
from penstock.overload.allocation import Allocation
from penstock.overload.half_way_join import HalfWayJoin
from penstock.overload.workload import check_number


@dataclass(frozen=True, slots=True)
class ProbeTokens:
    """The tokens of each half-way join; one that is not there has none."""

    tokens: tuple[tuple[HalfWayJoin, float], ...] = ()

    def refill(self, allocation: Allocation, seconds: float, burst: float = 1.0) -> ProbeTokens:
        """The tokens when the next batch covers ``seconds``.

        Half-way joins that ``allocation`` does not have, after a change of plan, lose theirs.
        """
        check_number("the time that a batch covers", seconds)
        check_number("the burst", burst)
        before = dict(self.tokens)
        return ProbeTokens(
            tuple(
                (
                    each.half_way_join,
                    min(before.get(each.half_way_join, 0.0), max(1.0, each.probes * burst))
                    + each.probes * seconds,
                )
                for each in allocation.allowances
            )
        )

    @property
    def allowed(self) -> dict[HalfWayJoin, int]:
        """The probes that each half-way join may make now."""
        return {step: math.floor(amount) for step, amount in self.tokens}

    def spend(self, probes: Mapping[HalfWayJoin, int]) -> ProbeTokens:
        """The tokens after ``probes`` were made."""
        for step, allowed in self.allowed.items():
            if probes.get(step, 0) > allowed:
                raise InvariantBroken(f"{step} made {probes[step]} probes, {allowed} were allowed")
        return ProbeTokens(
            tuple((step, amount - probes.get(step, 0)) for step, amount in self.tokens)
        )
