"""What flows through a plan when probes are limited: equation 3 for any plan.

Tuples that come to a half-way join and find no allowance left are stored but do not probe. So the
probes of a half-way join are the lesser of what comes and what is allowed, its matches are probes
times productivity, and what all directions of a join make together comes to the next join. Joins
are taken bottom-up; one pass is enough.

The paper takes the size of a state as given: a count window that is always full, however slowly it
is refreshed, and then stale. Under lifespans (a combination dies with its first member) a state
that gets a third of its tuples is a third full, and never stale. ``thin`` accounts for that: a
probe finds the share of its partners that were made. As the target of a half-way join at a join
was made below that join, the same bottom-up pass has its share already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.overload.half_way_join import HalfWayJoin
from penstock.overload.path_model import PathModel
from penstock.plan.stream_set import StreamSet


@dataclass(frozen=True, slots=True)
class Flow:
    """Probes per second of each half-way join, and tuples made per second by each join."""

    probes: Mapping[HalfWayJoin, float]
    made: Mapping[StreamSet, float]
    throughput: float

    @property
    def resources(self) -> float:
        """Probes per second in all."""
        return sum(self.probes.values())


UNLIMITED = float("inf")


def flow(model: PathModel, allowances: Mapping[HalfWayJoin, float], *, thin: bool = False) -> Flow:
    """The flow under ``allowances`` in probes per second; a half-way join not named gets none."""
    whole = _flow(model, dict.fromkeys(model.half_way_joins, UNLIMITED), {}) if thin else None
    return _flow(model, allowances, whole.made if whole else {})


def matched(model: PathModel, probing: Mapping[str, float], *, thin: bool = False) -> Flow:
    """The flow when ``probing`` tuples per second of each stream probe, and all they make does."""
    allowances = dict.fromkeys(model.half_way_joins, UNLIMITED)
    for path in model.paths:
        allowances[path.directions[0].steps[0]] = probing.get(path.stream, 0.0)
    return flow(model, allowances, thin=thin)


def saturated(model: PathModel) -> Flow:
    """The flow when everything is processed."""
    return matched(model, model.rates)


def _flow(
    model: PathModel,
    allowances: Mapping[HalfWayJoin, float],
    whole: Mapping[StreamSet, float],
) -> Flow:
    probes: dict[HalfWayJoin, float] = {}
    made: dict[StreamSet, float] = {}
    for direction in model.directions:
        origin = direction.origin
        coming = made[origin] if origin in made else model.rates[min(origin)]
        for step, productivity in zip(direction.steps, direction.productivities, strict=True):
            probes[step] = min(coming, allowances.get(step, 0.0))
            filled = whole.get(step.target, 0.0)
            share = made[step.target] / filled if filled else 1.0
            coming = probes[step] * productivity * share
        made[direction.result] = made.get(direction.result, 0.0) + coming
    return Flow(probes, made, made[model.plan.root.streams])
