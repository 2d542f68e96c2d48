"""State-selection (Algorithm 3): from an mjoin, store partial results until the CPU suffices.

The inputs of the mjoin are the vertices of a graph whose edges are links. The edge with the largest
frequency / weight is stored next: the weight is the size of the state that it would make, and the
frequency how many probe orders go along it, since each of these recomputes what the state would
hold. *Optimize* then chooses how to make it: as a binary join of its ends, or with an end that is
itself a join broken up, so that one mjoin makes all of it, where that saves both resources. A step
that does not save CPU is not taken.

Where the paper cannot be followed to the letter:

- Its inner loop ends when no edge is left and then returns "none", even if a plan has become
  qualified. Here each accepted step is tested, and the edges are collected anew after it.
- It gives up when an accepted state does not fit the memory. Here that state is not taken, and the
  next edge has its turn, unless ``gives_up`` says otherwise.
- "Appears in a join sequence": a step from the visited inputs to Y goes along one edge, the one
  with the most selective link, also if several visited inputs are linked with Y.
"""

from __future__ import annotations

import numpy as np

from penstock.planning.block import Block
from penstock.planning.cost_model import shape_cost, storing
from penstock.planning.limits import Limits
from penstock.planning.probe_orders import probe_orders
from penstock.planning.problem import Candidate, Problem
from penstock.planning.shape import Shape, join, joins_of
from penstock.planning.verdict import is_qualified


def state_selection(
    problem: Problem, limits: Limits, start: Candidate, gives_up: bool = False
) -> list[Candidate]:
    """All plans on the way from ``start``, an mjoin per block, to the last one that saves CPU or
    the first that is qualified.

    ``gives_up``, as in the paper: the first state that saves CPU and does not fit is the end.
    """
    trail = [start]
    while not is_qualified(trail[-1].cost, limits):
        better = _step(problem, limits, trail[-1], gives_up)
        if better is None:
            break
        trail.append(better)
    return trail


def _step(problem: Problem, limits: Limits, current: Candidate, gives_up: bool) -> Candidate | None:
    """The first edge, by frequency / weight, whose state saves CPU and fits."""
    edges = [
        (frequency / max(weight, 1e-300), number, i, j)
        for number, shape in enumerate(current.shapes)
        for (i, j), (frequency, weight) in _edges(problem.blocks[number], shape).items()
    ]
    for _, number, i, j in sorted(edges, key=lambda edge: (-edge[0], edge[1:])):
        block, shape = problem.blocks[number], current.shapes[number]
        others = [each for k, each in enumerate(shape.inputs) if k not in (i, j)]
        stored = _optimized(block, shape.inputs[i], shape.inputs[j])
        after = join((*others, stored))
        if limits.memory is not None and not gives_up:
            # Most edges fail here, where no probe orders are needed yet.
            change = _memory(block, after) - _memory(block, shape)
            if current.cost.memory + change > limits.memory:
                continue
        shapes = list(current.shapes)
        shapes[number] = after
        better = problem.evaluate(shapes)
        if better.cost.cpu < current.cost.cpu:
            if limits.memory is None or better.cost.memory <= limits.memory:
                return better
            if gives_up:
                return None
    return None


def _memory(block: Block, shape: Shape) -> float:
    return sum(storing(block, node.parts).memory for node in joins_of(shape))


def _edges(block: Block, shape: Shape) -> dict[tuple[int, int], tuple[int, float]]:
    """Frequency and weight of every edge between inputs of the mjoin, by their positions."""
    parts = shape.parts
    count = len(parts)
    if count < 3:
        return {}
    size = block.cardinality.size
    weights: dict[tuple[int, int], float] = {}
    partners = np.full((count, count), np.inf)
    for j in range(count):
        for i in range(j):
            if block.is_linked(parts[i], parts[j]):
                weights[i, j] = size(parts[i] | parts[j])
                partners[i, j] = partners[j, i] = weights[i, j] / (size(parts[i]) or 1.0)
    # Row x of ``walks`` is the walk that starts from input x; ``taken`` says which of the inputs
    # before each step it goes to the step from.
    orders = probe_orders(block, parts).orders
    walks = np.array([(start, *order) for start, order in enumerate(orders)])
    between = partners[walks[:, :, None], walks[:, None, :]]
    between[:, ~np.tri(count, count, -1, dtype=np.bool_)] = np.inf
    taken = between.argmin(axis=2)
    frequencies = dict.fromkeys(weights, 0)
    for walk, froms in zip(walks.tolist(), taken.tolist(), strict=True):
        for position, origin in zip(walk, froms, strict=True):
            other = walk[origin]
            pair = (other, position) if other < position else (position, other)
            if pair in frequencies:
                frequencies[pair] += 1
    return {pair: (frequencies[pair], weight) for pair, weight in weights.items()}


def _optimized(block: Block, left: Shape, right: Shape) -> Shape:
    """Optimize: the merged vertex as a binary join, or with operators merged where both resources
    are saved."""
    binary = join((left, right))
    best, least = binary, shape_cost(block, binary)
    for inputs in (
        (*left.inputs, right),
        (left, *right.inputs),
        (*left.inputs, *right.inputs),
    ):
        merged = join(inputs)
        if merged.mask != binary.mask:
            continue  # A stream has no inputs to merge.
        cost = shape_cost(block, merged)
        if cost.cpu < least.cpu and cost.memory <= least.memory:
            best, least = merged, cost
    return best
