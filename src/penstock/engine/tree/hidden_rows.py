"""Rows that are dead to everything that is still to come, hidden from the probes of a tree.

A row that has died stays in its ring until the watermark has passed its death, and a chain that has
many of them is a long walk for nothing. So probes see a ring from its first row on that may find a
partner (:attr:`~penstock.engine.state.rows.Rows.low`). Answers do not depend on it, as a probe
tests lifespans anyway. It shortens chains but costs a walk, so it is done only once for many rows,
and where time has passed since rows expired. Where older rows may probe, those that are late, owed
or let in from waiting, all rows are seen again (:meth:`HiddenRows.all_seen`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.engine.state.clock import END, START
from penstock.engine.tree.operator_tree import OperatorTree

_ROWS_WORTH_HIDING = 1024
"""Rows that have come since dead rows were last hidden, at least: hiding is a walk."""
_SHARE_BITS = 5
"""Binary logarithm of 32: the part of the shortest window that has to pass before another walk."""


class HiddenRows:
    """Hides the dead rows of the windows and states of ``tree``."""

    def __init__(self, tree: OperatorTree) -> None:
        self._tree = tree
        self._unhidden = 0
        """Rows that have come since the last walk."""
        self._hidden = START
        """The instant before which dead rows are hidden from probes; pushes go on from there."""
        self._expired = START
        """The instant before which dead rows are gone."""
        shortest = min([leaf.span for leaf in tree.leaves.values()], default=0)
        self._worth_hiding = shortest >> _SHARE_BITS
        """Ticks that have to pass before hiding is worth a walk."""

    def take_over(self, old: HiddenRows) -> None:
        """Keep hidden what ``old`` has hidden of the same windows."""
        self._hidden, self._expired = old._hidden, old._expired

    def forget(self) -> None:
        """Nothing is known to be hidden: a push has failed."""
        self._hidden = START

    def note_expired(self, before: int) -> None:
        """All windows and states have let go of what died before then."""
        self._expired = before

    def see_windows(self) -> None:
        """Let probes see the rows of the windows that are this tree's."""
        for alias, leaf in self._tree.leaves.items():
            leaf.rows.low = max(leaf.rows.tail, self._tree.since.get(alias, 0))

    def hide_for(self, oldest: int, count: int) -> None:
        """``count`` rows come next, and no probe is older than ``oldest``."""
        since = self.due_for(oldest, count, self._expired)
        if since > START:
            self.hide_before(since)

    def due_for(self, oldest: int, count: int, expired: int) -> int:
        """The same, except that it is for the caller to :meth:`hide_before` the returned instant,
        if any, after having let go of what died before ``expired``."""
        if oldest < self._hidden:
            self._hidden = START
            self.see_windows()
            for state in self._tree.own_kept:
                state.rows.low = state.rows.tail
        self._unhidden += count
        passed = oldest - max(self._hidden, expired)
        if self._unhidden < _ROWS_WORTH_HIDING or passed < self._worth_hiding:
            return START
        self._hidden, self._unhidden = oldest, 0
        return oldest

    def hide_before(self, instant: int) -> None:
        """Let probes skip the oldest rows of all windows and states that died before then."""
        for leaf in self._tree.leaves.values():
            leaf.rows.hide_before(instant)
        for state in self._tree.own_kept:
            state.hide()

    def hide_again_before(self, instant: int) -> None:
        """The same, where more may have been hidden."""
        for leaf in self._tree.leaves.values():
            leaf.rows.low = leaf.rows.tail
        for state in self._tree.own_kept:
            state.rows.low = state.rows.tail
        self.hide_before(instant)

    @contextmanager
    def all_seen(self) -> Iterator[None]:
        """Let probes see all rows, also those that died before what came last.

        Afterwards the same rows are hidden as before: what is held for owed probes must not make
        the chains longer that all other probes walk.
        """
        rings = [leaf.rows for leaf in self._tree.leaves.values()]
        rings += [state.rows for state in self._tree.own_kept]
        lows = [rows.low for rows in rings]
        for rows in rings:
            rows.low = rows.tail
            rows.is_late = True
        for operator in self._tree.operators:
            operator.extent = END
        try:
            yield
        finally:
            for rows, low in zip(rings, lows, strict=True):
                rows.low = low
                rows.is_late = False
