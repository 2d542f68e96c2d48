"""Random load shedding: the same share of every stream is dropped on arrival.

The floor that everything else is compared with. What is dropped is neither stored nor probed, so
windows shrink too: if a share p of each stream is kept, a probe of a state over V finds p^|V| of
its partners, and of the results of k streams p^k are left. Likewise p^|V| of the tuples that would
probe a half-way join with combinations over V come to it, so the work falls with p as well, and p
is as large as the budget allows.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.overload.allocation import Allocation, allocation
from penstock.overload.direction import Direction
from penstock.overload.flow import saturated
from penstock.overload.path_model import PathModel
from penstock.overload.workload import check_number

_HALVINGS = 60


def random_shedding(model: PathModel, budget: float) -> Allocation:
    """The share of the input that ``budget`` probes per second can process, and what it gives."""
    check_number("the budget", budget)
    keep = 1.0
    work: dict[int, float] = {}
    for step, probes in saturated(model).probes.items():
        work[len(step.probing)] = work.get(len(step.probing), 0.0) + probes
    if sum(work.values()) > budget:
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            keep = (low + high) / 2
            if sum(probes * keep**streams for streams, probes in work.items()) <= budget:
                low = keep
            else:
                high = keep
        keep = low
    left = kept(model, keep)
    found = allocation("random-shedding", left, budget, saturated(left))
    return replace(
        found,
        keep=keep,
        saturation_resources=model.saturation_resources,
        saturation_throughput=model.saturation_throughput,
    )


def kept(model: PathModel, keep: float) -> PathModel:
    """The model when a share ``keep`` of every stream is left."""
    return PathModel(
        plan=model.plan,
        rates={stream: rate * keep for stream, rate in model.rates.items()},
        windows=model.windows,
        directions=tuple(
            Direction(
                d.origin,
                d.result,
                d.steps,
                tuple(
                    p * keep ** len(step.target)
                    for step, p in zip(d.steps, d.productivities, strict=True)
                ),
            )
            for d in model.directions
        ),
        sizes={streams: size * keep ** len(streams) for streams, size in model.sizes.items()},
    )
