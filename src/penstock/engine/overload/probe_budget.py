"""How much a push may do: tokens that time brings and work takes.

A budget of ``probes`` counts probes per second of event time. Tokens may be saved up to a burst. A
push that made more probes than it was allowed (what a probe finds is known only afterwards) leaves
a deficit, which later pushes make good.

A budget of ``cpu`` is an account of CPU seconds. What comes in is a share of the time in which rows
*arrive*: event time, or the time that the engine has stood idle since the push before, whichever is
more. So who replays a day in a minute is not short, who falls behind does not get more for being
slow, and where event time stands still the clock does not. On the arrival line there is the clock
alone. What goes out is what pushes took, from their first check of the rows to the last byte of
their answer, as measured. A deficit stays on the account, and at most a fifth of what comes in is
used to make it good, so that a query always goes on.

A budget of ``seconds`` is wall time per push, which passes unused: nothing is saved or owed. It has
an end by the clock, and who works in slices can ask how much still fits
(:meth:`ProbeBudget.fitting`).

Seconds become work, that is probes and what they lead to at the prices of
:mod:`penstock.overload.prices`, by what rows and work have cost
(:mod:`penstock.engine.overload.probe_cost`); what rows and results take afterwards, in the engine
and in a host that hands them on, is kept apart (:meth:`ProbeBudget.note_after`).

Clocks are parameters: event time comes with the push, CPU and wall time from functions that a test
can replace. A push that others must be able to repeat (:meth:`ProbeBudget.hold`) asks no clock what
it may do: it has the seconds that it is told, the interval and the costs that were measured before
it. What it takes is measured as ever, for those after it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from penstock.engine.overload.credit import MOST_PUSHES, Credit
from penstock.engine.overload.fitted_line import FittedLine
from penstock.engine.overload.overload import Overload
from penstock.engine.overload.probe_cost import ProbeCost
from penstock.overload.prices import PROBES, Prices

Now = Callable[[], float]
Part = Literal["output", "host rows", "host results"]
"""What comes after the joins: results made into a table, then what a host does with both."""

_MOST_LATER = 0.75
"""No more of the time than this is kept for what comes after the joins: else all would stand still
where a host is too slow for any budget."""
_MOST_OWED = 10.0
"""Seconds of arrival whose CPU a deficit may amount to, or as many pushes: a machine that stood
still once must not stop a query for hours."""
_REPAID = 0.2
"""The part of what comes in that makes a deficit good: the rest is for the rows that come."""
_SOON, _OBSERVED = 24, 4
"""After so many pushes costs are learned from one in so many: it takes as long as a small push."""
_SPENT = 0.2
"""The part of what is saved that a push may use which does not fit in anyway: pushes that are all
limited alike find more than some that are whole and some that find nothing."""

WORK = Prices(row=4.4, match=2.4, stored=1.5, result=2.7)
"""By the unit costs of the cost model: a probe takes 7 ns, a row that comes in and goes 30.5, a
match 17, to store it and to let it go again 10.5, to hand on a result 19."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a push may do: ``probes``, or so much work, of which ``saved`` are from before."""

    probes: float
    saved: float


