"""Regrouping: a local search over jtrees that tries all arrangements of a few parts at a time.

The two hill climbers of the paper only ever add states to an mjoin or take them from one binary
tree. Plans that store something neither of them comes across are out of their reach. Here, each
join of a plan is opened down to at most :data:`PARTS` parts, JTree-Finder arranges these parts in
all ways (exact, with the whole front of CPU against memory), and the arrangement with which the
*whole* plan is best is taken. A join of any size also tries single moves: a state over two of its
inputs, a state given up, an input moved into a join below it or out of it. Costs are sums over
joins, so only the joins that change are priced.

Better means: a smaller overrun of the limits, then less CPU. Joins are visited from the root down,
and only some of them (:data:`WORK`) are arranged anew, so the work is polynomial: a constant number
of arrangements and of single moves each.
"""

from __future__ import annotations

from penstock.planning.block import Block, Cost
from penstock.planning.cost_model import shape_cost
from penstock.planning.jtree_finder import shapes_over
from penstock.planning.limits import Limits
from penstock.planning.problem import Candidate, Problem
from penstock.planning.shape import Shape, frontier, join, joins_of, part_over, replace
from penstock.planning.verdict import overrun

PARTS = 5
ROUNDS = 6
MOVES = 24
"""Single moves that are priced for a join."""
WORK = 80
"""Joins that are taken apart, times streams, at most (but four joins): it bounds the time."""
_NO_LIMITS = Limits()

Score = tuple[float, float, float]
Arrangements = list[tuple[Cost, Shape]]
Memory = dict[tuple[int, Shape], Arrangements]
"""What a join of a block can become, so that no join is taken apart twice."""


def regroup(
    problem: Problem,
    limits: Limits,
    start: Candidate,
    memory: Memory,
    until_qualified: bool = True,
) -> Candidate:
    """The best plan that regrouping reaches from ``start``; or the first that is qualified."""
    best = start
    for _ in range(ROUNDS):
        before = best
        for number in range(len(problem.blocks)):
            for mask in _join_masks(best.shapes[number]):
                if until_qualified and overrun(best.cost, limits) == 0:
                    return best
                best = _regrouped(problem, limits, best, number, mask, memory)
        if best is before:
            return best
    return best


def score(cost: Cost, limits: Limits) -> Score:
    """What is compared: smaller is better."""
    return overrun(cost, limits), cost.cpu, cost.memory


def _join_masks(shape: Shape) -> list[int]:
    """From the root down: large joins decide most."""
    return [node.mask for node in reversed(list(joins_of(shape)))]


def _regrouped(
    problem: Problem, limits: Limits, best: Candidate, number: int, mask: int, memory: Memory
) -> Candidate:
    """``best`` with the join over ``mask`` arranged anew, if that is better."""
    block, shape = problem.blocks[number], best.shapes[number]
    node = part_over(shape, mask)
    if node is None:
        return best
    arrangements = memory.get((number, node))
    if arrangements is None:
        streams = sum(len(each.windows) for each in problem.blocks)
        if len(memory) >= max(4, WORK // streams):
            return best
        arrangements = _moved(block, node)
        parts = frontier(node, PARTS)
        if len(parts) <= PARTS:
            arrangements += _arranged(block, parts)
        memory[number, node] = arrangements
    now = shape_cost(block, node)
    least, chosen = score(best.cost, limits), None
    for cost, arrangement in arrangements:
        after = Cost(
            best.cost.cpu - now.cpu + cost.cpu, best.cost.memory - now.memory + cost.memory
        )
        if score(after, limits) < least:
            least, chosen = score(after, limits), arrangement
    if chosen is None:
        return best
    shapes = list(best.shapes)
    shapes[number] = replace(shape, mask, chosen)
    found = problem.evaluate(shapes)
    # Rounding alone must not count as better, or two arrangements could alternate.
    return found if score(found.cost, limits) < score(best.cost, limits) else best


def _arranged(block: Block, parts: list[Shape]) -> Arrangements:
    """The arrangements of ``parts`` that are not dominated."""
    inside = Cost(0.0, 0.0)
    for part in parts:
        if part.inputs:
            inside = inside.plus(shape_cost(block, part))
    return [
        (inside.plus(Cost(cpu, memory)), shape)
        for cpu, memory, shape in shapes_over(block, parts, _NO_LIMITS)
    ]


def _moved(block: Block, node: Shape) -> Arrangements:
    """``node`` with one thing changed: a state over two of its inputs made, a state given up, or
    an input moved into a join below, or out of it. Of many, those with the smallest new states."""
    inputs, size = node.inputs, block.cardinality.size
    found: list[tuple[float, Shape]] = []
    for j in range(len(inputs)):
        for i in range(j):
            both = inputs[i].mask | inputs[j].mask
            if len(inputs) > 2 and block.is_allowed(both):
                others = _without(inputs, i, j)
                found.append((size(both), join((*others, join((inputs[i], inputs[j]))))))
    for i, below in enumerate(inputs):
        if not below.inputs:
            continue
        found.append((0.0, join((*_without(inputs, i), *below.inputs))))
        for j, other in enumerate(inputs):
            both = below.mask | other.mask
            if j != i and block.is_allowed(both):
                merged = join((*below.inputs, other))
                found.append((size(both), join((*_without(inputs, i, j), merged))))
        for k, out in enumerate(below.inputs):
            smaller = join(_without(below.inputs, k))
            if block.is_allowed(smaller.mask):
                found.append((size(smaller.mask), join((*_without(inputs, i), smaller, out))))
    found.sort(key=lambda each: each[0])
    shapes = list(dict.fromkeys(shape for _, shape in found))
    return [(shape_cost(block, shape), shape) for shape in shapes[:MOVES]]


def _without(shapes: tuple[Shape, ...], *positions: int) -> list[Shape]:
    return [each for i, each in enumerate(shapes) if i not in positions]
