"""Indexes over long windows that a new plan needs are filled beside the old plan, in a few pushes.

In the JISC paper all joins compare one attribute, so every window has the one hash table that any
plan needs, and a new plan can start at once. Here columns differ from join to join: after
``((A B) C)`` with A.x = B.x and A.y = C.y, the plan ``((A C) B)`` looks up A by y, which nobody has
done so far. To enter a row takes 6 to 14 ns, so a window of a million takes as long as one push of
30,000 rows, twenty of 3,000, or eighty of one row. So the rows that a push may enter are in
proportion to its own work (:data:`_ROWS_PER_PUSH` and those below: two to three normal pushes). If
that is enough, the new plan runs from the next push on; else the old plan goes on for the few
pushes until all are in, since nobody can probe an index that lacks rows. Which of the two runs
makes no difference to the answer. Everything else that a new plan needs is made when it takes over.

**Changes that overlap.** A window keeps an index for which a change has begun, or which a plan has
used, for as long as as many rows come as the window holds (:class:`KeptIndexes`). To keep an index
up to date for that long costs as much as to fill it once, so whoever keeps it pays at most twice
what somebody who knows the next change would pay (it is the problem of hiring skis). What has been
filled of it is not lost when another change is asked for, and filling goes on.

What a change needs is worked out from the plan (:func:`needed_indexes`): the indexes that its
probes use, and those that completing its missing states will use
(:mod:`penstock.engine.completion.missing`). If one were forgotten, it would be filled when it is
asked for: slower, and right.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from penstock.engine.completion.missing import entrance
from penstock.engine.join.join_order import probe_order
from penstock.engine.join.join_step import Input
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.tree.join_tree import JoinTree
from penstock.plan.plan import Join, Node
from penstock.plan.stream_set import StreamSet
from penstock.values.wiring import KeyColumn, Wiring

Keys = tuple[KeyColumn, ...]
Need = tuple[Input, Keys]

_ROWS_PER_PUSH = 1 << 15
_ROWS_PER_ROW = 48
_ROWS_PER_MATCH = 12
"""Rows that are entered beside a push, per push, per row of it and per match that it made: at most
two to three times what a push costs."""


class Preparation:
    """Fills the indexes ``needs`` before the plan of ``trees`` changes by ``strategy``."""

    def __init__(self, strategy: str, needs: Sequence[Need], trees: Sequence[JoinTree]) -> None:
        self.strategy = strategy
        self._needs = needs
        self._work = PushWork(trees)
        for each, keys in needs:
            each.begin_index(keys)

    def go_on(self, rows: int) -> None:
        """A push of ``rows`` is done: enter some more."""
        fill(self._needs, self._work.allowance(rows))

    @property
    def is_done(self) -> bool:
        """Whether all rows are in: new ones are entered as they come."""
        return all(each.unfilled(keys) == 0 for each, keys in self._needs)

    def release(self) -> None:
        """Let go of the indexes: the new plan has them by now, or they are kept, or neither."""
        for each, keys in self._needs:
            each.release_index(keys)
        self._needs = ()


class PushWork:
    """How many rows may be entered into indexes beside a push."""

    def __init__(self, trees: Sequence[JoinTree]) -> None:
        self._trees = list(trees)
        self._matches = self._count_matches()

    def allowance(self, rows: int) -> int:
        """Rows, after a push of ``rows``."""
        before, self._matches = self._matches, self._count_matches()
        matches = max(0, self._matches - before)
        return allowance(rows) + _ROWS_PER_MATCH * matches

    def _count_matches(self) -> int:
        """Matches of all probes since the start."""
        return sum(
            step.matches
            for tree in self._trees
            for operator in tree.operators
            for steps in operator.steps
            for _, step in steps
        )


@dataclass
class _Kept:
    window: LeafWindow
    keys: Keys
    until: int
    """Head of the window at which the index is let go."""


class KeptIndexes:
    """Indexes of windows that no plan that runs needs, for the changes of plan to come."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, Keys], _Kept] = {}

    def keep(self, trees: Iterable[JoinTree]) -> None:
        """Keep what the windows of ``trees`` have, for as many more rows as there are."""
        for tree in trees:
            for window in tree.leaves.values():
                for keys in window.indexed:
                    found = self._kept.get((id(window), keys))
                    if found is None:
                        window.begin_index(keys)
                        found = self._kept[id(window), keys] = _Kept(window, keys, 0)
                    found.until = window.rows.head + len(window.rows)

    def look_after(self, rows: int) -> None:
        """A push of ``rows`` is done: let go of what was kept long enough, and go on with what is
        not filled."""
        for key, each in list(self._kept.items()):
            if each.window.rows.head >= each.until:
                del self._kept[key]
                each.window.release_index(each.keys)
        fill([(each.window, each.keys) for each in self._kept.values()], allowance(rows))

    def give_up(self) -> None:
        """Keep nothing."""
        for each in self._kept.values():
            each.window.release_index(each.keys)
        self._kept = {}

    def __len__(self) -> int:
        return len(self._kept)


