"""State-removal (Algorithm 4): from a binary tree, give states up until the memory suffices.

To give a state up, the join that makes it and the join that stores it become one mjoin. Each step
takes the state with the smallest CPU cost per byte: (CPU after - CPU before) / memory saved. Where
keeping a state costs more than recomputing it, the ratio is negative and the step saves both.

As written, the algorithm divides by the size of the state. Merging may also change the indexes of
the inputs, so here it is the memory that the step really saves.
"""

from __future__ import annotations

from penstock.planning.cost_model import join_cost
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
    best: tuple[float, int, int] | None = None
    for number, shape in enumerate(current.shapes):
        block = problem.blocks[number]
        for consumer in joins_of(shape):
            for node in consumer.inputs:
                if not node.inputs:
                    continue
                # A plan costs the sum over its joins: only these two change.
                merged = join_cost(block, merge(consumer, node.mask).parts)
                apart = join_cost(block, consumer.parts).plus(join_cost(block, node.parts))
                saved = apart.memory - merged.memory
                more = merged.cpu - apart.cpu
                ratio = more / saved if saved > 0 else float("inf") if more > 0 else float("-inf")
                if best is None or (ratio, number, node.mask) < best:
                    best = (ratio, number, node.mask)
    if best is None:
        return None
    _, number, mask = best
    shapes = list(current.shapes)
    shapes[number] = merge(shapes[number], mask)
    return problem.evaluate(shapes)
