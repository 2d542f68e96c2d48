"""How old a tuple can be when it is part of a result (Lemma 1 of JAQPOT).

A tuple of stream I waits in its window for at most the window, |S_I| / λ_I seconds; a combination
with it then waits in each stored join on its path until it is displaced, |S_j| seconds' worth of
insertions. The sum is the age of the oldest result. A state that nothing is inserted into keeps
what it has for ever.

This is the worst case for states that are count windows, as in the paper. Under lifespans a
combination dies with its first member, so skipped probes alone never make a result older than its
windows; what remains of the lemma there is the delay of probes that are made later (``defer``).
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.errors import OptionError
from penstock.overload.path_model import PathModel
from penstock.plan.stream_set import StreamSet

Freshness = Mapping[str, float]
"""Seconds by stream, as FRESHNESS in the query; streams without a predicate are not in it."""


def check_freshness(model: PathModel, freshness: Freshness) -> None:
    """Raise :class:`OptionError` unless it is seconds for streams of the plan."""
    for stream, seconds in freshness.items():
        if stream not in model.rates:
            raise OptionError(
                f"freshness for {stream}, which is not in the plan; "
                f"its streams are {', '.join(model.rates)}"
            )
        if not seconds > 0:
            raise OptionError(f"the freshness of {stream} is {seconds}; it must be above 0 seconds")


def staleness(model: PathModel, made: Mapping[StreamSet, float]) -> dict[str, float]:
    """The greatest age in seconds per stream when joins make ``made`` tuples per second."""
    return {
        path.stream: model.windows[path.stream]
        + sum(dwell(model, d.result, made[d.result]) for d in path.directions[:-1])
        for path in model.paths
    }


def dwell(model: PathModel, state: StreamSet, made: float) -> float:
    """Seconds that a tuple stays in ``state`` when ``made`` per second are inserted."""
    size = model.sizes[state]
    if made > 0:
        return size / made
    return float("inf") if size > 0 else 0.0