def allowance(rows: int) -> int:
    """Rows that may be entered into indexes beside a push of ``rows``."""
    return _ROWS_PER_PUSH + _ROWS_PER_ROW * rows


def fill(needs: Iterable[Need], most: int) -> None:
    """Enter up to ``most`` rows into indexes that lack them."""
    for each, keys in needs:
        unfilled = each.unfilled(keys)
        if unfilled and most > 0:
            left = each.fill_index(keys, most)
            most = most - (unfilled - left) if left == 0 else 0


def prepare(
    strategy: str, trees: Sequence[JoinTree], roots: Sequence[Node], latest: int
) -> Preparation | None:
    """What has to be done before ``trees`` change to ``roots``; None if it is not worth waiting.

    ``latest`` are the rows of the latest push.
    """
    needs = {
        (id(each), keys): (each, keys)
        for tree, root in zip(trees, roots, strict=True)
        if root != tree.root
        for each, keys in needed_indexes(tree, root, strategy == "reroute")
    }
    if sum(each.unfilled(keys) for each, keys in needs.values()) <= allowance(latest):
        return None
    return Preparation(strategy, list(needs.values()), trees)


def needed_indexes(tree: JoinTree, root: Node, same_inputs: bool = False) -> Iterator[Need]:
    """The indexes of windows and complete states that ``root`` will probe in the place of
    ``tree``, some of them more than once. ``same_inputs``: the inputs of joins stay what they are,
    also where only some rows of a window have been admitted."""
    found: dict[StreamSet, Input] = {leaf.streams: leaf for leaf in tree.leaves.values()}
    found.update(tree.complete_states())
    if same_inputs:
        found.update({edge.streams: edge.input for edge in tree.edges})
    for streams, keys in _needed_keys(
        root, frozenset(found), tree.wiring, tree.algorithm == "hash"
    ):
        yield found[streams], keys


@functools.lru_cache(maxsize=256)  # Plans come back.
def _needed_keys(
    root: Node, present: frozenset[StreamSet], wiring: Wiring, hashed: bool
) -> tuple[tuple[StreamSet, Keys], ...]:
    """By which columns inputs will be looked up, if those of the streams ``present`` are there."""
    seen: set[tuple[StreamSet, KeyColumn]] = set()

    def completing(node: Join, key: KeyColumn) -> Iterator[tuple[StreamSet, Keys]]:
        """What the state of ``node`` is completed with, by values of ``key``."""
        if (node.streams, key) in seen:
            return
        seen.add((node.streams, key))
        streams = [each.streams for each in node.inputs]
        known = [(each, each in present) for each in streams]
        position, column = entrance(key, known, wiring)
        yield from asking(node.inputs[position], (column,))
        yield from probing(node, position, probe_order(position, streams, wiring))

    def asking(node: Node, keys: Keys) -> Iterator[tuple[StreamSet, Keys]]:
        """What is needed to look up an input by ``keys``."""
        if node.streams in present:
            yield node.streams, keys
        elif isinstance(node, Join):
            yield from completing(node, keys[0])

    def probing(
        node: Join, position: int, order: Sequence[int]
    ) -> Iterator[tuple[StreamSet, Keys]]:
        """What the rows of an input of ``node`` look up."""
        streams = [each.streams for each in node.inputs]
        for other, keys in _probed(position, order, streams, wiring):
            if hashed or streams[other] not in present:
                yield from asking(node.inputs[other], keys)

    def below(node: Node) -> Iterator[tuple[StreamSet, Keys]]:
        if not isinstance(node, Join):
            return
        streams = [each.streams for each in node.inputs]
        for position in range(len(node.inputs)):
            order = node.orders[position] if node.orders else probe_order(position, streams, wiring)
            yield from probing(node, position, order)
        for each in node.inputs:
            yield from below(each)

    return tuple(below(root))


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
