"""The old rows of an input of an incomplete state: which of them are still open.

A row from before a transition is *open* while not all of its combinations with old rows of the
other inputs are known to be in the state. To make them is to close it. A row is closed once, which
is JISC's rule that no key is attempted twice (section 4.4), in rows instead of keys; and the number
of open rows is its counter (section 4.3).

There are two kinds of inputs. A window or a complete state has all its old rows from the start:
those before the *bound*, where it ended at the transition (:class:`Present`). An incomplete state
gets them bit by bit, between rows that are not old, as it is completed itself (:class:`Arriving`).
When rows are packed and get new numbers, what is known of them is carried over.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from penstock.engine.join.join_step import Input
from penstock.engine.state.composite_state import CompositeState
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.row_bits import RowBits

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]


class OldRows(ABC):
    """The old rows of ``input``."""

    input: Input

    def __init__(self, closed: RowBits, count: int) -> None:
        """``closed`` tells for each row from the present tail on whether it is not open; ``count``
        are."""
        self.input.rows.followers.append(self._follow)
        self._closed = closed
        self._count = count
        self._passed = closed.first
        """Rows before this one are gone, and do not count."""
        self._swept: int | None = None
        """From this row on all are closed, as far as :meth:`next_open` has looked."""

    @property
    @abstractmethod
    def bound(self) -> int:
        """Old rows have smaller numbers."""

    @property
    @abstractmethod
    def are_all_closed(self) -> bool:
        """Whether no row is open, nor will be."""

    @property
    def is_arriving(self) -> bool:
        """Whether more old rows may come."""
        return False

    @property
    @abstractmethod
    def progress(self) -> float:
        """The share of rows that are closed or gone."""

    @property
    def is_any_left(self) -> bool:
        """Whether any row is open, and alive. As long as more are open than have died since
        somebody counted, nobody has to."""
        return self._count > self.input.rows.tail - self._passed or self.left > 0

    @property
    def left(self) -> int:
        """Rows that are open, and alive."""
        tail = min(self.input.rows.tail, self._closed.stop)
        if tail > self._passed:
            self._count -= self._closed.count_clear(self._passed, tail)
            self._passed = tail
        return self._count

    def are_open(self, rows: Int64s) -> Bools:
        """Which of ``rows``, all before the bound, are open."""
        return self._closed.are_clear(rows)

    def all_open(self) -> Int64s:
        """All rows that are open, and alive."""
        return self._closed.clear_between(self.input.rows.tail, self.bound)

    def next_open(self, most: int) -> Int64s:
        """Open rows among the next ``most``, from the youngest on: they will be asked for longest.

        Whoever gets them closes them.
        """
        stop = self.bound if self._swept is None else self._swept
        self._swept = start = max(self._closed.first, self.input.rows.tail, stop - most)
        return self._closed.clear_between(start, stop)

    def close(self, rows: Int64s) -> Int64s:
        """Those of ``rows`` that were open, each once: they are closed now."""
        found = self._closed.close(rows)
        self._count -= len(found)
        return found

    def reopen(self, rows: Int64s) -> None:
        """They are not closed after all."""
        self._closed.clear(rows)
        self._count += len(rows)
        self._swept = None

    def _follow(self, kept: Int64s, first: int) -> None:
        """The rows ``kept`` are numbered from ``first`` on."""
        known = kept[: np.searchsorted(kept, self._closed.stop)]
        closed = self._closed.kept(known, first)
        self._count = len(closed.clear_between(first, closed.stop))
        self._closed = closed
        self._passed = first
        self._swept = None

    @abstractmethod
    def cut(self) -> None:
        """Rows at the end have been taken back."""

    def dispose(self) -> None:
        """Nobody asks any more."""
        self.input.rows.followers.remove(self._follow)


class Present(OldRows):
    """All rows that a window or complete state has now."""

    def __init__(self, given: Input) -> None:
        self.input = given
        flags = given.chosen_until(given.rows.head) if isinstance(given, LeafWindow) else None
        self._size, tail = len(given.rows), given.rows.tail
        if flags is None:
            super().__init__(RowBits.zeros(tail, self._size), self._size)
        else:
            super().__init__(RowBits(tail, ~flags), int(np.count_nonzero(flags)))

    @property
    def bound(self) -> int:
        return self._closed.stop

    @property
    def are_all_closed(self) -> bool:
        return not self.is_any_left

    @property
    def progress(self) -> float:
        return 1 - self.left / self._size if self._size else 1.0

    def cut(self) -> None:
        """None of them was old."""


class Arriving(OldRows):
    """The rows that an incomplete state has now, since an earlier change of plan, and those that it
    is going to be completed with."""

    def __init__(self, given: CompositeState) -> None:
        assert given.missing is not None
        self.input = self._state = given
        rows = given.rows
        super().__init__(RowBits.zeros(rows.tail, len(rows)), len(rows))
        self._arrived = len(rows)
        given.missing.above.append(self)

    @property
    def bound(self) -> int:
        """All that is there: what is not old is closed."""
        head = self._state.rows.head
        self._closed.extend(head)
        return head

    def arrive(self, start: int, stop: int) -> None:
        """The state was completed with these rows."""
        self._closed.extend(stop)
        self._closed.put(start, stop, False)
        self._count += stop - start
        self._arrived += stop - start

    @property
    def is_arriving(self) -> bool:
        missing = self._state.missing
        return missing is not None and not missing.is_over

    @property
    def are_all_closed(self) -> bool:
        return not self.is_any_left and not self.is_arriving

    @property
    def progress(self) -> float:
        made = 1 - self.left / self._arrived if self._arrived else 1.0
        missing = self._state.missing
        return made if missing is None else min(made, missing.completion)

    def cut(self) -> None:
        head, stop = self._state.rows.head, self._closed.stop
        self._count -= self._closed.count_clear(head, stop)
        self._closed.put(head, stop, True)

    def dispose(self) -> None:
        super().dispose()
        if self._state.missing is not None:
            self._state.missing.above.remove(self)


def old_rows_of(given: Input) -> OldRows:
    """The old rows of ``given`` as of now."""
    return Present(given) if given.missing is None else Arriving(given)
