"""Plans that join streams which no predicate links: looked at where nothing else qualifies.

A cross product makes every combination of its inputs, so it is nearly always dear and planners
leave it out: with it there are far more plans. But two small windows crossed once and kept may
save a third, fast stream a long walk (the star join of warehouses), and so a setting may have a
qualified plan among these alone. JTree-Finder of the paper goes over all partitions, linked or
not. So a refusal of a planner that looks for any qualified plan is looked at again here, with all
of them, and only then called proven.

Up to :data:`~penstock.planning.two_layer.STREAMS_PROVEN` streams per block by JTree-Finder, which
is a proof; beyond by regrouping, which is not.
"""

from __future__ import annotations

from penstock.planning.bjtree_ordering import bjtree_ordering
from penstock.planning.jtree_finder import jtree_finder
from penstock.planning.mjoin_ordering import mjoin_ordering
from penstock.planning.problem import Candidate, Problem
from penstock.planning.two_layer import impossible, is_small, third_layer
from penstock.planning.verdict import Choice, Refusal, Verdict, nearest

_WHY = "nothing else is within the limits: it joins streams that no predicate links"


def with_cross_products(problem: Problem, refusal: Refusal) -> Verdict:
    """``refusal``, of plans without cross products, or a qualified plan that has some."""
    limits = refusal.limits
    if not problem.may_cross or impossible(problem, limits) is not None:
        return refusal
    crossing = problem.crossing
    if is_small(problem):
        qualified = jtree_finder(crossing, limits)
        if qualified:
            return Choice(qualified[0], _WHY)
        return _still(crossing, refusal, proven=True)
    starts = [crossing.evaluate(refusal.nearest.shapes), *_ends(crossing)]
    verdict = third_layer(crossing, limits, starts, finder=False)
    if isinstance(verdict, Choice):
        return Choice(verdict.candidate, _WHY)
    return _still(crossing, refusal, proven=False)


def _still(crossing: Problem, refusal: Refusal, proven: bool) -> Refusal:
    """``refusal``, of all plans."""
    limits = refusal.limits
    closest = nearest([refusal.nearest, *_ends(crossing)], limits)
    why = refusal.why if proven == refusal.proven else "no plan within the limits was found"
    return Refusal(closest, limits, proven, why)


def _ends(crossing: Problem) -> list[Candidate]:
    return [mjoin_ordering(crossing), bjtree_ordering(crossing)]
