"""The order in which an input of a join visits the others, if the plan does not say."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.plan.plan import Join, Leaf, Node
from penstock.plan.stream_set import StreamSet
from penstock.values.wiring import Wiring


def probe_order(position: int, inputs: Sequence[StreamSet], wiring: Wiring) -> tuple[int, ...]:
    """An order that visits linked inputs first: by hash if possible, else by a condition."""
    if len(inputs) == 2:
        return (1 - position,)
    together = inputs[position]
    left = [i for i in range(len(inputs)) if i != position]
    order = []
    while left:
        ranks = []
        for candidate in left:
            linking = wiring.between(together, inputs[candidate])
            rank = 0 if linking.keys else 1 if linking.conditions or linking.residuals else 2
            ranks.append((rank, candidate))
        _, chosen = min(ranks)
        order.append(chosen)
        left.remove(chosen)
        together = together | inputs[chosen]
    return tuple(order)


def with_orders(node: Node, wiring: Wiring) -> Node:
    """``node`` with the probe orders of its mjoins written out."""
    if isinstance(node, Leaf):
        return node
    inputs = tuple(with_orders(each, wiring) for each in node.inputs)
    if len(inputs) == 2 or node.orders:
        return Join(inputs, node.orders)
    streams = [each.streams for each in inputs]
    return Join(inputs, tuple(probe_order(i, streams, wiring) for i in range(len(inputs))))
