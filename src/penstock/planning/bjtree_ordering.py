"""The binary join tree with the least CPU.

Up to :data:`EXACT` streams by dynamic programming over all bushy trees (3ⁿ splits). Beyond, in
polynomial time: greedy operator ordering (join the two linked parts with the smallest result, again
and again; Fegaras 1998), and then every join of the tree is planned anew, exactly, over the up to
:data:`REPLANNED` parts below it (the idea of iterative dynamic programming, Kossmann and Stocker
2000).
"""

from __future__ import annotations

import math

from penstock.planning.bits import subsets_of
from penstock.planning.block import Block
from penstock.planning.cost_model import join_cost, shape_cost
from penstock.planning.problem import Candidate, Problem
from penstock.planning.shape import Shape, frontier, join, joins_of, leaf, part_over, replace

EXACT = 8
REPLANNED = 5


def bjtree_ordering(problem: Problem) -> Candidate:
    """The best plan that is a tree of binary joins."""
    return problem.evaluate([bjtree(block) for block in problem.blocks])


def bjtree(block: Block) -> Shape:
    """The best tree of binary joins for one block."""
    units = [leaf(i) for i in range(len(block.windows))]
    if len(units) <= EXACT:
        return cheapest_tree(block, units)
    return _replanned(block, _greedy(block, units))


def cheapest_tree(block: Block, units: list[Shape]) -> Shape:
    """The tree of binary joins over ``units`` with the least CPU; their insides are not counted."""
    count = len(units)
    best: dict[int, tuple[float, Shape]] = {1 << i: (0.0, unit) for i, unit in enumerate(units)}
    for chosen in range(1, 1 << count):
        if chosen in best:
            continue
        mask = sum(unit.mask for i, unit in enumerate(units) if chosen >> i & 1)
        if not block.is_allowed(mask):
            continue
        least, split = math.inf, 0
        low = chosen & -chosen
        for part in subsets_of(chosen):
            other = chosen ^ part
            if not part & low or part not in best or other not in best:
                continue
            (left, tree), (right, other_tree) = best[part], best[other]
            cost = left + right + _pair_cost(block, tree.mask, other_tree.mask)
            if cost < least:
                least, split = cost, part
        if split:
            best[chosen] = (least, join((best[split][1], best[chosen ^ split][1])))
    return best[(1 << count) - 1][1]


def _pair_cost(block: Block, left: int, right: int) -> float:
    first = (left & -left) < (right & -right)
    return join_cost(block, (left, right) if first else (right, left)).cpu


def _greedy(block: Block, units: list[Shape]) -> Shape:
    parts = list(units)
    size = block.cardinality.size
    while len(parts) > 1:
        pairs = [
            (i, j)
            for j in range(len(parts))
            for i in range(j)
            if block.is_allowed(parts[i].mask | parts[j].mask)
        ]
        i, j = min(pairs, key=lambda pair: size(parts[pair[0]].mask | parts[pair[1]].mask))
        parts[i] = join((parts[i], parts.pop(j)))
    return parts[0]


def _replanned(block: Block, tree: Shape) -> Shape:
    for node in reversed(list(joins_of(tree))):
        current = part_over(tree, node.mask)
        if current is None:
            continue  # An earlier step has taken it apart.
        better = cheapest_tree(block, frontier(current, REPLANNED))
        if shape_cost(block, better).cpu < shape_cost(block, current).cpu * (1 - 1e-12):
            tree = replace(tree, node.mask, better)
    return tree
