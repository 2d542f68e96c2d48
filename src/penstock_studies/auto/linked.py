"""Workloads of streams that are linked in pairs, each pair by a column of its own.

Columns are uniform and independent, so that the share of pairs that match is known: one divided by
the number of values. The plans by hand are those that planners find when they are told all of this:
nobody who starts such a query knows as much.
"""

from __future__ import annotations

from collections.abc import Mapping

import penstock
from penstock.plan.plan import write
from penstock.planning.jtree_finder import jtree_finder
from penstock.planning.limits import Limits
from penstock.planning.problem import Problem
from penstock.planning.statistics import Statistics
from penstock_studies.auto.workload import Source, Workload, uniform

Pair = tuple[str, str]
STREAMS_BY_HAND = 4
"""Streams up to which the plans by hand are the best of all plans."""
BY_HAND = 4
"""Plans by hand at most."""


def linked(
    name: str,
    about: str,
    rates: Mapping[str, float],
    partners: Mapping[Pair, float],
    window: float = 2.0,
    seconds: float = 40.0,
    slices: int = 10,
) -> Workload:
    """Streams with ``rates``; a row of the first of a pair has so many ``partners`` in the second's
    window."""
    values = {
        pair: max(1, round(rates[pair[1]] * window / count)) for pair, count in partners.items()
    }
    sources = {
        stream: Source(
            rate,
            uniform(id=1 << 30, **{_column(p): v for p, v in values.items() if stream in p}),
        )
        for stream, rate in rates.items()
    }
    workload = Workload(
        name,
        about,
        ", ".join(f"{stream}.id AS {stream.lower()}" for stream in rates),
        " AND ".join(f"{a}.{_column((a, b))} = {b}.{_column((a, b))}" for a, b in values),
        sources,
        (),
        f"RANGE {round(1000 * window)} MILLISECONDS",
        seconds=seconds,
        slices=slices,
    )
    shares = {pair: 1 / count for pair, count in values.items()}
    return workload.with_plans(_by_hand(workload.query, Statistics(rates, shares, pushes=slices)))


def _column(pair: Pair) -> str:
    return "_".join(pair).lower()


def _by_hand(query: penstock.JoinGraph, statistics: Statistics) -> tuple[str, ...]:
    if len(query.aliases) <= STREAMS_BY_HAND:
        problem = Problem(query, statistics)
        found = jtree_finder(problem, Limits(), keep="all")
        return tuple(write(problem.plan_of(each)) for each in found[:BY_HAND])
    planners = ("two-layer", "bjtree", "mjoin", "state-removal")
    plans = (penstock.plan(query, statistics, planner=each) for each in planners)
    return tuple(dict.fromkeys(map(str, plans)))
