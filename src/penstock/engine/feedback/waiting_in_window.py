"""Rows of a window that wait for demand where they are: no copy, no ring of their own.

A guard at the edge of a leaf keeps rows back that the window holds anyway. So all that is noted is
a byte for each row (:mod:`penstock.engine.state.asleep`), and those who wait for a value are found
by an index of the window itself, in which all rows stand: a match whose byte says that it is awake,
or asleep at another guard, is passed over. New rows are entered, old ones let go of and all of them
renumbered together with the window. On the arrival line a window also holds rows that can be in no
result; these are in no index, and awake for ever. Composites that wait are kept apart
(:mod:`penstock.engine.feedback.waiting`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.probing import ACTIVE, probe_keys
from penstock.engine.state.rows import Rows
from penstock.kernels import asleep as kernel
from penstock.values.wiring import KeyColumn

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

_ROOM = 256
_NOBODY = np.empty(0, np.int64)


class WaitingInWindow:
    """Rows of ``window`` that wait for a partner with their value of ``keys``."""

    def __init__(self, window: LeafWindow, keys: tuple[KeyColumn, ...]) -> None:
        """Without ``keys``, for any partner at all."""
        self._window = window
        self._alias = window.stream.alias
        self._keys = keys
        self.number = 0
        """That of the guard, 0 while nobody can wait at it."""
        self.index: HashIndex | None = None
        self._log: list[Int64s] = []
        """Rows that were woken since the last commit."""

    @property
    def rows(self) -> Rows:
        """The rows of the window."""
        return self._window.rows

    @property
    def bytes(self) -> NDArray[np.uint8]:
        """The byte of each row of the window, in a ring."""
        return self._window.asleep.bytes

    @property
    def nbytes(self) -> int:
        """Bytes of what is there for those who wait alone."""
        if self.number == 0:
            return 0
        index = self.index
        return self._window.asleep.bytes.nbytes + (
            0 if index is None else index.heads.nbytes + index.entries.nbytes
        )

    def open(self) -> None:
        """From now on, somebody may wait."""
        if self.number == 0:
            self.number = self._window.asleep.take_number()
        if self._keys and self.index is None:
            self.index = self._window.index_on(self._keys)

    def clear(self) -> None:
        """Nobody waits any more, and nobody will."""
        if self.number:
            self._window.asleep.give_back(self.number)
            self.number = 0
        if self.index is not None:
            self._window.release_index(self._keys)
            self.index = None

    # -- a push ------------------------------------------------------------------------------

    def sort_out(self, rows: Int64s, keys: Int64s, others: Rows, index: HashIndex) -> Int64s:
        """Those of ``rows`` whose key is in ``index``, that of ``others``. The rest wait."""
        out = np.empty(len(rows), np.int64)
        count = kernel.sort_out(
            rows,
            keys,
            index.heads,
            index.entries,
            index.narrow,
            index.shift,
            others.mask,
            others.low,
            others.head - 1,
            self._window.asleep.bytes,
            self.number,
            ACTIVE,
            out,
        )
        return out[:count]

    def put(self, ids: Mapping[str, Int64s]) -> None:
        """These wait from now on."""
        self.open()
        self._window.asleep.bytes[ids[self._alias] & self._window.rows.mask] = self.number

    def claim(self, keys: Int64s) -> dict[str, Int64s] | None:
        """Hand over all that wait for one of ``keys``, or (without keys) all."""
        if self.index is None:
            return self.claim_all()
        rows, found = self._window.rows, []
        met = np.empty(len(keys), np.uint8)
        room = _ROOM
        while True:
            out = np.empty(room, np.int64)
            count = kernel.wake(
                keys,
                self.index.heads,
                self.index.entries,
                self.index.narrow,
                self.index.shift,
                rows.mask,
                rows.low,
                rows.head - 1,
                self._window.asleep.bytes,
                self.number,
                ACTIVE,
                met,
                out,
            )
            found.append(out[:count])
            if count < room:
                return self._hand_over(found[0] if len(found) == 1 else np.concatenate(found))
            room *= 8

    def claim_if(self, passes: Callable[[Mapping[str, Int64s]], Bools]) -> dict[str, Int64s] | None:
        """Hand over those who wait that pass a test."""
        found = self._window.asleep.at(self.number) if self.number else _NOBODY
        if len(found):
            found = found[passes({self._alias: found})]
        self._window.asleep.bytes[found & self._window.rows.mask] = 0
        return self._hand_over(found)

    def claim_all(self) -> dict[str, Int64s] | None:
        """Hand over all that wait."""
        found = self._window.asleep.at(self.number) if self.number else _NOBODY
        self._window.asleep.bytes[found & self._window.rows.mask] = 0
        return self._hand_over(found)

    def _hand_over(self, found: Int64s) -> dict[str, Int64s] | None:
        if len(found) == 0:
            return None
        self._log.append(found)
        return {self._alias: found}

    def note_woken(self, rows: Int64s) -> None:
        """Note that ``rows`` were woken elsewhere."""
        self._log.append(rows)

    def holds(self, keys: Int64s) -> NDArray[np.bool_]:
        """For which of ``keys`` somebody waits already: the MNS buffer, read."""
        rows = self._window.rows
        if self.index is None:
            return np.full(len(keys), self.asleep > 0)
        at, found = probe_keys(keys, rows, self.index, rows.head, len(keys))
        held = np.zeros(len(keys), np.bool_)
        held[at[self._window.asleep.bytes[found & rows.mask] == self.number]] = True
        return held

    @property
    def asleep(self) -> int:
        """How many wait, those that have died but were not cleared away yet included."""
        return len(self._window.asleep.at(self.number)) if self.number else 0

    def sleepers(self) -> dict[str, Int64s]:
        """All who wait."""
        return {self._alias: self._window.asleep.at(self.number) if self.number else _NOBODY}

    def commit(self) -> None:
        """Make it final that woken rows are awake."""
        self._log.clear()

    def undo_claims(self) -> None:
        """Go back to the last commit."""
        for rows in self._log:
            self._window.asleep.bytes[rows & self._window.rows.mask] = self.number
        self.commit()
