"""A query while it runs: its windows, the tree of each block, the top of the query, and the clock.

A push has three phases. *Intake* checks, decodes and orders the batches; whatever is wrong with
them is found here, and nothing has changed. *Processing* appends to windows and states and
computes what leaves; if anything fails, rows are only at the heads of rings and are taken back, so
a failed push changes nothing. *Commit* moves the clock and lets go of what has passed. There are
two ways through them: :mod:`penstock.engine.running.compiled_way` and
:mod:`penstock.engine.running.reference_way`. Here is what both share: what a push may begin with,
where it goes back to, and how it ends.

Where memory is short behind a push, what is made of the windows (states, guards, results that are
held) may be *torn*. The windows never are, so everything else is made anew of them before the next
push, and a lack of memory costs time and no answer.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.engine.feedback.having_bound import with_bounds
from penstock.engine.feedback.surpassed import Surpassed
from penstock.engine.metrics import Counters
from penstock.engine.options import Options
from penstock.engine.output.output import output_for
from penstock.engine.overload.freshness import Freshness
from penstock.engine.push.ahead import Ahead
from penstock.engine.push.intake import FARTHEST, Intake
from penstock.engine.push.lateness import Lateness
from penstock.engine.push.set_aside import SetAside
from penstock.engine.push.whole_push import WholePush
from penstock.engine.running.expiry import Expiry
from penstock.engine.state.arrival import SLICE
from penstock.engine.state.clock import END, START, Clock
from penstock.engine.state.composites import Composites, concatenate
from penstock.engine.state.rows import Rows
from penstock.engine.state.seen_at import SeenAt
from penstock.engine.state.spilling import Spilling
from penstock.engine.state.windows import Windows
from penstock.engine.state.working_memory import NO_ROOM
from penstock.engine.tree.join_tree import JoinTree, Marks
from penstock.errors import InputError, PenstockError
from penstock.kernels.lifespan import FOREVER
from penstock.plan.plan import Leaf, Node, Plan
from penstock.query.join_graph import JoinGraph
from penstock.values.wiring import wire

if TYPE_CHECKING:
    from penstock.engine.overload.overload_control import OverloadControl

SILENT_WINDOWS = 3
"""Windows by which a stream may be behind the newest before it is told that state waits for it."""


class _Tearing:
    """A part of a push that is done already which may tear what is made of the windows."""

    def __init__(self, join: RunningJoin) -> None:
        self._join = join

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        if kind is None or not issubclass(kind, NO_ROOM):
            return False
        self._join.is_torn = True
        return True


class RunningJoin:
    """One query, its options, and everything that it holds."""

    def __init__(
        self,
        query: JoinGraph,
        options: Options,
        plan: Plan,
        keep_dropped: bool = False,
        spill_folder: str | os.PathLike[str] | None = None,
    ) -> None:
        """``query`` at its start, with the trees of ``plan``. With ``keep_dropped``, rows that are
        not taken in are kept until somebody drains them. Rows beyond a limit on memory are in files
        in ``spill_folder``."""
        self.query = query
        self.options = options
        self.eddy = plan.eddy
        """The eddy that chose the trees; empty if none did."""
        self.by_rows = query.by_rows
        self._second = 1 if self.by_rows else 1000 * query.ticks_per_millisecond
        """Ticks of a second of event time; on the arrival line, one."""
        moving = {s.source for b in query.blocks for s in b.streams if not s.is_static}
        self.lateness = Lateness.of(
            options.lateness,
            [source for source in query.sources if source in moving],
            query.ticks_per_millisecond,
            options.watermark_policy,
            options.idle,
        )
        self.strict = self.lateness.is_declared and self.lateness.is_for_all and not self.by_rows
        """Whether rows behind the watermark are known to be late."""
        # A restart must find the results of the last settled instant.
        self._ticks_kept = int(query.is_grouped and self.strict)
        told = options.feedback is not None
        self.wirings = [wire(with_bounds(each) if told else each) for each in query.blocks]
        self.windows = [
            Windows(block, wiring, self.by_rows, query.ticks_per_millisecond)
            for block, wiring in zip(query.blocks, self.wirings, strict=True)
        ]
        self.leaves = [windows.leaves for windows in self.windows]
        self.all_leaves = [leaf for each in self.leaves for leaf in each.values()]
        """Leaf windows of all blocks."""
        self._remembers_stale = (
            query.is_grouped and self.strict and any(each.freshness for each in query.streams)
        )
        """Whether what is computed again has to leave out results that were stale. FRESHNESS is no
        shorter than the window, so they were dead by then; only groups whose instants wait for the
        watermark count what has died before now."""
        for leaf in self.all_leaves if self._remembers_stale else ():
            leaf.seen_at = None if leaf.stream.is_static else SeenAt(leaf.rows)
        self.spill_folder = spill_folder
        self.spilling = Spilling.of(
            self.all_leaves, self._rings_of_states, options.limits, spill_folder
        )
        """The part that moves rows to disk, if there is a limit on memory."""
        self.has_one_window_each = len(self.all_leaves) == len(query.sources)
        """Whether every source has one window, whose rows are as many as were taken in."""
        self.trees = self._first_trees(plan)
        self.intake = Intake(query, self.all_leaves, frozenset(self.lateness.delays), keep_dropped)
        self.ahead = None if self.by_rows else Ahead.of(options.max_ahead, self.intake.sources)
        self.set_aside = SetAside(
            self.intake, self.all_leaves, self.lateness, query.ticks_per_millisecond, keep_dropped
        )
        self.output = output_for(query, self.trees)
        self.subtract_in(plan.places_in(query))
        self.clock = Clock(strict=self.strict)
        self.newest: dict[str, int] = {}
        """The newest event time of each source that has been seen, in ticks."""
        self.place = 0
        """Rows so far on the arrival line, which ROWS windows count by."""
        self.first: int | None = None
        """The oldest instant of the first push."""
        self.has_started = False
        """Whether a row of a stream has come: static relations are closed from then on."""
        self.latest = 0
        """Rows of the latest push."""
        self.counters = Counters(tuple(self.intake.sources))
        self.is_broken = False
        """Whether a push has begun to become visible and has not returned its answer."""
        self.is_torn = False
        """Whether what is made of the windows is not to be relied on: there was no memory when it
        changed."""
        self.tearing = _Tearing(self)
        self.is_finished = False
        self.owed_results: Composites | None = None
        """Results made between pushes, to leave with the next one."""
        self.overload = self._overload_control(plan)
        self.has_begun = False
        """Whether the overload policy has begun with the push at hand."""
        self.surpassed = Surpassed.of(query, self.wirings[0], self.leaves[0], self.options.feedback)
        """The part that finds rows that others surpass, if the query is one of MIN and MAX."""
        self.expiry = Expiry(self)
        self.never_whole = "execution='reference'"
        """Why no push can be compiled; empty if it can."""
        self.whole: WholePush | None = None
        """Makes compiled pushes, if there is no such reason."""
        if self.by_rows and self.options.overload.policy == "defer":
            self.never_whole = "ROWS windows whose probes may be owed"
        elif self.options.execution == "auto":
            whole = WholePush(self.intake, self.leaves)
            self.never_whole = whole.why_never
            self.whole = None if whole.why_never else whole
        if self.overload is not None and self.whole is not None:
            self.overload.door.leave_to(self.whole.can_choose)

    def _rings_of_states(self) -> list[Rows]:
        """The rings of all that is stored of joins."""
        return [state.rows for tree in self.trees for state in tree.kept]

    def _overload_control(self, plan: Plan) -> OverloadControl | None:
        """The control of budget and freshness; None where nothing can be short or stale."""
        freshness = Freshness(self.query, self.leaves[0])
        option = self.options.overload
        idle = option.policy == "exact" and not option.has_budget and not freshness.asked
        if idle or isinstance(plan.root, Leaf):
            return None
        from penstock.engine.overload.overload_control import OverloadControl

        return OverloadControl(self.query, option, self.trees[0], freshness)

    def _first_trees(self, plan: Plan) -> list[JoinTree]:
        """The tree of each block, with states that hold nothing yet."""
        return [
            JoinTree(
                root,
                wiring,
                leaves,
                self.options.join,
                self.options.feedback,
                compiles=self.options.execution == "auto",
            )
            for root, wiring, leaves in zip(
                plan.in_blocks(self.query), self.wirings, self.leaves, strict=True
            )
        ]

    @property
    def bytes_of_values(self) -> int:
        """Bytes of the values of keys that are numbered, such as texts."""
        return sum([windows.bytes_of_values for windows in self.windows])

    @property
    def nbytes(self) -> int:
        """Bytes of all windows and states in memory, of the values of their keys, and of what is
        held above them."""
        trees = sum([tree.nbytes for tree in self.trees])
        return trees + self.bytes_of_values + self.output.nbytes

    def keep_within_memory(self) -> None:
        """Move rows to disk, if that is what is done about a limit on memory that binds."""
        if self.spilling is not None:
            self.spilling.keep_within(lambda: self.nbytes)

    # -- what it is at -----------------------------------------------------------------------

    @property
    def plan(self) -> Plan:
        """The plan of the trees."""
        return self.plan_of([tree.root for tree in self.trees])

    def plan_of(self, roots: Sequence[Node]) -> Plan:
        """The plan with the trees ``roots`` of all blocks, subtracted as they are now."""
        return Plan(roots[0], tuple(roots[1:]), self.eddy).subtracting_in(self.subtracted)

    def subtract_in(self, places: Sequence[int]) -> None:
        """Subtract the blocks after EXCEPT in this order from now on."""
        self.subtracted = tuple(places)
        self.output.subtract_in(self.subtracted)

    @property
    def owes(self) -> bool:
        """Whether probes were put off and have not been made up for yet."""
        return self.owed_results is not None or (self.overload is not None and self.overload.owes)

    @property
    def seconds(self) -> float:
        """Event time since the first row, in seconds; on the arrival line, rows."""
        if self.first is None or self.clock.now == START:
            return 0.0
        return (self.clock.now - self.first) / self._second

    @property
    def passed(self) -> int:
        """The instant of which whatever died before it is of no use to anybody."""
        return self.clock.watermark - self._ticks_kept

    def silent(self) -> dict[str, float]:
        """Streams that hold all state though others have moved on by several windows: the seconds
        of event time that each is behind the newest."""
        spans = [leaf.span for leaves in self.leaves for leaf in leaves.values()]
        longest = max((span for span in spans if span < FOREVER), default=0)
        if self.by_rows or not longest or self.first is None:
            return {}
        per_second = 1000 * self.query.ticks_per_millisecond
        whole = max(self.newest.values(), default=self.first) - self.first
        return {
            source: behind / per_second
            for source, found in self.lateness.waits_for(self.newest).items()
            if (behind := whole if found is None else found) > SILENT_WINDOWS * longest
        }

    # -- a push ------------------------------------------------------------------------------

    def check_usable(self) -> None:
        """Raise unless a push can begin."""
        if self.is_finished:
            raise PenstockError("finish() was called: this engine takes no more batches")
        if self.is_broken:
            raise PenstockError(
                "the engine was interrupted at a moment when it could not go back; "
                "go on with Engine.restore and the last checkpoint"
            )

    def advanced(self, newest: Mapping[str, int], places: int, promised: int | None) -> Clock:
        """The clock after a push that has seen ``newest`` and took ``places`` of the arrival line,
        if the host has ``promised`` a watermark in milliseconds."""
        before = self.clock
        if self.by_rows:
            now = self.place + places - 1
            return Clock(now=max(before.now, now), watermark=now + 1)
        watermark, late = before.watermark, max(before.late, self.lateness.watermark(newest))
        now = max([before.now, *newest.values()])
        if promised is not None:
            watermark = max(watermark, self._in_ticks(promised))
            late, now = max(late, watermark), max(now, watermark)
        if self.lateness.is_for_all:
            watermark = late
        return Clock(now=now, watermark=watermark, strict=self.strict, late=late)

    def _in_ticks(self, promised: Any) -> int:
        if not isinstance(promised, int) or isinstance(promised, bool):
            raise InputError(f"watermark is an integer of milliseconds, not {promised!r}")
        ticks = promised * self.query.ticks_per_millisecond
        if abs(ticks) > FARTHEST:
            raise InputError(f"the watermark {promised} is too far away")
        return ticks

    def go_back(self, marks: Sequence[Marks]) -> None:
        """The push has failed: everything is as before it."""
        self.is_broken = True
        self.output.rollback()
        for tree, mark in zip(self.trees, marks, strict=True):
            tree.undo(mark)
        if self.overload is not None:
            self.overload.undo()
        self.is_broken = False

    def conclude(self, clock: Clock, newest: dict[str, int], first: int, rows: int) -> None:
        """A push of ``rows``, the first of them born at ``first``, is done: time moves on."""
        if self.first is None and first > START:
            self.first = first
        self.clock = clock
        self.newest = newest
        for leaf in self.all_leaves if self._remembers_stale else ():
            if leaf.seen_at is not None:
                leaf.seen_at.note(clock.now)
        self.expiry.note(rows)

    def tidy_output(self, watermark: int) -> None:
        """Let the top of the query let go of what is not needed, if there is memory for that."""
        with contextlib.suppress(*NO_ROOM):
            if self.overload is not None:
                watermark = self.overload.keep_all_from(watermark)
            self.output.tidy(watermark)

    # -- from the windows alone --------------------------------------------------------------

    def replace_tree(self, number: int, tree: JoinTree) -> None:
        """Go on with ``tree`` for a block."""
        self.trees[number] = tree
        if number == 0 and self.overload is not None:
            self.overload.attach(tree)

    def pay_all(self) -> None:
        """Make all owed probes; what they find leaves with the next push. If there is no memory
        for that, they are still owed."""
        if self.overload is not None and self.overload.owes:
            marks = [tree.marks() for tree in self.trees]
            try:
                late = self.overload.pay_all()
            except BaseException:
                self.go_back(marks)
                raise
            before = [] if self.owed_results is None else [self.owed_results]
            self.owed_results = concatenate([*before, late])
            self.trees[0].commit()

    def begin_anew(self, plan: Plan) -> None:
        """Go on with ``plan`` from the windows alone, as after a restart."""
        if not self.output.needs_history:
            self._complete_later(plan)
            return
        for old in self.trees:
            old.dispose()
        self.trees = self._first_trees(plan)
        for tree in self.trees:
            tree.hidden.see_windows()
        if self.overload is not None:
            self.overload.attach(self.trees[0])
        self.output = output_for(self.query, self.trees)
        self.subtract_in(plan.places_in(self.query))
        self.load_output(None, {})

    def load_output(self, held: pa.Table | None, counts: Mapping[str, int]) -> None:
        """Restore what is above the join, ``held`` by it as saved; states are completed on demand.
        ``counts`` are the rows of each window."""
        if not self.output.needs_history:
            self._complete_later(self.plan)
            return
        results = self._replay()
        if self._remembers_stale and self.overload is not None:
            results[0] = self.overload.join.freshness.once_on_time(results[0])
        if self.owed_results is not None:
            results[0] = results[0].without(self.owed_results)
        self.output.load(results, self.clock, held, counts)

    def _complete_later(self, plan: Plan) -> None:
        """After a restart all states are missing, as after a migration: the engine answers at once,
        and what nobody asks for is never made again."""
        roots = plan.in_blocks(self.query)
        for number, (root, old) in enumerate(zip(roots, list(self.trees), strict=True)):
            self.replace_tree(number, old.successor(root, {}))
            old.dispose()

    def _replay(self) -> list[Composites]:
        """Rebuild states from the leaf windows; all living results of each block."""
        results = []
        for tree in self.trees:
            tree.begin_slice(START, END, SLICE, START)
            results.append(
                tree.process({alias: leaf.delta_of_all() for alias, leaf in tree.leaves.items()})
            )
            tree.commit()
        return results
