"""What the states of a tree lack after a change of plan, from the change until nothing does.

How one state is completed is in :mod:`penstock.engine.completion.missing`; here is what they share.
*Before* the change the way to complete each state is laid, and it gets room for all of its rows
(:mod:`penstock.engine.tree.expected_rows`), so that it need not move in a push. *At* the change the
ends of the windows are noted: what lies before them is old. States that only the older plan had
leave their memory to those that are to be filled. *After* it, pushes complete what they ask for,
and some more is completed beside them (:meth:`TreeCompletion.complete_beside`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.engine.completion.missing import Missing
from penstock.engine.feedback.edge import Edge
from penstock.engine.state.bookmark import Bookmark
from penstock.engine.state.composite_state import CompositeState
from penstock.engine.state.page_by_page import clear_in_pieces
from penstock.engine.state.row_bits import Bytes, RowBits
from penstock.engine.state.spare_memory import SpareMemory
from penstock.engine.tree.expected_rows import expected_rows
from penstock.engine.tree.operator_tree import OperatorTree
from penstock.plan.stream_set import StreamSet

_ROWS_WORTH_COMPLETING = 1024
"""Old rows and combinations that are completed beside a push, at least: fewer wait for the next."""
_COMPLETED_PER_ROW = 2
"""Old rows and combinations that are completed for each row pushed: about half its work."""


class TreeCompletion:
    """Completes the states of ``tree``."""

    def __init__(self, tree: OperatorTree, spare: SpareMemory | None) -> None:
        """``spare`` is memory that may be used for what is missing."""
        self._tree = tree
        self.missing: list[Missing] = []
        """States that lack combinations since a change of plan."""
        self.spare = SpareMemory() if spare is None else spare
        """Memory for what is missing."""
        self._has_given_up = False
        self._allowed = 0
        """Rows and combinations that may be completed beside the next push."""
        self._bounds: dict[str, Bookmark] = {}
        """The ends of windows at the change of plan, while something is missing."""
        self._memory: dict[int, Bytes] = {}
        """Memory for a bit per row that states are completed with, by the edge it comes from."""

    # -- before the change, and at it --------------------------------------------------------

    def prepare(self) -> Iterator[bool]:
        """Get ready for what will be missing: the way to complete it, and memory."""
        for edge in self._tree.from_below():
            if isinstance(edge.source, CompositeState) and edge.streams not in self._tree.carried:
                edge.source.missing = self._missing_of(edge, edge.source)
        self.get_ready()
        for edge in self._tree.from_below():
            if isinstance(edge.source, CompositeState) and edge.source.missing is not None:
                expected = self._expected_rows(edge)
                yield True
                yield from edge.source.make_room_to_complete(expected, self.spare)
                for child in edge.children:
                    memory = RowBits.memory_for(len(child.source.rows) * 9 // 8)
                    self._memory[id(child)] = memory
                    yield from clear_in_pieces([memory])
                yield True

    def _missing_of(self, edge: Edge, state: CompositeState) -> Missing:
        tree = self._tree
        sources = [child.source for child in edge.children]
        return Missing(state, sources, tree.wiring, tree.leaves, tree.algorithm)

    def _expected_rows(self, edge: Edge) -> int:
        """How many rows the state of ``edge`` is going to have; what that took is not counted."""
        counts = self._tree.counts.copy()
        expected = expected_rows(edge)
        self._tree.counts[:] = counts
        return expected

    def get_ready(self) -> None:
        """Take over the indexes that completing on demand will use, before others let them go."""
        for step in self._tree.steps():
            step.get_ready_to_complete()

    def begin(self) -> None:
        """What is not carried over is missing from now on: it is made of the join's inputs."""
        tree = self._tree
        self._bounds = {alias: Bookmark(leaf.rows) for alias, leaf in tree.leaves.items()}
        for edge in tree.from_below():
            if not isinstance(edge.source, CompositeState):
                continue
            state = edge.source
            state.rows.low = state.rows.tail
            if edge.streams in tree.carried or any(s in tree.since for s in edge.streams):
                continue
            sources = [child.source for child in edge.children]
            if all(len(each.rows) or each.missing is not None for each in sources):
                missing = state.missing
                if not isinstance(missing, Missing):
                    missing = state.missing = self._missing_of(edge, state)
                memory = [self._memory.get(id(child)) for child in edge.children]
                missing.note_old_rows(self._bounds, memory)
                self.missing.append(missing)
            elif state.missing is not None:
                state.missing.dispose()
                state.missing = state.rows.spare = None
        self._memory = {}

    def inherit(self, old: TreeCompletion, states: Sequence[CompositeState]) -> None:
        """What is missing grows in the memory of the ``states`` that the ``old`` tree alone had,
        which is disposed of next."""
        if not self.missing:
            self._settle()
            return
        carried = {id(state) for state in self._tree.states}
        dropped = [state.rows.block for state in states if id(state) not in carried]
        blocks = [*old.spare.blocks, *(block for block in dropped if block is not None)]
        self.spare = SpareMemory(sorted(blocks, key=len)[-len(self.missing) :])
        for missing in self.missing:
            missing.state.rows.spare = self.spare

    # -- after it ----------------------------------------------------------------------------

    def begin_push(self) -> None:
        """A push comes next: it may ask for what is missing."""
        for missing in self.missing:
            missing.begin()

    def undo(self) -> None:
        """The push has failed."""
        for missing in self.missing:
            missing.undo()

    def complete_all(self) -> None:
        """Make all that is missing, now."""
        self.begin_push()
        for missing in self.missing:
            missing.complete_all()

    def complete_beside(self, rows: int) -> bool:
        """A push of ``rows`` is done: complete some more, about half as much work as it was.

        After small pushes that is put off until it is worth the calls; whether it was not.
        """
        self._allowed += _COMPLETED_PER_ROW * rows
        if self._allowed < _ROWS_WORTH_COMPLETING:
            return False
        most, self._allowed = self._allowed, 0
        for missing in self.missing:
            missing.begin()
            most -= missing.complete_beside(most)
            if most <= 0:
                break
        return True

    def give_up(self) -> list[StreamSet]:
        """Do without what is missing: states are thin from now on; those of which joins."""
        thin = [missing.state.streams for missing in self.missing]
        for missing in self.missing:
            self._end(missing)
        self.missing = []
        self._settle()
        self._has_given_up = True
        return thin

    @property
    def may_be_over(self) -> bool:
        """Whether a push may have been the last that found something missing."""
        return bool(self.missing) or self._has_given_up

    def finish(self) -> bool:
        """States that lack nothing any more are like any other; whether there are such."""
        self._has_given_up = False
        left = []
        for missing in self.missing:
            missing.commit()
            if missing.is_over:
                self._end(missing)
            else:
                left.append(missing)
        is_less = len(left) < len(self.missing)
        self.missing = left
        if not left:
            self._forget_bounds()
            self._settle()
        return is_less

    def _end(self, missing: Missing) -> None:
        missing.state.missing = missing.state.rows.spare = None
        missing.dispose()

    # -- memory ------------------------------------------------------------------------------

    def expect_change(self) -> None:
        """A change of plan is being prepared: until it is over, pushes have enough to do, and are
        not to wait for huge pages."""
        for each in (*self._tree.leaves.values(), *self._tree.states):
            each.rows.give_page_by_page(True)

    def _settle(self) -> None:
        """Nothing is missing any more."""
        self.spare = SpareMemory()
        for each in (*self._tree.leaves.values(), *self._tree.states):
            each.rows.give_page_by_page(False)

    def _forget_bounds(self) -> None:
        for bound in self._bounds.values():
            bound.dispose()
        self._bounds = {}

    def dispose(self) -> None:
        """Another tree takes over."""
        for state in self._tree.states:
            if state.missing is not None:
                state.missing.dispose()
        self._forget_bounds()
        self.missing = []
