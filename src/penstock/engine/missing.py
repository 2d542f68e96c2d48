"""What a state is missing after a change of plan, and how it is completed on demand.

JISC (Aly, Aref and others, EDBT 2014): the new plan starts at once. A state that the old plan had,
complete, is carried over; another is *incomplete* (Definition 1). What an incomplete state lacks
is exactly the combinations made only of rows from before the transition: everything with a newer
row arrives by normal processing. So each input of the plan remembers where it ended at the
transition (its *bound*), and what is missing can be made at any time from what lies before the
bounds; nothing is made twice.

**On demand.** Before a probe of the incomplete state, the keys that it is going to ask for are
completed (Procedures 1 to 3). In the paper all joins share one attribute. Here a key belongs to the
leaf whose column it is: the old rows with that value are looked up in the part of the state that
has this leaf, and joined with the other parts, up to the bounds. A *part* is a leaf or a complete
state below: the largest there are, so that what is complete is used, and no recursion through
incomplete states is needed. All combinations of a row are made at once, whatever key asked for it,
and the row is marked; so each row is completed at most once. Rows can be reached over several
parts: a combination is skipped if one of its rows in another part is marked already.

**In the middle of a push** completed combinations come to stand behind the new rows of the push,
but count as old. So a probe that may see the state up to row b sees what lies before b and what was
completed since: everything but the rows from b to the first completed one.

**Complete again** is the state when no row of some part is left unmarked (the counters of the
paper, in rows instead of keys), or when all the old rows of some leaf have died: a combination
needs all of its rows, so this is sooner than the death of the last of all.

While something is missing, inputs that it is made from keep their row numbers (they are not
packed). A row of ``[PARTITION BY … ROWS n]`` may live for ever, in a partition that nobody writes
to any more; so when such a window has grown to several times its old size for want of packing, all
that is missing is made at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.engine.composite_state import CompositeState
from penstock.engine.composites import Composites
from penstock.engine.join_order import probe_order
from penstock.engine.join_step import Algorithm, Input, JoinStep
from penstock.engine.leaf_window import LeafWindow, date
from penstock.engine.rows import SMALLEST, HashIndex, probe_keys
from penstock.engine.wiring import KeyColumn, Wiring

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

_AT_ONCE = 1 << 13
"""Rows that are completed at a time, at most."""
_GROWTH = 4
"""How many times its old size a window may have that is not packed for our sake."""


class _Part:
    """A leaf or complete state of which the missing combinations are made."""

    def __init__(self, rows: Input) -> None:
        self.input = rows
        self.first = rows.rows.tail
        self.bound = rows.rows.head
        flags = rows.chosen_until(self.bound) if isinstance(rows, LeafWindow) else None
        self.marked = np.zeros(self.bound - self.first, np.bool_) if flags is None else ~flags
        self._count = 0 if flags is None else int(np.count_nonzero(self.marked))
        """Rows that are marked."""
        self._passed = self.first
        """Rows before this one are gone, and do not count."""
        self.steps: list[tuple[int, JoinStep]] = []
        self.indexes: dict[KeyColumn, HashIndex] = {}

    @property
    def left(self) -> int:
        """Rows that are alive and not marked."""
        tail = min(self.input.rows.tail, self.bound)
        if tail > self._passed:
            gone = self.marked[self._passed - self.first : tail - self.first]
            self._count -= int(np.count_nonzero(gone))
            self._passed = tail
        return self.bound - self._passed - self._count

    @property
    def done(self) -> tuple[int, Bools] | None:
        """The rows of which all has been made, if there are any, and the first that they count
        from."""
        return (self.first, self.marked) if self._count else None

    def mark(self, rows: Int64s, made: bool) -> None:
        """All combinations of ``rows`` have been made; or not, after all."""
        self.marked[rows - self.first] = made
        self._count += len(rows) if made else -len(rows)

    def unmarked(self, rows: Int64s) -> Int64s:
        return rows[~self.marked[rows - self.first]]


class Missing:
    """What ``state`` lacks of the combinations of ``parts`` as they are now."""

    def __init__(
        self,
        state: CompositeState,
        parts: Sequence[Input],
        wiring: Wiring,
        leaves: Mapping[str, LeafWindow],
        algorithm: Algorithm,
    ) -> None:
        self.state = state
        self.completed = 0
        """Combinations made since the transition."""
        self._leaves = {alias: leaves[alias] for alias in state.streams}
        self._bounds = {alias: leaf.rows.head for alias, leaf in self._leaves.items()}
        self._parts = [_Part(each) for each in parts]
        self._start: int | None = None
        """The first row of the state that was completed in the push at hand."""
        self._log: list[tuple[_Part, Int64s]] = []
        self._counts = [0, 0]
        self._wiring = wiring
        self._algorithm = algorithm
        for part in self._parts:
            part.input.rows.pins += 1

    def _prepare(self, part: _Part) -> None:
        """The way from ``part`` to the others. Nobody may ever ask, so this is done when needed."""
        position = self._parts.index(part)
        together = part.input.streams
        for other in probe_order(position, [p.input.streams for p in self._parts], self._wiring):
            target = self._parts[other].input
            linking = self._wiring.between(together, target.streams)
            step = JoinStep(target, linking, self._leaves, self._algorithm, self._counts)
            part.steps.append((other, step))
            together = together | target.streams

    def get_ready(self, keys: tuple[KeyColumn, ...]) -> None:
        """Take the indexes that :meth:`complete` for such ``keys`` will use, which are there."""
        part = self._part_of(keys[0])
        self._index(part, keys[0])
        if not part.steps:
            self._prepare(part)

    def _part_of(self, key: KeyColumn) -> _Part:
        return next(p for p in self._parts if key.stream in p.input.streams)

    def _index(self, part: _Part, key: KeyColumn) -> HashIndex:
        index = part.indexes.get(key)
        if index is None:
            index = part.indexes[key] = part.input.index_on((key,))
        return index

    # -- a push ------------------------------------------------------------------------------

    def complete(self, keys: tuple[KeyColumn, ...], values: Int64s) -> None:
        """Make what is missing with one of ``values`` in the first of ``keys``."""
        part = self._part_of(keys[0])
        if part.bound <= part.input.rows.low or len(values) == 0:
            return
        rows, index = part.input.rows, self._index(part, keys[0])
        _, found = probe_keys(values, rows, index, part.bound, len(values))
        found = part.unmarked(found)
        if len(found):
            self._make(part, np.unique(found))

    def complete_all(self) -> None:
        """Make all that is missing."""
        part = min(self._parts, key=lambda each: each.left)
        start = max(part.first, part.input.rows.tail)
        rows = part.unmarked(np.arange(start, part.bound, dtype=np.int64))
        for first in range(0, len(rows), _AT_ONCE):
            self._make(part, rows[first : first + _AT_ONCE])

    def _make(self, part: _Part, rows: Int64s) -> None:
        """All combinations of ``rows`` of ``part`` that have not been made."""
        if not part.steps:
            self._prepare(part)
        part.mark(rows, True)
        self._log.append((part, rows))
        made = _living(date(part.input.resolve(rows), self._leaves))
        for other, step in part.steps:
            if len(made) == 0:
                return
            target = self._parts[other]
            if target.bound <= target.input.rows.low:
                return
            made = step.apply(made, target.bound, target.done)
        if len(made) == 0:
            return
        if self._start is None:
            self._start = self.state.rows.head
        self.completed += len(made)
        self.state.append(made)

    def gap(self, bound: int) -> tuple[int, int] | None:
        """A probe up to ``bound`` may also see what was completed: all but the rows in between."""
        return None if self._start is None else (bound, self._start)

    def begin(self) -> None:
        """New rows come next: what was completed before lies before them."""
        self._start = None

    # -- between pushes ----------------------------------------------------------------------

    @property
    def completion(self) -> float:
        """How much has been made, or has died meanwhile: 1 when nothing is missing any more."""
        return max(
            1 - part.left / len(part.marked) if len(part.marked) else 1.0 for part in self._parts
        )

    @property
    def is_over(self) -> bool:
        """Whether nothing is missing any more."""
        aged = any(leaf.rows.tail >= self._bounds[alias] for alias, leaf in self._leaves.items())
        return aged or any(part.left == 0 for part in self._parts)

    @property
    def is_overdue(self) -> bool:
        """Whether a window has grown much because it must not be packed."""
        return any(
            isinstance(part.input, LeafWindow)
            and part.input.is_partitioned
            and len(part.input.rows) > _GROWTH * (part.bound - part.first) + _GROWTH * SMALLEST
            for part in self._parts
        )

    def commit(self) -> None:
        """The push is done."""
        self._log.clear()

    def undo(self) -> None:
        """The push has failed; the state has been cut off already."""
        for part, rows in self._log:
            part.mark(rows, False)
        self._log.clear()

    def dispose(self) -> None:
        """Let go of indexes and pins."""
        for part in self._parts:
            part.input.rows.pins -= 1
            for key in part.indexes:
                part.input.release_index((key,))
            for _, step in part.steps:
                step.dispose()


def _living(found: Composites) -> Composites:
    keep = found.births <= found.deaths
    return found if keep.all() else found.pick(np.flatnonzero(keep))
