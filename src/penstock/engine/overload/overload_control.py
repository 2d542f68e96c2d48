"""Too little CPU, in a running engine: JAQPOT's allocation, push by push.

Before a push it is known how many rows each stream brings, and about how much work a row of it
leads to on its way to the root. If the budget covers that, the push is run as ever. Otherwise the
query is *short*: the allocator divides the budget among the half-way joins
(:mod:`penstock.overload`), each input of a join gets a share of rows that may probe, and consumers
are matched to producers as the allocation has it. Where the budget is time, rows may also be left
at the door (:mod:`penstock.engine.overload.door`). What is left after the new rows pays debts
(``defer``).

A budget of time per push is kept by the clock when a burst begins, since what probes cost and find
is not known well then. A push that may not fit is worked off in slices of event time, and each is a
small push of its own: what the ones before it found and took is known, and what is left of the time
is divided among the rows that are left. Storing these rows and handing on the results made so far
comes first. Debts are paid in passes of a size that the clock allows. So the time is overdrawn by a
slice, or by rows that take too long to be stored, and not by a wrong guess.

The query is no longer short when several pushes in a row needed no limit and nothing
is owed. So it goes back to exact by itself, and costs a comparison per push from then on.

All that is decided is kept as plain values for people and hosts: :meth:`OverloadControl.measure`.
Everything that a push changes is undone when it fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.engine.overload.freshness import Freshness
from penstock.engine.overload.key_arcs import TURN
from penstock.engine.overload.limited_join import LimitedJoin
from penstock.engine.overload.overload import Overload
from penstock.engine.overload.overload_metrics import overload_metrics
from penstock.engine.overload.owed_probes import OwedProbes
from penstock.engine.overload.passing import Passing
from penstock.engine.overload.probe_budget import ProbeBudget
from penstock.engine.overload.probe_limit import ProbeLimit
from penstock.engine.overload.push_at_hand import PushAtHand
from penstock.engine.overload.push_times import PushTimes
from penstock.engine.overload.repeat import NeedsBase, Repeat
from penstock.engine.overload.shortage_book import MOST_EVENTS
from penstock.engine.state.clock import START
from penstock.engine.state.composites import Composites, concatenate
from penstock.engine.state.leaf_window import Lull
from penstock.engine.tree.join_tree import JoinTree
from penstock.kernels.lifespan import FOREVER
from penstock.query.join_graph import JoinGraph


class OverloadControl:
    """The overload policy of the first block of ``graph``."""

    def __init__(
        self, graph: JoinGraph, option: Overload, tree: JoinTree, freshness: Freshness
    ) -> None:
        self.option = option
        self.join = LimitedJoin(graph, option, tree, freshness)
        self.door = self.join.door
        self._push = PushAtHand()
        self._times = PushTimes(self.join, self._push)
        self.passing = Passing(self.join, self._push, self._times)
        self.limit = ProbeLimit(self.join, self._push)
        self.owed = OwedProbes(self.join, self._push)
        self.repeat = Repeat(self.join, self._push, self.passing)

    @property
    def budget(self) -> ProbeBudget:
        """What pushes may use."""
        return self.join.budget

    def attach(self, tree: JoinTree) -> None:
        """Go on with another tree, or with other probe orders; an old tree owes nothing."""
        self.settle()
        self.join.attach(tree)

    # -- a push ------------------------------------------------------------------------------

    def start(
        self, batches: Mapping[str, Any], seconds: float | None, again: bool
    ) -> Mapping[str, Any]:
        """What is taken in of a push; the host gives it so much time, or as much as usual.

        ``again`` if its answer has left before: then states may get thinner, but nothing is lost.
        """
        self._push.is_again = again
        if again:
            self.settle()
        credit, is_at_the_door = self.passing.credit, self.passing.is_at_the_door
        self.budget.start(seconds, credit is not None and not is_at_the_door)
        if self.repeat.is_asked:
            self.budget.hold()
        turn = self._turn if self.door.shares else 0.0
        number = self._push.number + (0 if credit is None else credit.pushes)
        taken = self.door.admit(batches, (self.option.seed << 32) + number, turn)
        if credit is not None and is_at_the_door and not credit.pushes:
            self.door.forget_drawn()
            self.join.losses.pass_under(*self.door.coming)
        return taken

    @property
    def _turn(self) -> float:
        """Where arcs of keys begin by now."""
        now, leaves = self._push.now, self.join.tree.leaves.values()
        spans = [leaf.span for leaf in leaves if 0 < leaf.span < FOREVER]
        return 0.0 if now == START or not spans else now / (TURN * max(spans))

    def begin(
        self, rows: Mapping[str, int], first: int, before: int, now: int, given: float | None
    ) -> None:
        """A push takes time on from ``before`` to ``now`` and brings so many ``rows`` of each
        stream, the first of them born at ``first``.

        ``given`` are the probes that the host allows.
        """
        self.settle()
        join, push = self.join, self._push
        self._times.begin_books(anew=True)
        if self.repeat.is_asked:
            rows = self.repeat.rows
        taken_in = sum(rows.values())
        if self.door.left_out:
            outside = Counter(self.door.by_stream())
            rows = {stream: count + outside[stream] for stream, count in rows.items()}
        if before == START:
            before = push.began = first
        elapsed = now - before if before != START else 0
        push.seconds = max(0.0, elapsed / join.second) or 1.0
        last, push.count, push.rows = push.count, sum(rows.values()), rows
        push.now = now
        join.losses.begin(self.door.weights, self.door.arcs)
        join.book.begin()
        join.pace.left, push.is_rationed, join.noted = None, False, 0.0
        push.is_given = given is not None
        is_timed = given is None and self.option.seconds is not None
        push.is_clocked = is_timed and not self.repeat.is_asked
        push.need = push.results = 0.0
        if push.count:
            join.look(rows)
            push.need, push.results = join.costs.of(rows)
        push.grant = self.budget.begin(taken_in, join.elapsed(elapsed), given, push.results)
        rationing = join.tree.rationing
        if rationing is None:
            return
        self.owed.begin()
        must_put_off = rationing.debt or push.need > push.grant.probes
        if self.repeat.needs_base and must_put_off:
            self.undo()
            raise NeedsBase
        alone = join.tree.older is None  # Beside an older plan there is no saving.
        shares = self.limit.decide(taken_in, last) if push.count and alone else None
        rationing.foreseen = join.foreseen_results
        rationing.begin(shares, (self.option.seed, push.number))
        self._times.end_books()

    @property
    def why_not_compiled(self) -> str:
        """Why the push that has begun cannot be one call; empty if it can."""
        if self.join.pace.left is not None:
            return "probes that are given out by the clock"
        rationing = self.join.tree.rationing
        is_compiled = rationing is None or rationing.is_compiled
        return "" if is_compiled else self.join.tree.why_not_in_one_call

    def may_leave(self, oldest: Sequence[int]) -> bool:
        """Whether all results of a push that was looked at may leave as they are: they are fresh
        if their ``oldest`` rows were born then, and there are no debts to pay."""
        join, now = self.join, self._push.now
        if self.owes or join.losses.is_to_weigh or not join.freshness.allows(oldest, now):
            return False
        join.note(self.budget.rows_left)
        join.freshness.note(oldest, now)
        return True

    def after_joins(self, results: Composites) -> Composites:
        """The ``results`` of the push that may leave, with those of debts that it can pay."""
        join, push = self.join, self._push
        join.note(self.budget.rows_left)
        if join.losses.is_to_weigh:
            join.losses.weigh(results, (self.option.seed, push.number), self.door.keys)
        fresh = join.freshness.on_time(results, push.now)
        stale = len(results) - len(fresh)
        rationing = join.tree.rationing
        if rationing is not None and rationing.debt:
            late = self.owed.pay()
            if self.repeat.is_asked:
                join.note(0, late=True)
            if late is not None and len(late):
                fresh = concatenate([fresh, late])
        join.book.draft["stale"] += stale
        join.freshness.look(fresh, push.now)
        return fresh

    def undo(self) -> None:
        """The push has failed; it was not let pass by credit."""
        self.join.debts.undo()
        self.join.book.begin()
        self.owed.undo()
        self.join.counts.learn()
        self.repeat.is_asked = False

    def commit(self, before: int) -> None:
        """The push is done."""
        self._times.begin_books(anew=False)
        join, push = self.join, self._push
        done = join.counts.take()
        push.used = done.work
        join.book.draft["probes"] += 0 if push.is_again else done.probes
        self.budget.end(push.grant, done.work, join.noted, done.total(join.tree.root.streams))
        rationing = join.tree.rationing
        skipped = {} if rationing is None else rationing.tally.skipped
        join.book.draft["skipped"] += 0 if push.is_again else sum(skipped.values())
        self.owed.commit(done)
        join.book.commit()
        if self.option.policy == "shed":
            assert rationing is not None
            strata, is_short = rationing.tally.strata, join.book.since is not None
            join.losses.commit(
                join.counts, done.made, strata, before, push.now, is_short, push.is_again
            )
        if rationing is not None:
            rationing.follow(join.tree.inputs())
        join.pace.end(done.work, push.grant.probes)
        join.costs.note(done.probes)
        push.number += 1
        self.repeat.is_asked = False
        join.tell(push)
        self.passing.give_credit()
        self._times.end_books()

    def close(self) -> Mapping[str, int]:
        """The push has been answered: rows of each source that were left at the door."""
        self._times.close(self.passing.credit)
        return self.door.left_out

    # -- between pushes ----------------------------------------------------------------------

    def settle(self) -> None:
        """Account for pushes since the last look: they count as one."""
        self.passing.settle()

    @property
    def owes(self) -> bool:
        """Whether probes are owed."""
        return self.join.debts.are_there

    @property
    def may_owe(self) -> bool:
        """Whether probes are owed, or may be after the push that has begun."""
        return self.option.policy == "defer" and (self.owes or self._push.is_rationed)

    @property
    def is_thin(self) -> bool:
        """Whether states lack what they would have if every probe had been made."""
        return self.owes or self.join.losses.is_thin

    def pay_all(self) -> Composites:
        """Make all owed probes; the results that are fresh."""
        self.settle()
        return self.owed.pay_all()

    def keep_from(self, alias: str, before: int) -> int:
        """Rows of ``alias`` that died before this instant may go; ``before`` if nothing is owed."""
        return self.join.debts.keep_from(alias, before, self._push.now)

    def keep_all_from(self, before: int) -> int:
        """The same for whatever is made of several streams."""
        return self.join.debts.keep_all_from(before)

    def lull(self, before: int) -> Lull | None:
        """What was born after the first instant and died before the second is needed by nobody."""
        return self.join.debts.lull(before)

    def to_json(self) -> dict[str, Any]:
        """What was done so far, for a checkpoint."""
        return self.repeat.accounts(MOST_EVENTS)

    def load_json(self, values: Mapping[str, Any], now: int) -> None:
        """Go on from a checkpoint."""
        self.join.forget_losses()
        self.repeat.take_over(values)
        self._push.now = now

    def measure(self) -> dict[str, Any]:
        """What a person wants to know, as plain values. Times are in seconds, instants in ticks."""
        self.settle()
        return overload_metrics(self.join, self._push, self._times.parts())
