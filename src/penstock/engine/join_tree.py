"""The running tree of one block: leaf windows below, join operators above.

A push goes through it bottom-up. All deltas of a join's inputs are stored before the join looks at
them; bounds on row numbers then give each probe the old or the new contents
(:mod:`penstock.engine.join_operator`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.engine.arrival import Arrival
from penstock.engine.clock import START
from penstock.engine.composite_state import CompositeState
from penstock.engine.composites import Composites, none_of
from penstock.engine.join_operator import JoinOperator
from penstock.engine.join_step import Algorithm, Input
from penstock.engine.leaf_window import LeafWindow
from penstock.engine.wiring import Wiring
from penstock.plan.plan import Leaf, Node

_WORTH_HIDING = 1024

Marks = tuple[list[int], list[int]]


@dataclass(frozen=True, slots=True)
class _Task:
    """One operator, and where the deltas of its inputs come from: a stream or an earlier task."""

    operator: JoinOperator
    origins: tuple[str | int, ...]


class JoinTree:
    """Runs the plan ``root`` over ``leaves``."""

    def __init__(
        self,
        root: Node,
        wiring: Wiring,
        leaves: Mapping[str, LeafWindow],
        algorithm: Algorithm,
    ) -> None:
        self.root = root
        self.leaves = {alias: leaves[alias] for alias in leaves if alias in root.streams}
        self._tasks: list[_Task] = []
        self._counts: list[int] = []
        """What operators and steps count, in one list: a failed push puts it back in one go."""
        self._nothing = none_of(sorted(root.streams))
        self._unhidden = 0
        self._hidden = START
        """What died before this instant is hidden from probes; later pushes go on from there."""

        def build(node: Node, stored: bool) -> tuple[str | int, Input | None]:
            if isinstance(node, Leaf):
                return node.stream, self.leaves[node.stream]
            origins, inputs = [], []
            for each in node.inputs:
                origin, rows = build(each, stored=True)
                assert rows is not None
                origins.append(origin)
                inputs.append(rows)
            state = CompositeState(node.streams, self.leaves) if stored else None
            operator = JoinOperator(
                node, inputs, wiring, self.leaves, algorithm, state, self._counts
            )
            self._tasks.append(_Task(operator, tuple(origins)))
            return len(self._tasks) - 1, state

        build(root, stored=False)
        self.operators = [task.operator for task in self._tasks]
        self.states = [op.state for op in self.operators if op.state is not None]

    @property
    def nbytes(self) -> int:
        """Bytes of all windows and states."""
        return sum(leaf.nbytes for leaf in self.leaves.values()) + sum(
            state.nbytes for state in self.states
        )

    def push(self, arrivals: Mapping[str, Arrival]) -> Composites:
        """Store the new rows of each stream; the results that they complete."""
        return self.process(
            {alias: self.leaves[alias].append(new) for alias, new in arrivals.items() if len(new)}
        )

    def begin_slice(self, first: int, last: int, count: int) -> None:
        """``count`` new rows, born from ``first`` to ``last``, come next.

        What died before can be hidden from their probes. That shortens chains but costs a walk, so
        small pushes do it only once for many rows.
        """
        for operator in self.operators:
            operator.extent = last - first
        if first < self._hidden:
            self._hidden = START
            for leaf in self.leaves.values():
                leaf.rows.low = leaf.rows.tail
            for state in self.states:
                state.rows.low = state.rows.tail
        self._unhidden += count
        if self._unhidden >= _WORTH_HIDING:
            self._hidden, self._unhidden = first, 0
            for leaf in self.leaves.values():
                leaf.rows.hide_before(first)
            for state in self.states:
                state.hide()

    def process(self, deltas: Mapping[str, Composites]) -> Composites:
        """The results of ``deltas``, the newest rows of the leaves, which already hold them."""
        if not self._tasks:
            (stream,) = self.leaves
            return deltas.get(stream, self._nothing)
        made: list[Composites | None] = []
        for task in self._tasks:
            below: list[Composites | None] = []
            old_heads: list[int] = []
            busy = False
            for origin, rows in zip(task.origins, task.operator.inputs, strict=True):
                delta = deltas.get(origin) if isinstance(origin, str) else made[origin]
                head = rows.rows.head
                if delta is None or len(delta) == 0:
                    delta = None
                else:
                    busy = True
                    head = (
                        int(delta.ids[origin][0]) if isinstance(origin, str) else head - len(delta)
                    )
                below.append(delta)
                old_heads.append(head)
            if not busy:
                made.append(None)
                continue
            result = task.operator.process(below, old_heads)
            if task.operator.state is not None and len(result):
                task.operator.state.append(result)
            made.append(result)
        return made[-1] if made[-1] is not None else self._nothing

    def marks(self) -> Marks:
        """Where every window and state ends now, and what was counted."""
        heads = [leaf.rows.head for leaf in self.leaves.values()]
        heads += [state.rows.head for state in self.states]
        return heads, self._counts.copy()

    def undo(self, marks: Marks) -> None:
        """Go back to ``marks``."""
        heads = iter(marks[0])
        self._counts[:] = marks[1]
        self._hidden = START
        for leaf in self.leaves.values():
            leaf.undo(next(heads))
        for state in self.states:
            state.rows.truncate(next(heads))

    def shorten(self, found: Composites) -> None:
        """Bring the deaths of ``found`` down to the present deaths of its leaf rows."""
        for leaf in self.leaves.values():
            leaf.shorten_by_id(found)
