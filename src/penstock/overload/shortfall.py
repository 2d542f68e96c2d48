"""Freshness that cannot be had: which streams, and how many probes are missing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.overload.flow import saturated
from penstock.overload.path_model import PathModel
from penstock.overload.staleness import Freshness, staleness
from penstock.plan.stream_set import StreamSet

_SLIGHT = 1e-9


@dataclass(frozen=True, slots=True)
class StaleStream:
    """A stream that is not as fresh as was asked for; all in seconds.

    ``reached`` is its staleness under the allocation, ``at_best`` when everything is processed.
    """

    stream: str
    wanted: float
    reached: float
    at_best: float

    def __str__(self) -> str:
        text = (
            f"{self.stream}: FRESHNESS {self.wanted:.3g} s is asked for, "
            f"results can be {self.reached:.3g} s old"
        )
        if self.at_best > self.wanted * (1 + _SLIGHT):
            text += f", and still {self.at_best:.3g} s if nothing were skipped"
        return text


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Freshness needs ``needed`` probes per second, and the budget is below that.

    ``needed`` is infinite where no budget helps: the plan itself is too slow for the predicate.
    """

    needed: float
    budget: float
    streams: tuple[StaleStream, ...]

    @property
    def missing(self) -> float:
        """Probes per second that are missing."""
        return max(0.0, self.needed - self.budget)

    def __str__(self) -> str:
        if math.isinf(self.needed):
            first = "freshness cannot be had with this plan, whatever the budget"
        else:
            first = (
                f"freshness needs {self.needed:,.1f} probes/s, the budget is {self.budget:,.1f}: "
                f"{self.missing:,.1f} probes/s are missing"
            )
        return "\n".join([first, *(f"  {stream}" for stream in self.streams)])


def shortfall(
    model: PathModel,
    freshness: Freshness,
    made: Mapping[StreamSet, float],
    budget: float,
    needed: float,
) -> Shortfall | None:
    """What is missing when joins make ``made``; nothing if every stream is fresh enough."""
    reached = staleness(model, made)
    late = [s for s in freshness if reached[s] > freshness[s] * (1 + _SLIGHT)]
    if not late:
        return None
    at_best = staleness(model, saturated(model).made)
    return Shortfall(
        needed,
        budget,
        tuple(StaleStream(s, freshness[s], reached[s], at_best[s]) for s in sorted(late)),
    )
