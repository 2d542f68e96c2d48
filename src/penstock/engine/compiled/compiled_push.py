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
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from penstock.engine.compiled.arrivals import Arrivals
from penstock.engine.compiled.rationed import Rationed
from penstock.engine.compiled.written_tree import WrittenTree
from penstock.engine.completion.change_time import ChangeTime
from penstock.engine.join.stopwatch import Stopwatch
from penstock.engine.join.workspace import WORKSPACE
from penstock.engine.state.composite_state import CompositeState
from penstock.engine.state.composites import Composites
from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.probing import ACTIVE
from penstock.engine.state.working_memory import WORKING
from penstock.kernels import arrow_struct, ration, rings, whole_push
from penstock.kernels import guards as guarding
from penstock.kernels.held_signals import HELD
from penstock.kernels.probe_order import LONG_ITEMS, NOW, REST, REST_LACKS
from penstock.overload.missed_results import Stratum
from penstock.plan.stream_set import StreamSet

if TYPE_CHECKING:
    from penstock.engine.feedback.edge import Edge

Int64s = NDArray[np.int64]

Run = tuple[int, int]
"""New rows of a window: the first of them, and how many."""

_FEWEST_RESULTS = 1 << 12
"""Results for which there is room as soon as there are any: 128 KiB for two streams."""
_FEWEST_WOKEN = 1 << 10
"""Woken rows of a push for which there is room from the start: 8 KiB."""
_LARGE_ANSWER = 1 << 14
"""Results from which on their table is given away; fewer are copied, and it is used again."""


_NO_ANSWER = (np.empty(0, np.int64), *np.empty((2, 0, 0), np.int64))
_NOTHING = Arrivals(
    np.empty((0, whole_push.ARRIVAL), np.int64), np.empty((0, arrow_struct.FACTS), np.int64)
)


