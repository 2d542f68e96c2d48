"""State-removal (Algorithm 4): from a binary tree, give states up until the memory suffices.

To give a state up, the join that makes it and the join that stores it become one mjoin. Each step
takes the state with the smallest CPU cost per byte: (CPU after - CPU before) / memory saved. Where
keeping a state costs more than recomputing it, the ratio is negative and the step saves both.

As written, the algorithm divides by the size of the state. Merging may also change the indexes of
the inputs, so here it is the memory that the step really saves.
"""

from __future__ import annotations

from penstock.planning.limits import Limits
from penstock.planning.problem import Candidate, Problem
from penstock.planning.shape import joins_of, merge
from penstock.planning.verdict import is_qualified


def state_removal(problem: Problem, limits: Limits, start: Candidate) -> list[Candidate]:
    """All plans on the way from ``start`` to the first that is qualified, or to the mjoin."""
    trail = [start]
    while not is_qualified(trail[-1].cost, limits):
        smaller = _step(problem, trail[-1])
        if smaller is None:
            break
        trail.append(smaller)
    return trail


def _step(problem: Problem, current: Candidate) -> Candidate | None:
    best: tuple[float, Candidate] | None = None
    for number, shape in enumerate(current.shapes):
        for node in joins_of(shape):
            if node is shape:
                continue
            shapes = list(current.shapes)
            shapes[number] = merge(shape, node.mask)
            after = problem.evaluate(shapes)
            saved = current.cost.memory - after.cost.memory
            more = after.cost.cpu - current.cost.cpu
            ratio = more / saved if saved > 0 else float("inf") if more > 0 else float("-inf")
            if best is None or ratio < best[0]:
                best = (ratio, after)
    return None if best is None else best[1]
