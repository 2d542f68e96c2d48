"""Feedback pays or steps aside: which guards are on, and what they detect with.

A guard costs a look-up for every row, room for those who wait, and a look-up for everything that
the opposite input gets, which goes through all rows that share its key. If nobody else has the
index that it asks, it keeps one of its own. It saves what the sleepers would have
done: their probe, the pairs that they would have found, and for each of these the storing, the
probe in the join above, what that would have found, and so on up to the join whose other input does
not want them. Where most rows have a partner (W2s, W2u in the benchmarks) feedback is a loss of
half the speed, so every guard is priced from time to time:

- A guard that is *on* by what was counted since the last review: rows tested, put to sleep, woken,
  news from the other side. What a sleeper would have found is measured on the sleepers themselves,
  so a guard that lets nobody in is seen for what it is; and those count only whom no other guard of
  the edge would have held back.
- A guard that is *off* by a sample of the rows that the others let in
  (:mod:`penstock.engine.feedback.demand_sample`), so in company.
- Two guards that save the same pairs would both promise them. So one guard for a join is turned on
  at a time, that which promises most, and the others are priced anew from what is counted then.
- Which side of a join waits for the other is no question of its own: guards in both directions are
  priced, and one whose opposite is waiting itself is not turned on
  (:func:`penstock.engine.feedback.edge.agrees`).
- Rows that were let in and have lost their partner since may go back to sleep
  (:mod:`penstock.engine.feedback.back_to_sleep`). That saves what they would still meet, and costs
  all that was made of them if they wake again. How likely that is, the older half of the window
  tells: as many of its rows have a partner now as will have one again at any time. So rows go back
  where keys pass by, and not where they return. It is part of the price of a guard, and done
  whenever a part of the input has come anew.
- To turn a guard on or off costs as much as is held: indexes are made. So it stays as it is until
  that many rows have come, and one that was found wanting is looked at less and less often. It is
  never given up: streams change, and while windows fill, a row meets more and more others.
- Looks cost as well, and so do guards that turn out not to pay. All that together is a small share
  of what pushes take (:mod:`penstock.engine.feedback.look_budget`). The guard that could save most
  is looked at first, and none before what it could save is worth a look.

Counts are weighed with costs per operation, relative to each other, as measured on the kernels. No
clock is read: the same input gives the same decisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod

from penstock.engine.feedback.back_to_sleep import may_go_back, put_back
from penstock.engine.feedback.demand_sample import (
    PAIRS_PER_FOUND,
    SAMPLE_ROWS,
    newest_rows,
    older_rows,
    pairs_withheld,
    rows_per_key,
    searched_rows,
    share_let_through,
    share_met,
)
from penstock.engine.feedback.edge import Edge, agrees
from penstock.engine.feedback.feedback import Detection
from penstock.engine.feedback.guard import Guard
from penstock.engine.feedback.look_budget import LookBudget, Way
from penstock.engine.feedback.waiting import Waiting
from penstock.engine.join.join_operator import JoinOperator
from penstock.engine.join.join_step import JoinStep
from penstock.engine.state.leaf_window import LeafWindow
from penstock.plan.stream_set import StreamSet

TEST = 12.0
SLEEP = 10.0
WAKE = 25.0
NEWS = 15.0
NEWS_PER_ROW = 1.5
INSERT = 12.0
PROBE = 8.0
SCAN_PER_ROW = 0.7
PAIR_STORED = 20.0
PAIR_PASSING = 10.0
KEY_COLUMN = 8.0
RETURN = 15.0
FORGET = 12.0
REACH = 4.0
SCAN_ASLEEP = 0.3
FILTER_ADD = 8.0
GUARD_PER_PUSH = 1_000.0
EDGE_PER_PUSH = 3_000.0
"""Nanoseconds, about: of a row that is tested, put to sleep or woken, of a row that the opposite
input gets and of each row with its key; of an entry in an index, a probe, a row that nested loops
go by, a pair; of a key column of a composite that is fetched; of a row of an input that is
looked at for going back to sleep, and of a pair that is forgotten; of a row that
a range has to reach, and of a row that may wait for it; of a key that a filter gets; and of a push.
A test is as dear by a filter as by an index. In inputs of a thousand to a million rows, an index
tells in 1.6 to 2.0 ns that a row has no partner, which is what a guard is for, a filter in 1.8 to
3.0; that it has one, in 3.6 to 6.4 and 1.8 to 3.5 (``tests/testing/detection_costs.py``). An index
of its own gets a key in 2.5 to 3.3 ns, a filter in 1.5 to 2.6, twice. So by default it is an index,
whatever comes; the rest of these prices is what is done with the row."""

MARGIN = 1.25
"""How much more than its cost a guard must promise before it is turned on. What it promises is a
guess from a sample: with less, a guard for which there is little in it comes and goes."""
LOOK = 100_000.0
LOOK_PER_ROW = 22.0
GLANCE = 10_000.0
SWITCH = 600_000.0
PUT_BACK = 500_000.0
"""Nanoseconds of a look at a guard, and of each row among which partners are looked for; of
finding out that a guard cannot pay, whoever has a partner; of turning a guard on or off; and of
putting rows back, however few. After these two the compiled push is written down anew. These are
of looks one after the other; right after a push, with nothing in a cache, they take up to three
times as long."""

WORTH_A_LOOK = 0.5
"""Of the cost of a look: what a guard that is off could save since the last one, at least."""
_FIRST_ROWS = 1024
"""Rows after which guards are first looked at."""
_INTERVAL_ROWS = 4096
"""Rows from one look at a guard to the next, at least. With twice as many, and twice as many before
the first, the left-deep clique of the JIT paper makes 0.26 of the partial results, not 0.21."""
_SETTLING_ROWS = 4096
"""The same after a guard was turned on: what it changes for others is counted by then."""
_MOST_PATIENCE = 32
"""Times longer that a guard is left alone which was found wanting again and again."""
_LOOKS_PER_LIFE = 4
"""Looks at the rows of an input for those that have lost their partner, while a row lives."""
_STALE_SHARE = 0.5
"""The part of a window whose dead keys a filter still has, on average."""
_FARTHEST = 1000.0
"""Times what windows hold that the state of full windows is guessed ahead, at most."""


@dataclass(slots=True)
class _Record:
    """What is remembered about a guard between reviews."""

    edge: Edge
    guard: Guard
    consumer: JoinOperator
    position: int
    above: list[Way]
    """The edges of what is made of its rows, up to the join with the opposite input."""
    patience: int = 1
    due: int = 0
    since: list[float] = field(default_factory=list)
    pairs_per_row: float = 0.0
    """Pairs of a row that was let in, when any was last."""
    gain: float = 0.0
    """Nanoseconds that a row saves which goes back to sleep, by the last look."""
    has_paid: bool = False
    """Whether it has saved more than it cost since it was turned on."""
    hope: float = 1.0
    """The share of the cost of its rows that it may save, as far as is known."""


@dataclass(frozen=True, slots=True)
class _Price:
    """What a guard saves and costs in an interval, in nanoseconds."""

    saved: float
    cost: float


class FeedbackPolicy:
    """Turns the guards of one tree on and off."""

    def __init__(self, leaves: Mapping[str, LeafWindow], detection: Detection) -> None:
        self._leaves = leaves
        self._detection: Detection = "bloom" if detection == "bloom" else "index"
        self._records: list[_Record] = []
        self._rows = 0
        self._pushes = 0
        self._next = _FIRST_ROWS
        self._edges: list[Edge] = []
        self._budget = LookBudget([])
        self._has_released = False
        """Whether all who waited at a guard come in with the next push, which is like no other."""

    def watch(self, ways: list[Way]) -> None:
        """Decide about all guards of a tree, which has these ``ways``."""
        feeding = {edge.streams: (edge, consumer, position) for edge, consumer, position in ways}
        self._edges = [edge for edge, _, _ in ways]
        self._budget = LookBudget(ways)
        for edge, consumer, position in ways:
            for guard in edge.guards:
                above = []
                join = consumer
                while join.streams != guard.consumer:
                    above.append(feeding[join.streams])
                    join = above[-1][1]
                record = _Record(edge, guard, consumer, position, above)
                record.since = self._counts(record)
                self._records.append(record)

    def review(self, rows: int) -> bool:
        """``rows`` more have come: whether a guard was turned on or off."""
        self._rows += rows
        self._pushes += 1
        if self._has_released:
            self._has_released = False
            self._count_from_now()
            return False
        if self._rows < self._next:
            return False
        due = [record for record in self._records if self._rows >= record.due]
        changed = False
        for record in due:
            if record.guard.is_on and self._affords(LOOK, [record]):
                changed |= self._review_on(record)
        off = [record for record in due if not record.guard.is_on]
        if off and self._affords(GLANCE * len(off), off, max(map(self._look_at, off))):
            changed |= self._explore(off)
        if changed:  # What was counted in other company tells nothing.
            self._count_from_now()
        self._next = min((record.due for record in self._records), default=1 << 62)
        return changed

    def _affords(self, cost: float, due: list[_Record], more: float = 0.0) -> bool:
        """Whether a look may cost so many nanoseconds, and ``more``; else all that are ``due`` are
        put off until it may."""
        lacking = cost + more - self._budget.left(self._pushes)
        if lacking <= 0:
            self._budget.spend(cost)
            return True
        for record in due:
            record.due = self._rows + max(_FIRST_ROWS, self._rows_until(lacking))
        return False

    def _rows_until(self, lacking: float) -> int:
        """Rows that will have come when ``lacking`` nanoseconds more may be spent."""
        return self._budget.pushes_until(lacking, self._pushes) * self._rows // self._pushes

    def _explore(self, due: list[_Record]) -> bool:
        """Look at guards that are off, those first that could save most; whether one was turned
        on. Where a guard promises more than the next could save, that one need not be looked at."""
        could: list[tuple[float, _Record]] = []
        for record in due:
            if not self._agrees(record.guard):
                record.due = self._rows + self._interval(record)
                continue
            most = self._could_save(record)
            if most <= 0:
                self._put_off(record)
            elif most < WORTH_A_LOOK * self._look_at(record):
                record.due = self._rows + _SETTLING_ROWS
                if self._filling(record.consumer.streams) > 1.0:  # It is worth more from now on.
                    record.since = self._counts(record)
            else:
                could.append((most, record))
        promising: list[tuple[float, _Record]] = []
        for most, record in sorted(could, key=lambda each: -each[0]):
            if any(net >= most for net, other in promising if other.consumer is record.consumer):
                record.due = self._rows + _SETTLING_ROWS
            elif self._affords(self._look_at(record), [record]):
                price = self._promise(record)
                net = price.saved - MARGIN * price.cost
                if net > 0:
                    promising.append((net, record))
                else:
                    self._put_off(record)
        return bool(promising) and self._turn_on_the_best(promising)

    def _count_from_now(self) -> None:
        for record in self._records:
            record.since = self._counts(record)

    def _review_on(self, record: _Record) -> bool:
        self._put_back(record)
        price = self._balance(record)
        if price.saved >= price.cost:
            self._budget.earn(price.saved - price.cost)
            record.patience, record.has_paid = 1, True
            record.due = self._rows + max(self._interval(record), self._rows_until(2.0 * LOOK))
            record.since = self._counts(record)
            return False
        self._budget.spend(price.cost - price.saved + (0.0 if record.has_paid else 2 * SWITCH))
        record.edge.turn_off(record.guard)
        self._has_released = True
        self._put_off(record)
        return True

    def _put_off(self, record: _Record) -> None:
        """The guard is not worth it now: look again later, and later still the next time."""
        record.due = self._rows + self._interval(record) * record.patience
        record.patience = min(2 * record.patience, _MOST_PATIENCE)
        record.since = self._counts(record)

    def _interval(self, record: _Record) -> int:
        edge = record.edge
        if record.gain > 0 and record.guard.is_on:
            life = self._rows / max(1, edge.came) * len(edge.source.rows)
            return max(_SETTLING_ROWS, int(life / _LOOKS_PER_LIFE))
        held = len(edge.source.rows) + len(record.guard.opposite.input.rows)
        return max(_INTERVAL_ROWS, held)

    def _turn_on_the_best(self, promising: list[tuple[float, _Record]]) -> bool:
        """The guard that promises most for each join, if all who wait agree."""
        turned: set[StreamSet] = set()
        for _, record in sorted(promising, key=lambda each: -each[0]):
            record.due = self._rows + _SETTLING_ROWS
            if record.consumer.streams not in turned and self._agrees(record.guard):
                turned.add(record.consumer.streams)
                record.has_paid = False
                record.edge.turn_on(record.guard, self._detection)
        return bool(turned)

    def _put_back(self, record: _Record) -> None:
        """Let rows that have lost their partner go back to sleep, if that pays."""
        pairs_per_row = self._pairs_per_row(record, self._since(record))
        gain, share = self._gain_of_return(record, pairs_per_row)
        record.gain = max(0.0, gain)
        if gain * share * 0.5 * len(record.edge.input.rows) < PUT_BACK:
            return
        if may_go_back(record.edge, record.guard):
            with suppress(MemoryError):
                put_back(record.edge, record.guard, self._edges)

    def _agrees(self, guard: Guard) -> bool:
        """Whether all who wait would agree with ``guard`` on an order of inputs."""
        others = [
            each.guard
            for each in self._records
            if each.guard.consumer == guard.consumer and each.guard in each.edge.open_guards
        ]
        return agrees(guard, others)

    # -- prices ------------------------------------------------------------------------------

    def _could_save(self, record: _Record) -> float:
        """Nanoseconds that the guard might save of what was done since the last review, less what
        it would cost in any case: if as many rows as possible had no partner, until it was looked
        at, and then as many as were seen, which is forgotten by and by."""
        _, admitted, pairs, _, pushes = self._since(record)[:5]
        if admitted <= 0:
            return 0.0
        record.pairs_per_row = pairs / admitted
        per_row = self._value_of_row(record, record.pairs_per_row)
        if not record.guard.theirs and len(record.guard.opposite.input.rows):
            return 0.0
        hope, record.hope = record.hope, 0.5 * (1.0 + record.hope)
        cost = admitted * TEST + self._fixed_cost(record, pushes)
        return hope * admitted * per_row - MARGIN * cost

    def _look_at(self, record: _Record) -> float:
        """Nanoseconds of a look at the guard."""
        return LOOK + LOOK_PER_ROW * searched_rows(record.guard.opposite.input)

    def _fixed_cost(self, record: _Record, pushes: float) -> float:
        """Nanoseconds that so many pushes would pay for the guard, whatever comes."""
        edge = GUARD_PER_PUSH + (0.0 if record.edge.is_guarded else EDGE_PER_PUSH)
        return pushes * (edge + self._scan_cost(record))

    def _promise(self, record: _Record) -> _Price:
        """What the guard would save of what was done since the last review."""
        guard, edge = record.guard, record.edge
        came, admitted, _, news, pushes = self._since(record)[:5]
        per_row = self._value_of_row(record, record.pairs_per_row)
        fixed = self._fixed_cost(record, pushes)
        growth = self._filling(guard.opposite.streams)
        news *= growth / max(self._filling(StreamSet.of(s)) for s in guard.opposite.streams)
        met = share_met(guard, newest_rows(edge.input, SAMPLE_ROWS), self._leaves, growth)
        keeping = self._keeping_cost(guard, self._detection)
        if self._detection == "bloom":
            met = min(1.0, met * (1.0 + _STALE_SHARE))
        lonely = 1.0 - met
        idle = lonely * (1.0 - self._met_later(record, met))
        cost = admitted * (TEST + lonely * self._sleep_cost(guard) + (lonely - idle) * WAKE)
        cost += news * (keeping + self._news_cost(record))
        if isinstance(edge.source, LeafWindow):
            if guard.operator is None and not edge.source.users_of(guard.mine):
                cost += came * INSERT
            if not edge.is_guarded:
                cost += admitted * (1.0 - idle) * INSERT
        saved = admitted * idle * per_row
        gain, share = 0.0, 0.0
        own, theirs = self._lives(record)
        if 2 * theirs <= own:  # Else most rows lose their partner when they are about to die.
            gain, share = self._gain_of_return(record, record.pairs_per_row)
        if gain > 0:
            saved += admitted * (1.0 - idle) * share * gain
            cost += admitted * (1.0 - idle) * self._look_cost(record.pairs_per_row)
        record.hope = min(1.0, saved / (admitted * per_row))
        return _Price(saved, cost + fixed)

    def _balance(self, record: _Record) -> _Price:
        """What the guard has saved, and what it has cost, since the last review."""
        guard, edge = record.guard, record.edge
        new = self._since(record)
        came, admitted, _, news, pushes, tested, slept, woken, dropped, returned = new
        idle = max(0.0, slept + dropped - max(0.0, woken - returned))
        others = [each for each in edge.open_guards if each is not guard and each.is_on]
        if idle and others:
            idle *= share_let_through(guard, others, self._leaves)
        pairs_per_row = self._pairs_per_row(record, new)
        saved = idle * self._value_of_row(record, pairs_per_row) + returned * record.gain
        cost = returned and admitted * self._look_cost(pairs_per_row)
        cost += tested * TEST + slept * self._sleep_cost(guard) + woken * WAKE
        keeping = self._keeping_cost(guard, "index" if guard.filter is None else "bloom")
        cost += news * (keeping + self._news_cost(record))
        cost += pushes * (GUARD_PER_PUSH + self._scan_cost(record))
        if isinstance(edge.source, LeafWindow):
            if guard.mine and guard.operator is None and edge.source.users_of(guard.mine) == 1:
                cost += came * INSERT
            if not others:
                cost += (tested - idle) * INSERT + pushes * EDGE_PER_PUSH
        return _Price(saved, cost)

    def _pairs_per_row(self, record: _Record, new: list[float]) -> float:
        """Pairs that a row that sleeps would have found in its life."""
        _, step = record.consumer.steps[record.position][0]
        found = pairs_withheld(record.guard, step, self._leaves)
        if found is not None:
            return PAIRS_PER_FOUND * found
        if new[1] > 0:
            record.pairs_per_row = new[2] / new[1]
        return record.pairs_per_row

    def _value_of_row(self, record: _Record, pairs_per_row: float) -> float:
        """Nanoseconds that a row costs which is let in and finds no partner in the opposite."""
        _, step = record.consumer.steps[record.position][0]
        filling = self._filling(step.target.streams)
        own = INSERT + _probe_cost(step) * (1.0 if step.hashed else 2.0 * filling)
        return own + pairs_per_row * filling * self._value_of_pair(record)

    def _gain_of_return(self, record: _Record, pairs_per_row: float) -> tuple[float, float]:
        """Nanoseconds that a row saves which goes back to sleep when its partner has died, less
        what it costs if it wakes again; and the share of rows that would."""
        guard, edge = record.guard, record.edge
        own, theirs = self._lives(record)
        if not guard.theirs or guard.is_final or min(own, theirs) <= 0:
            return 0.0, 0.0
        if not isinstance(edge.source, LeafWindow) or len(edge.source.rows) < _SETTLING_ROWS >> 4:
            return 0.0, 0.0
        alone = 1.0 - min(1.0, 0.5 * theirs / own)
        _, step = record.consumer.steps[record.position][0]
        held = 0.5 * pairs_per_row * self._filling(step.target.streams)
        value = held * self._value_of_pair(record)
        if value * alone < self._look_cost(pairs_per_row):
            return 0.0, 0.0
        met = share_met(guard, older_rows(edge.source), self._leaves, 1.0)
        again = 1.0 - (1.0 - met) ** min(_FARTHEST, alone * own / theirs)
        return value * ((1.0 - again) * alone - again) - again * WAKE, 1.0 - met

    def _look_cost(self, pairs_per_row: float) -> float:
        """Nanoseconds for a row that is looked at, with what was made of it, while it lives."""
        return _LOOKS_PER_LIFE * RETURN + FORGET * 0.5 * pairs_per_row

    def _value_of_pair(self, record: _Record) -> float:
        """Nanoseconds that a pair costs until the join where it finds no partner, that included."""
        if not record.above:
            return PAIR_PASSING + PROBE
        value = 0.0
        for edge, consumer, position in reversed(record.above):
            _, step = consumer.steps[position][0]
            found = 0.0
            if value and edge.admitted:
                found = consumer.pairs_of(position) / edge.admitted
            value = PAIR_STORED + _store_cost(edge) + _probe_cost(step) + found * value
        return value

    def _news_cost(self, record: _Record) -> float:
        """Nanoseconds for a row that the opposite input gets: a look-up among those who wait."""
        guard = record.guard
        if not guard.theirs:
            return 0.0
        if guard.operator is not None:
            return REACH
        if isinstance(guard.waiting, Waiting):
            source = guard.waiting if guard.is_on else record.edge.input
        else:
            source = record.edge.source
        return NEWS + NEWS_PER_ROW * rows_per_key(guard, source, self._leaves)

    def _scan_cost(self, record: _Record) -> float:
        """Nanoseconds per push for a look at all who wait, when a range reaches further."""
        if record.guard.operator is None:
            return 0.0
        return SCAN_ASLEEP * len(record.edge.source.rows)

    def _keeping_cost(self, guard: Guard, detection: Detection) -> float:
        """Nanoseconds for each row of the opposite input of keeping what detects partners."""
        if not guard.theirs or guard.operator is not None:
            return 0.0
        target = guard.opposite.input
        key = 0.0 if isinstance(target, LeafWindow) else KEY_COLUMN * len(guard.theirs)
        if detection == "bloom":
            return 2.0 * (FILTER_ADD + key)  # Once when it comes, once when the filter is remade.
        is_own = guard.is_on and guard.filter is None
        return INSERT + key if target.users_of(guard.theirs) <= is_own else 0.0

    def _met_later(self, record: _Record, met: float) -> float:
        """The share of sleepers that get a partner while they live."""
        own, theirs = self._lives(record)
        if min(own, theirs) <= 0 or record.guard.is_final:
            return 0.0
        return float(1.0 - (1.0 - met) ** min(_FARTHEST, own / theirs))

    def _lives(self, record: _Record) -> tuple[int, int]:
        """How long a row of the input lives, and one of the opposite input."""
        own, theirs = (
            min(self._leaves[stream].span for stream in streams)
            for streams in (record.edge.streams, record.guard.opposite.streams)
        )
        return own, theirs

    def _sleep_cost(self, guard: Guard) -> float:
        """Nanoseconds per row put to sleep: a byte, or an entry of its own if it is kept apart."""
        return SLEEP + INSERT if isinstance(guard.waiting, Waiting) else 1.0

    def _filling(self, streams: StreamSet) -> float:
        """How many times more combinations of ``streams`` there will be in full windows."""
        known = [leaf.newest for leaf in self._leaves.values()]
        now = max([each for each in known if each is not None], default=0)
        return min(_FARTHEST, prod(self._leaves[stream].filling(now) for stream in streams))

    def _counts(self, record: _Record) -> list[float]:
        """Counts since the start: came, admitted, pairs, news, pushes; tested, slept, woken,
        dropped, put back."""
        guard = record.guard
        return [
            record.edge.came,
            record.edge.admitted,
            record.consumer.pairs_of(record.position),
            guard.opposite.admitted,
            self._pushes,
            *(guard.count(what) for what in range(5)),
        ]

    def _since(self, record: _Record) -> list[float]:
        """The same since the last review."""
        now = self._counts(record)
        return [a - b for a, b in zip(now, record.since, strict=True)]


def _probe_cost(step: JoinStep) -> float:
    return PROBE if step.hashed else SCAN_PER_ROW * len(step.target.rows)


def _store_cost(edge: Edge) -> float:
    """Nanoseconds per row for the indexes of what an edge feeds."""
    return INSERT * max(0, len(edge.input.indexes) - 1)
