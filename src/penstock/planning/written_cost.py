"""What a plan costs as it is written: with the probe orders that it has, not the best ones.

Planners price shapes, and a shape has the best probe orders for the statistics at hand. A plan that
has been running for a while may have others, and then better orders are something to gain.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.plan.plan import Join, Node, Plan, block_of, walk
from penstock.planning.block import Block, Cost
from penstock.planning.probe_orders import probe_orders
from penstock.planning.problem import Problem


def written_cost(problem: Problem, plan: Plan) -> Cost:
    """What ``plan`` costs; mjoins without orders have the best ones."""
    cost = problem.price(plan)
    roots = {block_of(node, problem.query).aliases: node for node in plan.minus}
    wasted = _wasted(problem.blocks[0], plan.root)
    for block in problem.blocks[1:]:
        node = roots.get(block.names)
        if node is not None:
            wasted += _wasted(block, node)
    return Cost(cost.cpu + wasted, cost.memory)


def _wasted(block: Block, root: Node) -> float:
    """The CPU that the best probe orders would save; below zero if orders that visit unlinked
    inputs first, which are not among those, are better still."""
    total = 0.0
    for node in walk(root):
        if isinstance(node, Join) and len(node.inputs) > 2 and node.orders:
            masks = [block.mask_of(each.streams) for each in node.inputs]
            best = probe_orders(block, tuple(sorted(masks, key=lambda mask: mask & -mask))).cpu
            total += _probing(block, masks, node.orders) - best
    return total


def _probing(block: Block, parts: Sequence[int], orders: Sequence[Sequence[int]]) -> float:
    size, costs = block.cardinality.size, block.costs
    cpu = 0.0
    for part, order in zip(parts, orders, strict=True):
        done, spent = part, 0.0
        for position, other in enumerate(order):
            target = parts[other]
            made = block.share_made(part) if position == 0 else 1.0
            spent += made * size(done) * block.look(done, target)
            done |= target
            spent += size(done) * costs.join
        spent -= size(done) * costs.join * (1 - block.share_made(done))
        cpu += block.cardinality.turnover(part) * spent
    return cpu
