"""How far the values of an input reach: is there a partner for ``<``, ``<=``, ``>`` or ``>=``?

A row a with ``a.y > c.y`` has a partner if the least ``c.y`` is one; for ``<`` it is the greatest.
So one number stands for the whole input: JIT's feedback needs no more than a partial order. It says
yes too often (to rows whose partner has died or lives at another time), never no by mistake.

Rows that wait fail against that number, all of them, at all times. So when the input gets rows that
do not reach further, nobody wakes, and nobody has to be looked at. When they do, those who wait are
tested again. A number that went down when a row died would let nobody in, so it may stay as it is
for a while: it is made anew when half as many rows have come as there were. A failed push takes its
rows back and must take back how far they reached, or else they would wake nobody the second time.

The interface is that of a :class:`~penstock.engine.feedback.demand_filter.DemandFilter`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from penstock.engine.join.join_step import Input
from penstock.engine.state.composite_state import CompositeState, key_values
from penstock.engine.state.leaf_window import LeafWindow
from penstock.kernels import demand, probe
from penstock.values.wiring import KeyColumn

Int64s = NDArray[np.int64]

UPWARD = (probe.LESS, probe.LESS_EQUAL)
"""Operators for which the greatest value on the right is the best partner."""
RANGED = (*UPWARD, probe.GREATER, probe.GREATER_EQUAL)
"""Operators for which one value on the right is the best partner."""
_ROWS_BETWEEN_COUNTS = 256
"""Rows that come before the number is made anew, at least."""
_BOUNDS = np.iinfo(np.int64)


class DemandRange:
    """The value of ``key`` in ``target`` that most rows on the left of ``operator`` meet."""

    def __init__(
        self,
        target: Input,
        key: KeyColumn,
        operator: int,
        leaves: Mapping[str, LeafWindow],
    ) -> None:
        self._target = target
        self._keys = (key,)
        self._operator = operator
        self._leaves = leaves
        self.place = np.array([0, demand.tag_of(operator), 0], np.int64)
        """The value, the operator by its tag, and whether those who wait have to be looked at: for
        a compiled push."""
        self._room = 0
        self._fill()
        self._committed = self.place.item(0)

    @property
    def nbytes(self) -> int:
        return self.place.nbytes

    def add(self, keys: Int64s) -> bool:
        """These have come, and are in the target already; whether they reach further."""
        before = self.place.item(0)
        self.place[0] = best_of(self._operator, keys, before)
        self._room -= len(keys)
        return before != self.place.item(0)

    def note_added(self, count: int) -> None:
        """So many have come in a compiled push, which has looked at them."""
        self._room -= count

    def get_ready(self) -> None:
        """A push comes: nothing has to be done for that."""

    def may_contain(self, keys: Int64s, found: NDArray[np.bool_]) -> int:
        """Set ``found`` where there may be a partner; how many may have one."""
        found[:] = holds(self._operator, keys, self.place.item(0))
        return int(np.count_nonzero(found))

    def commit(self) -> None:
        """The push is done. If many have come since, the number is made anew."""
        if self._room < 0:
            with suppress(MemoryError):
                self._fill()
        self._committed = self.place.item(0)

    def undo(self) -> None:
        """The push has failed: its rows are gone."""
        self.place[0], self.place[2] = self._committed, 0

    def _fill(self) -> None:
        target = self._target
        if isinstance(target, CompositeState):
            rows = target.whole_rows()
        else:
            rows = np.arange(target.rows.tail, target.rows.head, dtype=np.int64)
        values = key_values(self._keys, target.resolve(rows), self._leaves)
        self.place[0] = best_of(self._operator, values)
        self._room = max(_ROWS_BETWEEN_COUNTS, len(rows) // 2)


def best_of(operator: int, values: Int64s, known: int | None = None) -> int:
    """The best partner on the right of ``operator`` among ``values``, and what is ``known``. If
    there is none at all, one that hardly any value meets."""
    is_upward = operator in UPWARD
    best = int((_BOUNDS.min if is_upward else _BOUNDS.max) if known is None else known)
    if len(values) == 0:
        return best
    return max(best, int(values.max())) if is_upward else min(best, int(values.min()))


def holds(operator: int, left: Int64s, right: int) -> NDArray[np.bool_]:
    """Where ``left operator right``."""
    compare = {
        probe.LESS: np.less,
        probe.LESS_EQUAL: np.less_equal,
        probe.GREATER: np.greater,
        probe.GREATER_EQUAL: np.greater_equal,
    }[operator]
    found: NDArray[np.bool_] = compare(left, right)
    return found
