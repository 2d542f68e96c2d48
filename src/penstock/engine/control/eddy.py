"""Eddies: plans that choose their own routes, and change them as the streams change.

JISC compares itself with three (sections 3.1, 3.2 and 4.6). In each, an eddy decides where rows go
next, and stored state stands beside it instead of inside join operators.

- ``cacq``: one SteM per stream (its window with the indexes that somebody probes) and nothing
  stored in between. That is an mjoin whose probe orders are the eddy's to choose: a SteM's insert
  is an append to the window, its probe a step of a probe order, and the bits that tell where a
  tuple has been are the position in that order, kept once per batch instead of once per tuple. To
  change a route costs nothing, since nothing depends on it.
- ``stairs``: STAIRs hold intermediate results, one for each prefix of the route that all streams
  share, which is a left-deep tree. On a change of route, what no prefix of the new one has is
  demoted (dropped), and what the new one needs is promoted (made), all at once: moving state.
- ``stairs-lazy``: JISC on STAIRs (section 4.6). Promotion waits until somebody probes for a key.

The eddy looks at its routes from time to time, counted in rows; no clock is read, and the same
input gives the same routes. A route is changed when another promises to make a fifth fewer partial
results (:mod:`penstock.engine.control.routing`), and reviews that change nothing become rarer.

**Feedback through the eddy** (JIT, section V: every SteM is consumer and producer, and a
non-demanded sub-tuple goes through the eddy to all SteMs that may hold it). Here a guard stands
before a SteM and asks whether a row has a partner in another SteM. Whatever its route, a row is in
no result without such a partner; so guards do not depend on routes, and re-routing leaves them and
those who wait where they are. Which SteM may wait for which is a fixed order of the streams
(:mod:`penstock.engine.feedback.edge`), not the order of the route: otherwise two could wait for
each other. With STAIRs the guards of the tree are made anew on a change, as for any change of plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.engine.control.routing import Counts, Routing, counts_of
from penstock.engine.tree.join_tree import JoinTree
from penstock.plan.plan import Join, Leaf, Node, Plan
from penstock.query.join_graph import JoinGraph

EDDIES = {"cacq": "reroute", "stairs": "moving-state", "stairs-lazy": "jisc"}
"""The strategy by which each changes its routes."""

_FIRST = 1024
_INTERVAL = 16384
_PER_STREAM = 2048
_LONGEST = 8
_GAIN = 0.8
"""A new route may promise this share of the partial results of the old one, at most."""


class Eddy:
    """Chooses the routes of all blocks of a query."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.changes = 0
        """Changes of routes so far."""
        self._rows = 0
        self._next = _FIRST
        self._patience = 1
        self._before: dict[int, Counts] = {}

    @classmethod
    def of(cls, plan: Any) -> Eddy | None:
        """The eddy that the option ``plan`` asks for, if it does."""
        return cls(plan) if isinstance(plan, str) and plan in EDDIES else None

    @property
    def strategy(self) -> str:
        """How routes are changed."""
        return EDDIES[self.kind]

    def first_plan(self, query: JoinGraph) -> Plan:
        """Routes before anything is known: in the order of the query."""
        first, *others = (self._first_root(block) for block in query.blocks)
        return Plan(first, tuple(others))

    def _first_root(self, block: JoinGraph) -> Node:
        leaves = tuple(Leaf(alias) for alias in block.aliases)
        if len(leaves) == 1:
            return leaves[0]
        return Join(leaves) if self.kind == "cacq" else _left_deep(block.aliases)

    def review(self, rows: int, trees: Sequence[JoinTree]) -> Plan | None:
        """``rows`` more have come: other routes, if they are worth it."""
        self._rows += rows
        if self._rows < self._next:
            return None
        roots = [self._reviewed(number, tree) for number, tree in enumerate(trees)]
        changed = any(root != tree.root for root, tree in zip(roots, trees, strict=True))
        self._patience = 1 if changed else min(2 * self._patience, _LONGEST)
        streams = sum(len(tree.leaves) for tree in trees)
        self._next = self._rows + max(_INTERVAL, _PER_STREAM * streams) * self._patience
        self.begin_period(trees)
        if not changed:
            return None
        self.changes += 1
        return Plan(roots[0], tuple(roots[1:]))

    def begin_period(self, trees: Sequence[JoinTree]) -> None:
        """Count from here on."""
        self._before = {number: counts_of(tree) for number, tree in enumerate(trees)}

    def _reviewed(self, number: int, tree: JoinTree) -> Node:
        root = tree.root
        if not isinstance(root, Join) or len(tree.leaves) < 3:
            return root
        routing = Routing(tree, self._before.get(number, {}))
        return self._rerouted(root, routing) if self.kind == "cacq" else _regrown(root, routing)

    def _rerouted(self, root: Join, routing: Routing) -> Join:
        """The mjoin with the better routes in the place of those that are worse."""
        names = [min(each.streams) for each in root.inputs]
        orders = []
        for position, start in enumerate(names):
            best = routing.route(start)
            if root.orders:
                present = [names[other] for other in root.orders[position]]
                worse = routing.partial_results(start, present)
                if routing.partial_results(start, best) > _GAIN * worse:
                    orders.append(root.orders[position])
                    continue
            orders.append(tuple(names.index(alias) for alias in best))
        return Join(root.inputs, tuple(orders))


def _regrown(root: Join, routing: Routing) -> Node:
    """The left-deep tree with the smallest states, if the present one is much larger."""
    present = _order_of(root)
    best = min(((start, *routing.route(start)) for start in present), key=routing.size)
    if frozenset(best[:2]) == frozenset(present[:2]) and best[2:] == present[2:]:
        return root
    worth = routing.size(best) < _GAIN * routing.size(present)
    return _left_deep(best) if worth else root


def _left_deep(order: Sequence[str]) -> Join:
    tree: Node = Leaf(order[0])
    for alias in order[1:]:
        tree = Join((tree, Leaf(alias)))
    assert isinstance(tree, Join)
    return tree


def _order_of(root: Node) -> tuple[str, ...]:
    """The streams of a left-deep tree from the bottom up."""
    if isinstance(root, Leaf):
        return (root.stream,)
    below, leaf = root.inputs
    return (*_order_of(below), *_order_of(leaf))
