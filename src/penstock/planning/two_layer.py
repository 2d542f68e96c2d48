"""Two-layer plan generation after Algorithm 2, and a third layer for what the two miss.

The algorithm as the paper has it is a planner of its own
(:mod:`penstock.planning.two_layer_paper`); this one is the default. *Layer one* orders an mjoin
and a binary tree; if either is qualified it is the answer. *Layer two* climbs from both towards
the other: state-selection, then state-removal.

Departures from the paper:

- It refuses when the best binary tree needs too much CPU, as no plan could need less. By its own
  equations 6 and 7 one can (:mod:`penstock.planning.cost_model`), so here nothing is concluded from
  the tree. A refusal is called proven only when a true bound is exceeded: the windows alone need
  more memory, or taking the tuples in and making the results needs more CPU.
- On random queries with limits that few plans meet, the two hill climbers miss qualified plans
  (``penstock experiment planners`` counts them). So there is a *layer three*, polynomial as well:
  regrouping (:mod:`penstock.planning.regroup`) from the nearest plans seen. With up to
  :data:`STREAMS_PROVEN` streams per block JTree-Finder itself has the last word, which is a bounded
  amount of work. Nothing here joins streams that no predicate links: a refusal is about plans
  without, until :mod:`penstock.planning.cross_products` has looked at the others.
- An mjoin may need several indexes on a window where a tree needs one. If the best tree needs less
  CPU *and* less memory than a qualified mjoin, it is taken.
- With no limit on CPU the paper's rule would take the mjoin, whatever it costs. Then the plan
  with the least CPU that is found within the memory limit is the answer.
"""

from __future__ import annotations

from penstock.planning.bjtree_ordering import bjtree_ordering
from penstock.planning.block import Cost
from penstock.planning.cost_model import least_cpu, least_memory
from penstock.planning.jtree_finder import jtree_finder
from penstock.planning.limits import Limits
from penstock.planning.mjoin_ordering import mjoin_ordering
from penstock.planning.problem import Candidate, Problem
from penstock.planning.regroup import Memory, regroup, score
from penstock.planning.state_removal import state_removal
from penstock.planning.state_selection import state_selection
from penstock.planning.verdict import Choice, Refusal, Verdict, is_qualified, nearest

STREAMS_PROVEN = 7
"""Streams of a block up to which JTree-Finder, which tries all plans, has the last word."""


def two_layer(problem: Problem, limits: Limits) -> Verdict:
    """A qualified plan, or a refusal."""
    refusal = impossible(problem, limits)
    if refusal is not None:
        return refusal
    mjoin = mjoin_ordering(problem)
    bjtree = bjtree_ordering(problem)
    if limits.cpu is None:
        return _least_cpu(problem, limits, mjoin, bjtree)
    if is_qualified(mjoin.cost, limits):
        if bjtree.cost.cpu < mjoin.cost.cpu and bjtree.cost.memory < mjoin.cost.memory:
            return Choice(bjtree, "the best binary tree needs less of both than one mjoin")
        return Choice(mjoin, "one mjoin stays within both limits")
    if is_qualified(bjtree.cost, limits):
        return Choice(bjtree, "one mjoin needs too much CPU; the best binary tree is within both")
    selection = state_selection(problem, limits, mjoin)
    if is_qualified(selection[-1].cost, limits):
        return Choice(
            selection[-1],
            "neither one mjoin nor the best binary tree is within both limits; "
            "storing some partial results saves just enough CPU",
        )
    removal = state_removal(problem, limits, bjtree)
    if is_qualified(removal[-1].cost, limits):
        return Choice(
            removal[-1],
            "neither one mjoin nor the best binary tree is within both limits; "
            "giving some states of the tree up saves just enough memory",
        )
    return third_layer(problem, limits, [*selection, *removal])


def third_layer(
    problem: Problem, limits: Limits, seen: list[Candidate], finder: bool = True
) -> Verdict:
    """Look further than the hill climbers did, from the nearest of the plans ``seen``; without
    ``finder``, by regrouping alone."""
    seen = list(seen)
    memory: Memory = {}
    for start in _starts(seen, limits):
        found = regroup(problem, limits, start, memory)
        if is_qualified(found.cost, limits):
            return Choice(found, "found by regrouping the nearest plan of the two hill climbers")
        seen.append(found)
    proven = False
    if finder and is_small(problem):
        qualified = jtree_finder(problem, limits)
        if qualified:
            return Choice(qualified[0], "the qualified plan with the least CPU, by JTree-Finder")
        proven = True
    return Refusal(
        nearest(seen, limits),
        limits,
        proven,
        "no plan is within both limits" if proven else "no plan within both limits was found",
    )


def _starts(seen: list[Candidate], limits: Limits) -> list[Candidate]:
    """The nearest plans, and the two ends: least memory first, least CPU last."""
    by_overrun = sorted(seen, key=lambda c: score(c.cost, limits))
    chosen = [
        by_overrun[0],
        min(seen, key=lambda c: c.cost.cpu),
        min(seen, key=lambda c: c.cost.memory),
    ]
    return list(dict.fromkeys(chosen))


def _least_cpu(problem: Problem, limits: Limits, mjoin: Candidate, bjtree: Candidate) -> Verdict:
    """No limit on CPU: make it as small as the memory lets it."""
    within = "" if limits.memory is None else " within the memory limit"
    if is_small(problem):
        qualified = jtree_finder(problem, limits)
        if qualified:
            return Choice(qualified[0], f"the least CPU of all plans{within}")
        return Refusal(mjoin, limits, True, "no plan is within the memory limit")
    seen = [mjoin, bjtree, *state_removal(problem, limits, bjtree)]
    memory: Memory = {}
    seen += [
        regroup(problem, limits, start, memory, until_qualified=False)
        for start in _starts(seen, limits)
    ]
    best = nearest(seen, limits)
    if is_qualified(best.cost, limits):
        return Choice(best, f"the least CPU that was found{within}")
    return Refusal(best, limits, False, "no plan within the memory limit was found")


def is_small(problem: Problem) -> bool:
    """Whether JTree-Finder takes a bounded time."""
    return all(len(block.windows) <= STREAMS_PROVEN for block in problem.blocks)


def impossible(problem: Problem, limits: Limits) -> Refusal | None:
    """A refusal if no plan whatever can be qualified, with cross products or without."""
    least = Cost(
        problem.fixed.cpu + sum(least_cpu(block) for block in problem.blocks),
        problem.fixed.memory + sum(least_memory(block) for block in problem.blocks),
    )
    mjoin = mjoin_ordering(problem)
    if limits.memory is not None and least.memory > limits.memory:
        return Refusal(mjoin, limits, True, "the windows alone need more memory than there is")
    if limits.cpu is not None and least.cpu > limits.cpu:
        why = "taking the tuples in and making the results needs more CPU than there is"
        return Refusal(nearest([mjoin, bjtree_ordering(problem)], limits), limits, True, why)
    return None
