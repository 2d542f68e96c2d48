"""A guard: rows pass that have a partner in an opposite input, the others wait for one.

JIT, sections III and IV, turned round. In the paper a join makes a partial result, its consumer
finds no partner for it, looks for the smallest component that explains this (a minimal
non-demanded sub-tuple, MNS), and tells the producer to stop. Here a row is *asked after before it
is used*: the guard between the input ``X`` of a join and an opposite input ``O`` of a join above
compares the columns of X that meet O (its component in the sub-tuple lattice of Figure 7) with what
O holds. No partner: every result that contains the row would be one that O does not want, so the
row waits (:mod:`penstock.engine.feedback.waiting`) and not even the first of them is made. When O
gets rows, their keys are looked up among the waiting first, and those that match are handed over
before anything is probed.

A row over X is a component of as many streams as X has columns for: a leaf guards level 1 of the
lattice, the input (A B) level 2, and so on. A component without columns is the empty sub-tuple ∅:
its rows wait while O is empty, which is demand-driven operator execution (DOE). Messages are sent
per value: a row whose value somebody waits with already is a known MNS and sends none.

Where nothing is equated, rows that are compared with ``<``, ``<=``, ``>`` or ``>=`` wait for the
opposite input to reach far enough (:mod:`penstock.engine.feedback.demand_range`); several such
comparisons are several guards.

Which guards there may be is argued in :mod:`penstock.engine.feedback.edge`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.engine.feedback.demand_filter import DemandFilter
from penstock.engine.feedback.demand_range import DemandRange
from penstock.engine.feedback.feedback import Command, Detection, Message
from penstock.engine.feedback.waiting import Waiting
from penstock.engine.feedback.waiting_in_window import WaitingInWindow
from penstock.engine.join.join_step import Input
from penstock.engine.state.composite_state import key_values
from penstock.engine.state.composites import NOTHING, Composites
from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.probing import exists
from penstock.kernels import demand, ring
from penstock.plan.stream_set import StreamSet
from penstock.values.wiring import KeyColumn

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]
Ids = Mapping[str, Int64s]

TESTED, SLEPT, WOKEN, DROPPED, RETURNED = range(5)


class User(Protocol):
    """A reader of the input that an edge feeds."""

    def retarget(self, target: Input) -> None:
        """The input is kept in ``target`` from now on."""


class Opposite(Protocol):
    """The edge that feeds the input in which rows look for a partner."""

    streams: StreamSet
    input: Input
    users: list[User]
    delta: Composites | None
    """Rows that were let in by the push at hand."""
    is_guarded: bool
    """Whether rows may wait before they are let in."""

    @property
    def admitted(self) -> int:
        """Rows that were let in since the start."""

    @property
    def is_static(self) -> bool:
        """Whether no row will ever be added."""


class Guard:
    """Rows of ``source`` wait for a partner in the input that ``opposite`` feeds."""

    def __init__(
        self,
        source: Input,
        opposite: Opposite,
        within: StreamSet,
        consumer: StreamSet,
        keys: tuple[tuple[KeyColumn, KeyColumn], ...],
        leaves: Mapping[str, LeafWindow],
        counts: list[int],
        log: list[Message] | None,
        operator: int | None = None,
    ) -> None:
        """``within`` is the input of ``consumer``, the join with ``opposite``, that ``source`` is
        in. ``counts`` is the tally of the whole tree. With an ``operator`` other than ``=``, there
        is one pair of ``keys``, compared with that."""
        self.streams = source.streams
        self.opposite = opposite
        self.within = within
        self.consumer = consumer
        self.mine = tuple(mine for mine, _ in keys)
        self.theirs = tuple(theirs for _, theirs in keys)
        self.operator = operator
        self.is_on = False
        self.waiting: Waiting | WaitingInWindow
        sought = self.mine if operator is None else ()
        if isinstance(source, LeafWindow):
            self.waiting = WaitingInWindow(source, sought)
        else:
            self.waiting = Waiting(source.streams, leaves, sought)
        self._counts = counts
        self.place = len(counts)
        counts += [0, 0, 0, 0, 0]
        self._leaves = leaves
        self._detection: Detection = "index"
        self.filter: DemandFilter | DemandRange | None = None
        """The filter over the keys of the opposite input, or how far they reach, if that detects
        who has no partner."""
        self.index: HashIndex | None = None
        self._target: Input | None = None
        self._log = log
        self.is_final = opposite.is_static
        """Whether a row that has no partner now will never have one."""
        self._sorts_out = (
            isinstance(self.waiting, WaitingInWindow) and log is None and not self.is_final
        )
        """Whether test and suspension can be one call."""

    @property
    def name(self) -> str:
        """The waiting streams and those that they wait for, as EXPLAIN writes it."""
        return f"{self.streams} waits for {self.opposite.streams}"

    def count(self, what: int) -> int:
        """How many rows were tested, slept, woken, dropped or put back since the start."""
        return self._counts[self.place + what]

    @property
    def is_compiled(self) -> bool:
        """Whether all that it does can be part of a compiled push: messages are not recorded."""
        return self._log is None

    @property
    def nbytes(self) -> int:
        """Bytes of those who wait, and of the filter if there is one."""
        return self.waiting.nbytes + (0 if self.filter is None else self.filter.nbytes)

    # -- on and off, between pushes ----------------------------------------------------------

    def turn_on(self, detection: Detection) -> None:
        """Rows are tested from now on."""
        self.is_on = True
        self._detection = detection
        self.waiting.open()
        self._attach(self.opposite.input)
        self.opposite.users.append(self)

    def turn_off(self) -> None:
        """No more tests. Those who wait must be fetched with :meth:`release`."""
        self.is_on = False
        self.opposite.users.remove(self)
        self._detach()

    def dispose(self) -> None:
        """Nobody will ask any more, neither for the test nor for those who wait."""
        if self.is_on:
            self.turn_off()
        self.waiting.clear()

    def retarget(self, target: Input) -> None:
        """The opposite input is kept elsewhere from now on."""
        self._detach()
        self._attach(target)

    def _attach(self, target: Input) -> None:
        self._target = target
        if not self.theirs:
            return
        if self.operator is not None:
            self.filter = DemandRange(target, self.theirs[0], self.operator, self._leaves)
        elif self._detection == "bloom":
            self.filter = DemandFilter(target, self.theirs, self._leaves)
        else:
            self.index = target.index_on(self.theirs)

    def _detach(self) -> None:
        if self.index is not None and self._target is not None:
            self._target.release_index(self.theirs)
        self.index = self.filter = self._target = None

    # -- a push ------------------------------------------------------------------------------

    def resume(self) -> Ids | None:
        """Those who have waited for what the opposite input has just got."""
        news = self.opposite.delta
        if news is None:
            return None
        keys = key_values(self.theirs, news.ids, self._leaves) if self.theirs else _ANY
        if isinstance(self.filter, DemandRange):
            if not self.filter.add(keys):
                return None
            return self._woken(self.waiting.claim_if(self.partners))
        if self.filter is not None:
            self.filter.add(keys)
        return self._woken(self.waiting.claim(keys))

    def release(self) -> Ids | None:
        """All who wait."""
        return self._woken(self.waiting.claim_all())

    def _woken(self, found: Ids | None) -> Ids | None:
        if found is not None:
            self._counts[self.place + WOKEN] += _count(found)
            self._send("resume", found)
        return found

    def let_through(self, ids: Ids) -> Ids:
        """Those of ``ids`` that have a partner. The others wait."""
        count = _count(ids)
        self._counts[self.place + TESTED] += count
        assert self._target is not None
        rows = self._target.rows
        if not self.theirs:
            if rows.head > rows.low:
                return ids
            self._suspend(ids)
            return dict.fromkeys(ids, NOTHING)
        keys = key_values(self.mine, ids, self._leaves)
        if self._sorts_out and self.index is not None:
            assert isinstance(self.waiting, WaitingInWindow)
            ((stream, own),) = ids.items()
            awake = self.waiting.sort_out(own, keys, rows, self.index)
            self._counts[self.place + SLEPT] += count - len(awake)
            return ids if len(awake) == count else {stream: awake}
        found = np.empty(count, np.bool_)
        if self.filter is not None:
            number = self.filter.may_contain(keys, found)
        else:
            assert self.index is not None
            number = exists(keys, rows, self.index, found)
        if number == count:
            return ids
        places = np.empty((2, count + 1), np.int64)
        demand.split(found, places[0], places[1])
        passed, idle = places[0, :number], places[1, : count - number]
        self._suspend(_pick(ids, idle))
        return _pick(ids, passed)

    def commit(self) -> None:
        """The push is done."""
        self.waiting.commit()
        if isinstance(self.filter, DemandRange):
            self.filter.commit()

    def undo(self) -> None:
        """The push has failed: those who were woken sleep on."""
        self.waiting.undo_claims()
        if isinstance(self.filter, DemandRange):
            self.filter.undo()

    def partners(self, ids: Ids) -> Bools:
        """Which of ``ids`` may have a partner, also among rows that probes skip for now."""
        assert self._target is not None
        rows, count = self._target.rows, _count(ids)
        if not self.theirs:
            return np.full(count, rows.head > rows.tail)
        keys, found = key_values(self.mine, ids, self._leaves), np.empty(count, np.bool_)
        if self.filter is not None:
            self.filter.may_contain(keys, found)
        else:
            assert self.index is not None
            exists(keys, rows, self.index, found, since=rows.tail)
        return found

    def suspend_again(self, ids: Ids) -> None:
        """These have lost their partner, and wait for another."""
        self._send("suspend", ids)
        self.waiting.put(ids)
        self._counts[self.place + RETURNED] += _count(ids)

    def _suspend(self, ids: Ids) -> None:
        """These have no partner."""
        if self.is_final:
            self._counts[self.place + DROPPED] += _count(ids)
            return
        self._counts[self.place + SLEPT] += _count(ids)
        self._send("suspend", ids)
        self.waiting.put(ids)

    def _send(self, command: Command, ids: Ids) -> None:
        """Record a message about the values of ``ids``; a known one is not sent again."""
        if self._log is None:
            return
        columns = [
            self._leaves[key.stream].rows.take(
                self._leaves[key.stream].key_column(key.position), ids[key.stream]
            )
            for key in self.mine
        ]
        if command == "suspend":
            if self.operator is not None:  # Each value is told: none stands for another.
                known = np.zeros(_count(ids), np.bool_)
            else:
                known = self.waiting.holds(self._keys_of(ids))
            if known.all():
                return
            columns = [column[~known] for column in columns]
        values = tuple(dict.fromkeys(zip(*(c.tolist() for c in columns), strict=True)))
        names = tuple(self._leaves[key.stream].key_name(key.position) for key in self.mine)
        self._log.append(
            Message(command, self.consumer, self.streams, self.opposite.streams, names, values)
        )

    def _keys_of(self, ids: Ids) -> Int64s:
        if not self.mine:
            return np.zeros(_count(ids), np.int64)
        return key_values(self.mine, ids, self._leaves)


_ANY = np.zeros(1, np.int64)


def _pick(ids: Ids, positions: Int64s) -> Ids:
    return {stream: ring.pick(rows, positions) for stream, rows in ids.items()}


def _count(ids: Ids) -> int:
    return len(next(iter(ids.values())))
