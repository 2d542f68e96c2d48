"""Which intermediate results STAIRs hold: the tree with the smallest states, less what has no room.

JISC (section 4.6) has STAIRs for left-deep trees, one for each prefix of the route. Nothing in it
depends on that: a state is kept for each join below the root of any binary tree, *promoting* makes
the combinations of one that the tree did not have, *demoting* lets one go, and what is asked for is
completed in bushy trees as in left-deep ones (:mod:`penstock.engine.completion.missing`).

**The tree** is one of two, whichever has fewer rows in its states: the best left-deep one (the
route by rank from each stream), and a bushy one grown by joining the two parts next whose join is
smallest (greedy operator ordering, Fegaras, DEXA 1998). Parts that a predicate links come before
others. A state has the rows of one input times the fan-out into the other
(:mod:`penstock.engine.control.routing`).

**Room.** Where memory is limited and the states do not fit, the largest are demoted, and the join
above them takes over their inputs: ``((A B) C)`` becomes ``(A B C)``, which probes for the
combinations again that it does not hold. With none left it is CACQ.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from penstock.engine.control.routing import Routing
from penstock.plan.plan import Join, Leaf, Node, walk
from penstock.plan.stream_set import StreamSet

Sizes = dict[StreamSet, float]
"""Rows of each state of a tree."""


def best_tree(routing: Routing, aliases: Sequence[str]) -> Node:
    """The binary tree over ``aliases`` with the fewest rows in its states, as far as is known."""
    routes = [_left_deep((start, *routing.route(start))) for start in aliases]
    return min([*routes, _bushy(routing, aliases)], key=lambda root: rows_of(root, routing))


def rows_of(root: Node, routing: Routing) -> float:
    """Rows of all states of a tree, the answer not included."""
    return sum(sizes_of(root, routing).values())


def sizes_of(root: Node, routing: Routing) -> Sizes:
    """Rows of each state of a tree; a join of several inputs has what its inputs one after the
    other have in the end."""
    sizes: Sizes = {}

    def measure(node: Node) -> float:
        if isinstance(node, Leaf):
            return float(routing.window(node.stream))
        first, *others = node.inputs
        together, size = first.streams, measure(first)
        for each in others:
            size *= routing.fanout(together, each.streams, measure(each))
            together = together | each.streams
        sizes[node.streams] = size
        return size

    measure(root)
    sizes.pop(root.streams, None)
    return sizes


def is_binary(root: Node) -> bool:
    """Whether the tree holds all of its intermediate results."""
    return all(isinstance(node, Leaf) or len(node.inputs) == 2 for node in walk(root))


def states_of(root: Node) -> set[StreamSet]:
    """What the tree holds."""
    return {node.streams for node in walk(root) if isinstance(node, Join)} - {root.streams}


def without(node: Node, demoted: Collection[StreamSet]) -> Node:
    """The tree without the states ``demoted``: the joins above take over their inputs."""
    if isinstance(node, Leaf):
        return node
    below = [without(each, demoted) for each in node.inputs]
    if not any(each.streams in demoted for each in below):
        return node if tuple(below) == node.inputs else Join(tuple(below))
    inputs: list[Node] = []
    for each in below:
        taken = isinstance(each, Join) and each.streams in demoted
        inputs += each.inputs if isinstance(each, Join) and taken else [each]
    return Join(tuple(inputs))


def beyond(sizes: Sizes, room: float) -> set[StreamSet]:
    """The states that have to go, the largest first, until the rest has ``room``."""
    demoted: set[StreamSet] = set()
    left = sum(sizes.values())
    for streams in sorted(sizes, key=lambda each: -sizes[each]):
        if left <= room:
            break
        demoted.add(streams)
        left -= sizes[streams]
    return demoted


def _left_deep(order: Sequence[str]) -> Node:
    tree: Node = Leaf(order[0])
    for alias in order[1:]:
        tree = Join((tree, Leaf(alias)))
    return tree


def _bushy(routing: Routing, aliases: Sequence[str]) -> Node:
    """The tree that grows by the smallest join next."""
    parts: list[tuple[Node, float]] = [(Leaf(a), float(routing.window(a))) for a in aliases]
    known: dict[tuple[StreamSet, StreamSet], tuple[int, float]] = {}

    def joined(one: tuple[Node, float], two: tuple[Node, float]) -> tuple[int, float]:
        (left, left_size), (right, right_size) = one, two
        pair = (left.streams, right.streams)
        if pair not in known:
            size = left_size * routing.fanout(*pair, right_size)
            known[pair] = (routing.looseness(*pair), size)
        return known[pair]

    while len(parts) > 1:
        pairs = [(one, two) for i, one in enumerate(parts) for two in parts[i + 1 :]]
        one, two = min(pairs, key=lambda pair: joined(*pair))
        size = joined(one, two)[1]
        parts = [each for each in parts if each is not one and each is not two]
        parts.append((Join((one[0], two[0])), size))
    return parts[0][0]
