"""What a state is missing after a change of plan, and how it is completed on demand.

JISC (Aly, Aref and others, EDBT 2014): the new plan starts at once. A state that the old plan had,
complete, is carried over; another is *incomplete* (Definition 1). What an incomplete state lacks
is exactly the combinations made only of rows from before the transition: everything with a newer
row arrives by normal processing. So what is missing can be made at any time from the *old rows* of
the inputs of its join (:mod:`penstock.engine.completion.old_rows`), and nothing is made twice.

**On demand.** Before a probe of the incomplete state, the values that it is going to ask for are
completed (Procedures 1 to 3): the old rows with such a value in one of the inputs are joined with
the old rows of the others. An input may be an incomplete state itself. Then it is completed first,
for the values that are needed of it, and so on down to the highest states that are complete. Each
state is completed once for what it is asked for, and stores it, so the work grows with the number
of incomplete states and not with its square.

**Which input comes first.** In the paper all joins share one attribute. Here a value belongs to a
class of equal columns, and any input that has a member of the class can be asked for it; a complete
one is (:func:`entrance`), a window rather than a state, so that a value without a partner there
goes no further down. If only an incomplete input has a member, that one is completed for the value
first.

Where no column is equal, comparisons and predicates on whole rows tell which old rows are asked for
(:mod:`penstock.engine.completion.asked_ranges`).

**Once.** A row of an input is *closed* when it is joined: all its combinations are made at once,
whatever value asked for it, and none of them holds a row of another input that was closed before.
A combination is thus made when the first of its rows is closed. It cannot be missed: an input that
is met on the way is completed before for the values that are asked of it.

A value that has been asked for is not looked for again
(:mod:`penstock.engine.completion.asked_values`).

**Beside.** While anything is missing, probes of the state have to ask first. Where most values find
nothing, that goes on until the old rows have died, for a whole window. So after each push some more
rows are closed that nobody has asked for, a number in proportion to the push
(:meth:`complete_beside`): completion on demand keeps its latency, and comes to an end. That is for
states in which a row has few combinations (:data:`LEAN`). With more, as those have that were made
before the streams changed, they are left to who asks.

**In the middle of a push** completed combinations come to stand behind the new rows of the push,
but count as old. So a probe that may see the state up to row b sees what lies before b and what was
completed since: everything but the rows from b to the first completed one. The compiled push stops
where a state that lacks rows is about to be probed, and goes on when it has been completed.

**Complete again** is the state when no row of some input is open, nor will be (the counters of the
paper, in rows instead of keys), or when all the old rows of some leaf have died: a combination
needs all of its rows, so this is sooner than the death of the last of all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.engine.completion.asked_ranges import asked_rows, can_tell
from penstock.engine.completion.asked_values import AskedValues
from penstock.engine.completion.change_time import ChangeTime
from penstock.engine.completion.old_rows import OldRows, old_rows_of
from penstock.engine.join.join_order import probe_order
from penstock.engine.join.join_step import Algorithm, Input, JoinStep
from penstock.engine.state.bookmark import Bookmark
from penstock.engine.state.clock import END, START
from penstock.engine.state.composite_state import CompositeState
from penstock.engine.state.composites import Composites
from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.incomplete import Consumer
from penstock.engine.state.leaf_window import LeafWindow, date
from penstock.engine.state.probing import probe_keys
from penstock.plan.stream_set import StreamSet
from penstock.values.wiring import KeyColumn, Linking, Wiring

Int64s = NDArray[np.int64]
Way = list[tuple[int, JoinStep]]

_MOST_ROWS_AT_ONCE = 1 << 13
"""Rows that are completed at a time, at most."""
_FEW_OPEN_ROWS = 1024
"""Open rows that are made without a pause. Of more, only a sample is made in the first push, which
has enough to do."""
LEAN = 4.0
"""With fewer combinations per row, to make them all costs about what asking first does in a
window."""
_SAMPLE_ROWS = 64
"""Rows of a state that are looked at to guess how many partners its rows have."""
_UNCACHED_ROWS = 1 << 18
"""Rows of a state from which on no cache holds it."""
_UNCACHED_COST = 2
"""Times more that a row costs there."""
_LEAST_SHARE = 1e-3
"""The share of a state below which it says nothing about the rest."""


class Missing:
    """What ``state`` lacks of the combinations of ``inputs`` as they were at a change of plan."""

    def __init__(
        self,
        state: CompositeState,
        inputs: Sequence[Input],
        wiring: Wiring,
        leaves: Mapping[str, LeafWindow],
        algorithm: Algorithm,
        time: ChangeTime,
    ) -> None:
        self.state = state
        self.time = time
        """What completing takes."""
        self.completed = 0
        """Combinations made since the transition."""
        self.above: list[Consumer] = []
        """The consumers that have to know of them."""
        self._leaves = {alias: leaves[alias] for alias in state.streams}
        self._all_leaves = leaves
        self.sources = inputs
        """The inputs of the join that made the state when the plan changed."""
        # From the change on, where windows ended then, and the rows of the inputs.
        self._bounds: list[Bookmark] = []
        self._inputs: list[OldRows] = []
        self._entrances: dict[KeyColumn, tuple[int, KeyColumn, HashIndex]] = {}
        self._asked: dict[KeyColumn, AskedValues] = {}
        self._ways: dict[int, Way] = {}
        self._ready: set[KeyColumn] = set()
        """Columns for whose values all indexes are there."""
        self._beside: int | None = None
        """The input whose rows are closed beside what is asked for, once there is one."""
        self._has_rested = False
        """Whether a push was spared that: over long windows the first has enough to do."""
        self._per_row: float | None = None
        """Combinations of such a row, lately."""
        self._start: int | None = None
        """The first row of the state that was completed in the push at hand."""
        self._fresh = 0
        """Combinations made in it."""
        self._log: list[tuple[OldRows, Int64s]] = []
        self._counts = [0, 0]
        self._wiring = wiring
        self._algorithm = algorithm
        self._are_contemporaries = False

    def note_old_rows(self) -> None:
        """The plan changes now: what windows and inputs have is old from now on."""
        self._bounds = [Bookmark(leaf.rows) for leaf in self._leaves.values()]
        self._inputs = [old_rows_of(each) for each in self.sources]
        self._are_contemporaries = _are_contemporaries(self._leaves.values())

    # -- the way from an input to the others; made beforehand, or when somebody asks ------------

    def _entrance(self, key: KeyColumn) -> tuple[int, KeyColumn, HashIndex]:
        if key not in self._entrances:
            known = [(each.streams, each.missing is None) for each in self.sources]
            position, column = entrance(key, known, self._wiring)
            start = self.sources[position]
            asked = AskedValues(len(start.rows))
            self._entrances[key] = position, column, start.index_on((column,))
            self._asked[key] = asked
        return self._entrances[key]

    def _way(self, position: int) -> Way:
        if position not in self._ways:
            streams = [each.streams for each in self.sources]
            together = streams[position]
            way: Way = []
            for other in probe_order(position, streams, self._wiring):
                target = self.sources[other]
                linking = self._wiring.between(together, target.streams)
                step = JoinStep(target, linking, self._leaves, self._algorithm, self._counts)
                way.append((other, step))
                together = together | target.streams
            self._ways[position] = way  # Only now: there may be no memory on the way.
        return self._ways[position]

    def get_ready(self, keys: tuple[KeyColumn, ...]) -> None:
        """Take the indexes that :meth:`complete` for such ``keys`` will use, which are there."""
        if keys[0] in self._ready:
            return
        position, column, _ = self._entrance(keys[0])
        start = self.sources[position]
        if start.missing is not None:
            start.missing.get_ready((column,))
        for _, step in self._way(position):
            step.get_ready_to_complete()
        self._ready.add(keys[0])  # Only now: there may be no memory on the way.

    # -- a push ------------------------------------------------------------------------------

    def complete(self, keys: tuple[KeyColumn, ...], values: Int64s) -> None:
        """Make what is missing with one of ``values`` in the first of ``keys``."""
        if len(values) == 0:
            return
        position, column, index = self._entrance(keys[0])
        values = self._asked[keys[0]].fresh(values)
        if len(values) == 0:
            return
        start = self._inputs[position]
        if start.input.missing is not None:
            start.input.missing.complete((column,), values)
        rows, bound = start.input.rows, start.bound
        if bound > rows.low:
            _, found = probe_keys(values, rows, index, bound, len(values))
            self._make(position, found)

    def complete_ranges(self, linking: Linking, ids: Mapping[str, Int64s]) -> None:
        """Make what is missing of what ``ids`` ask for by comparisons, where no columns are equal.

        The input to look in is one that can tell which of its rows are asked for, a complete one
        rather than another, and of several the one with the fewest. If none can, all is made.
        """
        if self.is_over:
            return  # A state above is being made at once, of this one.
        known = frozenset(ids)
        usable = [each for each in self._inputs if can_tell(each.input, linking, known)]
        whole = [each for each in usable if each.input.missing is None]
        if not usable:
            self.complete_all()
            return
        found: list[tuple[OldRows, Int64s]] = []
        for each in whole or usable[:1]:
            if each.input.missing is not None:
                each.input.missing.complete_ranges(linking, ids)
            rows = asked_rows(each.all_open(), each.input, linking, ids, self._all_leaves)
            found.append((each, rows))
        start, rows = min(found, key=lambda each: len(each[1]))
        self._make(self._inputs.index(start), rows)

    def complete_all(self) -> None:
        """Make all that is missing."""
        for each in self._inputs:
            if each.input.missing is not None:
                each.input.missing.complete_all()
        position = min(range(len(self._inputs)), key=lambda each: self._inputs[each].left)
        self._make(position, self._inputs[position].all_open())

    @property
    def rows_left(self) -> int:
        """Rows of an input with which all that is missing can be made, if its inputs are there."""
        return min(each.left for each in self._inputs)

    @property
    def rows_ahead(self) -> int:
        """The same, as far as it can be told before all inputs are there."""
        there = [each.left for each in self._inputs if each.input.missing is None]
        return min(there, default=self.rows_left)

    @property
    def pairs_ahead(self) -> int:
        """Pairs of rows to compare for that, where no columns are equal."""
        streams = [each.streams for each in self.sources]
        linking = self._wiring.between(streams[0], streams[1])
        if linking.keys and self._algorithm == "hash":
            return 0
        return self.rows_ahead * max(len(each.rows) for each in self.sources)

    def complete_some(self, rows: int) -> int:
        """Make what is missing with up to so many ``rows`` that nobody asked for, while the inputs
        lack nothing; how many rows that were."""
        start = min(self._inputs, key=lambda each: each.left)
        found = start.next_open(rows)
        if len(found) < min(rows, start.left):  # Others were closed in between.
            found = start.all_open()[:rows]
        self._make(self._inputs.index(start), found)
        return len(found)

    def complete_beside(self, most: int) -> int:
        """Make what is missing with some rows that nobody asked for, if that is cheap.

        ``most`` is how much work it may be, in rows and combinations; returned is how much it was.
        """
        if self.is_over or any(each.is_arriving for each in self._inputs):
            return 0
        price = (
            _UNCACHED_COST
            if max(len(each.input.rows) for each in self._inputs) > _UNCACHED_ROWS
            else 1
        )
        if price > 1 and not self._has_rested:
            self._has_rested = True
            return 0
        if self._per_row is not None and price * (1 + self._per_row) > 1 + LEAN:
            return 0
        if self._beside is None:
            position = min(range(len(self._inputs)), key=lambda each: self._inputs[each].left)
            if not all(step.hashed for _, step in self._way(position)):
                return 0  # Each row would be compared with all of a window.
            self._beside = position
        before, start = self.completed, self._inputs[self._beside]
        lot, is_first = _SAMPLE_ROWS, self._per_row is None
        if self._per_row is not None:
            lot = max(_SAMPLE_ROWS, int(most / price / (1 + self._per_row)))
        rows = start.next_open(lot)
        self._make(self._beside, rows)
        made = self.completed - before
        if len(rows) >= _SAMPLE_ROWS // 2:
            self._per_row = made / len(rows)
        work = price * (lot + made)
        return max(work, most) if is_first and start.left > _FEW_OPEN_ROWS else work

    def _make(self, position: int, rows: Int64s) -> None:
        """All combinations of ``rows`` of an input that have not been made."""
        start = self._inputs[position]
        rows = start.close(rows)
        if len(rows) == 0:
            return
        self._log.append((start, rows))
        way = self._way(position)
        join = (
            self._joined
            if self._are_contemporaries and all(step.hashed for _, step in way)
            else self._joined_and_dated
        )
        for first in range(0, len(rows), _MOST_ROWS_AT_ONCE):
            ids, _ = start.input.resolve_whole(rows[first : first + _MOST_ROWS_AT_ONCE])
            made = join(ids, way)
            if made is not None and len(made):
                self._enter(made)

    def _joined(self, ids: Mapping[str, Int64s], way: Way) -> Composites | None:
        """The combinations with ``ids``; whether they share an instant is left to who asks."""
        for other, step in way:
            if len(next(iter(ids.values()))) == 0:
                return None
            target = self._inputs[other]
            step.complete(ids)
            if target.bound <= target.input.rows.low:
                return None
            ids = step.extend(ids, target.bound, target.are_open)
        return Composites.undated(ids)

    def _joined_and_dated(self, ids: Mapping[str, Int64s], way: Way) -> Composites | None:
        """The combinations with ``ids`` that share an instant."""
        made = _living(date(ids, self._leaves))
        for other, step in way:
            if len(made) == 0:
                return None
            target = self._inputs[other]
            step.complete(made.ids)
            if target.bound <= target.input.rows.low:
                return None
            made = step.apply(made, target.bound, target.are_open)
        return made

    def _enter(self, made: Composites) -> None:
        rows = self.state.rows
        before = rows.head
        if self._start is None:
            self._start = before
        self.completed += len(made)
        self._fresh += len(made)
        self.state.append(made)
        for each in self.above:
            each.arrive(before, rows.head)

    def gap(self, bound: int) -> tuple[int, int] | None:
        """A probe up to ``bound`` may also see what was completed: all but the rows in between."""
        return None if self._start is None else (bound, self._start)

    def begin(self) -> None:
        """New rows come next: what was completed before lies before them."""
        self._start = None

    @property
    def probes(self) -> int:
        """Rows that were looked up in an input to complete others, since the transition."""
        return self._counts[0]

    # -- between pushes ----------------------------------------------------------------------

    @property
    def completion(self) -> float:
        """How much has been made, or has died meanwhile: 1 when nothing is missing any more."""
        return max(each.progress for each in self._inputs)

    @property
    def share_there(self) -> float:
        """Which share of the combinations the state has, if all values are alike: those with a new
        row, and of the others what has been made."""
        old = 1.0 - min(self.completion, 1.0)
        for bound in self._bounds:
            old *= bound.share_before
        return max(1.0 - old, _LEAST_SHARE)

    @property
    def is_over(self) -> bool:
        """Whether nothing is missing any more."""
        aged = any(bound.is_past for bound in self._bounds)
        return aged or any(each.are_all_closed for each in self._inputs)

    def commit(self) -> None:
        """The push is done."""
        self._log.clear()
        self._fresh = 0

    def undo(self) -> None:
        """The push has failed; the state has been cut off already, and so have its inputs."""
        for each, rows in self._log:
            each.reopen(rows)
        self._log.clear()
        self.completed -= self._fresh
        self._fresh = 0
        for asked in self._asked.values():
            asked.clear()
        for each in self._inputs:
            each.cut()

    def dispose(self) -> None:
        """Let go of indexes and inputs."""
        for position, column, _ in self._entrances.values():
            self.sources[position].release_index((column,))
        for way in self._ways.values():
            for _, step in way:
                step.dispose()
        for each in self._inputs:
            each.dispose()
        for bound in self._bounds:
            bound.dispose()


def entrance(
    key: KeyColumn, inputs: Sequence[tuple[StreamSet, bool]], wiring: Wiring
) -> tuple[int, KeyColumn]:
    """In which input, and by which of its columns, to look for the values of ``key``.

    ``inputs`` are their streams and whether they are complete.
    """
    members = next(members for members in wiring.classes if key in members)
    choices = []
    for position, (streams, is_complete) in enumerate(inputs):
        column = next((each for each in members if each.stream in streams), None)
        if column is not None:
            choices.append((not is_complete, len(streams), position, column))
    *_, position, column = min(choices, key=lambda each: each[:3])
    return position, column


def _are_contemporaries(leaves: Collection[LeafWindow]) -> bool:
    """Whether old rows live together as a rule: the oldest are there when the newest come, or
    have just died.

    Then to look for those that do not is not worth it before a result is complete.
    """
    born, died = START, END
    for leaf in leaves:
        rows = leaf.rows
        born = max(born, int(rows.births[(rows.head - 1) & rows.mask]))
        died = min(died, int(rows.deaths[rows.low & rows.mask]))
    return born - died <= min(leaf.span for leaf in leaves) >> 3


def _living(found: Composites) -> Composites:
    keep = found.births <= found.deaths
    return found if keep.all() else found.pick(np.flatnonzero(keep))
