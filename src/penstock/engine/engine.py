"""The engine of one cell: micro-batches in, results out, exact whatever happens in between.

A push has three phases. *Intake* checks, decodes and orders the batches; whatever is wrong with
them is found here, and nothing has changed. *Processing* appends to windows and states and
computes what leaves; if anything fails, rows are only at the heads of rings and are taken back, so
a failed push changes nothing. *Commit* moves the clock and lets go of what has passed.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.control.controller import Controller
from penstock.engine.control.eddy import Eddy
from penstock.engine.control.first_plan import first_plan, roots_of
from penstock.engine.control.plan_event import PlanEvent
from penstock.engine.feedback.feedback import Feedback, Message
from penstock.engine.join.join_order import with_orders
from penstock.engine.join.stopwatch import Stopwatch
from penstock.engine.metrics import COMPILED, Counters, Metrics, measure
from penstock.engine.migration.change_of_plan import (
    STRATEGIES,
    check_strategy,
    just_in_time,
    reroute,
)
from penstock.engine.migration.preparation import Preparation, prepare
from penstock.engine.options import Options
from penstock.engine.output.output import empty_table, output_for
from penstock.engine.overload.freshness import Freshness
from penstock.engine.overload.overload import Overload
from penstock.engine.push.ahead import Ahead
from penstock.engine.push.dropped import Dropped
from penstock.engine.push.frequent_key import frequent_key
from penstock.engine.push.given import conforming
from penstock.engine.push.in_slices import push_in_slices
from penstock.engine.push.intake import FARTHEST, Batches, Intake, UnlikeDeclaredError
from penstock.engine.push.lateness import Lateness
from penstock.engine.push.set_aside import SetAside
from penstock.engine.push.whole_push import WholePush
from penstock.engine.recovery.checkpoint import Checkpoint, loading
from penstock.engine.state.arrival import SLICE
from penstock.engine.state.clock import END, START, Clock
from penstock.engine.state.composites import Composites, concatenate
from penstock.engine.state.held_signals import HELD, uninterrupted
from penstock.engine.state.windows import Windows
from penstock.engine.state.working_memory import WORKING
from penstock.engine.tree.join_tree import JoinTree, Marks
from penstock.engine.tree.saved_tree import load_debts, load_tree, save_tree
from penstock.errors import (
    CheckpointError,
    InputError,
    OptionError,
    PenstockError,
    TooManyResults,
)
from penstock.kernels.compilation import announce_compilation
from penstock.kernels.lifespan import FOREVER
from penstock.plan.plan import Leaf, Plan
from penstock.query.join_graph import JoinGraph
from penstock.values.wiring import wire

if TYPE_CHECKING:
    from penstock.engine.overload.overload_control import OverloadControl
    from penstock.planning.statistics import Statistics


Int64s = NDArray[np.int64]
_NOTHING_SEEN: Mapping[str, int] = {}
_NOT_IN_CHECKPOINTS = ("_counters", "_converts")
"""What an engine keeps when it makes everything anew of its windows."""

SILENT_WINDOWS = 3
"""Windows by which a stream may be behind the newest before it is told that state waits for it."""


class Engine:
    """Runs one query on micro-batches.

    >>> engine = Engine(query, plan="((A B) C)")            # doctest: +SKIP
    >>> table = engine.push({"A": batch_a, "B": batch_b})   # doctest: +SKIP

    ``plan`` is a plan in the notation, a :class:`~penstock.plan.plan.Plan`, ``"auto"``, or an eddy,
    which chooses and changes its routes itself: ``"cacq"``, ``"stairs"`` or ``"stairs-lazy"``.
    ``feedback`` is ``"jit"`` (rows that nobody wants now wait, where that pays), ``"bloom"`` (the
    same by Bloom filters), ``"off"``, or a :class:`~penstock.engine.feedback.Feedback`.
    ``lateness`` is how far out of order events may be: milliseconds, a timedelta, or a text such as
    ``"5 SECONDS"``; or a dict of them by source, and a source that is not in it is never late (so
    with ``{}`` nothing is, and windows keep all rows). By default streams are taken to be in order.
    ``idle`` is how far a stream may fall behind the newest of the others, in event time, before
    the watermark stops waiting for it. ``watermark_policy`` is ``"min"`` (the watermark is that of
    the slowest stream) or ``"max"`` (of the fastest). With ``keep_dropped``, rows that are late or
    have no event time are kept for :meth:`drain_dropped`. ``max_ahead`` is how far the event time
    of a row may be ahead of its arrival, for all sources or by source; others are set aside.

    ``overload`` is what happens with too little CPU: ``"exact"`` (nothing is skipped), ``"shed"``
    (probes beyond the budget are dropped), ``"defer"`` (they are made up for later), or an
    :class:`~penstock.engine.overload.overload.Overload`; the budget is that of
    ``limits``, or a core. ``join`` is ``"hash"``, or ``"nested-loops"`` as in the papers'
    experiments.

    ``limits`` (:class:`penstock.Limits`) is what a plan may use. ``adapt`` is ``"auto"`` (a plan
    that somebody gave stays, ``plan="auto"`` is made from the first batches and changed whenever
    that pays), ``"on"`` (a given plan is only where it starts) or ``"off"`` (the plan never changes
    by itself). ``statistics``, if given, are what ``plan="auto"`` starts from; then
    :class:`penstock.NoQualifiedPlan` is raised if no plan is within the limits. A query that runs
    is never stopped for that: it goes on with the nearest plan and says so in its events.

    ``execution`` is ``"auto"`` (pushes are compiled wherever they can be) or ``"reference"`` (none
    is): the same answers, step by step, for tests and for whoever looks for a fault.
    """

    def __init__(
        self,
        query: JoinGraph,
        plan: str | Plan = "auto",
        feedback: str | Feedback = "jit",
        overload: str | Overload = "exact",
        lateness: Any = None,
        limits: Any = None,
        join: str = "hash",
        adapt: str = "auto",
        statistics: Statistics | None = None,
        execution: str = "auto",
        idle: Any = None,
        watermark_policy: str = "min",
        keep_dropped: bool = False,
        max_ahead: Any = None,
    ) -> None:
        if not isinstance(query, JoinGraph):
            raise OptionError(f"query must come from penstock.parse, not {type(query).__name__}")
        announce_compilation()
        self.query = query
        self._by_rows = query.by_rows
        self._grouped = query.is_grouped
        self.options = Options.of(
            feedback,
            overload,
            lateness,
            join,
            limits,
            adapt,
            execution,
            idle,
            watermark_policy,
            max_ahead,
        )
        self._control = Controller(
            self.options.adapt != "off",
            self.options.adapt != "on" and plan != "auto",
            self.options.limits,
        )
        if plan == "auto" and statistics is not None:
            plan = self._planned(statistics)
        self._eddy = Eddy.of(plan)
        self._preparation: Preparation | None = None
        self._latest = 0
        """Rows of the latest push."""
        self._plan = first_plan(query, plan)
        moving = {s.source for b in query.blocks for s in b.streams if not s.is_static}
        self._lateness = Lateness.of(
            self.options.lateness,
            [source for source in query.sources if source in moving],
            query.ticks_per_millisecond,
            self.options.watermark_policy,
            self.options.idle,
        )
        self._strict = (
            self._lateness.is_declared and self._lateness.is_for_all and not self._by_rows
        )
        self._wirings = [wire(block) for block in query.blocks]
        self._windows = [
            Windows(block, wiring, self._by_rows, query.ticks_per_millisecond)
            for block, wiring in zip(query.blocks, self._wirings, strict=True)
        ]
        self._leaves = [windows.leaves for windows in self._windows]
        self._trees = self._first_trees()
        self._intake = Intake(
            query,
            [leaf for each in self._leaves for leaf in each.values()],
            frozenset(self._lateness.delays),
            keep_dropped,
        )
        self._ahead = (
            None if self._by_rows else Ahead.of(self.options.max_ahead, self._intake.sources)
        )
        self._set_aside = SetAside(
            self._intake,
            [leaf for each in self._leaves for leaf in each.values()],
            self._lateness,
            query.ticks_per_millisecond,
            keep_dropped,
        )
        self._timed = self._lateness.sources
        self._output = output_for(query, self._trees)
        self._clock = Clock(strict=self._strict)
        self._newest: dict[str, int] = {}
        self._place = 0
        self._first: int | None = None
        """The oldest instant of the first push."""
        self._plan_since = 0.0
        """Event time at which the plan began to run, in seconds."""
        self._started = False
        self._unswept = self._patience = 0
        """Rows since the last look for what has passed, and how many may come before the next."""
        self._look_at = START
        """The watermark at which to look in any case."""
        self._counters = Counters(tuple(self._intake.sources))
        self._broken = False
        self._is_torn = False
        """Whether what is made of the windows (states, guards, what is held) is not to be relied
        on: there was no memory when it changed. Windows are all right."""
        self._finished = False
        self._owed_results: Composites | None = None
        """Made between pushes, to leave with the next one."""
        self._overload = self._overload_control()
        self._has_begun = False
        """Whether the overload policy has begun with the push at hand."""
        self._converts = False
        self._whole = None
        """Makes plain pushes, where nothing is rationed and there is one time line and one tree."""
        self._never_whole = self._why_never_whole()
        """Why no push can be compiled; empty if it can."""
        if not self._never_whole:
            self._whole = WholePush(self._intake, self._leaves[0])
            self._never_whole = self._whole.why_never
            if self._never_whole:
                self._whole = None

    def _why_never_whole(self) -> str:
        """The reason why no push of this engine can be compiled, if there is one."""
        if self.options.execution == "reference":
            return "execution='reference'"
        if self._by_rows:
            return "ROWS windows"
        if len(self._trees) > 1:
            return "EXCEPT"
        return ""

    def _overload_control(self) -> OverloadControl | None:
        """Who sees to budget and freshness; None where nothing can be short or stale."""
        freshness = Freshness(self.query, self._leaves[0])
        option = self.options.overload
        idle = option.policy == "exact" and not option.has_budget and not freshness.asked
        if idle or isinstance(self._plan.root, Leaf):
            return None
        from penstock.engine.overload.overload_control import OverloadControl

        return OverloadControl(self.query, option, self._trees[0], freshness)

    def _first_trees(self) -> list[JoinTree]:
        """The tree of each block, with states that hold nothing yet."""
        roots = roots_of(self._plan, self.query)
        return [
            JoinTree(
                root,
                wiring,
                leaves,
                self.options.join,
                self.options.feedback,
                compiles=self.options.execution == "auto",
            )
            for root, wiring, leaves in zip(roots, self._wirings, self._leaves, strict=True)
        ]

    # -- the public surface ------------------------------------------------------------------

    @property
    def plan(self) -> Plan:
        """The plan that is running; after :meth:`migrate`, the one that is going to."""
        return self._plan

    @property
    def running_plan(self) -> Plan:
        """The plan that metrics are about: still the old one while a change is prepared."""
        roots = [tree.root for tree in self._trees]
        return Plan(roots[0], tuple(roots[1:]))

    @property
    def routing(self) -> str | None:
        """The kind of eddy that chooses the plan, if one does."""
        return None if self._eddy is None else self._eddy.kind

    @property
    def schema(self) -> pa.Schema:
        """The schema of the answer."""
        return self.query.schema

    @property
    def watermark(self) -> int | None:
        """No older tuple is expected: in ticks of the query's time unit, None if not known yet."""
        return None if self._clock.watermark == START else self._clock.watermark

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns that the query reads of each source."""
        return {name: source.columns for name, source in self._intake.sources.items()}

    @property
    def owes(self) -> bool:
        """Whether probes were put off (``overload="defer"``) and have not been made up for yet."""
        return self._owed_results is not None or (
            self._overload is not None and self._overload.owes
        )

    def __repr__(self) -> str:
        """Plan, streams and what was taken in so far."""
        sources = ", ".join(self.query.sources)
        return f"<Engine {self.plan} over {sources}: {self.rows:,} rows taken in>"

    def __dir__(self) -> list[str]:
        """Public names: completion in a shell offers what is meant to be used."""
        return [name for name in super().__dir__() if not name.startswith("_")]

    @property
    def newest(self) -> dict[str, int]:
        """The newest event time of each source that has been seen, in ticks."""
        return dict(self._newest)

    def push(
        self,
        batches: Mapping[str, Any],
        watermark: int | None = None,
        newest: Mapping[str, int] | None = None,
        probes: float | None = None,
        seconds: float | None = None,
        again: bool = False,
        arrived: int | None = None,
    ) -> pa.Table:
        """Take in a batch of some or all streams; the results that leave now.

        ``watermark`` (in milliseconds) promises that no later push has older events: for hosts
        that know better than the newest event time seen. ``newest`` (in ticks) are event times of
        tuples that other engines have taken in: for hosts that cut streams, since their engines
        need one clock. Late rows of this push are still judged by the watermark of before.
        ``probes`` is how many probes this push may make under ``shed`` and ``defer``, for hosts
        that keep the budget themselves, and ``seconds`` how long it may take, if the budget is a
        time per push: for hosts that know how much of it is left. ``again`` says that the host has
        had the answer to this push before: what is skipped now is not lost. ``arrived`` is when the
        rows came, in milliseconds since 1970, for ``max_ahead``: by default, now.
        """
        held = HELD.hold()
        rest = watermark, newest, probes, seconds, again
        try:
            if not self._converts:
                try:
                    return self._push_known(batches, arrived, *rest)
                except UnlikeDeclaredError:
                    self._converts = True
            return self._push_known(conforming(batches, self._intake.sources), arrived, *rest)
        except TooManyResults as problem:
            raise TooManyResults(f"{problem}; {frequent_key(self.query, batches)}") from None
        finally:
            if held:
                HELD.open()

    def _push_known(
        self,
        batches: Mapping[str, Any],
        arrived: int | None,
        watermark: int | None,
        newest: Mapping[str, int] | None,
        probes: float | None,
        seconds: float | None,
        again: bool,
    ) -> pa.Table:
        """A push of what needs no conversion; rows that are too far ahead are set aside."""
        if self._ahead is None:
            return self._push(batches, watermark, newest, probes, seconds, again)
        now = int(1000 * time.time()) if arrived is None else arrived
        split = self._ahead.split(batches, now)
        self._set_aside.warn_of_ahead(split.dropped, self._counters.ahead)
        table = self._push(split.batches, watermark, newest, probes, seconds, again)
        for each in split.dropped:
            self._counters.ahead[each.source] += len(each.rows)
        if self._set_aside.keeps:
            self._set_aside.keep(split.dropped)
        return table

    def _push(
        self,
        batches: Mapping[str, Any],
        watermark: int | None,
        newest: Mapping[str, int] | None,
        probes: float | None,
        seconds: float | None,
        again: bool,
    ) -> pa.Table:
        """A push while signals wait."""
        self._check_usable()
        WORKING.begin(None if self.options.limits is None else self.options.limits.memory)
        self._intake.check(batches)
        began = Stopwatch.clock()
        if self._overload is not None:
            self._overload.start(seconds, again)
            self._has_begun = False
        whole = self._whole
        why = self._never_whole
        if whole is not None:
            try:
                made = self._push_whole(whole, batches, watermark, newest or _NOTHING_SEEN, probes)
            finally:
                whole.forget()
            if isinstance(made, str):
                why = made
            else:
                self._go_on_changing(whole.rows, whole.rows)
                self._counters.note_way(COMPILED)
                self._counters.seconds += Stopwatch.clock() - began
                self._broken = False
                return made
        taken = self._intake.take(batches, self._clock, self._place, not self._started)
        seen = dict(self._newest)
        for source, instant in (*taken.newest.items(), *(newest or {}).items()):
            seen[source] = max(instant, seen.get(source, instant))
        clock = self._advanced(seen, taken, watermark)
        table = self._process(taken, clock, seen, clock.now, probes)
        self._counters.note_way(why)
        self._set_aside.keep(taken.dropped)
        self._latest = sum(taken.seen.values())
        if not self.owes:  # Another plan would have to make all owed probes at once.
            self._go_on_changing(sum(map(len, taken.rows.values())), self._latest)
        self._counters.seconds += Stopwatch.clock() - began
        self._broken = False
        return table

    def _go_on_changing(self, rows: int, seen: int) -> None:
        """A push of ``rows`` is done, ``seen`` with those that were late: look after the plan."""
        if not self._is_torn:
            with self._tearing():
                self._look_after_plan(rows, seen)

    def _look_after_plan(self, rows: int, seen: int) -> None:
        if self._preparation is None:
            if self._eddy is not None:
                self._route(self._eddy, rows)
            else:
                self._control.after_push(self, seen)
        if self._preparation is not None:
            self._prepare(self._preparation, rows)
        else:
            for tree in self._trees:
                if tree.missing:
                    tree.complete_beside(rows)

    def note_host(
        self, rows: int, rows_seconds: float, results: int, results_seconds: float
    ) -> None:
        """What a host took after a push, for its rows and for its results: a budget of time that
        holds for both is then divided so that both fit in."""
        if self._overload is not None:
            self._overload.budget.note_after("host rows", rows, rows_seconds)
            self._overload.budget.note_after("host results", results, results_seconds)

    def overload_accounts(self) -> dict[str, Any] | None:
        """What an overload policy did and lost so far, to be kept by a host; None without one."""
        policy = self._overload
        return None if policy is None or policy.option.policy == "exact" else policy.accounts(4)

    def repeat_decisions(
        self, accounts: Mapping[str, Any] | None, rows: Mapping[str, int], from_base: bool
    ) -> None:
        """Make the next push so that another engine can repeat it: what is put off follows from
        ``accounts``, those of the push before, and from no clock.

        ``rows`` are those that the push brings of each source. ``from_base`` if the engine has just
        been restored. If it has not, and the push must put probes off, it raises
        :class:`~penstock.engine.overload.overload_control.NeedsBase`.
        """
        if self._overload is not None:
            told = {s.alias: rows[s.source] for s in self.query.streams if s.source in rows}
            self._overload.repeat(accounts, told, from_base)

    def take_over_accounts(self, accounts: Mapping[str, Any]) -> None:
        """Go on from :meth:`overload_accounts` of the engine that made the pushes which this one
        has only made again."""
        if self._overload is not None:
            self._overload.take_over(accounts)

    @uninterrupted
    def refresh(self, relations: Mapping[str, Any]) -> None:
        """Replace all rows of some static relations: ``{"S": table}``.

        What leaves from the next push on is what an engine would give that had the new rows from
        the start and the same rows of streams since. What has left stays as it left: nothing is
        taken back, and nothing leaves only because a relation has changed. In checkpoints the new
        rows are in place of the old ones. With EXCEPT, and while probes are owed, this is refused.
        """
        self._check_usable()
        names = ", ".join(name for name, each in self._intake.sources.items() if each.is_static)
        for name in relations:
            if name in self._intake.sources and not self._intake.sources[name].is_static:
                raise InputError(
                    f"{name} is a stream, and only static relations are refreshed; "
                    + (f"they are: {names}" if names else "the query has none")
                )
        if self.query.minus:
            raise OptionError(
                "a query with EXCEPT keeps the static relations that it began with: what it has "
                "removed so far cannot be decided anew"
            )
        if self.owes:
            raise OptionError(
                "probes are owed (overload='defer') that have to meet the rows of before; refresh "
                "static relations with overload='exact' or 'shed'"
            )
        taken = self._intake.take(relations, self._clock, self._place, statics_open=True)
        self._catch_up()
        (leaves,) = self._leaves
        arrivals = {
            alias: leaf.prepare(taken.rows[leaf.stream.source])
            for alias, leaf in leaves.items()
            if leaf.stream.source in taken.rows
        }
        if self._preparation is not None:
            self._preparation.release()
            self._preparation = None
        self._broken = True
        for alias, arrival in arrivals.items():
            leaves[alias].undo(leaves[alias].rows.tail)
            leaves[alias].append(arrival)
        self._begin_anew()
        for source, count in taken.seen.items():
            self._counters.rows[source] += count
        self._broken = False

    def _begin_anew(self) -> None:
        """Go on from the windows alone, as after a restart."""
        if not self._output.needs_history:
            self._complete_later()
            return
        for old in self._trees:
            old.dispose()
        self._trees = self._first_trees()
        for tree in self._trees:
            tree.see_windows()
        if self._overload is not None:
            self._overload.attach(self._trees[0])
        self._output = output_for(self.query, self._trees)
        self._load_output(None, {})

    @uninterrupted
    def finish(self) -> pa.Table:
        """No more tuples will come: what was waiting for time to pass leaves now."""
        self._check_usable()
        if self.query.emission == "rstream":
            self._finished = True
            return empty_table(self.schema)
        nothing = Batches({}, {}, {}, {}, {}, 0)
        self._has_begun = False
        end = Clock(now=END, watermark=END, strict=self._strict)
        table = self._process(nothing, end, self._newest, self._clock.now, math.inf)
        self._finished = True
        self._broken = False
        return table

    @uninterrupted
    def migrate(self, plan: str | Plan, strategy: str = "jisc") -> None:
        """Go on with another plan from the next push on, or (if it needs indexes over long windows
        that nobody has needed so far) as soon as these have been filled, a little with every push.

        ``"jisc"`` completes what the new plan lacks when somebody asks for it, ``"moving-state"``
        does so at once, ``"parallel-track"`` runs both plans until the tuples of now have died.
        The plan is kept until :meth:`unpin`.
        """
        self._check_usable()
        before = self._plan
        self.change_plan(plan, strategy)
        self._control.pinned = True
        self._control.note(self, "set", before)

    def change_plan(self, plan: str | Plan, strategy: str = "jisc") -> None:
        """What :meth:`migrate` does, for the controller: nothing is pinned or noted."""
        check_strategy(strategy, self._trees)
        self._plan = first_plan(self.query, plan)
        self._plan_since = self.seconds
        self._eddy = Eddy.of(plan)
        self._begin_change(strategy)

    def _begin_change(self, strategy: str) -> None:
        """Go over to the plan, at once or when the indexes that it needs are there."""
        try:
            if self._preparation is not None:
                self._preparation.release()
                self._preparation = None
            if strategy != "moving-state":
                self._preparation = prepare(
                    strategy, self._trees, roots_of(self._plan, self.query), self._latest
                )
            if self._preparation is None:
                self._catch_up()
                self._change(strategy)
        except MemoryError:
            self._is_torn = True  # The new plan begins with what the windows have.
            raise

    def _prepare(self, preparation: Preparation, rows: int) -> None:
        """A push of ``rows`` is done: go on preparing, or go over if nothing is left to do."""
        if preparation.is_done:
            self._change(preparation.strategy, preparation.successors)
            preparation.release()
            self._preparation = None
        else:
            preparation.go_on(rows)
            self._expect(preparation)

    def _expect(self, preparation: Preparation) -> None:
        """If the new plan takes over next, let pushes as a whole know."""
        if self._whole is not None and preparation.is_done:
            for tree in preparation.successors.values():
                compiled = tree.in_one_call()
                if compiled is not None:
                    self._whole.expect(compiled)

    def _change(self, strategy: str, built: dict[int, JoinTree] | None = None) -> None:
        """Go over to the plan; ``built`` are new trees that are ready, which are taken."""
        if self._overload is not None:
            self._overload.settle()
        change = STRATEGIES.get(strategy, reroute)
        roots = roots_of(self._plan, self.query)
        for number, (root, old) in enumerate(zip(roots, self._trees, strict=True)):
            if root == old.root:
                continue
            if number == 0 and change is not reroute:
                self._pay_all()
                old.rationing = None
            new = None if built is None else built.pop(number, None)
            self._trees[number] = change(old, root) if new is None else just_in_time(old, root, new)
            if number == 0 and self._overload is not None:
                self._overload.attach(self._trees[0])

    def _pay_all(self) -> None:
        """Make all owed probes; what they find leaves with the next push."""
        if self._overload is not None and self._overload.owes:
            late = self._overload.pay_all()
            before = [] if self._owed_results is None else [self._owed_results]
            self._owed_results = concatenate([*before, late])
            self._trees[0].commit()

    def _route(self, eddy: Eddy, rows: int) -> None:
        """``rows`` more have come: let the eddy change its routes."""
        plan = eddy.review(rows, self._trees)
        if plan is not None:
            self._plan = plan
            self._begin_change(eddy.strategy)
            eddy.begin_period(self._trees)

    @uninterrupted
    def pin(self, plan: str | Plan | None = None) -> None:
        """Keep the plan that runs, or migrate to ``plan`` and keep that one."""
        self._check_usable()
        before = self._plan
        if plan is not None:
            self.change_plan(plan)
        self._control.pinned = True
        self._control.note(self, "pin", before)

    @uninterrupted
    def unpin(self) -> None:
        """Let the controller change the plan from now on, unless ``adapt`` is ``"off"``."""
        self._control.pinned = False
        self._control.note(self, "unpin", self._plan)

    @uninterrupted
    def undo(self) -> None:
        """Go back to the plan before the last change, and keep it until :meth:`unpin`."""
        self._check_usable()
        before = self._plan
        self.change_plan(self._control.to_undo())
        self._control.pinned = True
        self._control.note(self, "undo", before)

    @property
    def is_changing(self) -> bool:
        """Whether another plan is being prepared, while the one before it still runs."""
        return self._preparation is not None

    @property
    def is_pinned(self) -> bool:
        """Whether the plan stays, whatever the streams do."""
        return self._eddy is None and not self._control.is_on

    @property
    def history(self) -> tuple[PlanEvent, ...]:
        """The last changes of the plan, oldest first."""
        return tuple(self._control.changes)

    def drain_events(self) -> list[PlanEvent]:
        """What was decided about the plan since the last call (the latest 256 are kept)."""
        return self._control.drain()

    def silent(self) -> dict[str, float]:
        """Streams that hold all state though others have moved on by several windows: the seconds
        of event time that each is behind the newest. ``idle`` is the remedy."""
        spans = [leaf.span for leaves in self._leaves for leaf in leaves.values()]
        longest = max((span for span in spans if span < FOREVER), default=0)
        if self._by_rows or not longest or self._first is None:
            return {}
        per_second = 1000 * self.query.ticks_per_millisecond
        whole = max(self._newest.values(), default=self._first) - self._first
        return {
            source: behind / per_second
            for source, found in self._lateness.waits_for(self._newest).items()
            if (behind := whole if found is None else found) > SILENT_WINDOWS * longest
        }

    def drain_dropped(self) -> list[Dropped]:
        """Rows that were late or had no event time, since the last call: with ``keep_dropped``."""
        return self._set_aside.drain()

    def metrics(self) -> Metrics:
        """Counts since the start and sizes by now, as nested plain dictionaries."""
        self._catch_up()
        metrics = measure(self._counters, self._trees, self._output, self._clock, self.query)
        metrics["control"] = self._control.metrics()
        metrics["silent"] = self.silent()
        if self._overload is not None:
            metrics["overload"] = self._overload.measure()
        return metrics

    def _repr_html_(self) -> str:
        """What a notebook shows: the plan, and what its parts hold and did."""
        from penstock.explain.html import metrics_html

        return metrics_html(self._plan, self.metrics())

    def statistics(self, pushes: float = 0.0, brief: bool = False) -> Statistics:
        """What the windows and states say about the streams: for :func:`penstock.plan`.

        ``pushes`` is how many there are per second; 0 leaves their fixed cost out. ``brief``
        leaves out what is for people: distinct values, and costs per operation by the clock.
        """
        self._catch_up()
        from penstock.engine.control.observed_costs import observed_costs
        from penstock.engine.control.observed_statistics import observed_statistics
        from penstock.planning.calibrated import calibrated_costs
        from penstock.planning.unit_costs import UnitCosts

        thin = self._overload is not None and self._overload.is_thin
        costs = None
        if not brief:
            costs = observed_costs(self._trees, calibrated_costs() or UnitCosts())
        return observed_statistics(
            self.query, self._trees, self._wirings, self._clock, pushes, thin, costs, brief
        )

    def explain(self, analyze: bool = False) -> str:
        """The plan with what it is estimated to cost, and what other plans would.

        With ``analyze``, what was observed stands beside what was estimated.
        """
        # Planners and renderers take their time to load, and a start must be quick.
        from penstock.engine.control.engine_text import engine_text

        return engine_text(self, self._control.why(), self.seconds - self._plan_since, analyze)

    @property
    def seconds(self) -> float:
        """Event time since the first tuple; on the arrival line, arrivals."""
        if self._first is None or self._clock.now == START:
            return 0.0
        unit = 1 if self._by_rows else 1000 * self.query.ticks_per_millisecond
        return (self._clock.now - self._first) / unit

    @property
    def rows(self) -> int:
        """Rows taken in since the start."""
        return sum(self._counters.rows.values())

    @property
    def pushes(self) -> int:
        """Pushes since the start."""
        return self._counters.pushes

    @property
    def trees(self) -> Sequence[JoinTree]:
        """The running tree of each block."""
        return self._trees

    @property
    def stream_count(self) -> int:
        """Streams of the largest block of the query."""
        return max(len(leaves) for leaves in self._leaves)

    @property
    def has_seen_all(self) -> bool:
        """Whether every window has a row."""
        return all(len(leaf.rows) for leaves in self._leaves for leaf in leaves.values())

    @property
    def plan_with_orders(self) -> Plan:
        """The plan, with the probe orders that its mjoins have."""
        roots = [
            with_orders(tree.root, wiring)
            for tree, wiring in zip(self._trees, self._wirings, strict=True)
        ]
        return Plan(roots[0], tuple(roots[1:]))

    def _planned(self, statistics: Statistics) -> Plan:
        """The plan to start with, from statistics that were given."""
        from penstock.planning.planner import plan

        return plan(self.query, statistics, self.options.limits, join=self.options.join)

    @property
    def messages(self) -> list[Message]:
        """What consumers told producers, if ``feedback`` is a Feedback with ``record=True``."""
        return [message for tree in self._trees for message in tree.messages]

    @uninterrupted
    def checkpoint(self) -> bytes:
        """The leaf windows and the clock, enough to go on from here after a restart."""
        self._check_usable()
        self._catch_up()
        return self._saved().to_bytes()

    @classmethod
    def restore(
        cls,
        query: JoinGraph,
        blob: bytes | memoryview,
        plan: str | Plan | None = None,
        until: int | None = None,
        **options: Any,
    ) -> Engine:
        """The engine of a checkpoint of ``query``.

        Its plan is that of the checkpoint, pinned or not as it was; with ``plan="auto"`` the same,
        free to change; else ``plan``, pinned. ``options`` are other options than it had. With
        ``until`` (event time in milliseconds) it goes on from there: rows that are newer are left
        out, and so is what they did to the clock. That brings back a query whose clock a wrong row
        has moved far ahead.
        """
        found = Checkpoint.from_bytes(blob, query)
        if until is not None:
            found = found.up_to(until * query.ticks_per_millisecond)
        with loading(asks_for_more=bool(options) or plan not in (None, "auto")):
            return cls._loaded(found, plan, options)

    # -- a push ------------------------------------------------------------------------------

    def _check_usable(self) -> None:
        if self._finished:
            raise PenstockError("finish() was called: this engine takes no more batches")
        if self._is_torn and not self._broken:
            self._restart()
        if self._broken:
            raise PenstockError(
                "the engine was interrupted at a moment when it could not go back; "
                "go on with Engine.restore and the last checkpoint"
            )

    def _advanced(
        self, newest: Mapping[str, int], taken: Batches | None, promised: int | None
    ) -> Clock:
        before = self._clock
        if taken is not None and self._by_rows:
            now = self._place + taken.places - 1
            return Clock(now=max(before.now, now), watermark=now + 1)
        watermark, late = before.watermark, max(before.late, self._lateness.watermark(newest))
        now = max([before.now, *newest.values()])
        if promised is not None:
            watermark = max(watermark, self._in_ticks(promised))
            late, now = max(late, watermark), max(now, watermark)
        if self._lateness.is_for_all:
            watermark = late
        return Clock(now=now, watermark=watermark, strict=self._strict, late=late)

    def _in_ticks(self, promised: Any) -> int:
        if not isinstance(promised, int) or isinstance(promised, bool):
            raise InputError(f"watermark is an integer of milliseconds, not {promised!r}")
        ticks = promised * self.query.ticks_per_millisecond
        if abs(ticks) > FARTHEST:
            raise InputError(f"the watermark {promised} is too far away")
        return ticks

    def _process(
        self,
        taken: Batches,
        clock: Clock,
        newest: dict[str, int],
        now: int,
        probes: float | None,
    ) -> pa.Table:
        """Take the rows in; what leaves. Afterwards the engine counts as broken until told better:
        an interrupt from here to the return of the answer must not pass for a failed push."""
        arrivals = [
            {
                alias: leaf.prepare(taken.rows[leaf.stream.source])
                for alias, leaf in block.items()
                if leaf.stream.source in taken.rows
            }
            for block in self._leaves
        ]
        control = self._overload
        if control is not None and not self._has_begun:
            rows = {alias: len(each) for alias, each in arrivals[0].items()}
            first = min([int(e.births[0]) for e in arrivals[0].values() if len(e)], default=START)
            control.begin(rows, first, self._clock.now, now, probes)
        marks = [tree.marks() for tree in self._trees]
        try:
            results = [
                push_in_slices(
                    tree, each, clock.watermark, control if tree is self._trees[0] else None
                )
                for tree, each in zip(self._trees, arrivals, strict=True)
            ]
            if control is not None:
                results[0] = control.after_joins(results[0])
            if self._owed_results is not None:
                results[0] = concatenate([self._owed_results, results[0]])
            table = self._output.stage(results, clock)
            self._set_aside.warn_of_disorder(taken, self._clock.late)
            filtered = self._set_aside.filtered(
                {name: len(rows) for name, rows in taken.rows.items()},
                {
                    alias: len(each) if each.chosen is None else len(each.chosen)
                    for block in arrivals
                    for alias, each in block.items()
                },
                taken.rows,
                self._clock,
            )
            HELD.give()
        except BaseException:
            self._go_back(marks)
            raise
        self._broken = True
        self._output.commit()
        with self._tearing():
            for tree in self._trees:
                tree.commit()
        if control is not None:
            control.commit(self._clock.now)
        self._owed_results = None
        births = [int(each.births[0]) for each in arrivals[0].values() if len(each)]
        self._place += taken.places
        self._started = self._started or any(
            len(taken.rows[name]) for name in self._timed if name in taken.rows
        )
        self._counters.count(taken, len(table))
        self._counters.count_filtered(filtered)
        count = sum(map(len, taken.rows.values()))
        self._conclude(clock, newest, min(births, default=START), count)
        self._tidy_output(
            clock.watermark if control is None else control.keep_all_from(clock.watermark)
        )
        if count == 0 or self._is_time_to_let_go:
            self._let_go_if_it_can()
        return table

    def _push_whole(
        self,
        whole: WholePush,
        batches: Mapping[str, Any],
        watermark: int | None,
        told: Mapping[str, int],
        probes: float | None,
    ) -> pa.Table | str:
        """The same for plain batches, in few calls; why not, if this push is not for it.

        ``watermark`` and the newest event times ``told`` are the host's.
        """
        (tree,) = self._trees
        if self._owed_results is not None:
            return "results of a change of plan"
        if not tree.is_written_down and tree.in_one_call() is None:
            return tree.why_not_in_one_call
        why = whole.look(batches, self._clock)
        if why:
            return why
        newest = whole.newest(self._newest)
        for source, instant in told.items():
            if instant > newest.get(source, START):
                newest[source] = instant
        clock = self._advanced(newest, None, watermark)
        control = self._overload
        passes, credit = False, None
        if control is not None:
            credit = control.credit
            if credit is not None and probes is None and not tree.missing:
                passes = credit.covers(whole.priced(credit.prices), whole.rows, clock.now)
            if not passes:
                control.begin(whole.counts(), whole.first, self._clock.now, clock.now, probes)
                self._has_begun = True
                if not control.is_idle:
                    return "probes that are limited or owed"
        passed = self._passed
        compiled = whole.get_ready(tree, clock.watermark, passed)
        if compiled is None:
            return whole.why_not
        marks = tree.marks()
        heads = {alias: leaf.rows.head for alias, leaf in tree.leaves.items()}
        try:
            after = are_fresh = None
            if control is not None and not passes:
                after = control.after_joins
            elif control is not None and control.asks_age:
                after, are_fresh = control.drop_stale, control.are_fresh
            table = whole.join(tree, compiled, self._output, clock, after, are_fresh)
            dropped = None
            if whole.late or whole.without_time:
                sources = {**whole.late, **whole.without_time}
                dropped = self._set_aside.looked_at_again(batches, sources, self._clock)
            if dropped is not None:
                self._set_aside.warn_of_disorder(dropped, self._clock.late)
            admitted = {a: leaf.rows.head - heads[a] for a, leaf in tree.leaves.items()}
            filtered = self._set_aside.filtered(whole.on_time, admitted, batches, self._clock)
            HELD.give()
        except BaseException:
            if compiled.is_torn or tree.is_torn:  # It may be written anew in the middle.
                self._broken = True
            else:
                self._go_back([marks])
            raise
        self._broken = True
        self._output.commit()
        with self._tearing():
            tree.commit()
        if passes:
            assert credit is not None
            credit.note(whole.rows)
        elif control is not None:
            control.commit(self._clock.now)
        self._started = self._started or whole.has_rows
        self._latest = whole.rows
        self._counters.count_rows(whole.seen, table.num_rows)
        self._counters.count_filtered(filtered)
        if whole.late or whole.without_time:
            self._counters.count_set_aside(whole.late, whole.without_time)
            if dropped is not None:
                self._set_aside.keep(dropped.dropped)
        if whole.has_let_go:
            tree.note_expired(passed)
            whole.drop_passed()
            self._unswept = 0
        self._conclude(clock, newest, whole.first, whole.rows)
        if self._output.keeps:
            self._tidy_output(clock.watermark)
        if (
            not whole.rows
            or (compiled.needs_care if whole.has_let_go else self._is_time_to_let_go)
            or self._windows[0].have_many_values
        ):
            self._let_go_if_it_can()
        return table

    def _go_back(self, marks: Sequence[Marks]) -> None:
        """The push has failed: everything is as before it."""
        self._broken = True
        self._output.rollback()
        for tree, mark in zip(self._trees, marks, strict=True):
            tree.undo(mark)
        if self._overload is not None:
            self._overload.undo()
        self._broken = False

    def _conclude(self, clock: Clock, newest: dict[str, int], first: int, rows: int) -> None:
        """A push of ``rows``, the first of them born at ``first``, is done: time moves on."""
        if self._first is None and first > START:
            self._first = first
        self._clock = clock
        self._newest = newest
        self._unswept += rows

    @property
    def _is_time_to_let_go(self) -> bool:
        return self._unswept > self._patience or self._clock.watermark > self._look_at

    @property
    def _passed(self) -> int:
        """What died before then is of no use to anybody."""
        # A restart must find the results of the last settled instant.
        return self._clock.watermark - (self._grouped and self._strict)

    def _tidy_output(self, watermark: int) -> None:
        """Let the top of the query let go of what nobody needs, if there is memory for that."""
        with contextlib.suppress(MemoryError):
            self._output.tidy(watermark)

    def _let_go_if_it_can(self) -> None:
        """A push is done: if there is no memory to tidy up behind it, that is for the next one."""
        if self._is_torn:
            return
        try:
            self._let_go()
        except MemoryError:
            self._unswept = 1
            self._patience = 0

    @contextlib.contextmanager
    def _tearing(self) -> Iterator[None]:
        """A part of a push that is done already which may tear what is made of the windows."""
        try:
            yield
        except MemoryError:
            self._is_torn = True

    def _restart(self) -> None:
        """Make everything anew of the windows, as after a restart; or nothing, if there is no
        memory for it. So a lack of memory behind a push costs time and no answer."""
        if self._overload is not None and self._overload.owes:
            self._broken = True  # What is owed is not in the windows.
            return
        own = {name: getattr(self, name) for name in _NOT_IN_CHECKPOINTS}
        blob = self._saved().to_bytes()
        fresh = type(self).restore(self.query, blob, keep_dropped=self._set_aside.keeps)
        fresh._set_aside.take_over(self._set_aside)
        self.__dict__.update(vars(fresh))
        self.__dict__.update(own)

    def _let_go(self) -> None:
        """Drop what the watermark has passed, pack what is sparse, forget values nobody has.

        Answers do not depend on it. So pushes of few rows do it now and then: when a 16th of what
        is held has come, or a 16th of the longest window has passed, or somebody looks. Pushes
        that are made as a whole do so in passing, except for packing.
        """
        before = self._passed
        self._unswept = 0
        control = self._overload
        for tree, windows in zip(self._trees, self._windows, strict=True):
            owing = control is not None and tree is self._trees[0] and control.owes
            lull = control.lull(before) if control and owing else None
            for alias, leaf in tree.leaves.items():
                renumbered = leaf.expire(
                    control.keep_from(alias, before) if control and owing else before, lull
                )
                if renumbered is not None:
                    with self._tearing():
                        tree.renumber(alias, *renumbered)
                    with self._tearing():
                        self._output.renumber(alias, *renumbered)
                self._is_torn |= leaf.rows.is_torn
            if self._is_torn:
                return
            for state in tree.kept:
                state.expire(control.keep_all_from(before) if control and owing else before, lull)
                self._is_torn |= state.rows.is_torn
            if not owing:
                tree.note_expired(before)
            windows.sweep_values()
        leaves = [leaf for tree in self._trees for leaf in tree.leaves.values()]
        self._patience = sum(len(leaf.rows) for leaf in leaves) >> 4
        spans = [leaf.span for leaf in leaves if leaf.span < FOREVER]
        self._look_at = self._clock.watermark + (max(spans, default=0) >> 4)

    def _catch_up(self) -> None:
        """Let go of what has passed if there may be any: somebody looks."""
        if not self._broken:
            self.sweep()

    @uninterrupted
    def sweep(self) -> None:
        """Let go of what has passed if there may be any."""
        if self._unswept:
            self._let_go()

    # -- restart -----------------------------------------------------------------------------

    def _saved(self) -> Checkpoint:
        """What every part has to save."""
        if self._output.needs_history:
            self._pay_all()  # What is held is computed again, debts and all.
        saved: dict[str, Int64s] = {}
        tables: list[pa.Table] = []
        for windows in self._windows:
            for alias, rows in windows.saved_rows().items():
                saved[alias] = rows
                tables.append(windows.leaves[alias].save(rows))
        for windows in self._windows:
            tables += windows.save_values()
        held = self._output.save(saved)
        tables += [] if held is None else [held]
        overload: dict[str, Any] = {}
        if self._overload is not None:
            overload["control"] = self._overload.to_json()
        if self._owed_results is not None:
            overload["results"] = {}
            tables.append(self._owed_results.save(saved))
        if self._overload is not None and self._overload.owes:
            overload["tree"], more = save_tree(self._trees[0], saved)
            tables += more
        header = {
            "plan": self.routing or str(self.plan),
            "options": self.options.to_json(),
            "control": self._control.to_json(),
            "now": self._clock.now,
            "watermark": self._clock.watermark,
            "late": self._clock.late,
            "newest": self._newest,
            "place": self._place,
            "first": self._first,
            "started": self._started,
            "counters": self._counters.to_json(),
            "overload": overload,
        }
        return Checkpoint.of(self.query, header, tables)

    @classmethod
    def _loaded(
        cls, found: Checkpoint, plan: str | Plan | None, options: Mapping[str, Any]
    ) -> Engine:
        """An engine that goes on from ``found``; see :meth:`restore`."""
        header = found.header
        overload = header.get("overload", {})
        given = None if plan == "auto" else plan
        first = header["plan"] if "tree" in overload else given or header["plan"]
        engine = cls(found.query, plan=first, **header["options"] | options)
        if given is None and "control" in header:
            engine._control.load(header["control"])
        if plan == "auto":
            engine._control.pinned = False
        tables = iter(found.tables)
        rows = [[next(tables) for _ in each.leaves] for each in engine._windows]
        for windows, its_rows in zip(engine._windows, rows, strict=True):
            windows.load(its_rows, [next(tables) for _ in windows.interners])
        counts = {a: len(leaf.rows) for leaves in engine._leaves for a, leaf in leaves.items()}
        engine._load_times(header)
        engine._counters.load(header["counters"])
        held = next(tables) if engine._output.saves else None
        if "results" in overload:
            streams = tuple(engine._leaves[0])
            engine._owed_results = Composites.load(next(tables), streams, counts)
        engine._load_output(held, counts)
        if engine._overload is not None:
            engine._overload.load_json(overload["control"], engine._clock.now)
            engine._overload.attach(engine._trees[0])
        if "tree" in overload:
            assert engine._overload is not None
            engine._trees[0] = load_tree(engine._trees[0], overload["tree"], tables, counts)
            engine._overload.attach(engine._trees[0])
            load_debts(engine._trees[0], overload["tree"]["debts"], next(tables))
            if given is not None:
                engine.migrate(given)  # This pays the debt, if the plan is another.
        return engine

    def _load_times(self, header: Mapping[str, Any]) -> None:
        newest, first = header["newest"], header.get("first")
        late = header.get("late", header["watermark"])
        numbers = [header["now"], header["watermark"], header["place"], late, *newest.values()]
        numbers += [] if first is None else [first]
        if not all(type(each) is int for each in numbers) or header["place"] < 0:
            raise CheckpointError("the checkpoint is damaged: a time in it is no number")
        self._clock = Clock(header["now"], header["watermark"], self._strict, late)
        self._newest = dict(newest)
        self._place = header["place"]
        self._first = first
        self._plan_since = self.seconds
        self._started = header["started"]

    def _load_output(self, held: pa.Table | None, counts: Mapping[str, int]) -> None:
        """What is above the join; states are completed on demand."""
        if not self._output.needs_history:
            self._complete_later()
            return
        results = self._replay()
        if self._owed_results is not None:
            results[0] = results[0].without(self._owed_results)
        self._output.load(results, self._clock, held, counts)

    def _complete_later(self) -> None:
        """After a restart all states are missing, as after a migration: the engine answers at once,
        and what nobody asks for is never made again."""
        for number, old in enumerate(self._trees):
            self._trees[number] = old.successor(old.root, {})
            old.dispose()
            if number == 0 and self._overload is not None:
                self._overload.attach(self._trees[0])

    def _replay(self) -> list[Composites]:
        """Rebuild states from the leaf windows; all living results of each block."""
        results = []
        for tree in self._trees:
            tree.begin_slice(START, END, SLICE, START)
            results.append(
                tree.process({alias: leaf.delta_of_all() for alias, leaf in tree.leaves.items()})
            )
            tree.commit()
        return results
