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

**A push that can be repeated.** A host that may have to make a push again, elsewhere and later, and
needs the same answer and the same debt then, asks for decisions that follow from the accounts of
the push before (:meth:`OverloadControl.repeat`): costs, tokens, what half-way joins found and how
much there was to find. No clock is asked, so there are no slices by the clock: a guess that was
wrong is made good by the next push, not within this one. Which rows probe depends also on how
states are laid out, which differs between engines that took in the same. So a push that is limited
must begin with an engine just restored from a checkpoint, and says so (:class:`NeedsBase`) before
it has changed anything.

The query is no longer short when several pushes in a row needed no limit and nothing
is owed. So it goes back to exact by itself, and costs a comparison per push from then on.

All that is decided is kept as plain values for people and hosts: :meth:`OverloadControl.measure`.
Everything that a push changes is undone when it fails.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.engine.overload.credit import Credit
from penstock.engine.overload.debts import Debts, Payment
from penstock.engine.overload.door import Door
from penstock.engine.overload.freshness import Freshness
from penstock.engine.overload.half_way_counts import Done, HalfWayCounts
from penstock.engine.overload.key_arcs import TURN
from penstock.engine.overload.losses import Losses
from penstock.engine.overload.overload import AT_RANDOM, Overload
from penstock.engine.overload.pace import ROOM, Pace
from penstock.engine.overload.probe_budget import Grant, ProbeBudget
from penstock.engine.overload.probe_shares import ProbeShares
from penstock.engine.overload.row_costs import RowCosts
from penstock.engine.overload.shortage_book import MOST_EVENTS, ShortageBook
from penstock.engine.overload.throttle import Throttle
from penstock.engine.rationing.debt import Forgotten
from penstock.engine.rationing.probe_ranking import Correlated, Newest
from penstock.engine.rationing.rationing import Rationing
from penstock.engine.state.clock import START
from penstock.engine.state.composites import Composites, concatenate
from penstock.engine.state.leaf_window import Lull
from penstock.engine.tree.join_tree import JoinTree
from penstock.kernels.lifespan import FOREVER
from penstock.plan.stream_set import StreamSet
from penstock.query.join_graph import JoinGraph

Int64s = NDArray[np.int64]

_DOOR_MOVED = 0.1
"""A door that has moved by less stands still."""
_PASSING_PART_OF_WINDOW, _MOST_PASSING_PUSHES = 0.8, 16
"""The part of a window whose pushes may pass under the door between two looks, and their number: a
look takes as much as to leave some thousand rows out, and after a window all that is known of what
is in it is old."""
_TELLING_SHARE = 0.95
"""Shares above it tell nothing about what others keep."""


class NeedsBase(Exception):  # noqa: N818 - a request to the host, no error
    """A repeatable push is limited, and the engine has not just been restored."""