class CompiledPush:
    """Pushes through the inputs of ``tree``, in the order of their visit, and its last join."""

    def __init__(self, tree: WrittenTree, counts: list[int], time: ChangeTime) -> None:
        """``counts`` is the tally of the whole tree, ``time`` what completing takes. There is no
        reason :meth:`why_not`. Without a join, the new rows of the one window are the results."""
        self._tree = tree
        self._time = time
        edges, windows = tree.edges, tree.windows
        self._counts = counts
        self._rings, self._indexes = tree.rings, tree.indexes
        guards = tree.guards
        self._inputs = [(edge, tree.ring_number(edge.input.rows)) for edge in edges]
        self._filled = [(index, each.rows) for each in tree.stores for index in each.rows.indexes]
        self._generations = [rows.generation for rows in self._rings]
        # To pack numbers is several times faster than numpy's conversion of a list.
        ends = rings.RING * len(self._rings)
        packing = struct.Struct(f"={ends + len(self._indexes)}q")
        self._put = packing.pack_into
        self._now_in_bytes = bytearray(packing.size)
        now = np.frombuffer(self._now_in_bytes, np.int64)
        self._now, self._narrow = now[:ends].reshape(-1, rings.RING), now[ends:]
        orders = [order for operator, _ in self._tree.joins for order in operator.orders]
        self._growth = np.array([g for operator, _ in self._tree.joins for g in operator.growth])
        self._shares = np.full((len(self._growth), ration.SHARES), -1.0)
        """The part of the rows of each input that may probe."""
        self._rations = np.zeros((len(self._growth), ration.RATION), np.int64)
        self.is_rationed = False
        """Whether not all rows may probe."""
        laps = len(edges) + 1 + len(windows)
        self._fresh = np.zeros(len(counts) + laps + guarding.PROGRESS, np.int64)
        """Counters that are zero when a push begins: counts, laps, progress."""
        self._new, others = self._fresh[: len(counts)], self._fresh[len(counts) :]
        self._laps, self._progress = others[:laps], others[laps:]
        self._streams = tree.streams
        self._width = len(self._streams) + 2
        most = max([len(order.steps) for order in orders], default=0)
        self._order_now = np.zeros(NOW * most + 2 * self._width, np.int64)
        self._tally = np.zeros(2 * most, np.int64)
        self._rest = np.zeros(REST, np.int64)
        self.asks = any(step.asks for order in orders for step in order.steps)
        """Whether a predicate is tested on columns, of the new rows as well."""
        self._sources = np.zeros(self._width, np.int64)
        self._results = np.empty((self._width, 0), np.int64)
        self._expected = 0
        """Results for which there is to be room, if there is none."""
        self._no_births = np.zeros((0, 3), np.int64)
        self._met = np.zeros(guarding.SCRATCH, np.uint8)
        self._wakers = [(guard.place + guarding.WOKEN, guard.waiting) for guard in guards]
        """The place of the count of woken rows of each guard, and where they waited."""
        self._log = np.empty(_FEWEST_WOKEN if guards else 0, np.int64)
        """Rows that were woken in the push at hand, guard by guard."""
        self._filters = [
            (guard.filter, tree.ring_number(guard.opposite.input.rows))
            for guard in guards
            if guard.filter is not None
        ]
        self.let_in = 0
        """Rows that came into inputs with the push at hand."""
        self.is_torn = False
        """Whether rows have come of which the rings do not know yet."""
        self.needs_care = False
        """Whether a ring should be packed or is too large."""
        self._came: list[int] = []
        """Rows that came into rings with the push at hand."""
        self._names = [*(edge.streams for edge in edges), StreamSet(self._streams)]
        self._names += [window.streams for window in windows.values()]
        self._has_more = False
        """Whether an index has come in the middle of a push: the next one needs to know it."""
        self._code, self._births = tree.write_down()

    @property
    def is_current(self) -> bool:
        """Whether no ring or index has come, gone or moved since."""
        known = [rows.generation for rows in self._rings] == self._generations
        return known and not self._has_more

    def has_all(self, kept: Sequence[CompositeState]) -> bool:
        """Whether there are no other states than those that were written down."""
        return len(kept) == len(self._tree.stores)

    def ring_of(self, alias: str) -> int:
        """The number of the ring of a window."""
        return self._tree.ring_of(alias)

    def lap_of(self, alias: str) -> int:
        """The lap in which a window gets its new rows."""
        return self._tree.lap_of(alias)

    def number_of(self, index: HashIndex) -> int:
        """The number of an index of a window or state."""
        return self._tree.number_of(index)

    def hand_back(self) -> None:
        """The joins go on without it: they get to know what was learned."""
        learned = iter(self._growth.tolist())
        for operator, inputs in self._tree.joins:
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
        inputs = [edge for _, edges in self._tree.joins for edge in edges]
        for number, edge in enumerate(inputs):
            share = -1.0 if shares is None else shares.get(edge.streams, 1.0)
            self._shares[number] = share, carried.get(edge.streams, 1.0)
            self._rations[number, ration.SEED] = seed + number

    def rationed(self) -> Iterator[Rationed]:
        """Counts of the rows of each input in the last push."""
        places = [
            (operator, edges, place)
            for operator, edges in self._tree.joins
            for place in range(len(edges))
        ]
        for (operator, edges, place), each, shares in zip(
            places, self._rations, self._shares, strict=True
        ):
            stratum = None
            if each[ration.OFFERED]:
                groups = each[ration.PROBED :].astype(np.float64)
                probed, found = groups[: ration.GROUPS], groups[ration.GROUPS :]
                stratum = Stratum.of_groups(int(each[ration.OFFERED]), probed, found)
            olds = [self._now.item(self._tree.ring_number(e.input.rows), rings.OLD) for e in edges]
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
            [1 << item for item, join in self._tree.joins_by_item if not join.is_brief]
        )
        for each, _ in self._filters:
            each.get_ready()
        if len(self._met) < guarding.SCRATCH + count:
            self._met = np.zeros(guarding.SCRATCH + 2 * count, np.uint8)
        if self._expected and not self._results.shape[1]:
            self._results = np.empty((self._width, self._expected), np.int64)
        began = stopwatch.clock()
        try:
            lacking = self._call(arrivals, True)
            while lacking:
                self._synchronise(arrivals)
                if lacking == guarding.PAUSED:
                    HELD.go_on()
                elif lacking == guarding.ORDER_STOPS and self._rest[REST_LACKS]:
                    with self._time:
                        self._test()
                elif lacking == guarding.ORDER_STOPS:
                    self._test()
                else:
                    self._make_room(lacking)
                lacking = self._call(arrivals, False)
        finally:
            if self.is_torn:  # Else a state may have been completed since, and would lose it.
                self._synchronise(arrivals)
            self._log_woken()
        self._count(stopwatch, stopwatch.clock() - began, arrivals.are_whole)
        WORKSPACE.give_back()

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
            self._births if arrivals.asks_age else self._no_births,
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
        self._tree.orders[item][stage].test(self._rest, WORKSPACE.of(self._width))
        self._grow_together()
        for state in self._tree.stores:
            if state.missing is not None:
                self._note_grown(self._tree.ring_number(state.rows), state)
        self._narrow[:] = [index.narrow for index in self._indexes]
        self._look_again()

    def _make_room(self, lacking: int) -> None:
        count: int = self._progress.item(guarding.LACKING)
        WORKING.ask(count, self._width + 2)
        if lacking == guarding.RESULTS_LACK:
            WORKING.ask_results(count)
        if lacking == guarding.WORK_LACKS:
            WORKSPACE.make_room(count)
        elif lacking == guarding.RESULTS_LACK:
            results = np.empty((self._width, max(_FEWEST_RESULTS, 2 * count)), np.int64)
            results[:, : self._results.shape[1]] = self._results
            self._results = results
        elif lacking == guarding.LOG_LACKS:
            log = np.empty(count, np.int64)
            log[: len(self._log)] = self._log
            self._log = log
        else:
            number: int = self._progress.item(guarding.LACKING_RING)
            rows = self._rings[number]
            store = next(store for store in self._tree.stores if store.rows is rows)
            store.make_room(count)
            self._note_grown(number, store)
            for other in self._grow_together():
                self._note_grown(self._tree.ring_number(other.rows), other)
            self._look_again()

    def _grow_together(self) -> list[CompositeState]:
        """If a state has moved, let others grow that are completed like it and more than half full:
        they would move next, and whenever one does, the tree is written down anew."""
        grown: list[CompositeState] = []
        if not self.is_current:
            for state in self._tree.stores:
                if state.missing is not None and 2 * len(state.rows) > state.rows.capacity:
                    state.make_room(state.rows.capacity)
                    grown.append(state)
        return grown

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
            self._code, self._births = self._tree.write_down()
            self._generations = [each.generation for each in self._rings]
            self._has_more = not self._tree.has_indexes

    def _log_woken(self) -> None:
        """Note the woken rows of each guard: they sleep on if the push fails."""
        start = 0
        for place, waiting in self._wakers:
            woken = self._new.item(place)
            if woken:
                waiting.note_woken(self._log[start : start + woken].copy())
                start += woken

    def _count(self, stopwatch: Stopwatch, seconds: float, are_whole: bool) -> None:
        counts, came = self._counts, self._came
        counts[:] = map(add, counts, self._new.tolist())
        self.let_in = 0
        for edge, number in self._inputs:
            new = came[number]
            if new and not are_whole and isinstance(edge.input, LeafWindow):
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

    @property
    def made(self) -> int:
        """Results of the push."""
        if self._tree.top is None:
            return len(self._news() or ())
        return self._progress.item(guarding.RESULTS)

    def answered(self) -> int:
        """The number of results if the answer has been filled with them, else 0."""
        if not self._progress.item(guarding.ANSWERED):
            return 0
        count: int = self._progress.item(guarding.RESULTS)
        if count >= _LARGE_ANSWER:
            self._give_results_away(count)
        return count

    def oldest(self) -> list[int]:
        """The earliest birth in the results, of each stream in the order of their names; empty if
        there are no results."""
        if not self._progress.item(guarding.RESULTS):
            return []
        births: list[int] = self._births[:, whole_push.OLDEST].tolist()
        return births

    def found(self, lasting: bool) -> Composites | None:
        """Results of the push: to keep, or valid until the next one."""
        if self._tree.top is None:
            return self._news()
        found = self._results[:, : self._progress.item(guarding.RESULTS)]
        if found.shape[1] == 0:
            return None
        if found.shape[1] >= _LARGE_ANSWER:
            self._give_results_away(found.shape[1])
        elif lasting:
            found = found.copy()
        ids = dict(zip(self._streams, found, strict=False))
        return Composites(ids, found[-2], found[-1], table=found)

    def _give_results_away(self, count: int) -> None:
        """Give the table with ``count`` results to the caller. The next push begins with room
        for as many, since without it what it has found by then would be looked for once more."""
        self._results = np.empty((self._width, 0), np.int64)
        self._expected = count + (count >> 3)

    def _news(self) -> Composites | None:
        """The new rows of the one window, those that may be in results."""
        ((alias, window),) = self._tree.windows.items()
        first = self._now.item(self.ring_of(alias), rings.OLD)
        rows = np.arange(first, window.rows.head, dtype=np.int64)
        flags = window.chosen(rows)
        if flags is not None:
            rows = rows[flags]
        if len(rows) == 0:
            return None
        found = np.stack([rows, *window.lifespans(rows)])
        return Composites({alias: found[0]}, found[1], found[2], table=found)
