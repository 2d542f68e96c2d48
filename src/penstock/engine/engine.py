"""The engine of one cell: micro-batches in, results out, exact whatever happens in between.

This is the public surface. It takes what users give, holds signals back while state moves
(:mod:`penstock.kernels.held_signals`), and leaves the work to the running join
(:mod:`penstock.engine.running.running_join`) and to whoever looks after its plan
(:mod:`penstock.engine.running.plan_changes`).
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.engine.control.controller import Controller
from penstock.engine.control.first_plan import first_plan
from penstock.engine.control.plan_event import Action, PlanEvent
from penstock.engine.feedback.feedback import Feedback, Message
from penstock.engine.metrics import Metrics, measure
from penstock.engine.options import Options
from penstock.engine.output.output import empty_table
from penstock.engine.overload.overload import Overload
from penstock.engine.push.dropped import Dropped
from penstock.engine.push.explosion import explosion
from penstock.engine.push.given import conforming
from penstock.engine.push.intake import UnlikeDeclaredError
from penstock.engine.push.pieces import RESULTS_OF_A_PIECE, Pieces
from penstock.engine.recovery.checkpoint import Checkpoint, loading
from penstock.engine.running.either_way import Told, push_within
from penstock.engine.running.plan_changes import PlanChanges
from penstock.engine.running.reference_way import finish
from penstock.engine.running.running_join import RunningJoin
from penstock.engine.running.saved_join import load_join, save_join
from penstock.engine.running.static_refresh import refresh
from penstock.engine.state.clock import START
from penstock.engine.tree.join_tree import JoinTree
from penstock.errors import (
    NotEnoughMemory,
    OptionError,
    PenstockError,
    PenstockWarning,
    TooManyResults,
)
from penstock.kernels.compilation import announce_compilation
from penstock.kernels.held_signals import HELD, uninterrupted
from penstock.plan.plan import EDDIES, Plan
from penstock.query.join_graph import JoinGraph

if TYPE_CHECKING:
    from penstock.planning.statistics import Statistics

_FOR_HOSTS = frozenset(
    {
        "change_plan",
        "note_host",
        "overload_accounts",
        "owes",
        "repeat_decisions",
        "running_plan",
        "sweep",
        "take_over_accounts",
        "trees",
    }
)
"""Names that hosts such as Spark's cells need, and nobody who writes a query."""


