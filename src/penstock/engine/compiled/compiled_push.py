"""A push through a tree as one compiled call.

Edge by edge, a push through a tree of three streams is some three hundred calls of Python
functions; with ten thousand rows they take as long as all the work on these rows. The tree is
therefore written down once, as a list of inputs with guards and of joins
(:mod:`penstock.kernels.push`), anew whenever a ring has moved, and Python fills in where rings
begin and end. Answers and counts are those of the edges, one by one, which are there for what is
rare: probes that are owed, tracks side by side, messages of feedback that are recorded.

The call ends where Python is needed: there is no room, a predicate has to be tested on columns, or
a state lacks rows since a change of plan, which are completed on demand. It is called again, and
goes on.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from operator import add
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.engine.compiled.plain_answer import PlainAnswer
from penstock.engine.feedback.waiting import Waiting
from penstock.engine.feedback.waiting_in_window import WaitingInWindow
from penstock.engine.join.compiled_order import CompiledOrder, flags_of
from penstock.engine.join.join_step import Input
from penstock.engine.join.stopwatch import Stopwatch
from penstock.engine.join.workspace import WORKSPACE
from penstock.engine.state.address import address_of
from penstock.engine.state.composite_state import CompositeState
from penstock.engine.state.composites import Composites
from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.held_signals import HELD
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.probing import ACTIVE
from penstock.engine.state.rows import Rows
from penstock.engine.state.working_memory import WORKING
from penstock.kernels import arrow_struct, ration, rings, whole_push
from penstock.kernels import guards as guarding
from penstock.kernels import push as kernel
from penstock.kernels.lifespan import BEGINNING
from penstock.kernels.probe_order import LONG_ITEMS, NOW, REST
from penstock.overload.missed_results import Stratum
from penstock.plan.stream_set import StreamSet
from penstock.values.wiring import KeyColumn

if TYPE_CHECKING:
    from penstock.engine.feedback.edge import Edge
    from penstock.engine.feedback.guard import Guard
    from penstock.engine.join.join_operator import JoinOperator

Int64s = NDArray[np.int64]

Run = tuple[int, int]
"""New rows of a window: the first of them, and how many."""

_NEVER = int(BEGINNING)
_RESULTS = 1 << 12
_LOGGED = 1 << 10
"""Rows that may be woken in a push before there is need for more room to note them."""
_COPIED = 1 << 14
"""Fewer results than that are copied, and the table is used again."""


class Arrivals:
    """What has come for windows, where it lies, and where it goes
    (:mod:`penstock.kernels.whole_push`)."""

    def __init__(self, table: NDArray[np.int64], facts: NDArray[np.int64]) -> None:
        self.table = table
        self.facts = facts
        self.hashes = np.empty(0, np.int64)
        """Working space for as many numbers as a window gets rows."""
        self.before = _NEVER
        """What died before then can be let go of."""
        self.since = _NEVER
        """What died before then can be hidden."""
        self.filled: list[tuple[HashIndex, Rows]] = []
        """The indexes that get the new rows."""
        self.asks_age = False
        """Whether somebody asks how old the rows in the results are."""
        self.answer: PlainAnswer | None = None
        """What is made of the results, if that is simple."""


class Rationed(NamedTuple):
    """The input ``place`` of ``join`` in a push in which not every row might probe."""

    join: JoinOperator
    inputs: Sequence[Edge]
    place: int
    olds: Sequence[int]
    """The ends of all inputs before the push."""
    ration: Int64s
    shares: NDArray[np.float64]
    stratum: Stratum | None
    """What was found by the rows that probed, if not all did."""

    @property
    def edge(self) -> Edge:
        return self.inputs[self.place]

    @property
    def total(self) -> int:
        """Rows that came."""
        return int(self.ration[ration.TOTAL])

    def left_out(self) -> Int64s:
        """The rows that did not probe: they are drawn once more."""
        picked = np.empty(self.total, np.uint8)
        seed = int(self.ration[ration.SEED])
        ration.draw(self.shares, seed, self.total, 0, self.total, picked)
        rows = self.olds[self.place] + np.flatnonzero(picked == 0)
        flags = self.edge.input.chosen(rows) if isinstance(self.edge.input, LeafWindow) else None
        return rows if flags is None else rows[flags]

    @property
    def bounds(self) -> tuple[int, ...]:
        """How far a row that did not probe would have seen each input."""
        return tuple(
            other.input.rows.head if number < self.place else self.olds[number]
            for number, other in enumerate(self.inputs)
        )


_NO_ANSWER = (np.empty(0, np.int64), *np.empty((2, 0, 0), np.int64))
_NOTHING = Arrivals(
    np.empty((0, whole_push.ARRIVAL), np.int64), np.empty((0, arrow_struct.FACTS), np.int64)
)


class CompiledPush:
    """Pushes through ``edges``, in the order of their visit, and then the join ``top``."""

    def __init__(
        self,
        windows: Mapping[str, LeafWindow],
        edges: Sequence[Edge],
        top: JoinOperator | None,
        inputs: Sequence[Edge],
        counts: list[int],
    ) -> None:
        """``counts`` is the tally of the whole tree. There is no reason :meth:`why_not`. Without
        a join, the new rows of the one window are the results."""
        self._edges = edges
        self._guarded = {id(edge): edge.open_guards for edge in edges if edge.is_guarded}
        """The guards of inputs that have any."""
        guards = [guard for each in self._guarded.values() for guard in each]
        self._joins = [
            (edge.producer, edge.children) for edge in edges if edge.producer is not None
        ]
        if top is not None:
            self._joins.append((top, list(inputs)))
        self._top = top
        self._windows = dict(windows)
        self._counts = counts
        self._rings: list[Rows] = []
        self._indexes: list[HashIndex] = []
        self._numbers: dict[int, int] = {}
        for source in (*self._windows.values(), *(edge.source for edge in edges)):
            self._ring(source)
            for index in source.rows.indexes:
                self._index(index)
        for edge in edges:
            self._ring(edge.input)
        for operator, _ in self._joins:
            for steps in operator.steps:
                for _, step in steps:
                    if step.index is not None:
                        self._index(step.index)
        self._stores: list[CompositeState] = []
        for edge in edges:
            if isinstance(edge.input, CompositeState):
                self._stores.append(edge.input)
        for guard in guards:
            if isinstance(guard.waiting, Waiting):
                self._stores.append(guard.waiting)
            for used in (guard.waiting.index, guard.index):
                if used is not None:
                    self._index(used)
        for store in self._stores:
            self._ring(store)
            for index in store.indexes:
                self._index(index)
        self._inputs = [(edge, self._numbers[id(edge.input.rows)]) for edge in edges]
        self._filled = [(index, each.rows) for each in self._stores for index in each.rows.indexes]
        self._generations = [rows.generation for rows in self._rings]
        self._code = np.empty(0, np.int64)
        # To pack numbers is several times faster than numpy's conversion of a list.
        ends = rings.RING * len(self._rings)
        packing = struct.Struct(f"={ends + len(self._indexes)}q")
        self._put = packing.pack_into
        self._now_in_bytes = bytearray(packing.size)
        now = np.frombuffer(self._now_in_bytes, np.int64)
        self._now, self._narrow = now[:ends].reshape(-1, rings.RING), now[ends:]
        orders = [order for operator, _ in self._joins for order in operator.orders]
        self._growth = np.array([g for operator, _ in self._joins for g in operator.growth])
        self._shares = np.full((len(self._growth), ration.SHARES), -1.0)
        """The part of the rows of each input that may probe."""
        self._rations = np.zeros((len(self._growth), ration.RATION), np.int64)
        self.is_rationed = False
        """Whether not all rows may probe."""
        laps = len(edges) + 1 + len(self._windows)
        self._fresh = np.zeros(len(counts) + laps + guarding.PROGRESS, np.int64)
        """What is zero when a push begins: counts, laps, progress."""
        self._new, self._laps, self._progress = np.split(
            self._fresh, [len(counts), len(counts) + laps]
        )
        self._streams = sorted(self._windows)
        self._width = len(self._streams) + 2
        most = max([len(order.steps) for order in orders], default=0)
        self._order_now = np.zeros(NOW * most + 2 * self._width, np.int64)
        self._tally = np.zeros(2 * most, np.int64)
        self._rest = np.zeros(REST, np.int64)
        self.asks = any(step.asks for order in orders for step in order.steps)
        """Whether a predicate is tested on columns, of the new rows as well."""
        self._sources = np.zeros(self._width, np.int64)
        self._results = np.empty((self._width, 0), np.int64)
        self._births = self._unasked = np.zeros((0, 3), np.int64)
        """By stream, where births lie, and the earliest in the results."""
        self._met = np.zeros(guarding.SCRATCH, np.uint8)
        self._chooser = next(filter(self._chosen_by, guards), None)
        """The guard whose look at the news spares others the same look."""
        self._wakers = [(guard.place + guarding.WOKEN, guard.waiting) for guard in guards]
        """Where it is counted who wakes at each guard, and where they waited."""
        self._log = np.empty(_LOGGED if guards else 0, np.int64)
        """Rows that were woken in the push at hand, guard by guard."""
        self._filters = [
            (guard.filter, self._numbers[id(guard.opposite.input.rows)])
            for guard in guards
            if guard.filter is not None
        ]
        self._orders: list[list[CompiledOrder]] = []
        """The probe orders of each item."""
        self._joins_by_item: list[tuple[int, JoinOperator]] = []
        """The items that are joins."""
        self.let_in = 0
        """Rows that came into inputs with the push at hand."""
        self.is_torn = False
        """Whether rows have come of which the rings do not know yet."""
        self.needs_care = False
        """Whether a ring should be packed or is too large."""
        self._came: list[int] = []
        """Rows that came into rings with the push at hand."""
        self._names = [*(edge.streams for edge in edges), StreamSet(self._streams)]
        self._names += [window.streams for window in self._windows.values()]
        self._write_down()

    @property
    def is_current(self) -> bool:
        """Whether no ring or index has come, gone or moved since."""
        return self._generations == [rows.generation for rows in self._rings]

    def has_all(self, kept: Sequence[CompositeState]) -> bool:
        """Whether there are no other states than those that were written down."""
        return len(kept) == len(self._stores)

    def ring_of(self, alias: str) -> int:
        """The number of the ring of a window."""
        return self._numbers[id(self._windows[alias].rows)]

    def lap_of(self, alias: str) -> int:
        """The lap in which a window gets its new rows."""
        return len(self._edges) + 1 + list(self._windows).index(alias)

    def number_of(self, index: HashIndex) -> int:
        """The number of an index of a window or state."""
        return self._numbers[id(index)]

    def hand_back(self) -> None:
        """The joins go on without it: they get to know what was learned."""
        learned = iter(self._growth.tolist())
        for operator, inputs in self._joins:
            operator.growth[:] = [next(learned) for _ in inputs]

    def inherit(self, other: CompiledPush) -> None:
        """Find results where ``other`` did, for the same query: there is room for as many."""
        self._results = other._results

    @staticmethod
    def why_not(edges: Sequence[Edge]) -> str:
        """Why a tree cannot be written down as it is now; empty if it can."""
        if not all(guard.is_compiled for edge in edges for guard in edge.open_guards):
            return "messages of feedback that are recorded"
        for edge in edges:
            if isinstance(edge.input, CompositeState) and any(
                index.stop < edge.input.rows.head for index in edge.input.indexes
            ):
                return "an index that is being filled"
        return ""

    @property
    def fits(self) -> bool:
        """Whether the slice at hand has come just now, and is not owed."""
        return not self._rings[0].is_late

    # -- rations -----------------------------------------------------------------------------

    def ration(
        self,
        shares: Mapping[StreamSet, float] | None,
        carried: Mapping[StreamSet, float],
        seed: int,
    ) -> None:
        """In the next push let only ``shares`` of the rows of inputs probe, None for all; which
        rows, is drawn by ``seed``. ``carried`` are fractions of a row that were not used."""
        if shares is None and not self.is_rationed:
            return
        self.is_rationed = shares is not None
        self._rations.fill(0)
        inputs = [edge for _, edges in self._joins for edge in edges]
        for number, edge in enumerate(inputs):
            share = -1.0 if shares is None else shares.get(edge.streams, 1.0)
            self._shares[number] = share, carried.get(edge.streams, 1.0)
            self._rations[number, ration.SEED] = seed + number

    def rationed(self) -> Iterator[Rationed]:
        """What became of the rows of each input in the last push."""
        places = [
            (operator, edges, place)
            for operator, edges in self._joins
            for place in range(len(edges))
        ]
        for (operator, edges, place), each, shares in zip(
            places, self._rations, self._shares, strict=True
        ):
            stratum = None
            if each[ration.OFFERED]:
                probed, found = np.split(each[ration.PROBED :].astype(np.float64), 2)
                stratum = Stratum.of_groups(int(each[ration.OFFERED]), probed, found)
            olds = [self._now.item(self._numbers[id(e.input.rows)], rings.OLD) for e in edges]
            yield Rationed(operator, edges, place, olds, each, shares, stratum)

    # -- a push ------------------------------------------------------------------------------

    def run(self, news: Mapping[str, Run], stopwatch: Stopwatch) -> None:
        """Push the new rows of the windows, which hold them already."""
        self._note_rings()
        for alias, (first, _) in news.items():
            self._now[self.ring_of(alias), rings.OLD] = first
        self._push(_NOTHING, sum([count for _, count in news.values()]), stopwatch)

    def run_whole(self, arrivals: Arrivals, count: int, stopwatch: Stopwatch) -> None:
        """Push ``count`` rows that have arrived and are in no window yet, though there is room."""
        self._note_rings()
        self._push(arrivals, count, stopwatch)

    def take_in(self, arrivals: Arrivals) -> None:
        """Put rows that have arrived into their windows, and no more."""
        self._note_rings()
        self.is_torn = True
        try:
            whole_push.begin(
                arrivals.table,
                arrivals.facts,
                arrivals.hashes,
                arrivals.before,
                arrivals.since,
                self._code,
                self._now,
                self._narrow,
                self._laps,
            )
        finally:
            self._synchronise(arrivals)

    def _push(self, arrivals: Arrivals, count: int, stopwatch: Stopwatch) -> None:
        self._fresh.fill(0)
        self._rest.fill(0)
        self._rest[LONG_ITEMS] = sum(
            [1 << item for item, join in self._joins_by_item if not join.is_brief]
        )
        for each, _ in self._filters:
            each.get_ready()
        if len(self._met) < guarding.SCRATCH + count:
            self._met = np.zeros(guarding.SCRATCH + 2 * count, np.uint8)
        began = stopwatch.clock()
        try:
            lacking = self._call(arrivals, True)
            while lacking:
                self._synchronise(arrivals)
                if lacking == guarding.PAUSED:
                    HELD.give()
                elif lacking == guarding.ORDER_STOPS:
                    self._test()
                else:
                    self._make_room(lacking)
                lacking = self._call(arrivals, False)
        finally:
            if self.is_torn:  # Else a state may have been completed since, and would lose it.
                self._synchronise(arrivals)
            self._log_woken()
        self._count(stopwatch, stopwatch.clock() - began)
        WORKSPACE.give_back()

    def _chosen_by(self, guard: Guard) -> bool:
        """Whether news that no row of the window meets need not probe what was made of it."""
        return (
            guard.is_on
            and guard.index is not None
            and isinstance(guard.waiting, WaitingInWindow)
            and any(
                self._spares(guard, order)
                for operator, _ in self._joins
                for order in operator.orders
            )
        )

    def _spares(self, guard: Guard, order: CompiledOrder) -> bool:
        """Whether ``order`` begins with the news of ``guard``, and with what it guards."""
        opposite = guard.opposite
        return (
            not opposite.is_guarded
            and isinstance(opposite.input, LeafWindow)
            and order.given == (opposite.input.stream.alias,)
            and guard.streams <= order.steps[0].target.streams
        )

    def _note_rings(self) -> None:
        now: list[int] = []
        for rows in self._rings:
            head = rows.head
            now += (rows.low, rows.tail, head, head, rows.room, rows.mask, rings.NONE_COMPLETED)
        now += [index.narrow for index in self._indexes]
        self._put(self._now_in_bytes, 0, *now)

    def _call(self, arrivals: Arrivals, is_new: bool) -> int:
        space = WORKSPACE
        work = space.of(self._width)
        columns, order, out = _NO_ANSWER
        if arrivals.answer is not None:
            columns, order, out = arrivals.answer.get_ready(self._streams)
        self.is_torn = True
        lacking: int = whole_push.push(
            arrivals.table,
            arrivals.facts,
            arrivals.hashes,
            arrivals.before,
            arrivals.since,
            is_new,
            self._code,
            self._now,
            self._narrow,
            self._growth,
            self._new,
            self._laps,
            self._progress,
            work,
            space.keys,
            space.found,
            ACTIVE,
            self._order_now,
            self._tally,
            self._sources,
            self._met,
            self._results,
            self._rest,
            self._log,
            columns,
            order,
            out,
            self._births if arrivals.asks_age else self._unasked,
            self._shares,
            self._rations,
        )
        return lacking

    def _synchronise(self, arrivals: Arrivals) -> None:
        """Let the rings know how far they have been filled, and what is gone."""
        self.needs_care = False
        self._came = came = []
        for rows, now in zip(self._rings, self._now.tolist(), strict=True):
            low, tail, head, old, _, _, completed = now
            if head != rows.head or tail != rows.tail or low != rows.low:
                self.needs_care |= rows.move_on(low, tail, head)
            came.append((head if head < completed else completed) - old)
        for index, rows in self._filled:
            index.stop = rows.head
        for index, rows in arrivals.filled:
            index.stop = rows.head
        narrow = self._narrow.tolist()
        if 0 in narrow:
            for index, is_narrow in zip(self._indexes, narrow, strict=True):
                index.narrow = bool(is_narrow)
        self.is_torn = False

    def _test(self) -> None:
        """A probe order has come to a predicate that is tested on columns, or has failed, or to a
        state that lacks rows."""
        item, stage = self._progress[guarding.ITEM], self._progress[guarding.STAGE]
        self._orders[item][stage].test(self._rest, WORKSPACE.of(self._width))
        for state in self._stores:
            if state.missing is not None:
                self._note_grown(self._numbers[id(state.rows)], state)
        self._narrow[:] = [index.narrow for index in self._indexes]
        self._look_again()

    def _make_room(self, lacking: int) -> None:
        count: int = self._progress.item(guarding.LACKING)
        WORKING.ask(count, self._width + 2)
        if lacking == guarding.WORK_LACKS:
            WORKSPACE.make_room(count)
        elif lacking == guarding.RESULTS_LACK:
            results = np.empty((self._width, max(_RESULTS, 2 * count)), np.int64)
            results[:, : self._results.shape[1]] = self._results
            self._results = results
        elif lacking == guarding.LOG_LACKS:
            log = np.empty(count, np.int64)
            log[: len(self._log)] = self._log
            self._log = log
        else:
            number: int = self._progress.item(guarding.LACKING_RING)
            rows = self._rings[number]
            store = next(store for store in self._stores if store.rows is rows)
            store.make_room(count)
            self._note_grown(number, store)
            self._look_again()

    def _note_grown(self, number: int, store: CompositeState) -> None:
        """A state has got more room, or rows that it lacked."""
        rows, old = store.rows, self._now.item(number, rings.OLD)
        gap = None if store.missing is None else store.missing.gap(old)
        completed = rings.NONE_COMPLETED if gap is None else gap[1]
        self._now[number] = (
            *(rows.low, rows.tail, rows.head, old),
            *(rows.room, rows.mask, completed),
        )

    def _look_again(self) -> None:
        """Write the tree down anew if anything has moved in the middle of a push."""
        if not self.is_current:
            self._write_down()
            self._generations = [each.generation for each in self._rings]

    def _log_woken(self) -> None:
        """Who was woken sleeps on if the push fails."""
        start = 0
        for place, waiting in self._wakers:
            woken = self._new.item(place)
            if woken:
                waiting.note_woken(self._log[start : start + woken].copy())
                start += woken

    def _count(self, stopwatch: Stopwatch, seconds: float) -> None:
        counts, came = self._counts, self._came
        counts[:] = map(add, counts, self._new.tolist())
        self.let_in = 0
        for edge, number in self._inputs:
            new = came[number]
            if new and isinstance(edge.input, LeafWindow) and edge.input.by_rows:
                head = edge.input.rows.head
                new = edge.input.number_chosen(head - new, head)
            self.let_in += new
            edge.delta = None
            if not edge.is_guarded:
                counts[edge.place] += new
                counts[edge.place + 1] += new
        for each, number in self._filters:
            each.note_added(came[number])
        laps = self._laps.tolist()
        stopwatch.add(self._names, laps, seconds / (sum(laps) or 1))

    def answered(self) -> int:
        """The number of results if the answer has been filled with them, else 0."""
        if not self._progress.item(guarding.ANSWERED):
            return 0
        count: int = self._progress.item(guarding.RESULTS)
        if count >= _COPIED:
            self._results = np.empty((self._width, 0), np.int64)
        return count

    def oldest(self) -> list[int]:
        """The earliest birth in the results, of each stream in the order of their names; empty if
        there are no results."""
        if not self._progress.item(guarding.RESULTS):
            return []
        births: list[int] = self._births[:, whole_push.OLDEST].tolist()
        return births

    def found(self, lasting: bool) -> Composites | None:
        """What the push has found: for good, or until the next one."""
        if self._top is None:
            return self._news()
        found = self._results[:, : self._progress.item(guarding.RESULTS)]
        if found.shape[1] == 0:
            return None
        if found.shape[1] >= _COPIED:
            self._results = np.empty((self._width, 0), np.int64)
        elif lasting:
            found = found.copy()
        ids = dict(zip(self._streams, found, strict=False))
        return Composites(ids, found[-2], found[-1], table=found)

    def _news(self) -> Composites | None:
        """The new rows of the one window, those that may be in results."""
        ((alias, window),) = self._windows.items()
        first = self._now.item(self.ring_of(alias), rings.OLD)
        rows = np.arange(first, window.rows.head, dtype=np.int64)
        flags = window.chosen(rows)
        if flags is not None:
            rows = rows[flags]
        if len(rows) == 0:
            return None
        found = np.stack([rows, *window.lifespans(rows)])
        return Composites({alias: found[0]}, found[1], found[2], table=found)

    # -- writing it down ---------------------------------------------------------------------

    def _ring(self, source: Input) -> None:
        if id(source.rows) not in self._numbers:
            self._numbers[id(source.rows)] = len(self._rings)
            self._rings.append(source.rows)

    def _index(self, index: HashIndex) -> None:
        if id(index) not in self._numbers:
            self._numbers[id(index)] = len(self._indexes)
            self._indexes.append(index)

    def _write_down(self) -> None:
        """The tree as a table of addresses and places."""
        self._orders, self._joins_by_item = [], []
        code: list[int] = []
        items: list[int] = []
        orders = 0
        # Places count from the end of the head of the table, which is as long as there are items.
        head = 2 + len(self._guarded) + len(self._joins)
        last = [] if self._top is None else [None]
        for lap, edge in enumerate([*self._edges, *last]):
            guards = 0
            if edge is not None and id(edge) in self._guarded:
                guards = self._write_guards(code, head, edge, lap)
                items.append(guards)
                self._orders.append([])
            if edge is None or edge.producer is not None:
                producer = self._top if edge is None else edge.producer
                inputs = next(inputs for each, inputs in self._joins if each is producer)
                assert producer is not None
                place, orders = self._write_join(code, head, producer, inputs, orders, lap, guards)
                items.append(place)
                self._joins_by_item.append((min(len(self._orders), 62), producer))
                self._orders.append(producer.orders)
        lives = head + len(code)
        code += self._lives()
        births = []
        for stream in self._streams:
            rows = self._windows[stream].rows
            births.append((address_of(rows.births), rows.mask, 0))
        self._births = np.array(births, np.int64)
        self._code = np.array([len(items), *items, lives, *code], np.int64)

    def _lives(self) -> list[int]:
        """How the rows of rings die: by their own dates, or with a row of a window."""
        lives = [len(self._windows)]
        for window in self._windows.values():
            lives += (self._numbers[id(window.rows)], address_of(window.rows.deaths))
        lives.append(len(self._stores))
        for store in self._stores:
            lives += (self._numbers[id(store.rows)], len(store.id_columns))
            for alias, column in store.id_columns.items():
                lives += (address_of(store.rows.columns[column]), self.ring_of(alias))
        return lives

    def _write_guards(self, code: list[int], head: int, edge: Edge, lap: int) -> int:
        """The item of an input with guards; its place."""
        source, target = edge.source, edge.input
        assert isinstance(target, CompositeState)
        guards = [n for each in self._guarded[id(edge)] for n in self._guard(code, head, each)]
        store = self._write_store(code, head, target)
        place = head + len(code)
        is_window = isinstance(source, LeafWindow)
        beds = address_of(source.asleep.bytes) if isinstance(source, LeafWindow) else 0
        window = self._numbers[id(source.rows)] if is_window else -1
        code += (kernel.GUARDED, lap, window, self._numbers[id(target.rows)], store)
        code += (len(target.id_columns), beds, edge.place, edge.place + 1, flags_of(source))
        code += (len(self._guarded[id(edge)]), *guards)
        return place

    def _guard(self, code: list[int], head: int, guard: Guard) -> tuple[int, ...]:
        """The numbers of a guard; what they point to is written down."""
        opposite, waiting = guard.opposite.input, guard.waiting
        indexes = []
        for index in (waiting.index, guard.index):
            indexes.append(0 if index is None else head + len(code))
            if index is not None:
                code += (address_of(index.heads), address_of(index.entries), index.shift)
                code.append(self._numbers[id(index)])
        keys = []
        columns = list(waiting.id_columns) if isinstance(waiting, Waiting) else []
        for mine in (True, False) if guard.mine else ():
            keys.append(head + len(code))
            code.append(len(guard.mine))
            for key in guard.mine if mine else guard.theirs:
                address, mask, ids = self._key(opposite, key) if not mine else self._own_key(key)
                code += (address, mask, columns.index(key.stream) if mine and columns else ids)
        shelf = shelf_ids = 0
        if isinstance(waiting, Waiting):
            shelf = self._write_store(code, head, waiting)
            shelf_ids = head + len(code)
            code += [address_of(waiting.rows.columns[c]) for c in waiting.id_columns.values()]
        return (
            *(self._numbers[id(opposite.rows)], self._numbers[id(waiting.rows)]),
            *(address_of(waiting.bytes), waiting.number, guard.place, *indexes),
            0 if guard.filter is None else address_of(guard.filter.place),
            *(keys or (0, 0)),
            *(flags_of(opposite), guard is self._chooser, guard.is_final, not guard.is_on),
            *(shelf, shelf_ids),
        )

    def _own_key(self, key: KeyColumn) -> tuple[int, int, int]:
        """Address and mask of a key column of a window, which is read by the rows themselves."""
        leaf = self._windows[key.stream]
        return address_of(leaf.rows.columns[leaf.key_column(key.position)]), leaf.rows.mask, 0

    def _key(self, source: Input, key: KeyColumn) -> tuple[int, int, int]:
        """Address and mask of a key column, and the ids of ``source`` by which it is read."""
        address, mask, ids = self._own_key(key)
        if isinstance(source, CompositeState):
            ids = address_of(source.rows.columns[source.id_columns[key.stream]])
        return address, mask, ids

    def _write_store(self, code: list[int], head: int, state: CompositeState) -> int:
        place = head + len(code)
        code += (len(state.indexes), *(self._numbers[id(index)] for index in state.indexes))
        code += state.table()
        return place

    def _write_join(
        self,
        code: list[int],
        head: int,
        operator: JoinOperator,
        inputs: Sequence[Edge],
        number: int,
        lap: int,
        guards: int,
    ) -> tuple[int, int]:
        places = []
        columns = self._streams if operator.state is None else list(operator.state.id_columns)
        slots: list[int] = []
        for position, order in enumerate(operator.orders):
            table = order.table()
            at = head + len(code)
            code += table
            places.append(head + len(code))
            source = inputs[position].input
            ids: list[int] = []
            if isinstance(source, CompositeState):
                ids = [address_of(source.rows.columns[source.id_columns[s]]) for s in order.given]
            code += (self._numbers[id(source.rows)], len(ids), len(order.steps), at, len(table))
            chosen = self._chooser is not None and self._spares(self._chooser, order)
            code += (order.is_dated, len(order.slots), number, chosen, flags_of(source), *ids)
            number += 1
            for other, step in operator.steps[position]:
                ring = self._numbers[id(step.target.rows)]
                index = -1 if step.index is None else self._numbers[id(step.index)]
                code += (ring, index, other < position, step.place)
                code.append(step.target.missing is not None)
            code += [self._numbers[id(self._windows[stream].rows)] for stream in order.slots]
            slots += [order.slots[stream] for stream in columns]
            if operator.state is None:
                slots += (len(order.slots), len(order.slots) + 1)
        slots_at = head + len(code)
        code += slots
        store = 0 if operator.state is None else self._write_store(code, head, operator.state)
        state = -1 if operator.state is None else self._numbers[id(operator.state.rows)]
        place = head + len(code)
        code += (kernel.JOINED, lap, len(inputs), state, store, operator.place, slots_at, guards)
        code += places
        return place, number