class ProbeBudget:
    """The budget of ``option``; without one, a whole core."""

    def __init__(
        self, option: Overload, cpu_time: Now = time.thread_time, wall_time: Now = time.perf_counter
    ) -> None:
        self._option = option
        self._wall_time = wall_time
        self._cost_time = cpu_time if option.seconds is None else wall_time
        self._share = option.cpu if option.has_budget else 1.0
        self._tokens = option.probes * option.burst if option.probes is not None else 0.0
        self._balance = (self._share or 0.0) * option.burst
        """CPU seconds on the account."""
        self._income = 0.0
        """CPU seconds that the push at hand has brought."""
        self._last_start: float | None = None
        self._last_end: float | None = None
        self._interval: float | None = None
        """Seconds between the starts of the last two pushes."""
        self._closed = self._late = 0.0
        """When the last push was paid for, and seconds that were spent after that."""
        self._passed_end = 0.0
        """When the last push was done that has passed under the door."""
        self._idle = 0.0
        """Seconds between the last push and the one at hand."""
        self._is_held = False
        """Whether the push at hand is to be repeatable."""
        self._start = self._entered = self._mark = 0.0
        self._is_marked = False
        """Whether the push at hand has been measured from its first row on."""
        self._is_charged = False
        """Whether the push at hand is paid for by the account."""
        self._deadline = math.inf
        self._allowed = 0.0
        self._rows = 0
        self._taken = 0.0, 0.0
        self._is_warm = False
        self._unobserved = 0
        """Pushes from which nothing was learned about costs."""
        self.cost = ProbeCost()
        self.late_cost = ProbeCost()
        """What owed probes cost, which look back over windows that were held for them."""
        self._after: dict[Part, FittedLine] = dict.fromkeys(get_args(Part), FittedLine())
        self._all_rows = 0

    def credit(
        self,
        costs: Mapping[str, tuple[float, float]],
        grant: Grant,
        ticks: float,
        now: int,
        work: Callable[[], float],
        is_limited: bool,
        at_the_door: int = 0,
    ) -> Credit | None:
        """Credit after a push that was granted ``grant``; None if there cannot be any.

        With ``at_the_door`` so many pushes may pass under it.

        ``costs`` are the work and results that a row of each stream leads to, ``ticks`` of event
        time are a second, or 0 if there is none, ``now`` is event time, ``work`` counts all since
        the start. Unless it ``is_limited``, nobody keeps to the budget.
        """
        option = self._option
        if option.seconds is not None or not math.isfinite(grant.probes):
            return None
        left = self._balance if self.is_timed else self._tokens
        if is_limited and (left < 0 or (self.is_timed and not self.cost.is_known)):
            return None
        began = self._wall_time()
        if not self.is_timed:
            assert option.probes is not None
            prices = {stream: work for stream, (work, _) in costs.items()}
            rate, most = option.probes / ticks, self._most()
            each_push, each_row, each_probe = 0.0, 0.0, 1.0
        else:
            each_push, each_row, each_probe = self.cost.costs
            prices = {
                stream: each_row + each_probe * work + self._each_result * results
                for stream, (work, results) in costs.items()
            }
            assert self._share is not None
            rate = self._share / (ticks or 1.0)
            most = option.burst * max(self._share, self._income)
        return Credit(
            prices,
            2 * max(1, self._all_rows),
            self.is_timed and not ticks,
            is_limited,
            left,
            rate,
            most,
            each_push,
            each_row,
            each_probe,
            float(now) if ticks else self._start,
            began,
            now,
            self._wall_time,
            work,
            work(),
            at_the_door or MOST_PUSHES,
            at_the_door > 0,
        )

    @property
    def is_timed(self) -> bool:
        """Whether the budget is time, so that what a push costs has to be measured."""
        return self._option.probes is None

    def __str__(self) -> str:
        option = self._option
        if option.probes is not None:
            return f"{option.probes:g} probes/s of event time"
        if option.seconds is not None:
            return f"{option.seconds:g} s per push"
        return f"{self._share:g} of a core"

    def start(self, seconds: float | None = None, has_credit: bool = False) -> None:
        """A push comes in, which may take so long, or as long as the option says.

        One that ``has_credit`` is measured from where it turns out to need more than that.
        """
        self._is_marked = self.is_timed and not has_credit
        if self._is_marked:
            self._entered = self._mark = self._cost_time()
        self._is_charged = False
        if self._option.seconds is not None:
            self._allowed = self._option.seconds if seconds is None else seconds
            self._deadline = self._wall_time() + self._allowed

    def hold(self) -> None:
        """The push that comes in asks no clock: it has all its time until it is done."""
        self._is_held = True

    @property
    def seconds_left(self) -> float:
        """What is left of the time of this push; negative if it is over."""
        return self._allowed if self._is_held else self._deadline - self._wall_time()

    @property
    def share_left(self) -> float:
        """The same as a part of all the time of the push."""
        return self.seconds_left / self._allowed if self._allowed > 0 else 0.0

    def begin(
        self, rows: int, seconds: float | None, given: float | None, results: float = 0.0
    ) -> Grant:
        """A push of ``rows`` that takes event time on by ``seconds``, None if there is no event
        time; ``given`` by the host.

        ``results`` are to be expected per unit of work.
        """
        if self.is_timed:
            if not self._is_marked:
                self._entered = self._mark = self._cost_time()
            self._start = self._wall_time()
            if not self._is_held:
                self._note_interval()
        self._rows = self._all_rows = rows
        if given is not None:
            return Grant(given, 0.0)
        self._is_charged = True
        return Grant(self._tokens + self._new(rows, seconds, results), self._tokens)

    def _note_interval(self) -> None:
        if self._last_start is not None and self._start >= self._last_start:
            self._interval = self._start - self._last_start
        if self._last_end is not None:
            self._idle = max(0.0, self._start - self._last_end)

    def _new(self, rows: int, seconds: float | None, results: float) -> float:
        option = self._option
        if option.probes is not None:
            return option.probes * (seconds or 0.0)
        if option.seconds is not None:
            if self._deadline == math.inf:
                self.start()
            return self.fitting(rows, results, 0)
        assert self._share is not None
        if seconds is not None:
            self._income = self._share * max(seconds, self._idle)
        elif self._interval is None:
            self._income = 0.0
            return math.inf  # Nothing to compare with: the first push is measured.
        else:
            self._income = self._share * self._interval
        spare = self._income + max(self._balance, -_REPAID * self._income)
        return self.cost.probes_in(spare, rows, results, self._each_result)

    def fitting(self, rows: int, results: float, made: int, late: bool = False) -> float:
        """The work that fits into what is left of the time, beside storing ``rows``.

        A unit of work makes so many ``results``, and ``made`` results are to be handed on already.
        Probes that were owed (``late``) have a cost of their own, as soon as it is known.
        """
        later = sum(line.fixed for line in self._after.values())
        later += self._after["host rows"].each * self._all_rows + self._each_result * made
        left = self.seconds_left - min(later, _MOST_LATER * self._allowed)
        cost = self.late_cost if late and self.late_cost.is_known else self.cost
        return cost.probes_in(left, rows, results, self._each_result)

    @property
    def _each_result(self) -> float:
        """Seconds that a result takes after the joins."""
        return self._after["output"].each + self._after["host results"].each

    @property
    def late_premium(self) -> float:
        """What a probe that was owed costs, in probes of this push."""
        if not (self.is_timed and self.late_cost.is_known):
            return 1.0
        return self.late_cost.costs.probe / self.cost.costs.probe

    @property
    def prices(self) -> Prices:
        """What counts beside probes, as far as it is work."""
        return WORK if self.is_timed else PROBES

    @property
    def means(self) -> float:
        """Seconds that there are for the push at hand if those after it are to have as many; no end
        where only probes count."""
        if not self.is_timed:
            return math.inf
        if self._option.seconds is not None:
            return self._allowed
        return (
            self._income
            + max(-_REPAID * self._income, min(self._balance, 0.0))
            + (_SPENT * max(0.0, self._balance))
        )

    @property
    def later_price(self) -> float:
        """What a result costs after the joins, in probes; 0 where only probes count."""
        return self._each_result / self.cost.costs.probe if self.is_timed else 0.0

    @property
    def rows_left(self) -> int:
        """Rows of the push that have not been noted."""
        return self._rows

    def note(self, rows: int, work: float, late: bool = False) -> None:
        """Since the last call, or the begin of the push, this was done."""
        if not self.is_timed:
            return
        now = self._cost_time()
        if late:
            self.late_cost = self.late_cost.observe(rows, work, now - self._mark)
        elif self._is_warm and (self._option.seconds is not None or self._is_to_observe):
            # At first there may be something to load or to compile.
            self.cost = self.cost.observe(rows, work, now - self._mark)
            if self._option.seconds is None:  # What a push took too long is on the account.
                self.cost = self.cost.steady
        self._is_warm |= rows + work > 0
        self._mark = now
        self._rows = max(0, self._rows - rows)

    @property
    def _is_to_observe(self) -> bool:
        """Whether costs are to be learned from the push at hand, where an account has what they
        were in any case."""
        self._unobserved += 1
        if self.cost.pushes > _SOON and self._unobserved < _OBSERVED:
            return False
        self._unobserved = 0
        return True

    def skip(self) -> None:
        """What was done since the last call of :meth:`note` says nothing about costs."""
        self._mark = self._cost_time()

    def note_after(self, part: Part, count: int, seconds: float) -> None:
        """So many rows or results took so long afterwards."""
        self._after[part] = self._after[part].through(count, seconds)

    def end(self, grant: Grant, used: float, noted: float = 0.0, results: int = 0) -> None:
        """The push is done: so much work was ``used``, of which ``noted`` has been noted."""
        if self.is_timed:
            if used > noted or self._rows:
                self.note(self._rows, used - noted)
            elif self._is_warm:
                self.note_after("output", results, self._cost_time() - self._mark)
            if self._is_held:
                self._note_interval()
            self._last_start = self._start
        self._deadline, self._is_held = math.inf, False
        self._save(grant, used)

    def close(self) -> None:
        """All that the push has to do is done, and its answer is made: it is paid for."""
        if not (self._is_charged and self.is_timed):
            return
        self._is_charged = False
        self._closed = self._cost_time()
        took, self._late = self._closed - self._entered + self._late, 0.0
        self._taken = took, self.means
        if self._option.seconds is None:
            self._last_end = self._wall_time()
            self._settle_account(took)

    def spent(self) -> float:
        """Seconds that were spent since any instant; only differences mean something."""
        return self._cost_time()

    def close_late(self) -> None:
        """What had still to be done after :meth:`close` is done: the next push pays for it."""
        self._late = self._cost_time() - self._closed

    def let_pass(self) -> float:
        """A push under the door is done that was not looked at: the seconds that it took."""
        self._passed_end = self._wall_time()
        return self._cost_time() - self._entered

    def taken(self) -> tuple[float, float]:
        """Seconds of the push that was just closed, and those that there were for it; 0 if it was
        not looked at."""
        found, self._taken = self._taken, (0.0, 0.0)
        return found

    def settle(
        self,
        pushes: int,
        rows: int,
        seconds: float | None,
        results: float,
        start: float,
        used: float,
        took: float = 0.0,
    ) -> Grant:
        """Pushes that were not looked at are done, and count as one: the last of them began at
        ``start``, and they did work of ``used``, and ``took`` so many seconds if that was measured.
        What they were allowed."""
        end = self._passed_end if took else start
        self._start = start - took  # So long the engine did not stand idle.
        self._note_interval()
        grant = Grant(self._tokens + self._new(rows, seconds, results), self._tokens)
        if self.is_timed:
            self._last_start, self._last_end = start, end
            if self._option.seconds is None:
                costs = self.cost.costs
                foreseen = costs.push * pushes + costs.row * rows + costs.probe * used
                self._taken = took, self.means
                self._settle_account(took or foreseen)
        self._save(grant, used)
        return grant

    def _settle_account(self, seconds: float) -> None:
        """The push has taken ``seconds`` of CPU."""
        assert self._share is not None
        unit = max(self._share, self._income)
        left = self._balance + self._income - seconds
        self._balance = max(-_MOST_OWED * unit, min(left, self._option.burst * unit))

    def _save(self, grant: Grant, used: float) -> None:
        """Keep what is left of ``grant``, or note a deficit, where probes are counted."""
        if self._option.probes is not None:
            most = self._most()
            left = grant.probes - used
            self._tokens = max(-most, min(left, most))

    def to_json(self) -> dict[str, Any]:
        """All that was measured, and tokens that were saved."""
        return {
            "tokens": self._tokens,
            "balance": self._balance,
            "started": self._last_start,
            "interval": self._interval,
            "warm": self._is_warm,
            "cost": self.cost.to_json(),
            "late cost": self.late_cost.to_json(),
            "after": {part: asdict(line) for part, line in self._after.items()},
        }

    def load_json(self, values: Mapping[str, Any]) -> None:
        """Go on from what :meth:`to_json` wrote down."""
        self._tokens, self._is_warm = values["tokens"], values["warm"]
        self._balance = values.get("balance", self._balance)
        self._last_start, self._interval = values["started"], values["interval"]
        self.cost = ProbeCost.from_json(values["cost"])
        self.late_cost = ProbeCost.from_json(values["late cost"])
        self._after |= {part: FittedLine(**line) for part, line in values["after"].items()}

    def _most(self) -> float:
        """The most tokens that are saved, or owed: a single slip must not stop everything."""
        assert self._option.probes is not None
        return max(1.0, self._option.probes * self._option.burst)
