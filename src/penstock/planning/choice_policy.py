"""Which of several qualified plans is taken: the policies of JTree section 3.3, by name.

==================  ==========================================================================
``least-cpu``       minimal in one of the resources
``least-memory``    minimal in the other
``not-dominated``   no other plan needs less of one and no more of the other; of these, the one
                    with the smallest product of both
``random``          any qualified plan, by a seed
==================  ==========================================================================

A planner has a set of qualified plans to choose from: up to
:data:`~penstock.planning.two_layer.STREAMS_PROVEN` streams per block (as many as it can for
``jtree-finder``) all that JTree-Finder finds, beyond that all that the layers of two-layer come
across. For the first three policies the front of CPU against memory is enough; ``random`` has every
plan up to :data:`EVERY` streams (2,752 plans of six streams, 39,208 of seven) and the front beyond.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from penstock.planning.bjtree_ordering import bjtree_ordering
from penstock.planning.jtree_finder import jtree_finder, not_dominated
from penstock.planning.limits import Limits
from penstock.planning.mjoin_ordering import mjoin_ordering
from penstock.planning.problem import Candidate, Problem
from penstock.planning.regroup import Memory, regroup
from penstock.planning.state_removal import state_removal
from penstock.planning.state_selection import state_selection
from penstock.planning.two_layer import is_small
from penstock.planning.verdict import is_qualified

EVERY = 6
"""Streams of a block up to which ``random`` chooses among all qualified plans."""
_NO_CPU = 1e-300
"""A limit on CPU that no plan meets, so that a hill climber goes to its end."""


def _least_cpu(plans: Sequence[Candidate], seed: int) -> Candidate:
    return min(plans, key=lambda each: (each.cost.cpu, each.cost.memory))


def _least_memory(plans: Sequence[Candidate], seed: int) -> Candidate:
    return min(plans, key=lambda each: (each.cost.memory, each.cost.cpu))


def _not_dominated(plans: Sequence[Candidate], seed: int) -> Candidate:
    """Of the front, the plan with the smallest product of CPU and memory: its shares of the limits
    have the smallest product, too."""
    front = not_dominated(plans)
    return min(front, key=lambda each: each.cost.cpu * each.cost.memory)


def _random(plans: Sequence[Candidate], seed: int) -> Candidate:
    return random.Random(seed).choice(list(plans))


POLICIES: dict[str, Callable[[Sequence[Candidate], int], Candidate]] = {
    "least-cpu": _least_cpu,
    "least-memory": _least_memory,
    "not-dominated": _not_dominated,
    "random": _random,
}


def qualified_plans(
    problem: Problem, limits: Limits, exhaustive: bool, every: bool = False
) -> list[Candidate]:
    """The qualified plans that a policy chooses from; ``every`` one, or the front of those that
    were found."""
    if exhaustive or is_small(problem):
        few = all(len(block.windows) <= EVERY for block in problem.blocks)
        return jtree_finder(problem, limits, "all" if every and few else "front")
    mjoin, bjtree = mjoin_ordering(problem), bjtree_ordering(problem)
    seen = [
        *state_selection(problem, Limits(cpu=_NO_CPU, memory=limits.memory), mjoin),
        *state_removal(problem, Limits(memory=1), bjtree),
    ]
    memory: Memory = {}
    seen += [regroup(problem, limits, start, memory) for start in (mjoin, bjtree)]
    return [each for each in dict.fromkeys(seen) if is_qualified(each.cost, limits)]