class OverloadControl:
    """The overload policy of the first block of ``graph``."""

    def __init__(
        self, graph: JoinGraph, option: Overload, tree: JoinTree, freshness: Freshness
    ) -> None:
        self.option = option
        self.budget = ProbeBudget(option)
        self.freshness = freshness
        self._by_rows = graph.by_rows
        self.door = Door(graph)
        """Where rows wait that need not be taken in."""
        self._has_door = (
            option.policy == "shed"
            and option.cpu is not None
            and option.allocator in ("lifespan-greedy", AT_RANDOM)
            and bool(self.door.streams)
        )
        self._throttle = Throttle()
        self._losses = Losses(tree)
        self._count = 0
        """Rows of the push at hand, and then of the one before."""
        self._rows: Mapping[str, int] = {}
        """The same by stream."""
        self._used = 0.0
        """Work of the last push that was looked at."""
        self._pace = Pace()
        self._unlearned: tuple[float, float, float, int] | None = None
        """Of a push after which others pass under the door: seconds that it took, those that there
        were for it, its seconds of event time, and its rows."""
        self._passed_outside = 0
        """Rows of these others that were left outside."""
        self._books = 0.0
        """Seconds that limits took of that for themselves."""
        self._was_open: Mapping[str, float] = {}
        """The shares of rows that were taken in of the push at hand."""
        self._has_moved = False
        """Whether those of the next pushes are others."""
        self._second = 1.0 if graph.by_rows else 1000.0 * graph.ticks_per_millisecond
        self._pushes = 0
        self._grant = Grant(math.inf, 0.0)
        self._need = self._yield = 0.0
        self._now = self._began = START
        """Event time, and when it began."""
        self.book = ShortageBook(option.policy)
        self._gone: list[tuple[StreamSet, Forgotten]] = []
        """Owed probes of each input that were given up in the push at hand."""
        self._missed: Payment | None = None
        """Those that were made in it, some of whose partners were gone."""
        self._is_clocked = self._is_rationed = self._again = self._is_given = False
        self._repeats = self._from_base = False
        self._told_rows: Mapping[str, int] = {}
        self._seconds = 1.0
        self._noted = 0.0
        """Work of the push that the budget knows of."""
        self.credit: Credit | None = None
        """What pushes may use before the next look."""
        self.asks_age = bool(freshness.asked)
        """Whether results have to be as fresh as was written down."""
        self.attach(tree)

    def attach(self, tree: JoinTree) -> None:
        """Go on with another tree, or with other probe orders; an old tree owes nothing."""
        self.settle()
        self._tree = tree
        self._counts = HalfWayCounts(tree, self.budget.prices)
        self._losses.attach(tree)
        self._debts = Debts(tree, self.freshness, self._by_rows)
        self._costs = RowCosts(self._counts)
        self._shares = ProbeShares(self.option, tree, self._counts, self.freshness, self._second)
        if self.option.policy == "exact":
            return
        ranking = None
        if self.option.choice != "random":
            ranking = (Newest if self.option.choice == "newest" else Correlated)(tree.leaves)
        deadlines = self.freshness.deadlines if self.option.policy == "defer" else None
        if tree.rationing is None:
            tree.rationing = Rationing(deadlines, ranking, self.option.audit)

    # -- a push ------------------------------------------------------------------------------

    @property
    def owes(self) -> bool:
        """Whether probes are owed."""
        return self._debts.are_there

    @property
    def may_owe(self) -> bool:
        """Whether probes are owed, or may be after the push that has begun."""
        return self.option.policy == "defer" and (self.owes or self._is_rationed)

    @property
    def _is_to_weigh_passing(self) -> bool:
        """Whether the push that passes is the first under a door that has moved, so that its
        results stand for more or less than those before."""
        credit = self.credit
        is_first = credit is not None and credit.is_at_the_door and not credit.pushes
        return is_first and self._has_moved

    @property
    def asks_results(self) -> bool:
        """Whether the results of the push that passes are to be looked at."""
        return self.asks_age or self._is_to_weigh_passing

    def are_fresh(self, oldest: Sequence[int]) -> bool:
        """Whether all results of a push that passes may leave without a look: they are fresh if
        their ``oldest`` rows, of each stream in the order of their names, were born then."""
        assert self.credit is not None
        if self._is_to_weigh_passing:
            return False
        self.freshness.note(oldest, self.credit.until)
        return self.freshness.allows(oldest, self.credit.until)

    def may_leave(self, oldest: Sequence[int]) -> bool:
        """Whether all results of a push that was looked at may leave as they are: they are fresh,
        as above, and there are no debts to pay."""
        if self.owes or self._losses.is_to_weigh or not self.freshness.allows(oldest, self._now):
            return False
        self._note(self.budget.rows_left)
        self.freshness.note(oldest, self._now)
        return True

    def drop_stale(self, results: Composites) -> Composites:
        """The ``results`` of such a push that are fresh; others are counted."""
        assert self.credit is not None
        if self._is_to_weigh_passing:
            self._losses.weigh(results, (self.option.seed, self._pushes + 1), self.door.keys)
        if not self.asks_age:
            return results
        fresh = self.freshness.on_time(results, self.credit.until)
        self.credit.stale = len(results) - len(fresh)
        self.freshness.look(fresh, self.credit.until)
        return fresh

    def settle(self) -> None:
        """Account for pushes since the last look: they count as one."""
        credit, self.credit = self.credit, None
        if credit is None or not credit.pushes:
            self._learn_together()
            return
        done = self._counts.take()
        self.book.totals["probes"] += done.probes
        self.book.totals["stale"] += credit.all_stale
        before, seconds = self._now, self._elapsed(credit.now - self._now)
        self._pushes += credit.pushes
        self._now = credit.now
        results = done.total(self._tree.root.streams) / max(1.0, done.work)
        self._grant = self.budget.settle(
            credit.pushes, credit.rows, seconds, results, credit.last, done.work, credit.took
        )
        self._need = done.work
        self._is_rationed = credit.is_at_the_door
        self._costs.note(done.probes)
        if credit.is_at_the_door:
            self._losses.passed(credit.pushes, self.door.pooled)
            self._losses.commit(self._counts, done.made, (), before, self._now, True, False)
            self._throttle.let_pass(credit.pushes)
            self._learn_together(seconds or 0.0, credit)
        self._tell()

    def _elapsed(self, ticks: int) -> float | None:
        """Seconds of event time, if the budget has to do with it."""
        if self._by_rows and self.budget.is_timed:
            return None
        return max(0.0, ticks / self._second)

    def _give_credit(self) -> None:
        """After a look: let pushes pass as long as there is no doubt, if nothing else is to do."""
        self.credit = None
        self._debts.settle()
        is_limited = self.option.policy != "exact" and not self._throttle.is_resting
        is_calm = not (is_limited and self.book.since is not None)
        is_calm &= not self.owes and self._pace.left is None
        if self.option.policy == "shed":
            is_calm &= not (self._losses.are_felt or self.door.shares)
        at_the_door = self._may_pass_under
        if not (is_calm or at_the_door) and self.option.policy != "exact":
            return
        if self._costs.each and not self._is_given and self._tree.older is None:
            costs = {stream: self._costs.each[StreamSet.of(stream)] for stream in self._tree.leaves}
            self.credit = self.budget.credit(
                costs,
                self._grant,
                self._ticks,
                self._now,
                lambda: self._counts.work,
                is_limited and not at_the_door,
                at_the_door,
            )

    @property
    def _may_pass_under(self) -> int:
        """Pushes that may pass under the door as it is, if nothing else is limited."""
        shares, rationing = self.door.shares, self._tree.rationing
        is_asked = self._has_door and (shares or self._throttle.is_resting)
        if not is_asked or rationing is None or rationing.is_limiting or self._repeats:
            return 0
        if self._pace.left is not None:
            return 0
        was = self._was_open
        self._has_moved = any(
            abs(each - was.get(stream, 1.0)) > _DOOR_MOVED * each for stream, each in shares.items()
        )
        window = min((leaf.span for leaf in self._tree.leaves.values() if leaf.span > 0), default=0)
        return min(
            _MOST_PASSING_PUSHES,
            int(_PASSING_PART_OF_WINDOW * window / max(1.0, self._seconds * self._second)),
        )

    @property
    def _ticks(self) -> float:
        """Ticks of a second of event time, 0 if the budget has nothing to do with it."""
        return 0.0 if self._by_rows and self.budget.is_timed else self._second

    def start(
        self, batches: Mapping[str, Any], seconds: float | None, again: bool
    ) -> Mapping[str, Any]:
        """What is taken in of a push; the host gives it so much time, or as much as usual.

        ``again`` if its answer has left before: then states may get thinner, but nothing is lost.
        """
        self._again = again
        if again:
            self.settle()
        credit = self.credit
        is_at_the_door = credit is not None and credit.is_at_the_door
        self.budget.start(seconds, credit is not None and not is_at_the_door)
        if self._repeats:
            self.budget.hold()
        turn = self._turn if self.door.shares else 0.0
        number = self._pushes + (0 if credit is None else credit.pushes)
        taken = self.door.admit(batches, (self.option.seed << 32) + number, turn)
        if credit is not None and is_at_the_door and not credit.pushes:
            self.door.forget_drawn()
            self._losses.pass_under(*self.door.coming)
        return taken

    @property
    def _turn(self) -> float:
        """Where arcs of keys begin by now."""
        spans = [leaf.span for leaf in self._tree.leaves.values() if 0 < leaf.span < FOREVER]
        return 0.0 if self._now == START or not spans else self._now / (TURN * max(spans))

    def repeat(
        self, accounts: Mapping[str, Any] | None, rows: Mapping[str, int], from_base: bool
    ) -> None:
        """Decide in the next push by ``accounts``, those of the push before, and by no clock.

        ``rows`` are those that the push brings to each stream: of ways to make a push, some leave
        out rows that fail a predicate before they are counted, and some do not. ``from_base`` if
        the engine has just been restored from a checkpoint.
        """
        self.settle()
        if accounts is not None:
            self.take_over(accounts)
            self._counts.look_back(accounts.get("found", ()))
        self._repeats, self._from_base, self._told_rows = True, from_base, rows
        self._costs.forget()
        self._shares.forget()

    def begin(
        self, rows: Mapping[str, int], first: int, before: int, now: int, given: float | None
    ) -> None:
        """A push takes time on from ``before`` to ``now`` and brings so many ``rows`` of each
        stream, the first of them born at ``first``.

        ``given`` are the probes that the host allows.
        """
        self.settle()
        self._books = -self.budget.spent() if self._has_door else 0.0
        if self._repeats:
            rows = self._told_rows
        taken_in = sum(rows.values())
        if self.door.left_out:
            outside = Counter(self.door.by_stream())
            rows = {stream: count + outside[stream] for stream, count in rows.items()}
        if before == START:
            before = self._began = first
        elapsed = now - before if before != START else 0
        self._seconds = max(0.0, elapsed / self._second) or 1.0
        last, self._count, self._rows = self._count, sum(rows.values()), rows
        count = self._count
        self._now = now
        self._losses.begin(self.door.weights, self.door.arcs)
        self.book.begin()
        self._pace.left, self._is_rationed, self._noted = None, False, 0.0
        self._is_given = given is not None
        is_timed = given is None and self.option.seconds is not None
        self._is_clocked = is_timed and not self._repeats
        self._need = self._yield = 0.0
        if count:
            self._look(rows)
            self._need, self._yield = self._costs.of(rows)
        self._grant = self.budget.begin(taken_in, self._elapsed(elapsed), given, self._yield)
        rationing = self._tree.rationing
        if rationing is None:
            return
        self._debts.mark()
        self._gone = self._debts.forget_stale(now)
        must_put_off = rationing.debt or self._need > self._grant.probes
        if self._repeats and not self._from_base and must_put_off:
            self.undo()
            raise NeedsBase
        alone = self._tree.older is None  # Beside an older plan there is no saving.
        shares = self._limit(taken_in, last, given is not None) if count and alone else None
        rationing.foreseen = self._foreseen_results
        rationing.begin(shares, (self.option.seed, self._pushes))
        if self._has_door:
            self._books += self.budget.spent()

    def _limit(self, taken_in: int, last: int, is_given: bool) -> Mapping[StreamSet, float] | None:
        """The shares of rows that may probe in the push at hand, of which so many rows were
        ``taken_in``, after one of ``last`` rows; None if all may, or if the clock will tell."""
        allowed = self._grant.probes
        is_paced = self._is_clocked and self._is_to_pace(last, allowed)
        has_share = self._has_door and not is_paced and not is_given
        share = (
            self._throttle.decide(self._foreseen(taken_in, allowed), self._count)
            if has_share
            else None
        )
        is_short = self._need > allowed
        if has_share:
            is_short = share is not None and share < 1
        if (is_short or is_paced) and self._tree.missing:
            self._complete_or_give_up()
        if is_paced:
            self._pace.left = Counter(self._rows) - Counter(self.door.by_stream())
            self._need, self._grant = 0.0, Grant(0.0, 0.0)
            return None
        if not is_short:
            self.door.open({})
            return None
        self._is_rationed, self._was_open = True, self.door.shares
        if share is None:
            return self._divide(self._rows, self._need, allowed)
        return self._shares.through_the_door(
            self._rows,
            share,
            prices=self._costs.each,
            seconds=self._seconds,
            budget=self.budget,
            share_there=self._losses.share_there,
            door=self.door,
        )

    def _is_to_pace(self, last: int, allowed: float) -> bool:
        """Whether the push at hand, after one of ``last`` rows, is worked off by the clock."""
        is_doubtful = self._pace.is_to_pace(self._count, last, self._need, allowed)
        return is_doubtful or not self.budget.cost.is_known

    def _foreseen(self, taken_in: int, allowed: float) -> float:
        """The part of all that there is to do which fits, rows at the door included."""
        costs = self.budget.cost.costs
        whole = (self._need + 1.0) * costs.probe + costs.row * self._count
        return (allowed * costs.probe + costs.row * taken_in) / whole

    def _complete_or_give_up(self) -> None:
        """See to what states lack since a restart or a change of plan, before probes are limited.

        Probes that are put off have bounds, which mean nothing while old rows come in late. So
        under ``defer`` all is made now. Under ``shed`` it is made when it is asked for, a key at a
        time, which no clock can divide; it takes about what it took to probe with all rows of the
        windows once, and if there is no time for that, states do without.
        """
        if self.option.policy == "defer":
            self._tree.complete_all()
        elif self._is_clocked:
            held = sum(len(leaf.rows) for leaf in self._tree.leaves.values())
            costs = self.budget.cost.costs
            if held * (costs.row + costs.probe) > ROOM * self.budget.seconds_left:
                self._losses.thin(self._tree.give_up_missing())

    @property
    def why_not_compiled(self) -> str:
        """Why the push that has begun cannot be one call; empty if it can."""
        if self._pace.left is not None:
            return "probes that are given out by the clock"
        rationing = self._tree.rationing
        is_compiled = rationing is None or rationing.is_compiled
        return "" if is_compiled else self._tree.why_not_in_one_call

    @property
    def slice_rows(self) -> int | None:
        """The rows of a slice, if the push is paced by the clock."""
        return self._pace.slice_rows

    def begin_slice(self, arrivals: Mapping[str, Sized]) -> None:
        """The next slice of a push comes."""
        left = self._pace.left
        if left is None:
            return
        rationing = self._tree.rationing
        assert rationing is not None
        rows = {stream: len(each) for stream, each in arrivals.items()}
        if not any(rows.values()):
            return
        self._counts.learn()
        self._costs.be_due()
        self._look({stream: count // 2 for stream, count in left.items()})
        need, _ = self._costs.of(rows)
        need_left, self._yield = self._costs.of(left)
        fitting = self.budget.fitting(left.total(), self._yield, self._counts.results)
        allowed = need * fitting / max(1.0, need_left)
        shares = None
        # At first there is something to load, which looks like dear probes; the clock knows better.
        is_known = self.budget.cost.is_known or self.budget.share_left < ROOM
        if need > allowed and is_known:
            self._is_rationed = True
            if self._tree.missing:
                self._losses.thin(self._tree.give_up_missing())
            shares = self._divide(rows, need, allowed)
        rationing.limit(shares)
        self.budget.skip()
        self._need += need
        allowed = allowed if is_known else max(need, allowed)
        self._grant = Grant(self._grant.probes + allowed, 0.0)

    def end_slice(self, arrivals: Mapping[str, Sized]) -> None:
        """The slice is done."""
        if self._pace.left is None:
            return
        rows = {stream: len(each) for stream, each in arrivals.items()}
        self._pace.take(rows)
        self._note(sum(rows.values()))

    def _note(self, rows: int, late: bool = False) -> None:
        """Tell the budget what was done since the last call."""
        work = self._counts.used
        self.budget.note(rows, work - self._noted, late)
        self._noted = work

    def _look(self, rows: Mapping[str, int]) -> None:
        """Note what a row of each input leads to, if that may be new."""
        if self._costs.look(rows, self._losses.share_there):
            self._shares.look(self._costs.each)

    def _divide(
        self, rows: Mapping[str, int], need: float, allowed: float
    ) -> Mapping[StreamSet, float]:
        """The share of rows of each input that may probe, of ``need`` probes the ``allowed``."""
        return self._shares.divide(
            rows,
            need,
            allowed,
            prices=self._costs.each,
            seconds=self._seconds,
            budget=self.budget,
            results=self._yield,
            share_there=self._losses.share_there,
            in_a_push=self._pace.left is not None,
        )

    def after_joins(self, results: Composites) -> Composites:
        """The ``results`` of the push that may leave, with those of debts that it can pay."""
        self._note(self.budget.rows_left)
        if self._losses.is_to_weigh:
            self._losses.weigh(results, (self.option.seed, self._pushes), self.door.keys)
        fresh = self.freshness.on_time(results, self._now)
        stale = len(results) - len(fresh)
        rationing = self._tree.rationing
        if rationing is not None and rationing.debt:
            late = self._pay(self._affordable)
            if self._repeats:
                self._note(0, late=True)
            if late is not None and len(late):
                fresh = concatenate([fresh, late])
        self.book.draft["stale"] += stale
        self.freshness.look(fresh, self._now)
        return fresh

    def _affordable(self, origin: StreamSet) -> float:
        """How many rows of ``origin`` can still make up for their probes in this push."""
        probes, results = self._costs.each[origin]
        if self._is_clocked:
            self._note(0, late=True)
            each = results / max(1.0, probes)
            left = self.budget.fitting(0, each, self._counts.results, late=True)
        else:
            left = (self._grant.probes - self._counts.used) / self.budget.late_premium
        return max(1.0, left / max(1.0, probes)) if left >= 1 else 0.0

    def _pay(self, affordable: Callable[[StreamSet], float]) -> Composites | None:
        """Make up for owed probes as long as rows are affordable; the results that are fresh."""
        if not self._costs.each:
            self._look({})
        self._counts.learn()
        payment = self._debts.pay(affordable, self._now)
        if payment is None:
            return None
        self._counts.learn_late(payment.shares)
        self.book.draft["paid"] += payment.probes
        self.book.draft["stale"] += payment.stale
        self._missed = payment
        return payment.fresh

    def pay_all(self) -> Composites:
        """Between pushes: make all owed probes; the results that are fresh."""
        self.settle()
        rationing = self._tree.rationing
        assert rationing is not None
        self._debts.mark()
        fresh = self._pay(lambda _: math.inf)
        assert fresh is not None
        self._tell_missed()
        self.book.draft["probes"] += self._counts.take().probes
        self.book.commit()
        rationing.follow(self._tree.inputs())
        return fresh

    def _give_up(self, gone: list[tuple[StreamSet, Forgotten]]) -> None:
        """Tell of owed probes that will not be made, and of the results that go with them."""
        self.book.draft["forgotten"] += sum(each.rows for _, each in gone)
        if not self._again:
            self._losses.give_up_rows(gone, self._at_root, self._foreseen_results)
        gone.clear()

    @property
    def _foreseen_results(self) -> dict[StreamSet, float]:
        """Results that a row of each input leads to, if anything is known about that."""
        if self.option.policy != "defer" or not self._costs.are_known:
            return {}
        return {origin: each for origin, (_, each) in self._costs.each.items()}

    def _note_in_time(self, done: Done) -> None:
        """Rows that probed in time were drawn from the same as those that did not: what they have
        found tells of these too."""
        rationing = self._tree.rationing
        assert rationing is not None
        found = done.made[self._tree.root.streams]
        for origin, probed in done.probed.items():
            foreseen = probed * rationing.foreseen.get(origin, 0.0)
            if foreseen > 0:
                self._losses.late.note(origin, found.get(origin, 0.0), foreseen)

    def _tell_missed(self) -> None:
        """Tell of results that owed probes came too late for."""
        payment, self._missed = self._missed, None
        if payment is None or self._again:
            return
        for each in payment.passes:
            self._losses.late.note(*each)
        self._losses.give_up(payment.gone.items(), self._at_root)

    @property
    def _at_root(self) -> Collection[StreamSet]:
        return self._counts.joins[self._tree.root.streams]

    def forget_oldest(self) -> None:
        """Between pushes, when there is no memory to wait for them: give up the oldest debts."""
        self._again = False
        self.book.begin()
        self._give_up(self._debts.forget_oldest())
        self.book.commit()
        if self._tree.rationing is not None:
            self._tree.rationing.follow(self._tree.inputs())

    def undo(self) -> None:
        """The push has failed; it was not let pass by credit."""
        self._debts.undo()
        self.book.begin()
        self._gone.clear()
        self._missed = None
        self._counts.learn()
        self._repeats = False

    def commit(self, before: int) -> None:
        """The push is done."""
        began = self.budget.spent() if self._has_door else 0.0
        done = self._counts.take()
        made, self._used = done.made, done.work
        self.book.draft["probes"] += 0 if self._again else done.probes
        self.budget.end(self._grant, done.work, self._noted, done.total(self._tree.root.streams))
        rationing = self._tree.rationing
        skipped = {} if rationing is None else rationing.tally.skipped
        self.book.draft["skipped"] += 0 if self._again else sum(skipped.values())
        if self.option.policy == "defer" and self._is_rationed and self._missed is None:
            self._note_in_time(done)
        self._give_up(self._gone)
        self._tell_missed()
        self.book.commit()
        if self.option.policy == "shed":
            assert rationing is not None
            strata, is_short = rationing.tally.strata, self.book.since is not None
            self._losses.commit(
                self._counts, made, strata, before, self._now, is_short, self._again
            )
        if rationing is not None:
            rationing.follow(self._tree.inputs())
        self._pace.end(done.work, self._grant.probes)
        self._costs.note(done.probes)
        self._pushes += 1
        self._repeats = False
        self._tell()
        self._give_credit()
        if self._has_door:
            self._books += self.budget.spent() - began

    def _parts(self) -> dict[str, float]:
        """The part of the time of a push that each kind of work takes, by what they cost; empty
        where only probes count."""
        if not (self.budget.is_timed and self.budget.cost.is_known and self._count):
            return {}
        costs = self.budget.cost.costs
        rows = self._count - sum(self.door.left_out.values())
        found = {
            "bookkeeping": costs.push,
            "rows": costs.row * rows,
            "probes and results": costs.probe * self._used,
        }
        whole = sum(found.values())
        return {name: each / whole for name, each in found.items()} if whole > 0 else {}

    def close(self) -> Mapping[str, int]:
        """The push has been answered: rows of each source that were left at the door."""
        credit = self.credit
        if credit is not None and credit.is_at_the_door and credit.pushes:
            took = self.budget.let_pass()
            credit.took += took
            credit.longest = max(credit.longest, took)
            self._passed_outside += sum(self.door.left_out.values())
        self.budget.close()
        if not self._has_door:
            return self.door.left_out
        took, had = self.budget.taken()
        if took and self._pace.left is None:
            self._unlearned = took, had, self._seconds, self._count
            if credit is None or not credit.is_at_the_door:
                self._learn_together()
            self.budget.close_late()
        self.door.all_left_out.update(self.door.left_out)
        return self.door.left_out

    def _learn_together(self, seconds: float = 0.0, credit: Credit | None = None) -> None:
        """Tell the throttle what a push took, with those that have passed by ``credit`` under the
        door after it, in so many ``seconds`` of event time."""
        found, self._unlearned = self._unlearned, None
        outside, self._passed_outside = self._passed_outside, 0
        if found is None:
            return
        took, had, since, count = found
        usual, pushes = took, 1
        if credit is not None:
            more, there_was = self.budget.taken()
            usual, took, had = usual + credit.usual, took + more, had + there_was
            since, count = since + seconds, count + credit.rows + outside
            pushes += credit.pushes
        spans = [leaf.span for leaf in self._tree.leaves.values() if leaf.span > 0]
        of_window = since * self._second / min(spans, default=1)
        is_full = not self._losses.are_felt and self._now - self._began >= max(spans, default=0)
        books, self._books = self._books, 0.0
        self._throttle.learn(
            took,
            had,
            of_window,
            count,
            self._drift(),
            is_full,
            self._power(),
            len(self._tree.leaves),
            books,
            usual,
            pushes,
        )

    def _power(self) -> float:
        """By which power of the share of all work the results are kept, about."""
        share, kept = self._throttle.share, self.door.kept(self._tree.leaves)
        if share is None or not (0.0 < share < _TELLING_SHARE and 0.0 < kept < _TELLING_SHARE):
            return 1.0
        return max(1.0, min(float(len(self._tree.leaves)), math.log(kept) / math.log(share)))

    def _drift(self) -> float:
        """How many times what the last push took one like it will take when the windows have been
        filled by such: what is found there changes as they do."""
        part = self._parts().get("probes and results", 0.0)
        if self.door.arcs:
            arc = next(iter(self.door.arcs.values()))
            longer = arc.length / self._losses.length_there()
            return 1.0 - part + part * self.door.keys.drift(longer)
        streams = self.door.streams
        held = [self._losses.share_there(StreamSet.of(stream)) for stream in streams]
        taken = 1.0 - sum(self.door.left_out.values()) / max(1, self._count)
        ratio = taken * len(held) / sum(held)
        return 1.0 - part + part * ratio ** (len(streams) - 1)

    def _tell(self) -> None:
        """Note when the query gets short, and when it has recovered."""
        allowed = self._grant.probes
        short = self._is_rationed or self._need > allowed or self.owes
        self.book.note(self._now, short, self._need, max(0.0, allowed))

    # -- between pushes ----------------------------------------------------------------------

    @property
    def is_thin(self) -> bool:
        """Whether states lack what they would have if every probe had been made."""
        return self.owes or self._losses.is_thin

    def keep_from(self, alias: str, before: int) -> int:
        """Rows of ``alias`` that died before this instant may go; ``before`` if nothing is owed."""
        return self._debts.keep_from(alias, before, self._now)

    def keep_all_from(self, before: int) -> int:
        """The same for whatever is made of several streams."""
        return self._debts.keep_all_from(before)

    def lull(self, before: int) -> Lull | None:
        """What was born after the first instant and died before the second is needed by nobody."""
        return self._debts.lull(before)

    def accounts(self, events: int = MOST_EVENTS) -> dict[str, Any]:
        """What was done and lost so far, with the last ``events``."""
        self.settle()
        return {
            **self.book.to_json(events),
            **self._losses.to_json(),
            "pushes": self._pushes,
            "budget": self.budget.to_json(),
            "found": self._counts.to_json(),
            "carried": [[sorted(o), each] for o, each in self._debts.carried.items()],
            "left_out": dict(self.door.all_left_out),
        }

    def take_over(self, accounts: Mapping[str, Any]) -> None:
        """Go on from the accounts of another engine that has done the same."""
        self.settle()
        self.book.load_json(accounts)
        self._losses.load_json(accounts)
        if "budget" not in accounts:  # Of an earlier version.
            return
        self._pushes = accounts["pushes"]
        self.budget.load_json(accounts["budget"])
        self.door.all_left_out = Counter(accounts.get("left_out", {}))
        self._counts.load_json(accounts["found"])
        if self._tree.rationing is not None:
            carried = {StreamSet(origin): each for origin, each in accounts["carried"]}
            self._tree.rationing.carried = carried

    def to_json(self) -> dict[str, Any]:
        """What was done so far, for a checkpoint."""
        return self.accounts()

    def load_json(self, values: Mapping[str, Any], now: int) -> None:
        """Go on from a checkpoint."""
        self._losses = Losses(self._tree)
        self.take_over(values)
        self._now = now

    def measure(self) -> dict[str, Any]:
        """What a person wants to know, as plain values. Times are in seconds, instants in ticks."""
        self.settle()
        since = self.book.since
        missed = self._losses.missed
        return {
            "policy": self.option.policy,
            "budget": str(self.budget),
            "short": since is not None,
            "since": since,
            "short_for": 0.0 if since is None else (self._now - since) / self._second,
            "needed": _plain(self._need),
            "allowed": _plain(max(0.0, self._grant.probes)),
            **self.book.totals,
            "lost": {"results": missed.results, "error": missed.error},
            "staleness": {a: age / self._second for a, age in self.freshness.ages.items()},
            "freshness": {a: f / self._second for a, f in self.freshness.asked.items()},
            "left_out": dict(self.door.all_left_out),
            "keys": self.door.length,
            "parts": self._parts(),
            "debt": self._debts.measure(self._now, self._second),
            "shares": {str(o): each for o, each in self._shares.shares.items()} if since else {},
            "allocation": str(self._shares.allocation)
            if since and self._shares.allocation
            else None,
            "events": list(self.book.events),
        }


def _plain(value: float) -> int | None:
    return round(value) if math.isfinite(value) else None
