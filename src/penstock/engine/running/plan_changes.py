"""Changes of the plan of a running join: who decides, what is prepared, when the new plan runs.

A plan is changed by whoever calls :meth:`PlanChanges.change_plan`, by the controller
(:mod:`penstock.engine.control.controller`) or by an eddy (:mod:`penstock.engine.control.eddy`).
A new plan runs from the next push on, unless it needs indexes over long windows that nobody has had
so far: these are filled beside some pushes of the old plan. Everything else that is missing is
completed on demand (JISC), at once, or by running both plans
(:mod:`penstock.engine.migration.change_of_plan`); by which of them is chosen from what each would
cost (:mod:`penstock.engine.migration.strategy_choice`), and what it did cost is learnt from.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.engine.completion.first_use import load_kernels
from penstock.engine.completion.trial import Trial, Work
from penstock.engine.control.controller import Controller
from penstock.engine.control.eddy import Eddy
from penstock.engine.control.first_plan import first_plan
from penstock.engine.join.join_order import with_orders
from penstock.engine.migration.change_of_plan import (
    AUTO,
    STRATEGIES,
    check_strategy,
    reroute,
)
from penstock.engine.migration.preparation import KeptIndexes, Preparation, prepare
from penstock.engine.migration.strategy_choice import (
    NOTHING_MISSING,
    ChangeCosts,
    Prices,
    StrategyChoice,
)
from penstock.engine.running.push_clock import PushClock
from penstock.engine.running.running_join import RunningJoin
from penstock.engine.state.working_memory import NO_ROOM
from penstock.engine.tree.join_tree import JoinTree
from penstock.kernels.held_signals import uninterrupted
from penstock.plan.plan import Plan

if TYPE_CHECKING:
    from penstock.engine.control.coming_batch import Coming
    from penstock.engine.control.runaway import Watch
    from penstock.planning.statistics import Statistics


@dataclass
class _Bill:
    """Cost of a change of plan, in CPU seconds."""

    strategy: str
    prices: Prices
    priced: float
    """CPU seconds that it was expected to cost before anything was tried."""
    began: float
    """CPU seconds that all changes had cost before it."""
    pushes: int = 0


class PlanChanges:
    """Looks after the plan of one running join."""

    def __init__(self, join: RunningJoin, plan: Plan, control: Controller) -> None:
        self._join = join
        self.query = join.query
        self.options = join.options
        self.control = control
        self.by_rows = join.by_rows
        self.clock = PushClock()
        self.eddy = Eddy(plan.eddy) if plan.eddy else None
        """The part that chooses and changes the routes, if the plan is an eddy."""
        self._plan = plan
        self.since = 0.0
        """Event time at which the plan began to run, in seconds."""
        self.preparation: Preparation | None = None
        """The change that is prepared, while the plan before it still runs."""
        self._has_loaded = False
        """Whether the kernels of completing are loaded."""
        self._kept = KeptIndexes()
        """Indexes for the changes to come."""
        halt = join.options.max_halt
        self.costs = ChangeCosts(None if halt is None else halt / 1000)
        self.choice: StrategyChoice | None = None
        """Strategy of the latest change; None while it is prepared."""
        self._bill: _Bill | None = None
        """Bill of the latest change, until nothing is missing and no older plan runs beside."""

    # -- what a controller sees --------------------------------------------------------------

    @property
    def plan(self) -> Plan:
        """The plan that runs, or is going to."""
        return self._plan

    @property
    def plan_with_orders(self) -> Plan:
        """The plan, with the probe orders that its mjoins have."""
        roots = [
            with_orders(tree.root, wiring)
            for tree, wiring in zip(self._join.trees, self._join.wirings, strict=True)
        ]
        return self._join.plan_of(roots)

    @property
    def trees(self) -> Sequence[JoinTree]:
        """The running tree of each block."""
        return self._join.trees

    @property
    def seconds(self) -> float:
        """Event time since the first row, in seconds."""
        return self._join.seconds

    @property
    def rows(self) -> int:
        """Rows taken in since the start."""
        return sum(self._join.counters.rows.values())

    @property
    def pushes(self) -> int:
        """Pushes since the start."""
        return self._join.counters.pushes

    @property
    def results(self) -> int:
        """Rows of the answer since the start."""
        return self._join.counters.results

    @property
    def stream_count(self) -> int:
        """Streams of the largest block of the query."""
        return max(len(leaves) for leaves in self._join.leaves)

    @property
    def held_rows(self) -> int:
        """Rows of streams in all windows."""
        return sum([len(each.rows) for each in self._join.all_leaves if not each.stream.is_static])

    @property
    def has_seen_all(self) -> bool:
        """Whether every window has a row."""
        return all(len(leaf.rows) for leaves in self._join.leaves for leaf in leaves.values())

    @property
    def nbytes(self) -> int:
        """Bytes of all windows and states in memory, and of what is held above them."""
        return self._join.nbytes

    @property
    def disk_bytes(self) -> int:
        """Bytes of windows that are in files, not in memory."""
        spilling = self._join.spilling
        return 0 if spilling is None else spilling.windows_away

    @property
    def disk_bytes_of_states(self) -> int:
        """Bytes of states of joins that are in files, not in memory."""
        spilling = self._join.spilling
        return 0 if spilling is None else spilling.states_away

    def spill(self) -> str:
        """Move rows to disk until a limit on memory holds; why not, if that was refused."""
        spilling = self._join.spilling
        if spilling is None:
            return ""
        spilling.keep_within(lambda: self.nbytes)
        return spilling.files.refused

    @uninterrupted
    def sweep(self) -> None:
        """Let go of what has passed."""
        self._join.expiry.catch_up()

    def statistics(self, pushes: float = 0.0, brief: bool = False) -> Statistics:
        """What the windows and states say about the streams; see ``Engine.statistics``."""
        # Planners take their time to load, and a start must be quick.
        from penstock.engine.control.observed_statistics import observed_statistics

        join = self._join
        self.sweep()
        thin = join.overload is not None and join.overload.is_thin
        costs = self.control.observed_costs(self)
        return observed_statistics(
            join.query, join.trees, join.wirings, join.clock, pushes, thin, costs, brief
        )

    def coming_statistics(self, batches: Mapping[str, Any]) -> Coming | None:
        """What ``batches`` that come next say about the streams; None if that is not enough."""
        from penstock.engine.control.coming_batch import coming_statistics

        join = self._join
        return coming_statistics(join.query, join.wirings, join.intake, join.windows, batches)

    # -- a change ----------------------------------------------------------------------------

    def change_shape(self, plan: str) -> None:
        """Go on with the trees of ``plan``, which has the blocks as the query has them, subtracted
        in the order that there is."""
        chosen = first_plan(self._join.query, plan, self._plan)
        self.change_plan(chosen.subtracting_in(self._plan.places_in(self._join.query)))

    def change_plan(self, plan: str | Plan, strategy: str = AUTO) -> None:
        """Go on with ``plan`` as soon as can be; nothing is pinned, and no note is made."""
        check_strategy(strategy, self._join.trees)
        chosen = first_plan(self._join.query, plan, self._plan)
        if chosen != self._plan:
            self._join.pay_all()  # If there is no memory for that, nothing has changed.
        self._plan = chosen
        self.since = self._join.seconds
        if self.eddy is None or self.eddy.kind != chosen.eddy:
            self.eddy = Eddy(chosen.eddy) if chosen.eddy else None
        self.choice = None
        self._begin(strategy)
        if self.eddy is not None:
            self.eddy.begin_period(self._join.trees)

    def change_at_once(self, plan: str) -> None:
        """:meth:`change_shape` for the push at hand: nothing is prepared beside other pushes."""
        self.change_shape(plan)
        while self.preparation is not None:
            self._prepare(self.preparation, self.rows)

    def before_push(self, batches: Mapping[str, Any]) -> None:
        """``batches`` come next."""
        control = self.control
        if control.is_on and control.is_large(batches) and self._may_change:
            with self._join.tearing:
                control.before_push(self, batches)

    def watch_over(self, batches: Mapping[str, Any]) -> Watch | None:
        """What is to be called while ``batches`` are joined, as they may run away; None if nothing
        would be done about it."""
        join, control = self._join, self.control
        if join.overload is not None or not control.is_on or not control.is_large(batches):
            return None
        if not self._may_change or any(tree.missing for tree in join.trees):
            return None
        return control.watch_over(self, batches)

    def look_at_runaway(self, batches: Mapping[str, Any]) -> None:
        """Joining ``batches`` has cost more than it may, and was taken back."""
        with self._join.tearing:
            self.control.look_at_runaway(self, batches)

    @property
    def _may_change(self) -> bool:
        """Whether the controller may change the plan before the next push."""
        join = self._join
        return self.eddy is None and self.preparation is None and not (join.is_torn or join.owes)

    def after_push(self, rows: int, seconds: float) -> None:
        """A push of ``rows`` is done, in so many CPU seconds: look after the plan.

        While probes are owed, another plan would have to make all of them at once. So nothing is
        decided then, and nothing completed, whose rows they do not know; but a change that was
        asked for goes on.
        """
        if not self._has_loaded:
            with contextlib.suppress(*NO_ROOM):  # Then the next push tries again.
                load_kernels()
                self._has_loaded = True
        if self._join.is_torn:
            return
        self._note_cost(seconds)
        self.control.note_push(seconds)
        with self._join.tearing:
            if not self.control.has_limits:
                self._look_after(rows, seconds)
                return
            self.control.measure(self, seconds)
            self._look_after(rows, seconds)
            self.control.keep_limits(self)

    def _look_after(self, rows: int, seconds: float) -> None:
        if self._join.owes:
            if self.preparation is not None:
                self._prepare(self.preparation, rows)
            return
        if self.preparation is None:
            if self.eddy is not None:
                self._route(self.eddy, rows)
            else:
                self.control.after_push(self, rows, seconds)
        if self.preparation is not None:
            self._prepare(self.preparation, rows)
        else:
            self._complete_beside(rows)
            if self._kept:
                self._kept.look_after(rows)

    def _complete_beside(self, rows: int) -> None:
        """A push of ``rows`` is done: complete some of what is missing."""
        for tree in self._join.trees:
            tree.complete_beside(rows)

    def give_up_preparing(self) -> None:
        """Let go of the change that is prepared: the plan is taken over in another way."""
        if self.preparation is not None:
            self.preparation.release()
            self.preparation = None

    def _keep_indexes(self) -> None:
        """Hold on to the indexes that there are, unless there is a limit to memory."""
        limits = self.options.limits
        if limits is None or limits.memory is None:
            self._kept.keep(self._join.trees)

    def _begin(self, strategy: str) -> None:
        """Go over to the plan, at once or when the indexes that it needs are there."""
        join = self._join
        if self._bill is not None:
            self._close_bill(self._bill, is_finished=False)
        try:
            self._keep_indexes()
            self.give_up_preparing()
            if strategy != "moving-state":
                self.preparation = prepare(
                    strategy, join.trees, self._plan.in_blocks(join.query), join.latest
                )
            if self.preparation is None:
                join.expiry.catch_up_if_due()
                self._change(strategy)
        except NO_ROOM:
            join.is_torn = True  # The new plan begins with what the windows have.
            raise

    def _prepare(self, preparation: Preparation, rows: int) -> None:
        """A push of ``rows`` is done: go on preparing, or go over if nothing is left to do."""
        preparation.go_on(rows)
        if preparation.is_done:
            self._change(preparation.strategy)
            self.give_up_preparing()
            if self.choice is not None:
                self.control.note_choice(self, self.choice)

    def _change(self, strategy: str) -> None:
        """Go over to the plan."""
        join = self._join
        if join.overload is not None:
            join.overload.settle()
        began = self._spent
        change = STRATEGIES.get(strategy, reroute)
        join.eddy = self._plan.eddy
        join.subtract_in(self._plan.places_in(join.query))
        roots = self._plan.in_blocks(join.query)
        for number, (root, old) in enumerate(zip(roots, list(join.trees), strict=True)):
            if root == old.root:
                continue
            if number == 0 and change is not reroute:
                join.pay_all()
                old.rationing = None
            join.replace_tree(number, change(old, root))
        if strategy == AUTO:
            self.choice = self._chosen()
        elif self.eddy is not None and strategy == self.eddy.strategy:
            self.choice = StrategyChoice(strategy, f"so does {self.eddy.kind}")
        else:
            self.choice = StrategyChoice(strategy, "it was asked for")
        if strategy == "parallel-track":
            prices = self.costs.prices(Work(0, 0, 0), 0.0, join.latest, self._window)
            self._bill = _Bill(strategy, prices, prices.parallel_track, began)

    def _chosen(self) -> StrategyChoice:
        """Complete what is missing at once, if that does not take long; what was decided."""
        join = self._join
        missing = [tree for tree in join.trees if tree.missing]
        if not missing:
            return NOTHING_MISSING
        work = sum((tree.completion.work for tree in missing), Work(0, 0, 0))
        budget, began = self.costs.budget, self._spent
        trial = Trial(False, 0.0, work.least, is_least=True)
        if work.least <= budget:
            trial = Trial(True, 0.0, 0.0)
            for tree in missing:
                found = tree.complete_within(budget - trial.spent)
                spent, ahead = trial.spent + found.spent, trial.ahead + found.ahead
                trial = Trial(trial.is_done and found.is_done, spent, ahead)
        choice = self.costs.choice(work, trial, join.latest, self._window)
        assert choice.prices is not None
        priced = work.likely if trial.is_done else choice.prices.jisc
        self._bill = _Bill(choice.strategy, choice.prices, priced, began)
        return choice

    @property
    def _window(self) -> int:
        """Rows of all windows."""
        return sum(len(leaf.rows) for leaf in self._join.all_leaves)

    @property
    def _spent(self) -> float:
        """CPU seconds that changes of plan have taken since the start."""
        return sum(tree.completion.time.seconds for tree in self._join.trees)

    def _note_cost(self, seconds: float) -> None:
        """A push took so many CPU seconds: it is a normal one if no change of plan goes on."""
        bill = self._bill
        trees = self._join.trees
        goes_on = any(tree.missing or tree.older is not None for tree in trees)
        if bill is not None:
            bill.pushes += 1
            if not goes_on:
                self._close_bill(bill, is_finished=True)
        elif not goes_on:
            self.costs.note_push(seconds)

    def _close_bill(self, bill: _Bill, is_finished: bool) -> None:
        """The change is done, or another one comes before it is: then nothing is learnt."""
        self._bill = None
        cost = self._spent - bill.began
        if is_finished:
            self.costs.learn(bill.strategy, bill.prices, cost)
        self.control.note_cost(self, bill.priced, cost, bill.pushes, is_finished)

    def _route(self, eddy: Eddy, rows: int) -> None:
        """``rows`` more have come: let the eddy change its routes, unless they are held."""
        if not self.control.is_on:
            return
        try:
            found = eddy.review(rows, self._join.trees, self._room_for_states())
        except Exception as problem:  # Routes are never worth a query.
            self.control.stop(self, problem)
            return
        if found is not None:
            before, self._plan = self._plan, found.plan.subtracting_in(self._join.subtracted)
            if eddy.strategy != "reroute":  # Else all operators go on counting.
                self.since = self._join.seconds
            self.choice = None
            self._begin(eddy.strategy)
            eddy.begin_period(self._join.trees)
            self.control.note(self, "route", before, found.reason, found.numbers)

    def _room_for_states(self) -> float:
        """Bytes that all windows, if they were in memory, leave to the states of joins."""
        most = self.control.limits.memory
        if most is None:
            return math.inf
        if self.nbytes + self.disk_bytes > most:
            self.sweep()
        states = sum([state.nbytes for tree in self._join.trees for state in tree.states])
        return most - (self.nbytes + self.disk_bytes - states)
