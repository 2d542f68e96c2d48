"""How many results were lost because probes were dropped, with the error of the estimate.

Every result holds exactly one combination of each join of the plan. At the root, what was lost is
estimated draw by draw, without bias: a random part of the rows of each input did probe, and what
they found stands for the others (:func:`~penstock.overload.missed_results.missed_in_strata`). That
is all there is for a plan of one join, such as an mjoin.

In a tree, what a join makes in a push are new combinations of one input with what the states of the
others hold. New ones stand for what the draws of this push have left out; what a state holds stands
for what was left out while it was filled. So the joins are gone through bottom-up: what rows of an
input have made, and have missed, is multiplied by what new combinations of that input stand for,
and by what those in the states of the other inputs do. For states, made and missing combinations
are summed up, fading with the window, since what fails to enter a state is missed as long as it
would have lived. This holds on average over the keys; a plan whose joins lose different keys in
different measure is estimated with that blur, as the error says only in part.

Rows that were left at the door (:mod:`penstock.engine.overload.door`) are missing in every result
that would have one of them: what a result stands for is known from its rows
(:mod:`penstock.engine.overload.row_weights`), and is one more factor.

Errors of one push at the root are independent of those of the next, and add up by their squares.
Those of a fading sum are not, and add up as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from penstock.engine.overload.row_weights import Weight
from penstock.overload.missed_results import Missed, Stratum, missed_in_strata
from penstock.plan.stream_set import StreamSet

_DRAWS_OF_A_STRATUM = 8
"""Draws that a stratum needs before it counts; smaller ones are put together."""
_NEARLY_FULL = 1e-3
_ALONE = Weight()
_NOBODY: Mapping[StreamSet, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Fill:
    """Combinations of a join below the root, over about a window."""

    made: float = 0.0
    missed: float = 0.0
    variance: float = 0.0

    @property
    def scale(self) -> float:
        """1 / f."""
        return (self.made + self.missed) / self.made if self.made > 0 else 1.0

    @property
    def relative_error(self) -> float:
        total = self.made + self.missed
        return math.sqrt(self.variance) / total if total > 0 else 0.0


@dataclass(frozen=True, slots=True)
class LossEstimate:
    """A value: :meth:`after` gives the estimate after one more push."""

    root: StreamSet
    lost: float = 0.0
    variance: float = 0.0
    common_error: float = 0.0
    fills: Mapping[StreamSet, _Fill] = field(default_factory=dict)
    pools: Mapping[StreamSet, tuple[StreamSet, Stratum]] = field(default_factory=dict)

    @property
    def missed(self) -> Missed:
        """Results lost since the start."""
        few = missed_in_strata(
            s for join, s in self.pools.values() if join == self.root and s.probed
        )
        scale = math.prod(fill.scale for fill in self.fills.values())
        error = math.hypot(math.sqrt(self.variance), self.common_error, few.error * scale)
        return Missed(self.lost + few.results * scale, error)

    def share_there(self, streams: StreamSet) -> float:
        """Which part of what the rows of ``streams`` make together is in their state, about."""
        share = 1.0
        for part, fill in self.fills.items():
            if part <= streams:
                share /= fill.scale
        return share

    @property
    def is_thin(self) -> bool:
        """Whether states lack what dropped probes did not make."""
        return any(fill.scale > 1 + _NEARLY_FULL for fill in self.fills.values())

    def thinned(self, join: StreamSet, made: float, expected: float) -> LossEstimate:
        """The state of ``join`` has lost all but what is ``made`` of what is ``expected``."""
        fill = _Fill(max(1.0, made), max(0.0, expected - made))
        return replace(self, fills={**self.fills, join: fill})

    def refilled(self, fills: Mapping[StreamSet, _Fill]) -> LossEstimate:
        """The same losses, with other contents of the states."""
        return replace(self, fills=fills)

    def after(
        self,
        fades: Mapping[StreamSet, float],
        made: Mapping[StreamSet, Mapping[StreamSet, float]],
        strata: Iterable[tuple[StreamSet, StreamSet, Stratum]],
        held: Mapping[StreamSet, int] = _NOBODY,
        weight: Weight = _ALONE,
    ) -> LossEstimate:
        """``made`` has each join, bottom-up, with what rows of each input have made in the push;
        ``fades`` what is left of the sums of a join after it. ``strata`` come with input and join.
        ``held`` is what states hold after the push: what was there before the first loss.
        ``weight`` is what results stand for."""
        pools = dict(self.pools)
        ripe: dict[StreamSet, Stratum] = {}
        for origin, join, stratum in strata:
            pooled = _together(pools[origin][1], stratum) if origin in pools else stratum
            pools[origin] = (join, pooled)
            if pooled.probed >= _DRAWS_OF_A_STRATUM:
                ripe[origin] = pools.pop(origin)[1]
        fills: dict[StreamSet, _Fill] = {}
        new: dict[StreamSet, float] = {}
        whole = count = variance = 0.0
        for join, inputs in made.items():
            full = {each: self.fills[each].scale for each in inputs if each in self.fills}
            whole = count = variance = 0.0
            for origin, each in inputs.items():
                others = math.prod(scale for other, scale in full.items() if other != origin)
                scale = new.get(origin, 1.0) * others
                missed = missed_in_strata([ripe[origin]] if origin in ripe else ())
                whole += (each + missed.results) * scale
                count += each
                variance += (missed.error * scale) ** 2
            new[join] = whole / count if count else 1.0
            if join != self.root:
                before = self.fills.get(join) or _Fill(max(0.0, held.get(join, 0) - count))
                fade = fades[join]
                fills[join] = _Fill(
                    fade * before.made + count,
                    fade * before.missed + whole - count,
                    fade * before.variance + variance,
                )
        blur = math.hypot(weight.blur, *(fill.relative_error for fill in fills.values()))
        return replace(
            self,
            lost=self.lost + whole * weight.mean - count,
            variance=self.variance + variance * weight.mean**2 + whole**2 * weight.variance,
            common_error=self.common_error + whole * weight.mean * blur,
            fills=fills,
            pools=pools,
        )


def _together(one: Stratum, other: Stratum) -> Stratum:
    return Stratum(
        one.tuples + other.tuples,
        one.probed + other.probed,
        one.matches + other.matches,
        one.squares + other.squares,
        one.worth,
    )