class Engine:
    """Runs one query on micro-batches.

    >>> engine = Engine(query, plan="((A B) C)")            # doctest: +SKIP
    >>> table = engine.push({"A": batch_a, "B": batch_b})   # doctest: +SKIP

    ``plan`` is a plan in the notation, a :class:`~penstock.plan.plan.Plan`, ``"auto"``, or an eddy,
    which changes its routes itself: ``"cacq"``, ``"stairs"`` or ``"stairs-lazy"``, alone or before
    the tree that it begins with, ``"stairs ((A B) C)"``.
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
    ``max_results`` is how many results a push may make, before they are grouped: one that would
    make more is refused with :class:`penstock.TooManyResults`, and nothing has changed.
    ``max_halt`` is how long a change of plan may hold up a push: milliseconds, a timedelta, or a
    text such as ``"10 MILLISECONDS"``; by default as long as two pushes have taken lately.

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

    With a limit on memory, the oldest rows of windows go to files on local disk before it breaks,
    and are read from there: the same answers, slower. ``spill_folder`` is where, by default the
    system's folder for temporary files; ``Limits(disk=…)`` is how much, 0 for none.

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
        max_results: int | None = None,
        spill_folder: str | os.PathLike[str] | None = None,
        max_halt: Any = None,
    ) -> None:
        if not isinstance(query, JoinGraph):
            raise OptionError(f"query must come from penstock.parse, not {type(query).__name__}")
        announce_compilation()
        self.query = query
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
            max_results,
            max_halt,
        )
        if self.options.unkept:
            warnings.warn(self.options.unkept, PenstockWarning, stacklevel=2)
        is_given = plan != "auto"
        if plan == "auto" and statistics is not None:
            plan = self._planned(statistics)
        chosen = first_plan(query, plan)
        adapt = self.options.adapt
        control = Controller(
            adapt != "off",
            adapt != "on" and is_given and not chosen.eddy,
            self.options.limits,
            statistics is not None,
        )
        self._join = RunningJoin(query, self.options, chosen, keep_dropped, spill_folder)
        self._changes = PlanChanges(self._join, chosen, control)
        self._converts = False
        """Whether batches are unlike what was declared, and are converted first."""

    # -- the public surface ------------------------------------------------------------------

    @property
    def plan(self) -> Plan:
        """The plan that is running; after :meth:`migrate`, the one that is going to."""
        return self._changes.plan

    @property
    def running_plan(self) -> Plan:
        """The plan that metrics are about: still the old one while a change is prepared."""
        return self._join.plan

    @property
    def routing(self) -> str | None:
        """The kind of eddy that chooses the plan, if one does."""
        return self.plan.eddy or None

    @property
    def schema(self) -> pa.Schema:
        """The schema of the answer."""
        return self.query.schema

    @property
    def watermark(self) -> int | None:
        """No older tuple is expected: in ticks of the query's time unit, None if not known yet."""
        found = self._join.clock.watermark
        return None if found == START else found

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns that the query reads of each source."""
        return {name: source.columns for name, source in self._join.intake.sources.items()}

    @property
    def owes(self) -> bool:
        """Whether probes were put off (``overload="defer"``) and have not been made up for yet."""
        return self._join.owes

    def __repr__(self) -> str:
        """Plan, streams and what was taken in so far."""
        sources = ", ".join(self.query.sources)
        return f"<Engine {self.plan} over {sources}: {self.rows:,} rows taken in>"

    def __dir__(self) -> list[str]:
        """Names for users: completion in a shell offers what is meant to be used."""
        return [n for n in super().__dir__() if not n.startswith("_") and n not in _FOR_HOSTS]

    @property
    def newest(self) -> dict[str, int]:
        """The newest event time of each source that has been seen, in ticks."""
        return dict(self._join.newest)

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
        told = Told(watermark, newest, probes, seconds, again)
        try:
            self._join.intake.check(batches)
            if not self._converts:
                try:
                    self._check_usable()
                    return push_within(self._join, self._changes, batches, told, arrived)
                except UnlikeDeclaredError:
                    self._converts = True
            batches = conforming(batches, self._join.intake.sources)
            self._check_usable()
            return push_within(self._join, self._changes, batches, told, arrived)
        except TooManyResults as problem:
            why = explosion(self.query, batches, problem)
            raise TooManyResults(why, problem.made) from None
        except MemoryError as problem:
            short = NotEnoughMemory(
                f"there is not enough memory for this push ({problem or 'a request was refused'})"
            )
            raise NotEnoughMemory(explosion(self.query, batches, short)) from None
        finally:
            if held:
                HELD.open()

    def push_in_pieces(
        self,
        batches: Mapping[str, Any],
        rows: int = RESULTS_OF_A_PIECE,
        watermark: int | None = None,
        newest: Mapping[str, int] | None = None,
        arrived: int | None = None,
    ) -> Pieces:
        """The results of a push, as an iterator of tables of at most ``rows`` rows.

        For answers that are larger than memory: batches are taken in as the iterator goes on, so
        many rows of them at once as make about a piece, each time a push of its own, so that
        results are in the order of their births inside of each. If asking for a piece fails, or is
        interrupted, nothing has changed, and it can be asked for again. With
        RSTREAM, GROUP BY, ROWS windows and ``overload`` all rows are taken in at once, and only the
        answer is divided. The other arguments are those of :meth:`push`.
        """
        if not isinstance(rows, int) or rows < 1:
            raise OptionError(f"rows of a piece: found {rows!r}, expected a positive integer")
        intake, now = self._join.intake, int(1000 * time.time()) if arrived is None else arrived
        intake.check(batches)
        if isinstance(batches, Mapping):
            batches = conforming(batches, intake.sources)

        def push(some: Mapping[str, Any], is_last: bool) -> pa.Table:
            if is_last:
                return self.push(some, watermark, newest, arrived=now)
            return self.push(some, arrived=now)

        query, policy = self.query, self.options.overload.policy
        depends = query.is_grouped or query.by_rows or query.emission == "rstream"
        divides = policy == "exact" and not depends
        return Pieces(batches, rows, push, intake, divides, divides_instants=not query.minus)

    def note_host(
        self, rows: int, rows_seconds: float, results: int, results_seconds: float
    ) -> None:
        """What a host took after a push, for its rows and for its results: a budget of time that
        holds for both is then divided so that both fit in."""
        if self._join.overload is not None:
            budget = self._join.overload.budget
            budget.note_after("host rows", rows, rows_seconds)
            budget.note_after("host results", results, results_seconds)

    def overload_accounts(self) -> dict[str, Any] | None:
        """Counts and losses of an overload policy, to be kept by a host; None without one."""
        policy = self._join.overload
        return (
            None if policy is None or policy.option.policy == "exact" else policy.repeat.accounts(4)
        )

    def repeat_decisions(
        self, accounts: Mapping[str, Any] | None, rows: Mapping[str, int], from_base: bool
    ) -> None:
        """Make the next push so that another engine can repeat it: what is put off follows from
        ``accounts``, those of the push before, and from no clock.

        ``rows`` are those that the push brings of each source. ``from_base`` if the engine has just
        been restored. If it has not, and the push must put probes off, it raises
        :class:`~penstock.engine.overload.repeat.NeedsBase`.
        """
        if self._join.overload is not None:
            told = {s.alias: rows[s.source] for s in self.query.streams if s.source in rows}
            self._join.overload.repeat.ask(accounts, told, from_base)

    def take_over_accounts(self, accounts: Mapping[str, Any]) -> None:
        """Go on from :meth:`overload_accounts` of the engine that made the pushes which this one
        has only made again."""
        if self._join.overload is not None:
            self._join.overload.repeat.take_over(accounts)

    @uninterrupted
    def refresh(self, relations: Mapping[str, Any]) -> None:
        """Replace all rows of some static relations: ``{"S": table}``.

        What leaves from the next push on is what an engine would give that had the new rows from
        the start and the same rows of streams since. What has left stays as it left: nothing is
        taken back, and nothing leaves only because a relation has changed. In checkpoints the new
        rows are in place of the old ones. With EXCEPT, and while probes are owed, this is refused.
        """
        self._check_usable()
        refresh(self._join, self._changes, relations)

    @uninterrupted
    def finish(self) -> pa.Table:
        """No more tuples will come: what was waiting for time to pass leaves now."""
        self._check_usable()
        ends = self.query.emission != "rstream"
        table = finish(self._join) if ends else empty_table(self.schema)
        self._join.is_finished = True
        self._join.is_broken = False
        return table

    @uninterrupted
    def migrate(self, plan: str | Plan, strategy: str = "auto") -> None:
        """Go on with another plan from the next push on, or (if it needs indexes over long windows
        that nobody has needed so far) as soon as these have been filled, a little with every push.

        ``"jisc"`` completes what the new plan lacks when somebody asks for it, ``"moving-state"``
        does so at once, ``"parallel-track"`` runs both plans until the tuples of now have died.
        ``"auto"`` does so at once if that takes no longer than ``max_halt``, else by JISC.
        The plan is kept until :meth:`unpin`.
        """
        self._set_plan("set", plan, strategy)

    @uninterrupted
    def pin(self, plan: str | Plan | None = None) -> None:
        """Keep the plan that runs, or migrate to ``plan`` and keep that one. An eddy that runs
        holds its routes; one that is given goes on changing them."""
        self._set_plan("pin", plan)

    @uninterrupted
    def undo(self) -> None:
        """Go back to the plan before the last change, and keep it until :meth:`unpin`. An eddy
        whose route is undone holds the one before."""
        change = self._changes.control.to_undo()
        self._set_plan("undo", change.before, holds=change.action == "route")

    def _set_plan(
        self,
        action: Action,
        plan: str | Plan | None,
        strategy: str = "auto",
        holds: bool = False,
    ) -> None:
        """Go over to ``plan``, if one is given, and keep it, because somebody says so. An eddy goes
        on, unless somebody ``holds`` its routes."""
        self._check_usable()
        before = self.plan
        if plan is not None:
            self._changes.change_plan(plan, strategy)
        self._changes.control.pinned = holds or plan is None or not self.plan.eddy
        self._changes.control.note(self._changes, action, before)

    @uninterrupted
    def unpin(self) -> None:
        """Let the controller, or the eddy, change the plan from now on, unless ``adapt`` is
        ``"off"``."""
        self._changes.control.pinned = False
        self._changes.control.note(self._changes, "unpin", self.plan)

    def change_plan(self, plan: str | Plan, strategy: str = "auto") -> None:
        """What :meth:`migrate` does, for hosts that keep the books: nothing is pinned or noted."""
        self._changes.change_plan(plan, strategy)

    @property
    def is_changing(self) -> bool:
        """Whether another plan is being prepared, while the one before it still runs."""
        return self._changes.preparation is not None

    @property
    def is_pinned(self) -> bool:
        """Whether the plan stays, whatever the streams do."""
        return not self._changes.control.is_on

    @property
    def history(self) -> tuple[PlanEvent, ...]:
        """The last changes of the plan, oldest first."""
        return tuple(self._changes.control.changes)

    def drain_events(self) -> list[PlanEvent]:
        """Decisions about the plan since the last call (the latest 256 are kept)."""
        return self._changes.control.drain()

    def silent(self) -> dict[str, float]:
        """Streams that hold all state though others have moved on by several windows: the seconds
        of event time that each is behind the newest. ``idle`` is the remedy."""
        return self._join.silent()

    def drain_dropped(self) -> list[Dropped]:
        """Rows that were late or had no event time, since the last call: with ``keep_dropped``."""
        return self._join.set_aside.drain()

    def metrics(self) -> Metrics:
        """Counts since the start and sizes by now, as nested plain dictionaries."""
        self.sweep()
        join = self._join
        metrics = measure(
            join.counters, join.trees, join.output, join.clock, self.query, join.bytes_of_values
        )
        if join.surpassed is not None:
            metrics["feedback"]["surpassed"] = dict(join.surpassed.gone)
        metrics["control"] = self._changes.control.metrics()
        if self._changes.eddy is not None:
            metrics["control"]["eddy"] = {"kind": self.routing, **self._changes.eddy.to_json()}
        metrics["silent"] = self.silent()
        if join.spilling is not None:
            metrics["state"]["disk"] = join.spilling.metrics()
        if join.overload is not None:
            metrics["overload"] = join.overload.measure()
        return metrics

    def _repr_html_(self) -> str:
        """HTML for a notebook: the plan, and what its parts hold and did."""
        from penstock.explain.html import metrics_html

        return metrics_html(self.plan, self.metrics())

    def statistics(self, pushes: float = 0.0, brief: bool = False) -> Statistics:
        """What the windows and states say about the streams: for :func:`penstock.plan`.

        ``pushes`` is how many there are per second; 0 leaves their fixed cost out. ``brief``
        leaves out what a look can do without: the different values of most keys.
        """
        return self._changes.statistics(pushes, brief)

    def explain(self, analyze: bool = False) -> str:
        """The plan with what it is estimated to cost, and what other plans would.

        With ``analyze``, what was observed stands beside what was estimated.
        """
        # Planners and renderers take their time to load, and a start must be quick.
        from penstock.engine.control.engine_text import engine_text

        return engine_text(
            self, self._changes.control.why(), self.seconds - self._changes.since, analyze
        )

    @property
    def seconds(self) -> float:
        """Event time since the first tuple; on the arrival line, arrivals."""
        return self._join.seconds

    @property
    def rows(self) -> int:
        """Rows taken in since the start."""
        return self._changes.rows

    @property
    def pushes(self) -> int:
        """Pushes since the start."""
        return self._join.counters.pushes

    @property
    def trees(self) -> Sequence[JoinTree]:
        """The running tree of each block."""
        return self._join.trees

    def _planned(self, statistics: Statistics) -> Plan:
        """The plan to start with, from statistics that were given."""
        from penstock.planning.planner import plan

        return plan(self.query, statistics, self.options.limits, join=self.options.join)

    @property
    def messages(self) -> list[Message]:
        """Messages of consumers to producers, if ``feedback`` has ``record=True``."""
        return [message for tree in self._join.trees for message in tree.guarding.messages]

    def checkpoint(self) -> bytes:
        """The leaf windows and the clock, enough to go on from here after a restart."""
        return self._snapshot().to_bytes()

    def checkpoint_parts(self) -> Iterator[bytes | memoryview]:
        """The same a piece of some megabytes at a time, for windows that are larger than memory::

            with open(path, "wb") as file:
                file.writelines(engine.checkpoint_parts())

        The engine must not go on before all of it has been taken.
        """
        snapshot, join, pushes = self._snapshot(), self._join, self.pushes
        for part in snapshot.parts():
            if join is not self._join or pushes != self.pushes:
                raise PenstockError(
                    "the engine took rows in before its checkpoint was written to the end"
                )
            yield part

    @uninterrupted
    def _snapshot(self) -> Checkpoint:
        """Parts of a checkpoint; those of windows are made while it is written."""
        self._check_usable()
        self.sweep()
        return self._saved()

    def _saved(self) -> Checkpoint:
        changes = self._changes
        control = changes.control.to_json()
        if changes.eddy is not None:
            control["eddy"] = changes.eddy.to_json()
        return save_join(self._join, str(self.plan), control)

    @classmethod
    def restore(
        cls,
        query: JoinGraph,
        stored: bytes | memoryview | os.PathLike[str],
        plan: str | Plan | None = None,
        until: int | None = None,
        **options: Any,
    ) -> Engine:
        """The engine of a checkpoint of ``query``, in memory or in a file.

        Its plan is that of the checkpoint, pinned or not as it was; with ``plan="auto"``, or the
        name of the eddy that it had, the same, free to change; else ``plan``, pinned. ``options``
        are other options than it had. With ``until`` (event time in milliseconds) it goes on from
        there: rows that are newer are left out, and so is what they did to the clock. That brings
        back a query whose clock a wrong row has moved far ahead.
        """
        found = Checkpoint.read(stored, query)
        if until is not None:
            found = found.up_to(until * query.ticks_per_millisecond)
        with loading(asks_for_more=bool(options) or plan not in (None, "auto")):
            return cls._loaded(found, plan, options)

    @classmethod
    def _loaded(
        cls, found: Checkpoint, plan: str | Plan | None, options: Mapping[str, Any]
    ) -> Engine:
        """An engine that goes on from ``found``; see :meth:`restore`."""
        header = found.header
        owes = "tree" in header.get("overload", {})
        is_free = plan == "auto" or (plan in EDDIES and header["plan"].startswith(f"{plan} "))
        given = None if is_free else plan
        first = header["plan"] if owes or given is None else given
        engine = cls(found.query, plan=first, **header["options"] | options)
        control = engine._changes.control
        if given is None and "control" in header:
            control.load(header["control"])
            if engine._changes.eddy is not None:
                engine._changes.eddy.load(header["control"].get("eddy", {}))
        if is_free:
            control.pinned = False
        load_join(engine._join, found)
        engine._changes.since = engine.seconds
        if owes and given is not None:
            engine.migrate(given)  # This pays the debt, if the plan is another.
        return engine

    def _check_usable(self) -> None:
        """Raise unless a push can begin; what is torn is made anew."""
        self._join.expiry.let_follow()
        if self._join.is_torn and not self._join.is_broken:
            self._make_anew()
        self._join.check_usable()

    def _make_anew(self) -> None:
        """Make everything anew of the windows, as after a restart; or nothing, if there is no
        memory for it. So a lack of memory behind a push costs time and no answer."""
        join = self._join
        if join.overload is not None and join.overload.owes:
            join.is_broken = True  # What is owed is not in the windows.
            return
        saved = self._saved()
        if join.spilling is None or not join.spilling.files.count:
            stored: bytes | memoryview = saved.to_bytes()
        else:
            stored = saved.in_file(join.spilling.files.folder)
        fresh = type(self).restore(
            self.query, stored, keep_dropped=join.set_aside.keeps, spill_folder=join.spill_folder
        )
        fresh._join.set_aside.take_over(join.set_aside)
        fresh._join.counters = join.counters
        self._join, self._changes = fresh._join, fresh._changes

    @uninterrupted
    def sweep(self) -> None:
        """Let go of what has passed if there may be any."""
        self._join.expiry.catch_up()
