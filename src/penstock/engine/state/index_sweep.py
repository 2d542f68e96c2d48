"""Heads of expired rows, cleared from the indexes of a ring before their slots are used again.

Expiry touches no index: a walk along a chain ends at the first row that has expired
(:mod:`penstock.kernels.index`). But a head holds a row number modulo twice the size of the ring, so
in a bucket that has got no row for that long it would be taken for a new one. All heads are
therefore looked at once while as many rows come as the ring has slots. To do so with all at once
takes as long as several pushes, so with large rings it is done bit by bit, beside these rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.engine.state.rows import Rows

_BUCKETS_AT_ONCE = 1 << 18
"""Buckets that are swept in a tenth of a millisecond, which is less than many pieces of it take."""
_ROWS_BETWEEN_SWEEPS = 1 << 10
"""Rows after which some more buckets are swept, if there are more than that."""
_BUCKETS_PER_ROW = 4
"""Buckets that are swept for each of these rows: half a turn after the last sweep they begin, and
all are swept in a quarter of a turn."""


class IndexSweep:
    """Sweeps the indexes of ``rows``."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.swept = 0
        """The head when the heads of expired rows were last cleared from all indexes."""
        self._sweeping: tuple[int, int] | None = None
        """While that is done bit by bit: the head when it began, and the next bucket."""
        self.next = 2 * rows.capacity
        """The head at which some more is swept."""

    def note_done(self, head: int) -> None:
        """All heads of rows that had expired when ``head`` was the head are clear."""
        capacity = self._rows.capacity
        self.swept, self._sweeping = head, None
        self.next = head + (capacity >> 1 if capacity > _BUCKETS_AT_ONCE else 2 * capacity)

    def forget_begun(self) -> None:
        """Rows are taken back: what was swept with them has to be swept again."""
        self._sweeping = None

    def do_all(self) -> None:
        """Clear all."""
        rows = self._rows
        for index in rows.indexes:
            index.sweep(rows.mask, rows.tail, rows.head - 1, 0, rows.capacity)
        self.note_done(rows.head)

    def do_some(self) -> None:
        """Clear some more buckets."""
        rows = self._rows
        began, start = self._sweeping or (rows.head, 0)
        count = _BUCKETS_PER_ROW * (_ROWS_BETWEEN_SWEEPS + rows.head - self.next)
        stop = min(start + count, rows.capacity)
        for index in rows.indexes:
            index.sweep(rows.mask, rows.tail, rows.head - 1, start, stop)
        if stop < rows.capacity:
            self._sweeping, self.next = (began, stop), rows.head + _ROWS_BETWEEN_SWEEPS
        else:
            self.note_done(began)
