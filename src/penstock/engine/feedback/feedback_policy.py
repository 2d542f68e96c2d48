"""Feedback pays or steps aside: which guards are on.

A guard costs a look-up for every row, room for those who wait, and a look-up for everything that
the opposite input gets. It saves what the sleepers would have done: the pairs that they would have
found in their join, each of which would have been made, perhaps stored, and probed further on.
Where most rows have a partner (W2s, W2u in the benchmarks) this is a loss of 10 to 30 per cent, so
every guard is reviewed from time to time:

- A guard that is *on* is judged by its own counts since the last review: rows tested, put to sleep,
  woken, and news from the other side; against the pairs per admitted row that its join made.
- A guard is not turned on if the opposite input would need an index for it alone. On a state of
  many rows that costs more than the sleepers save: measured on W2, a third to a half of the speed.
- To turn a guard on or off costs as much as is held: indexes are made. So it stays as it is until
  a multiple of that many rows has come.
- Any other guard that is *off* is judged by a sample: the latest rows of its edge are looked up in
  that index, which takes some ten microseconds. One that was found wanting is looked at less and
  less often, so that looking costs next to nothing, but never given up: streams change, and while
  windows fill, a row meets more and more others.

Counts are weighed with costs per operation, relative to each other, as measured on the kernels. No
clock is read: the same input gives the same decisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from penstock.engine.feedback.edge import Edge
from penstock.engine.feedback.guard import Guard
from penstock.engine.feedback.waiting import Waiting
from penstock.engine.join.join_operator import JoinOperator
from penstock.engine.state.composite_state import key_values
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.probing import exists
from penstock.plan.stream_set import StreamSet

TEST = 10.0
SLEEP = 10.0
WAKE = 20.0
NEWS = 10.0
INSERT = 10.0
PAIR_STORED = 60.0
PAIR_PASSING = 25.0
"""Nanoseconds, about."""

MARGIN = 2.0
"""How much more than its cost a guard must promise before it is turned on. What it promises is a
guess from a sample: with less, a guard for which there is little in it comes and goes."""
_FIRST = 4096
_INTERVAL = 16384
_SAMPLE = 1024
_LONGEST = 8
_FARTHEST = 32.0
"""Times what windows hold that the state of full windows is guessed ahead, at most."""


@dataclass(slots=True)
class _Record:
    """What is remembered about a guard between reviews."""

    edge: Edge
    guard: Guard
    consumer: JoinOperator
    position: int
    patience: int = 1
    due: int = _FIRST
    since: list[float] = field(default_factory=list)


class FeedbackPolicy:
    """Turns the guards of one tree on and off."""

    def __init__(self, leaves: Mapping[str, LeafWindow]) -> None:
        self._leaves = leaves
        self._records: list[_Record] = []
        self._rows = 0
        self._next = _FIRST

    def watch(self, edge: Edge, guard: Guard, consumer: JoinOperator, position: int) -> None:
        """Decide about ``guard`` of ``edge``, which feeds input ``position`` of ``consumer``."""
        record = _Record(edge, guard, consumer, position)
        record.since = _counts(record)
        self._records.append(record)

    def review(self, rows: int) -> bool:
        """``rows`` more have come: whether a guard was turned on or off."""
        self._rows += rows
        if self._rows < self._next:
            return False
        changed = False
        for record in self._records:
            if self._rows < record.due:
                continue
            turned = self._judge(record)
            interval = _INTERVAL
            if turned or record.guard.is_on:
                held = len(record.edge.source.rows) + len(record.guard.opposite.input.rows)
                interval = max(_INTERVAL, 2 * held)
            record.due = self._rows + interval * record.patience
            changed |= turned
        self._next = min((record.due for record in self._records), default=1 << 62)
        return changed

    def _judge(self, record: _Record) -> bool:
        now = _counts(record)
        new = [a - b for a, b in zip(now, record.since, strict=True)]
        record.since = now
        if record.guard.is_on:
            if self._balance(record, new) >= 0:
                record.patience = 1
                return False
            record.edge.turn_off(record.guard)
            record.patience = min(2 * record.patience, _LONGEST)
            return True
        if self._promise(record, new) > 0:
            record.edge.turn_on(record.guard)
            record.since = _counts(record)
            return True
        record.patience = min(2 * record.patience, _LONGEST)
        return False

    def _promise(self, record: _Record, new: list[float]) -> float:
        """What the guard would save per row that comes, less what it would cost."""
        came, admitted, pairs, news = new[:4]
        if came <= 0 or admitted <= 0 or not _is_indexed(record.guard):
            return 0.0
        met = (1.0 - self._lonely_share(record)) * self._filling(record.guard.opposite.streams)
        lonely = 1.0 - min(1.0, met)
        saved = lonely * (pairs / admitted * self._pair_cost(record) + INSERT)
        cost = TEST + lonely * _sleep_cost(record.guard) + news / came * _news_cost(record)
        return saved - MARGIN * cost

    def _lonely_share(self, record: _Record) -> float:
        """The share of the latest rows of the edge that have no partner by now."""
        guard, source, target = record.guard, record.edge.source, record.guard.opposite.input
        rows = np.arange(
            max(source.rows.tail, source.rows.head - _SAMPLE), source.rows.head, dtype=np.int64
        )
        if len(rows) == 0:
            return 0.0
        if not guard.theirs:
            return float(len(target.rows) == 0)
        index = target.whole_index(guard.theirs)
        if index is None:
            return 0.0
        sought = key_values(guard.mine, source.resolve(rows), self._leaves)
        found = np.empty(len(sought), np.bool_)
        return 1.0 - exists(sought, target.rows, index, found) / len(sought)

    def _balance(self, record: _Record, new: list[float]) -> float:
        """What the guard has saved, less what it has cost."""
        _, admitted, pairs, news, tested, slept, woken, dropped = new
        idle = slept + dropped - woken
        per_row = pairs / admitted if admitted > 0 else 1.0
        saved = idle * (per_row * self._pair_cost(record) + INSERT)
        cost = tested * TEST + slept * _sleep_cost(record.guard) + woken * WAKE
        return saved - cost - news * _news_cost(record)

    def _pair_cost(self, record: _Record) -> float:
        """Per pair. As many as there are now, times what will be when the windows are full."""
        cost = PAIR_PASSING if record.consumer.state is None else PAIR_STORED
        return cost * self._filling(record.consumer.streams)

    def _filling(self, streams: StreamSet) -> float:
        return min(_FARTHEST, *(self._leaves[stream].filling for stream in streams))


def _counts(record: _Record) -> list[float]:
    """Counts since the start: came, admitted, pairs, news; tested, slept, woken, dropped."""
    guard = record.guard
    return [
        record.edge.came,
        record.edge.admitted,
        record.consumer.pairs_of(record.position),
        guard.opposite.admitted,
        *(guard.count(what) for what in range(4)),
    ]


def _sleep_cost(guard: Guard) -> float:
    """Per row that is put to sleep: an entry in an index, and a copy if it is kept apart."""
    return INSERT + (SLEEP if isinstance(guard.waiting, Waiting) else 0.0)


def _news_cost(record: _Record) -> float:
    """Per row that the opposite input gets: a look-up among those who wait."""
    return NEWS if record.guard.theirs else 0.0


def _is_indexed(guard: Guard) -> bool:
    """Whether a partner can be looked up in an index that somebody else needs anyway."""
    return not guard.theirs or guard.opposite.input.users_of(guard.theirs) > guard.is_on
