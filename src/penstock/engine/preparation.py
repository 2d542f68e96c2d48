"""Indexes that a new plan needs are filled beside the old plan, a little with every push.

In the JISC paper all joins compare one attribute, so every window has the one hash table that any
plan needs, and a new plan can start at once. Here columns differ from join to join: after
``((A B) C)`` with A.x = B.x and A.y = C.y, the plan ``((A C) B)`` looks up A by y, which nobody has
done so far. Whoever asks first would have to look at the whole window, which for a million tuples
takes as long as dozens of pushes. So a change of plan that needs such indexes is *prepared*: the
old plan goes on, each push fills the indexes by an amount in proportion to its own work, and the
new plan takes over when they are full. Which of the two runs makes no difference to the answer.
Work is rows and matches: a plan that has become dear makes many matches, and it is just then that
the change must not be long in coming.

What a change needs is worked out from the plan (:func:`needed_indexes`): the indexes that its
probes use, and those that completing its missing states will use (:mod:`penstock.engine.missing`).
If one were forgotten, it would be filled when it is asked for: slower, and right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.engine.join_order import probe_order
from penstock.engine.join_step import Input
from penstock.engine.join_tree import JoinTree
from penstock.engine.wiring import KeyColumn, Wiring
from penstock.plan.plan import Join, Node
from penstock.plan.stream_set import StreamSet

Keys = tuple[KeyColumn, ...]
Need = tuple[Input, Keys]

_AT_ONCE = 1 << 13
"""Rows that are entered without further ado."""
_PER_PUSH = 1 << 13
_PER_ROW = 8
_PER_MATCH = 2
"""Rows that are entered per push, per row of it and per match that it made: at most about half of
what a push costs."""
_LARGE = 1 << 18
_DEARER = 4
"""In an index over so many rows, which no cache holds, an entry costs so much more."""


class Preparation:
    """Fills the indexes that a change of ``trees`` by ``strategy`` needs."""

    def __init__(self, strategy: str, needs: Sequence[Need], trees: Sequence[JoinTree]) -> None:
        self.strategy = strategy
        self._needs = list(needs)
        self._trees = list(trees)
        self._matches = self._count_matches()
        for each, keys in self._needs:
            each.begin_index(keys)

    def fill(self, rows: int) -> bool:
        """A push of ``rows`` is done: enter some more; whether all are in."""
        before, self._matches = self._matches, self._count_matches()
        most = _PER_PUSH + _PER_ROW * rows + _PER_MATCH * max(0, self._matches - before)
        ready = True
        for each, keys in self._needs:
            unfilled = each.unfilled(keys)
            if unfilled == 0:
                continue
            if most == 0:
                return False
            price = _DEARER if len(each.rows) > _LARGE else 1
            left = each.fill_index(keys, -(-most // price))
            most = max(0, most - price * (unfilled - left)) if left == 0 else 0
            ready &= left == 0
        return ready

    def _count_matches(self) -> int:
        """Matches of all probes since the start."""
        return sum(
            step.matches
            for tree in self._trees
            for operator in tree.operators
            for steps in operator.steps
            for _, step in steps
        )

    def release(self) -> None:
        """Whoever needs the indexes has them by now, or nobody does."""
        for each, keys in self._needs:
            each.release_index(keys)
        self._needs.clear()


def prepare(strategy: str, trees: Sequence[JoinTree], roots: Sequence[Node]) -> Preparation | None:
    """What has to be done before ``trees`` change to ``roots``; None if it is not worth waiting."""
    needs = {
        (id(each), keys): (each, keys)
        for tree, root in zip(trees, roots, strict=True)
        if root != tree.root
        for each, keys in needed_indexes(tree, root, strategy == "reroute")
    }
    if sum(each.unfilled(keys) for each, keys in needs.values()) <= _AT_ONCE:
        return None
    return Preparation(strategy, list(needs.values()), trees)


def needed_indexes(tree: JoinTree, root: Node, same_inputs: bool = False) -> Iterator[Need]:
    """The indexes of windows and complete states that ``root`` will probe in the place of
    ``tree``, some of them more than once. ``same_inputs``: the inputs of joins stay what they are,
    also where only some rows of a window have been admitted."""
    wiring, hashed = tree.wiring, tree.algorithm == "hash"
    found: dict[StreamSet, Input] = {leaf.streams: leaf for leaf in tree.leaves.values()}
    found.update(tree.complete_states())
    if same_inputs:
        found.update({edge.streams: edge.input for edge in tree.edges})

    def input_of(node: Node) -> Input | None:
        return found.get(node.streams)

    def parts_of(node: Node) -> Iterator[Input]:
        for child in node.inputs if isinstance(node, Join) else ():
            part = input_of(child)
            if part is not None:
                yield part
            else:
                yield from parts_of(child)

    def below(node: Node) -> Iterator[Need]:
        if not isinstance(node, Join):
            return
        streams = [each.streams for each in node.inputs]
        for position in range(len(node.inputs)):
            order = node.orders[position] if node.orders else probe_order(position, streams, wiring)
            for other, keys in _probed(position, order, streams, wiring):
                target = input_of(node.inputs[other])
                if target is None:
                    parts = list(parts_of(node.inputs[other]))
                    yield from completing(parts, keys[0], wiring, hashed)
                elif hashed:
                    yield target, keys
        for each in node.inputs:
            yield from below(each)

    return below(root)


def completing(
    parts: Sequence[Input], key: KeyColumn, wiring: Wiring, hashed: bool
) -> Iterator[Need]:
    """The indexes with which what is missing of a state is made of ``parts``, by values of
    ``key``."""
    position = next(i for i, part in enumerate(parts) if key.stream in part.streams)
    yield parts[position], (key,)
    if hashed:
        streams = [part.streams for part in parts]
        order = probe_order(position, streams, wiring)
        for other, keys in _probed(position, order, streams, wiring):
            yield parts[other], keys


def _probed(
    position: int, order: Sequence[int], streams: Sequence[StreamSet], wiring: Wiring
) -> Iterator[tuple[int, Keys]]:
    """Which input is looked up by which of its columns, along a probe order."""
    together = streams[position]
    for other in order:
        keys = tuple(theirs for _, theirs in wiring.between(together, streams[other]).keys)
        if keys:
            yield other, keys
        together = together | streams[other]
