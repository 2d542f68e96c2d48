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

Where pushes are of few rows, they take less time than it takes to work out what is needed and to
make the operators of the new plan. Over long windows these are steps of their own then, each after
another push: what is needed; the indexes; the new tree, one operator at a time; memory for what
will be missing (:mod:`penstock.engine.tree.expected_rows`), a piece at a time; and the push as one
call. What is built beside the old plan has no part in it until it takes over. If a state of the old
plan has become complete or incomplete meanwhile, it is built once more, at once.

What a change needs is worked out from the plan (:func:`needed_indexes`): the indexes that its
probes use, and those that completing its missing states will use
(:mod:`penstock.engine.completion.missing`). If one were forgotten, it would be filled when it is
asked for: slower, and right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from penstock.engine.completion.missing import entrance
from penstock.engine.join.join_order import probe_order
from penstock.engine.join.join_step import Input
from penstock.engine.tree.join_tree import JoinTree
from penstock.plan.plan import Join, Node
from penstock.plan.stream_set import StreamSet
from penstock.values.wiring import KeyColumn, Wiring

Keys = tuple[KeyColumn, ...]
Need = tuple[Input, Keys]

_ROWS_AT_ONCE = 1 << 13
"""Rows that are entered without further ado."""
_SMALL_PUSH_ROWS = 64
"""A push of fewer rows takes no longer than to work out what is needed."""
_BRIEF_INDEX_ROWS = 1 << 13
"""Rows below which an index takes no longer to fill than a tree to make."""
_PUSHES_IN_A_LONG_WINDOW = 64
"""Pushes whose rows windows hold at least, where nothing at all need be done at once."""
_WORK_PER_PART = 1024
"""Rows and matches of a push that takes as long as to build a part of a tree."""
_ROWS_PER_PUSH = 1 << 13
_ROWS_PER_ROW = 8
_ROWS_PER_MATCH = 2
"""Rows that are entered per push, per row of it and per match that it made: at most about half of
what a push costs."""
_UNCACHED_ROWS = 1 << 18
"""Rows of an index from which on no cache holds it."""
_UNCACHED_COST = 4
"""Times more that an entry costs there."""


