"""Refresh rates: what must flow into each stored join so that freshness holds (Definition 5).

By Lemma 1 the waits in the states on the path of stream I must add up to at most F_I - W_I. The
paper speaks of a refresh rate per state without saying how that slack is divided among the states
of a path, or what becomes of a state that several streams share. Here:

- Each state may wait κ times as long as it does when everything is processed, that is, it needs
  1/κ of the tuples that it then gets. With one κ for all states of a path, a stream that is fresh
  at saturation is never called infeasible. Equal seconds for each state would call it so where
  one state is much larger than another.
- κ is as large as the strictest stream allows; its states are settled then, and the slack that
  this leaves to the other streams goes to the states that are still open (progressive filling, so
  no state could wait longer without another one, that waits no longer, waiting less).

Every round settles a state, and a settled state is deducted once from each stream that passes it:
quadratic in the number of streams.
"""

from __future__ import annotations

from penstock.overload.flow import saturated
from penstock.overload.path_model import PathModel
from penstock.overload.staleness import Freshness, dwell, staleness
from penstock.plan.stream_set import StreamSet

RefreshRates = dict[StreamSet, float]

_SLIGHT = 1e-9


def refresh_rates(model: PathModel, freshness: Freshness) -> RefreshRates:
    """Tuples per second that each state needs; infinite where no rate is enough.

    States that no stream with a freshness predicate passes are left out.
    """
    if not model.susceptible:
        return {}
    full = saturated(model).made
    waits = {s: dwell(model, s, full[s]) if full[s] else 0.0 for s in model.susceptible}
    passing = {
        path.stream: [d.result for d in path.directions[:-1]]
        for path in model.paths
        if path.stream in freshness and len(path.directions) > 1
    }
    slack = {stream: freshness[stream] - model.windows[stream] for stream in passing}
    open_wait = {stream: sum(waits[s] for s in states) for stream, states in passing.items()}
    through: dict[StreamSet, list[str]] = {}
    for stream, states in passing.items():
        for state in states:
            through.setdefault(state, []).append(stream)

    rates: RefreshRates = {}
    unsettled = {stream: len(states) for stream, states in passing.items()}
    while waiting := [stream for stream, count in unsettled.items() if count]:
        factors = {stream: _factor(slack[stream], open_wait[stream]) for stream in waiting}
        strictest = min(waiting, key=lambda stream: (factors[stream], stream))
        factor = factors[strictest]
        for state in passing[strictest]:
            if state in rates:
                continue
            rates[state] = full[state] / factor if factor > 0 else float("inf")
            for stream in through[state]:
                slack[stream] -= factor * waits[state] if waits[state] else 0.0
                open_wait[stream] -= waits[state]
                unsettled[stream] -= 1
    return rates


def reachable_rates(model: PathModel, freshness: Freshness) -> tuple[RefreshRates, bool]:
    """The refresh rates that some budget could pay, and whether these are all that is asked for.

    A stream that is not fresh even when everything is processed is set aside: to spend on it would
    make it no fresh stream, and cost the others results.
    """
    if not freshness:
        return {}, True
    full = saturated(model).made
    at_best = staleness(model, full)
    possible = {s: f for s, f in freshness.items() if at_best[s] <= f * (1 + _SLIGHT)}
    rates = refresh_rates(model, possible)
    reachable = {state: min(rate, full[state]) for state, rate in rates.items()}
    return reachable, len(possible) == len(freshness)


def _factor(slack: float, wait: float) -> float:
    """How many times longer than ``wait`` the states may wait."""
    if slack <= 0:
        return 0.0
    return slack / wait if wait > 0 else float("inf")
