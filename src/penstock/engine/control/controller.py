"""The controller of an engine: statistics to planner to migration, by itself.

After a push it may *look*: :func:`penstock.planning.adaptation.look` prices the plan that runs and
the best there is, and says keep or migrate. This module decides when to look, carries the decision
out, and keeps the books: what was decided, what was pinned, what can be undone.

**When to look.** Before the first push after which every stream has rows the controller looks at
a sample of it (:mod:`penstock.engine.control.coming_batch`): what an engine begins with otherwise
knows nothing, and a fan-out that comes first in ``FROM`` may make one push last minutes. So it does
before a push that is much larger than those before it, and in the middle of one that runs away
(:mod:`penstock.engine.control.runaway`). From then
on by work, not by rows: a look costs milliseconds, and looks have a budget, a hundredth of the CPU
of the pushes; both are measured. While the streams are at rest there is a look now and then, and
budget is saved up. When selectivities change (:mod:`penstock.engine.control.step_watch`) it is
spent: looks follow each other quickly. And when the plan has become dear, so that what it costs
beyond the normal would have paid for a look, there is one whatever the budget: looks never cost
more than what they are to save. After a change the streams go on changing until the windows hold
new tuples alone, and what there is to see is better seen then; so the next look, if the plan does
not become dear, is a window later, when it is known what the change has earned. When a better plan
is known that does not pay yet, the next look is half-way to the time at which it will, if nothing
changes: what there is to gain in between must not eat up the budget. The first looks come early.

**Bursts.** Statistics are smoothed twice: over a small part of a window, which is what the next
pushes will cost, and over several windows, which is what they cost in the long run. What pays only
by the first is left to the credit (:mod:`penstock.planning.adaptation`).

**What is kept.** The plan that somebody gave is kept until he lets go of it (:meth:`unpin`); a plan
that nobody gave is changed when that pays. Answers do not depend on plans, so nothing that goes
wrong here may stop the query: a controller that fails says so and does nothing from then on.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from penstock.engine.control.limit_watch import FAR, LimitWatch
from penstock.engine.control.plan_event import Action, PlanEvent
from penstock.engine.control.runaway import LARGE, LOOKS, Pushes, Watch, bound_of
from penstock.engine.control.step_watch import StepWatch
from penstock.engine.migration.strategy_choice import StrategyChoice, corrected
from penstock.engine.options import Options
from penstock.engine.tree.join_tree import JoinTree
from penstock.errors import PenstockError
from penstock.plan.plan import Plan, write
from penstock.planning.limits import Limits, size_text
from penstock.query.join_graph import JoinGraph

if TYPE_CHECKING:
    from penstock.engine.control.coming_batch import Coming
    from penstock.engine.control.observed_costs import ObservedCosts
    from penstock.planning.adaptation import Decision, Memory
    from penstock.planning.lessons import Measured
    from penstock.planning.statistics import Statistics
    from penstock.planning.unit_costs import UnitCosts

SHARE = 0.01
"""Looks may cost this share of the CPU."""
SAVED = 8.0
"""Looks that can be saved up, at most."""
AFTER_FIRST = 1.0
"""Looks that may follow the one before the first push, before any work has paid for them."""
SECOND = 1 / 20
"""The share of the usual wait before the second look, at least, if the first was before the first
push: windows that fill look like streams that change."""
STREAMS_OF_A_CHEAP_LOOK = 4
"""Streams up to which that share holds; with more it grows with their square, as the price of a
look does: a look that is dear must not be a large part of a run that is short."""
AT_REST = 4.0
"""While nothing changes, looks are so many times rarer than the budget allows."""
AT_ONCE = 1 / 64
"""The share of the usual wait between looks when something changes, as long as the budget lasts."""
PATIENCE = 4.0
"""Times longer after each look in a row that changed nothing."""
FOLLOW_UP = 8.0
"""Looks whose work passes before it is seen what a change has earned: that is part of its cost."""
LEAST_ROWS = 1024
"""No look before so many rows have come."""
FIRST_ROWS = 256
"""Rows of a first batch that are worth a look before it is joined."""
GLANCE_WORK = 5e-4
"""CPU seconds of pushes, for each stream, after which counts are compared: fifty times what that
takes."""
GLANCE_PUSHES = 256
"""Pushes after which they are compared in any case."""
SETTLING = 1 / 32
"""Statistics follow the streams within this share of the longest window."""
USUAL = 4.0
"""Windows over which statistics are those of the long run."""
LEAST_PRICE = 5e-4
"""CPU seconds of a look at least."""
_KEPT_CHANGES = 32
_KEPT_EVENTS = 256
_TABLES = (pa.RecordBatch, pa.Table)
_LOOK = 1e-3
_LOOK_PER_STREAM = 1e-3
"""CPU seconds of a look, about, until one has been measured."""


class Controlled(Protocol):
    """The engine, as far as a controller has to do with it."""

    query: JoinGraph
    options: Options
    by_rows: bool
    """Whether time is the arrival line."""

    @property
    def plan(self) -> Plan:
        """The plan that runs, or is going to."""

    @property
    def plan_with_orders(self) -> Plan:
        """The plan, with the probe orders that its mjoins have."""

    @property
    def trees(self) -> Sequence[JoinTree]:
        """The running tree of each block."""

    @property
    def seconds(self) -> float:
        """Event time since the first row, in seconds."""

    @property
    def rows(self) -> int:
        """Rows taken in since the start."""

    @property
    def pushes(self) -> int:
        """Pushes since the start."""

    @property
    def results(self) -> int:
        """Rows of the answer since the start."""

    @property
    def stream_count(self) -> int:
        """Streams of the largest block of the query."""

    @property
    def held_rows(self) -> int:
        """Rows of streams in all windows."""

    @property
    def has_seen_all(self) -> bool:
        """Whether every window has a row."""

    @property
    def nbytes(self) -> int:
        """Bytes of all windows and states, and of what is held above them."""

    @property
    def disk_bytes(self) -> int:
        """Bytes of windows that are in files, not in memory."""

    @property
    def disk_bytes_of_states(self) -> int:
        """Bytes of states of joins that are in files, not in memory."""

    def spill(self) -> str:
        """Move rows to disk until a limit on memory holds; why not, if that was refused."""

    def sweep(self) -> None:
        """Let go of what has passed."""

    def statistics(self, pushes: float = 0.0, brief: bool = False) -> Statistics:
        """What was observed of the streams."""

    def coming_statistics(self, batches: Mapping[str, Any]) -> Coming | None:
        """What a batch says about the streams before it is joined; None if that is not enough."""

    def change_shape(self, plan: str) -> None:
        """Migrate, without a note in the books."""

    def change_at_once(self, plan: str) -> None:
        """The same, for the push at hand."""

    @property
    def choice(self) -> StrategyChoice | None:
        """How the latest change is carried out; None while it is prepared."""


class Controller:
    """Controls the plan of one engine."""

    clock: Callable[[], float] = staticmethod(time.thread_time)
    """CPU seconds of this thread."""

    def __init__(
        self, adapt: bool, pinned: bool, limits: Limits | None, is_planned: bool = False
    ) -> None:
        """``is_planned`` if the plan was made of statistics that somebody gave."""
        self.adapt = adapt
        self.pinned = pinned
        self.limits = limits or Limits()
        self.changes: deque[PlanEvent] = deque(maxlen=_KEPT_CHANGES)
        self.events: deque[PlanEvent] = deque(maxlen=_KEPT_EVENTS)
        self.latest: PlanEvent | None = None
        """The controller's latest decision."""
        self.looks = 0
        self.looks_cpu = 0.0
        """CPU seconds of all looks since the start."""
        self.migrations = 0
        self.taken_back = 0
        """Pushes that ran away, and were made once more after a look."""
        self.has_limits = self.limits.cpu is not None or self.limits.memory is not None
        """Whether anything is measured and compared after each push."""
        self._measures = LimitWatch(self.limits)
        self._is_over = False
        """Whether a measured limit has been exceeded since the last look."""
        self._is_near = False
        """Whether one has been about to break since then."""
        self._told: tuple[str, ...] = ()
        """The measured limits that the latest event said are exceeded."""
        self._refused = ""
        """Why rows could not go to disk, as the latest event said."""
        self._has_begun = is_planned
        """Whether there is a plan that somebody or something has chosen."""
        self._latest_pushes = Pushes()
        self._watch = StepWatch()
        self._rows = 0
        """Rows since the last glance."""
        self._pushes = 0
        self._since_glance = 0.0
        """CPU seconds of pushes since the last glance."""
        self._work = 0.0
        """CPU seconds of pushes since the last look."""
        self._spent = 0.0
        """CPU seconds of all pushes since the last look."""
        self._price = 0.0
        """CPU seconds of a look, as measured lately; 0 before the first."""
        self._budget = SAVED
        """Looks that may be taken now."""
        self._urgent = True
        """Whether there is something to look at."""
        self._wait = AT_ONCE
        """The share of the usual wait after which to look at it."""
        self._follow_up = math.inf
        """Seconds of event time at which to see what the last change has earned: a window later."""
        self._repaid = math.inf
        """Seconds of event time at which to see whether a better plan repays the change by now."""
        self._last: tuple[float, int] | None = None
        """Seconds of event time, and pushes, at the last look."""
        self._memory: Memory | None = None
        self._statistics: Statistics | None = None
        self._usual: Statistics | None = None
        """Statistics over several windows."""
        self._costs: UnitCosts | None = None
        """CPU seconds of operations on this machine, as calibrated."""
        self._observed: ObservedCosts | None = None
        """What they are in this query."""
        self._unobserved = 0.0
        """CPU seconds of pushes that it does not know of."""
        self._priced = 0.0
        """CPU seconds that its latest change was priced at; 0 when it is known what it cost."""
        self._price_ratio = 1.0
        """What its changes have cost over their prices, lately."""
        self._window = 0.0
        """The longest, in seconds, at the last look."""

    @property
    def is_on(self) -> bool:
        """Whether it may change the plan."""
        return self.adapt and not self.pinned

    # -- the books ---------------------------------------------------------------------------

    def note(
        self,
        engine: Controlled,
        action: Action,
        before: Plan,
        reason: str = "",
        numbers: Mapping[str, float] | None = None,
    ) -> None:
        """Somebody else has decided about the plan, for the reason and the ``numbers`` given."""
        event = PlanEvent(
            action,
            write(before),
            write(engine.plan),
            engine.seconds,
            engine.rows,
            reason,
            numbers=numbers or {},
        )
        self._add(_carried_out(event, engine.choice) if event.is_change else event)
        if event.is_change:
            self._priced = 0.0
        if self._memory is not None:
            self._memory = self._memory.afresh(event.at)

    def note_choice(self, engine: Controlled, choice: StrategyChoice) -> None:
        """A change that was prepared takes place, like this."""
        plan = write(engine.plan)
        event = PlanEvent("begin", plan, plan, engine.seconds, engine.rows, "it was prepared")
        self._add(_carried_out(event, choice))
        if self.changes and self.changes[-1].plan == plan:
            self.changes[-1] = _carried_out(self.changes[-1], choice)

    def note_cost(
        self, engine: Controlled, priced: float, cost: float, pushes: int, is_finished: bool
    ) -> None:
        """The latest change has ``cost`` so many CPU seconds, until ``pushes`` later nothing was
        missing any more, or another change overtook it."""
        if is_finished and self._priced > 0:
            self._price_ratio = corrected(self._price_ratio, cost / self._priced)
        self._priced = 0.0
        plan = write(engine.plan)
        numbers = {"priced": priced, "cost": cost, "pushes": float(pushes)}
        action: Action = "complete" if is_finished else "overtaken"
        reason = "nothing is missing any more" if is_finished else "another change came first"
        at, rows = engine.seconds, engine.rows
        self._add(PlanEvent(action, plan, plan, at, rows, reason, numbers=numbers))

    def _add(self, event: PlanEvent) -> None:
        self.events.append(event)
        if event.is_change:
            self.changes.append(event)

    def drain(self) -> list[PlanEvent]:
        """The events since the last call."""
        drained = list(self.events)
        self.events.clear()
        return drained

    def to_undo(self) -> PlanEvent:
        """The last change."""
        if not self.changes:
            raise PenstockError("there is nothing to undo: the plan has not been changed")
        return self.changes[-1]

    def why(self) -> str:
        """Why the plan is what it is."""
        pinned = "" if self.is_on else "; it stays" if self.adapt else "; adapt is off"
        if not self.changes:
            return f"the plan that the engine started with{pinned}"
        last = self.changes[-1]
        words = {
            "set": "changed by hand",
            "pin": "pinned by hand",
            "undo": "the last change was undone",
            "route": f"routed by the eddy: {last.reason}",
        }
        reason = words.get(last.action, f"chosen by the controller: {last.reason}")
        how = f", by {last.strategy}: {last.strategy_reason}" if last.strategy else ""
        return f"{reason}, at {last.at:g} s, after {last.before}{how}{pinned}"

    @property
    def exceeded(self) -> tuple[str, ...]:
        """The limits that are exceeded now: as measured, or by the model where nothing is yet."""
        over, known = self._measures.over, self._measures.known
        modelled = () if self.latest is None else self.latest.exceeded
        return tuple(
            name
            for name in ("cpu", "memory")
            if name in over or (name in modelled and name not in known)
        )

    def metrics(self) -> dict[str, Any]:
        latest = self.latest
        return {
            "adapt": self.adapt,
            "pinned": self.pinned,
            "looks": self.looks,
            "looks_cpu": self.looks_cpu,
            "migrations": self.migrations,
            "taken_back": self.taken_back,
            "limits": self.limits.to_json(),
            "exceeded": list(self.exceeded),
            "latest": None if latest is None else latest.to_json(),
            "changes": [change.to_json() for change in self.changes],
        }

    def to_json(self) -> dict[str, Any]:
        """What a restart has to know."""
        return {
            "pinned": self.pinned,
            "looks": self.looks,
            "migrations": self.migrations,
            "changes": [change.to_json() for change in self.changes],
            "memory": None if self._memory is None else self._memory.to_json(),
        }

    def load(self, values: Mapping[str, Any]) -> None:
        """Go on from what :meth:`to_json` wrote down."""
        self.pinned = values["pinned"]
        self.looks, self.migrations = values["looks"], values["migrations"]
        self._has_begun |= self.looks > 0
        self.changes.extend(PlanEvent.from_json(each) for each in values["changes"])
        if values["memory"] is not None:
            from penstock.planning.adaptation import Memory

            self._memory = Memory.from_json(values["memory"])

    # -- costs -------------------------------------------------------------------------------

    def note_push(self, seconds: float) -> None:
        """A push took so many CPU seconds."""
        self._unobserved += seconds

    def observed_costs(self, engine: Controlled) -> UnitCosts | None:
        """What operations cost in this query, by kind of work; None if not enough was seen."""
        # Planners take their time to load, and a start must be quick.
        from penstock.engine.control.observed_costs import ObservedCosts

        if self._observed is None:
            self._observed = ObservedCosts()
        self._observed.note(self._unobserved)
        self._unobserved = 0.0
        factor = self._observed.look(engine)
        if self._memory is not None and factor != 1:
            self._memory = self._memory.repriced(factor)
        return self._observed.costs

    # -- looking -----------------------------------------------------------------------------

    def is_large(self, batches: Mapping[str, Any]) -> bool:
        """Whether ``batches`` are worth a look before they are joined, or while they are."""
        return _rows(batches) >= FIRST_ROWS

    def before_push(self, engine: Controlled, batches: Mapping[str, Any]) -> None:
        """Large ``batches`` come next: look at a sample of them, if there is no plan yet that was
        chosen for such, or if they are many more than the latest."""
        rows = _rows(batches)
        if not self._has_begun:
            if not engine.has_seen_all or rows >= LARGE * engine.held_rows:
                self._trying(engine, lambda: self._first_look(engine, batches))
        elif rows >= LARGE * self._latest_pushes.largest > 0:
            normal = self._latest_pushes.cost_of(rows)
            if normal is not None and normal >= LOOKS * self._look_price(engine):
                self._trying(engine, lambda: self._look_ahead(engine, batches))

    def watch_over(self, engine: Controlled, batches: Mapping[str, Any]) -> Watch | None:
        """What is to be called while large ``batches`` are joined; None if they may cost any
        amount."""
        if not engine.has_seen_all:
            return None
        normal = self._latest_pushes.cost_of(_rows(batches))
        bound = bound_of(normal, self._look_price(engine))
        return None if math.isinf(bound) else Watch(bound, self.clock)

    def look_at_runaway(self, engine: Controlled, batches: Mapping[str, Any]) -> None:
        """Joining ``batches`` was dearer than it may be, and was taken back: look at them."""
        self.taken_back += 1
        self._tell(engine, "a push ran away: it is taken back, looked at and made once more")
        self._trying(engine, lambda: self._look_ahead(engine, batches))

    def after_push(self, engine: Controlled, rows: int, seconds: float) -> None:
        """``rows`` were pushed, in so many CPU seconds; look, if it is time to."""
        if not self.is_on:
            return
        self._latest_pushes.note(rows, seconds)
        self._rows += rows
        self._pushes += 1
        self._since_glance += seconds
        self._spent += seconds
        enough = 0.0 if self._is_over or self._is_near else GLANCE_WORK * engine.stream_count
        if self._since_glance < enough and self._pushes < GLANCE_PUSHES:
            return
        if self._is_due(engine):
            self._trying(engine, lambda: self._look(engine))

    def measure(self, engine: Controlled, spent: float) -> None:
        """Compare what a push has used, which took ``spent`` CPU seconds, with the limits."""
        watch, most = self._measures, self.limits.memory
        nbytes = None
        if most is not None:
            nbytes = engine.nbytes
            if nbytes > most:  # Rows that have passed may be held until somebody sweeps.
                engine.sweep()
                nbytes = engine.nbytes
        watch.note(None if engine.by_rows else engine.seconds, spent, nbytes)
        news = set(watch.over) - set(self._told)
        # With rows on disk, memory is full again and again: that is no reason to look each time.
        no_news = {"memory"} if engine.disk_bytes else set()
        self._is_over |= bool(news - no_news)
        self._is_near |= bool(watch.approached() - no_news)

    def keep_limits(self, engine: Controlled) -> None:
        """Whatever could be done about the plan is done: move rows to disk, if memory is still too
        short; tell when a limit breaks, or holds again."""
        watch = self._measures
        if self.limits.memory is not None:
            before, of_states = engine.disk_bytes, engine.disk_bytes_of_states
            refused = engine.spill()
            # A plan that stores less is better than states on disk.
            self._is_over |= not of_states and engine.disk_bytes_of_states > 0
            watch.note_memory(engine.nbytes)
            if not before and engine.disk_bytes:
                self._tell(engine, f"memory is full: {size_text(engine.disk_bytes)} go to disk")
            if refused and refused != self._refused:
                self._tell(engine, f"memory is full, and no more rows go to disk: {refused}")
            self._refused = refused
        if watch.over != self._told:
            self._told = watch.over
            self._tell(engine, f"measured: {watch.in_words() or 'within the limits again'}")

    def _tell(self, engine: Controlled, reason: str) -> None:
        """Put what was measured on record; the plan stays."""
        watch = self._measures
        numbers = {"cpu": watch.cpu, "memory": watch.memory}
        plan = write(engine.plan)
        self._add(
            PlanEvent(
                "keep",
                plan,
                plan,
                engine.seconds,
                engine.rows,
                reason,
                None,
                watch.over,
                {name: float(value) for name, value in numbers.items() if value is not None},
            )
        )

    def _trying(self, engine: Controlled, look: Callable[[], Decision | None]) -> None:
        """Carry out what ``look`` decides. A plan is never worth a query: if it fails, the
        controller stops."""
        began = self.clock()
        try:
            decision = look()
        except Exception as problem:
            self.stop(engine, problem)
            return
        if decision is None:
            return
        took = max(LEAST_PRICE, self.clock() - began)
        self.looks_cpu += took
        self._price = took if self._price == 0 else (self._price + took) / 2
        self._carry_out(engine, decision)

    def stop(self, engine: Controlled, problem: Exception) -> None:
        """Leave the plan as it is from now on, because of ``problem``."""
        self.adapt = False
        plan, what = write(engine.plan), f"{type(problem).__name__}: {problem}"
        reason = f"the {'eddy' if engine.plan.eddy else 'controller'} has stopped: {what}"
        self.latest = PlanEvent("fail", plan, plan, engine.seconds, engine.rows, reason)
        self._add(self.latest)

    def _is_due(self, engine: Controlled) -> bool:
        """Glance at the counts: whether it is time to look."""
        changed, excess = self._watch.glance(engine.trees, self._rows)[1:]
        work, self._since_glance = self._since_glance, 0.0
        self._rows = self._pushes = 0
        price = self._look_price(engine)
        interval = price / SHARE
        self._work += work
        self._budget = min(SAVED, self._budget + work / interval)
        self._urgent |= changed
        if self._work >= interval / 4:
            self._wait = AT_ONCE
        wait = self._wait if self._urgent else AT_REST
        if self._has_begun and self.looks == 1:
            wait = max(
                wait, SECOND * max(1.0, (engine.stream_count / STREAMS_OF_A_CHEAP_LOOK) ** 2)
            )
        settled = math.isinf(self._follow_up) or engine.seconds >= self._follow_up
        affordable = (
            settled
            and self._budget >= 1
            and (self._work >= wait * interval or engine.seconds >= self._repaid)
        )
        owed = engine.seconds >= self._follow_up and self._work >= FOLLOW_UP * price
        return (
            (affordable or owed or excess >= price or self._is_over or self._is_near)
            and engine.rows >= LEAST_ROWS
            # Nothing is known about a stream that has not come: whatever one plans is guessed.
            and engine.has_seen_all
        )

    def _look_price(self, engine: Controlled) -> float:
        """CPU seconds of a look."""
        return self._price or _LOOK + _LOOK_PER_STREAM * engine.stream_count

    def _first_look(self, engine: Controlled, batches: Mapping[str, Any]) -> Decision | None:
        coming = engine.coming_statistics(batches)
        if coming is None:
            return None
        from penstock.planning.adaptation import first_look
        from penstock.planning.calibrated import calibrated_costs
        from penstock.planning.problem import Problem

        self._has_begun = True
        self._budget = min(self._budget, AFTER_FIRST)
        self._costs = calibrated_costs()
        problem = Problem(engine.query, coming.statistics, self._costs, join=engine.options.join)
        self.looks += 1
        return first_look(problem, engine.plan_with_orders, self.limits)

    def _look_ahead(self, engine: Controlled, batches: Mapping[str, Any]) -> Decision | None:
        coming = engine.coming_statistics(batches)
        if coming is None:
            return None
        from penstock.planning.adaptation import Memory, look_ahead
        from penstock.planning.calibrated import calibrated_costs
        from penstock.planning.problem import Problem

        self._costs = self._costs or calibrated_costs()
        costs = self.observed_costs(engine) or self._costs
        problem = Problem(engine.query, coming.statistics, costs, join=engine.options.join)
        self.looks += 1
        decision = look_ahead(
            problem,
            engine.plan_with_orders,
            self._limits_of_plans(engine),
            coming.seconds,
            self._price_ratio,
        )
        if decision.action == "migrate":
            now = engine.seconds
            self._memory = (self._memory or Memory()).afresh(now)
            self._follow_up = now + max(self._window, coming.seconds)
            self._spent = 0.0
            decision = replace(decision, at=now)
        return decision

    def _look(self, engine: Controlled) -> Decision:
        # Planners take their time to load, and a start must be quick.
        from penstock.planning.adaptation import NOT_YET, Memory, longest_window, look
        from penstock.planning.calibrated import calibrated_costs
        from penstock.planning.problem import Problem
        from penstock.planning.smoothing import smoothed

        engine.sweep()
        now, pushes = engine.seconds, engine.pushes
        before = self._last or (0.0, 0)
        elapsed = now - before[0]
        rate = (pushes - before[1]) / elapsed if elapsed > 0 else 0.0
        fresh = engine.statistics(pushes=rate, brief=True)
        together = self._watch.seen_together(engine.trees)
        # Counts of steps know more than samples, and states more than counts.
        states = {each: share for each, share in fresh.observed.items() if each in fresh.sizes}
        fresh = replace(fresh, observed={**fresh.observed, **together, **states})
        if self._statistics is not None and self._window > 0:
            weight = elapsed / (elapsed + SETTLING * self._window)
            usual = smoothed(self._usual, fresh, elapsed / (elapsed + USUAL * self._window))
            fresh = smoothed(self._statistics, fresh, weight)
        else:
            usual = fresh
        if self.looks == 0:
            self._costs = calibrated_costs()
        costs = fresh.costs or self._costs
        problem = Problem(engine.query, fresh, costs, join=engine.options.join)
        window = self._window = longest_window(problem)
        in_the_long_run = None
        if now >= USUAL * window:
            in_the_long_run = Problem(engine.query, usual, costs, join=engine.options.join)
        decision, self._memory = look(
            problem,
            engine.plan_with_orders,
            self._limits_of_plans(engine),
            self._memory or Memory(),
            now,
            in_the_long_run,
            self._measured(engine, elapsed),
            self._price_ratio,
        )
        if self._is_near and not self._measures.over:  # It is not, and was only to be kept off.
            decision = replace(decision, exceeded=())
        self._spent = 0.0
        self._statistics, self._usual = fresh, usual
        self._last = (now, pushes)
        self._work = 0.0
        self._budget = max(0.0, self._budget - 1)
        self._watch.reset()
        self.looks += 1
        self._urgent = self._is_over = self._is_near = False
        self._wait = min(AT_REST, self._wait * PATIENCE)
        self._repaid = math.inf
        if decision.reason == NOT_YET:
            self._repaid = now + decision.shortfall / (2 * decision.gain)
        if decision.action == "migrate":
            self._follow_up = now + window
        elif now >= self._follow_up:
            self._follow_up = math.inf
        return decision

    def _bytes(self, engine: Controlled) -> int:
        """Bytes that the plan needs, wherever they are."""
        return engine.nbytes + engine.disk_bytes + engine.disk_bytes_of_states

    def _limits_of_plans(self, engine: Controlled) -> Limits:
        """What a plan may use: windows on disk are part of what it needs, and take no memory. Less
        than that, if a limit is about to break."""
        cpu, most = self.limits.cpu, self.limits.memory
        if most is not None:
            most += engine.disk_bytes
        if self._is_near:  # What runs has no room left: it is to be left as if it were over.
            cpu = None if cpu is None else FAR * cpu
            most = None if most is None else int(FAR * most)
        return Limits(cpu, most, self.limits.probes)

    def _measured(self, engine: Controlled, elapsed: float) -> Measured:
        """What the plan has cost since the last look, if the windows were full and all states
        complete."""
        from penstock.planning.lessons import Measured

        now = engine.seconds
        is_full = now >= self._window
        calm = is_full and (math.isinf(self._follow_up) or now >= self._follow_up + elapsed)
        return Measured(
            self._spent / elapsed if calm and elapsed > 0 else None,
            self._bytes(engine)
            if is_full or self._is_near or "memory" in self._measures.over
            else None,
        )

    def _carry_out(self, engine: Controlled, decision: Decision) -> None:
        from penstock.planning.adaptation import AHEAD, FIRST

        before = write(engine.plan)
        if decision.action == "migrate":
            if decision.reason in (FIRST, AHEAD):
                engine.change_at_once(decision.rival)
            else:
                engine.change_shape(decision.rival)
            self.migrations += 1
        numbers = {
            name: value
            for name, value in asdict(decision).items()
            if isinstance(value, float) and name != "at"
        }
        event = PlanEvent(
            decision.action,
            before,
            write(engine.plan),
            decision.at,
            engine.rows,
            decision.reason,
            None if decision.rival == decision.plan else decision.rival,
            decision.exceeded,
            numbers,
        )
        if event.is_change:
            event = _carried_out(event, engine.choice)
            self._priced = decision.cost
        # To find once more that all is well is no news.
        known = self.latest is not None and self.latest.exceeded == event.exceeded
        if event.is_change or event.rival is not None or event.exceeded or not known:
            self._add(event)
        self.latest = event


def _carried_out(event: PlanEvent, choice: StrategyChoice | None) -> PlanEvent:
    """``event`` with how its change is carried out."""
    if choice is None:
        return event
    numbers = {**event.numbers, **choice.numbers()}
    return replace(event, strategy=choice.strategy, strategy_reason=choice.reason, numbers=numbers)


def _rows(batches: Any) -> int:
    """Rows of ``batches``; 0 if they are no tables, or not yet."""
    if not isinstance(batches, Mapping):
        return 0
    tables = [each for each in batches.values() if isinstance(each, _TABLES)]
    return sum(map(len, tables)) if len(tables) == len(batches) else 0
