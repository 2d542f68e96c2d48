"""What the states of a tree lack after a change of plan, from the change until nothing does.

How one state is completed is in :mod:`penstock.engine.completion.missing`; here is what they share.
*At* the change the ends of the windows are noted: what lies before them is old. A state that both
plans have is carried over with what it lacks (section 4.5 of the paper: transitions may overlap),
and goes on being completed of the inputs that it had, which stay for that if the new plan does not
have them. States that only the older plan had leave their memory to those that are to be filled.
*After* the change, pushes complete what they ask for, and some more is completed beside them
(:meth:`TreeCompletion.complete_beside`).
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.engine.completion.change_time import ChangeTime
from penstock.engine.completion.missing import Missing
from penstock.engine.completion.trial import COMPLETED_PER_ROW, LEAST_PER_ROW, Trial, Work
from penstock.engine.state.composite_state import CompositeState
from penstock.engine.state.spare_memory import SpareMemory
from penstock.engine.tree.operator_tree import OperatorTree
from penstock.plan.stream_set import StreamSet

_ROWS_WORTH_COMPLETING = 1024
"""Old rows and combinations that are completed beside a push, at least: fewer wait for the next."""


_FIRST_LOT_ROWS = 1 << 8
_LOT_GROWTH = 8
_LARGEST_LOT_ROWS = 1 << 13
"""Rows that are completed at a time while it is tried how long all would take."""
_LOTS_THAT_TELL = 2
"""Lots after which that is known: with the second the state may get its room, which is not for
these rows alone."""


def _seconds_of_a_row(lots: list[tuple[int, float]]) -> float:
    """CPU seconds that one more row takes, by the latest ``lots`` of rows and seconds: without what
    a lot takes however small it is, if one of them was smaller."""
    rows, seconds = lots[-1]
    if len(lots) > 1:
        fewer, less = lots[-2]
        if rows > 2 * fewer and seconds > less:
            return (seconds - less) / (rows - fewer)
    return max(seconds / max(1, rows), LEAST_PER_ROW)


class TreeCompletion:
    """Completes the states of ``tree``."""

    def __init__(self, tree: OperatorTree, time: ChangeTime) -> None:
        self._tree = tree
        self.time = time
        """Record of what completing takes, in this tree and those before it."""
        self.missing: list[Missing] = []
        """States that lack combinations since a change of plan."""
        self.spare = SpareMemory()
        """Memory for what is missing."""
        self._has_given_up = False
        self._allowed = 0
        """Rows and combinations that may be completed beside the next push."""
        self.remnants: list[CompositeState] = []
        """States that the plan does not have, of which carried states are completed."""

    # -- the change --------------------------------------------------------------------------

    def get_ready(self) -> None:
        """Take over the indexes that completing on demand will use, before others let them go."""
        for step in self._tree.steps():
            step.get_ready_to_complete()

    def begin(self) -> None:
        """What is not carried over is missing from now on: it is made of the join's inputs.

        What a carried state lacks is made as before, of the inputs that its join had. Where the
        new plan does not have these, they stay for that, as :attr:`remnants`.
        """
        tree = self._tree
        own = {id(edge.source) for edge in tree.edges}
        for edge in tree.from_below():
            if not isinstance(edge.source, CompositeState):
                continue
            state = edge.source
            state.rows.low = state.rows.tail
            if isinstance(state.missing, Missing):
                self._take(state.missing, own)
            if edge.streams in tree.carried or any(s in tree.since for s in edge.streams):
                continue
            sources = [child.source for child in edge.children]
            if all(len(each.rows) or each.missing is not None for each in sources):
                missing = state.missing = Missing(
                    state, sources, tree.wiring, tree.leaves, tree.algorithm, self.time
                )
                missing.note_old_rows()
                self.missing.append(missing)

    def _take(self, missing: Missing, own: set[int]) -> None:
        """Go on with what is ``missing`` since an earlier change, and with what it is made of;
        ``own`` are the inputs of the tree."""
        if missing in self.missing:
            return
        for source in missing.sources:
            if isinstance(source, CompositeState):
                if id(source) not in own and source not in self.remnants:
                    self.remnants.append(source)
                if isinstance(source.missing, Missing):
                    self._take(source.missing, own)
        self.missing.append(missing)

    def inherit(self, old: TreeCompletion, states: Sequence[CompositeState]) -> None:
        """Take over from ``old``: what is missing grows in the memory of the ``states`` that the
        old tree alone had, which is disposed of next."""
        old.missing = [each for each in old.missing if each not in self.missing]
        if not self.missing:
            self._settle()
            return
        carried = {id(state) for state in (*self._tree.states, *self.remnants)}
        dropped = [
            state.rows.block for state in (*states, *old.remnants) if id(state) not in carried
        ]
        blocks = [*old.spare.blocks, *(block for block in dropped if block is not None)]
        self.spare = SpareMemory(sorted(blocks, key=len)[-len(self.missing) :])
        for each in (*self._tree.leaves.values(), *self._tree.states):
            each.rows.give_page_by_page(True)
        for missing in self.missing:
            missing.state.make_room_to_complete()
            missing.state.rows.spare = self.spare  # Only now: to clear much of it is a halt.

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
        with self.time:
            for missing in self.missing:
                missing.complete_all()

    @property
    def work(self) -> Work:
        """Work that is left to complete."""
        return Work(
            len(self.missing),
            sum(missing.rows_ahead for missing in self.missing),
            sum(missing.pairs_ahead for missing in self.missing),
        )

    def complete_within(self, seconds: float) -> Trial:
        """Make all that is missing, if that takes no longer than so many ``seconds``.

        What the rest will take is told by the first lots; when it is too much, the rest is left.
        """
        with self.time:
            return self._complete_within(seconds)

    def _complete_within(self, seconds: float) -> Trial:
        clock = self.time.clock
        began = clock()
        lot = _FIRST_LOT_ROWS
        known: list[tuple[int, float]] = []
        ahead = 0.0
        self.begin_push()
        for number, missing in enumerate(self.missing):
            later = self.missing[number + 1 :]
            while missing.rows_left:
                since = clock()
                known.append((missing.complete_some(lot), clock() - since))
                rows = missing.rows_left + sum(each.rows_ahead for each in later)
                ahead = rows * _seconds_of_a_row(known)
                spent = clock() - began
                if rows and (
                    spent > seconds or (len(known) > _LOTS_THAT_TELL and spent + ahead > seconds)
                ):
                    return Trial(False, spent, ahead)
                lot = min(_LOT_GROWTH * lot, _LARGEST_LOT_ROWS)
        return Trial(True, clock() - began, 0.0)

    def complete_beside(self, rows: int) -> bool:
        """A push of ``rows`` is done: complete some more, one or two times as much work as it was.

        After small pushes that is put off until it is worth the calls; whether it was not.
        """
        for missing in self.missing:
            missing.state.make_room_ahead()
        self._allowed += COMPLETED_PER_ROW * rows
        if self._allowed < _ROWS_WORTH_COMPLETING:
            return False
        most, self._allowed = self._allowed, 0
        with self.time:
            for missing in self.missing:
                missing.begin()
                while (done := missing.complete_beside(most)) > 0:
                    most -= done
                    if most <= 0:
                        return True
        return True

    def give_up(self) -> list[StreamSet]:
        """Do without what is missing: states are thin from now on; those of which joins."""
        thin = [missing.state.streams for missing in self.missing]
        for missing in self.missing:
            self._end(missing)
        self.missing, self.remnants = [], []
        self._settle()
        self._has_given_up = True
        return thin

    @property
    def may_be_over(self) -> bool:
        """Whether a push may have been the last that found something missing."""
        return bool(self.missing) or self._has_given_up

    def finish(self) -> bool:
        """States that lack nothing any more are like any other; whether there are such. Those
        that were only needed for them are let go of."""
        self._has_given_up = False
        left = []
        for missing in self.missing:
            missing.commit()
            if missing.is_over:
                self._end(missing)
            else:
                left.append(missing)
        is_less = len(left) < len(self.missing)
        if is_less and self.remnants:
            left = self._needed(left)
        self.missing = left
        if not self.missing:
            self._settle()
        return is_less

    def _needed(self, left: list[Missing]) -> list[Missing]:
        """What of ``left`` the states of the tree need; the rest is let go of."""
        own = {id(edge.source) for edge in self._tree.edges}
        self.missing, self.remnants = [], []
        for missing in left:
            if id(missing.state) in own:
                self._take(missing, own)
        for missing in left:
            if missing not in self.missing:
                self._end(missing)
        return self.missing

    def _end(self, missing: Missing) -> None:
        missing.state.missing = missing.state.rows.spare = None
        missing.dispose()

    # -- memory ------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Nothing is missing any more."""
        self.spare = SpareMemory()
        for each in (*self._tree.leaves.values(), *self._tree.states):
            each.rows.give_page_by_page(False)

    def dispose(self) -> None:
        """Another tree takes over."""
        for missing in self.missing:
            missing.dispose()
        self.missing, self.remnants = [], []