class Preparation:
    """Prepares a change of ``trees`` by ``strategy``."""

    def __init__(
        self,
        strategy: str,
        needs: Callable[[], Sequence[Need]],
        trees: Sequence[JoinTree],
        roots: Sequence[Node] | None = None,
    ) -> None:
        """``needs`` are worked out beside a push, unless :meth:`begin` is called. If ``roots`` are
        given, new trees are built for them, in steps."""
        self.strategy = strategy
        self.successors: dict[int, JoinTree] = {}
        """New trees, by the number of the old one."""
        self._find = needs
        self._needs: Sequence[Need] | None = None
        self._trees = list(trees)
        self._matches = 0
        self._roots = roots
        self._to_build: list[JoinTree] | None = None if roots is not None else []
        self._has_rested = roots is None
        """Whether a push was spared all this: the first has the call of ``migrate`` beside it."""

    def begin(self) -> None:
        """Work out what is needed."""
        self._needs = self._find()
        self._matches = self._count_matches()
        if self._roots is not None:
            for tree in self._trees:
                tree.completion.expect_change()
        for each, keys in self._needs:
            each.begin_index(keys)

    def go_on(self, rows: int) -> None:
        """A push of ``rows`` is done: do some more."""
        if not self._has_rested:
            self._has_rested = True
        elif self._needs is None:
            self.begin()
        else:
            before, self._matches = self._matches, self._count_matches()
            matches = max(0, self._matches - before)
            if self._is_filled:
                self._build(1 + (rows + matches) // _WORK_PER_PART)
            else:
                self._fill(
                    self._needs, _ROWS_PER_PUSH + _ROWS_PER_ROW * rows + _ROWS_PER_MATCH * matches
                )

    def _fill(self, needs: Sequence[Need], most: int) -> None:
        for each, keys in needs:
            unfilled = each.unfilled(keys)
            if unfilled and most:
                price = _UNCACHED_COST if len(each.rows) > _UNCACHED_ROWS else 1
                left = each.fill_index(keys, -(-most // price))
                most = max(0, most - price * (unfilled - left)) if left == 0 else 0

    def _build(self, parts: int) -> None:
        """Build so many more parts of the new trees."""
        if self._to_build is None:
            for number, (old, root) in enumerate(zip(self._trees, self._roots or (), strict=True)):
                if root != old.root:
                    carried = old.complete_states()
                    self.successors[number] = old.successor(root, carried, in_steps=True)
            self._to_build = list(self.successors.values())
        for _ in range(parts):
            if self._to_build and not self._to_build[0].build():
                self._to_build.pop(0)

    @property
    def _is_filled(self) -> bool:
        """Whether all rows are in: new ones are entered as they come."""
        needs = self._needs
        return needs is not None and all(each.unfilled(keys) == 0 for each, keys in needs)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return self._is_filled and self._to_build == []

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
        for each, keys in self._needs or ():
            each.release_index(keys)
        self._needs = None
        for tree in self.successors.values():
            tree.dispose()
        self.successors = {}


def prepare(
    strategy: str, trees: Sequence[JoinTree], roots: Sequence[Node], latest: int
) -> Preparation | None:
    """What has to be done before ``trees`` change to ``roots``; None if it is not worth waiting.

    ``latest`` are the rows of the latest push.
    """

    def find() -> list[Need]:
        needs = {
            (id(each), keys): (each, keys)
            for tree, root in zip(trees, roots, strict=True)
            if root != tree.root
            for each, keys in needed_indexes(tree, root, strategy == "reroute")
        }
        return list(needs.values())

    held = sum(len(leaf.rows) for tree in trees for leaf in tree.leaves.values())
    is_long = held > _ROWS_AT_ONCE
    brief = held // _PUSHES_IN_A_LONG_WINDOW
    in_steps = (
        roots if is_long and latest < max(_BRIEF_INDEX_ROWS, brief) and strategy == "jisc" else None
    )
    if is_long and latest < max(_SMALL_PUSH_ROWS, brief):
        return Preparation(strategy, find, trees, in_steps)
    needs = find()
    if in_steps is None and sum(each.unfilled(keys) for each, keys in needs) <= _ROWS_AT_ONCE:
        return None
    preparation = Preparation(strategy, lambda: needs, trees, in_steps)
    preparation.begin()
    return preparation


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

    seen: set[tuple[StreamSet, KeyColumn]] = set()

    def completing(node: Join, key: KeyColumn) -> Iterator[Need]:
        """What the state of ``node`` is completed with, by values of ``key``."""
        if (node.streams, key) in seen:
            return
        seen.add((node.streams, key))
        streams = [each.streams for each in node.inputs]
        known = [(each.streams, input_of(each) is not None) for each in node.inputs]
        position, column = entrance(key, known, wiring)
        yield from asking(node.inputs[position], (column,))
        yield from probing(node, position, probe_order(position, streams, wiring))

    def asking(node: Node, keys: Keys) -> Iterator[Need]:
        """What is needed to look up an input by ``keys``."""
        present = input_of(node)
        if present is not None:
            yield present, keys
        elif isinstance(node, Join):
            yield from completing(node, keys[0])

    def probing(node: Join, position: int, order: Sequence[int]) -> Iterator[Need]:
        """What the rows of an input of ``node`` look up."""
        streams = [each.streams for each in node.inputs]
        for other, keys in _probed(position, order, streams, wiring):
            if hashed or input_of(node.inputs[other]) is None:
                yield from asking(node.inputs[other], keys)

    def below(node: Node) -> Iterator[Need]:
        if not isinstance(node, Join):
            return
        streams = [each.streams for each in node.inputs]
        for position in range(len(node.inputs)):
            order = node.orders[position] if node.orders else probe_order(position, streams, wiring)
            yield from probing(node, position, order)
        for each in node.inputs:
            yield from below(each)

    return below(root)


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
