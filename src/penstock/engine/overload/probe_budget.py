"""How many probes a push may make: tokens that time brings and probes take.

Tokens may be saved up to a burst, but not time per push, which passes unused. A push that made more
probes than it was allowed (what a probe finds is known only afterwards) leaves a deficit, which
later pushes make good.

Where the budget is time, what a push takes is measured in parts: storing and probing
(:mod:`penstock.engine.overload.probe_cost`), and what rows and results take afterwards, in the
engine and in a host that hands them on (:meth:`ProbeBudget.note_after`). A budget of time per push
has an end by the clock, and who works in slices can ask how much still fits
(:meth:`ProbeBudget.fitting`).

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

from penstock.engine.overload.credit import Credit
from penstock.engine.overload.fitted_line import FittedLine
from penstock.engine.overload.overload import Overload
from penstock.engine.overload.probe_cost import ProbeCost

Now = Callable[[], float]
Part = Literal["output", "host rows", "host results"]
"""What comes after the joins: results made into a table, then what a host does with both."""

_MOST_LATER = 0.75
"""No more of the time than this is kept for what comes after the joins: else all would stand still
where a host is too slow for any budget."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a push may do: ``probes`` in all, of which ``saved`` are from before."""

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
        self._last_start: float | None = None
        self._interval: float | None = None
        """Seconds between the starts of the last two pushes."""
        self._is_held = False
        """Whether the push at hand is to be repeatable."""
        self._start = self._mark = 0.0
        self._deadline = math.inf
        self._allowed = 0.0
        self._rows = 0
        self._is_warm = False
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
        probes: Callable[[], int],
    ) -> Credit | None:
        """Credit after a push that was granted ``grant``; None if there cannot be any.

        ``costs`` are the probes and results that a row of each stream leads to, ``ticks`` of event
        time are a second, ``now`` is event time, ``probes`` counts those since the start.
        """
        option = self._option
        if option.seconds is not None or not math.isfinite(grant.probes):
            return None
        is_limited = option.policy != "exact"
        if is_limited and (self._tokens < 0 or (self.is_timed and not self.cost.is_known)):
            return None
        began = self._wall_time()
        if not self.is_timed:
            assert option.probes is not None
            prices = {stream: probes for stream, (probes, _) in costs.items()}
            rate, since, most = option.probes / ticks, float(now), self._most(grant)
            each_row, each_probe, tokens = 0.0, 1.0, self._tokens
        else:
            each_row, each_probe = self.cost.costs
            after = each_probe + self._each_result
            prices = {
                stream: each_row + each_probe * probes + after * results
                for stream, (probes, results) in costs.items()
            }
            assert self._share is not None
            rate, since, most = self._share, self._start, math.inf
            tokens = self._tokens * each_probe
        return Credit(
            prices,
            2 * max(1, self._all_rows),
            self.is_timed,
            is_limited,
            tokens,
            rate,
            most,
            each_row,
            each_probe,
            since,
            began,
            now,
            self._wall_time,
            probes,
            probes(),
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

    def start(self, seconds: float | None = None) -> None:
        """A push comes in, which may take so long, or as long as the option says."""
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

    def begin(self, rows: int, seconds: float, given: float | None, results: float = 0.0) -> Grant:
        """A push of ``rows`` that takes event time on by ``seconds``; ``given`` by the host.

        ``results`` are to be expected per probe: to make one costs about as much as a probe.
        """
        if self.is_timed:
            self._start, self._mark = self._wall_time(), self._cost_time()
            if not self._is_held:
                self._note_interval()
        self._rows = self._all_rows = rows
        if given is not None:
            return Grant(given, 0.0)
        return Grant(self._tokens + self._new(rows, seconds, results), self._tokens)

    def _note_interval(self) -> None:
        if self._last_start is not None and self._start >= self._last_start:
            self._interval = self._start - self._last_start

    def _new(self, rows: int, seconds: float, results: float) -> float:
        option = self._option
        if option.probes is not None:
            return option.probes * seconds
        if option.seconds is not None:
            if self._deadline == math.inf:
                self.start()
            return self.fitting(rows, results, 0)
        if self._interval is None:
            return math.inf  # Nothing to compare with: the first push is measured.
        assert self._share is not None
        spare = self._share * self._interval
        return self.cost.probes_in(spare, rows, results, self._each_result)

    def fitting(self, rows: int, results: float, made: int, late: bool = False) -> float:
        """The probes that fit into what is left of the time, beside storing ``rows``.

        A probe makes so many ``results``, and ``made`` results are to be handed on already. Probes
        that were owed (``late``) have a cost of their own, as soon as it is known.
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
        return self.late_cost.per_probe(0.0) / self.cost.per_probe(0.0)

    def seconds_of(self, results: float) -> float:
        """What a probe costs that makes so many results."""
        return self.cost.per_probe(results, self._each_result)

    @property
    def rows_left(self) -> int:
        """Rows of the push that have not been noted."""
        return self._rows

    def note(self, rows: int, probes: int, results: int, late: bool = False) -> None:
        """Since the last call, or the begin of the push, this was done."""
        if not self.is_timed:
            return
        now = self._cost_time()
        if late:
            self.late_cost = self.late_cost.observe(rows, probes + results, now - self._mark)
        elif self._is_warm:  # At first there may be something to load or to compile.
            self.cost = self.cost.observe(rows, probes + results, now - self._mark)
        self._is_warm |= rows + probes > 0
        self._mark = now
        self._rows = max(0, self._rows - rows)

    def skip(self) -> None:
        """What was done since the last call of :meth:`note` says nothing about costs."""
        self._mark = self._cost_time()

    def note_after(self, part: Part, count: int, seconds: float) -> None:
        """So many rows or results took so long afterwards."""
        self._after[part] = self._after[part].through(count, seconds)

    def end(self, grant: Grant, used: int, noted: int = 0, results: int = 0) -> None:
        """The push is done: ``used`` probes were made, of which ``noted`` have been noted."""
        if self.is_timed:
            if used > noted or self._rows:
                self.note(self._rows, used - noted, 0)
            elif self._is_warm:
                self.note_after("output", results, self._cost_time() - self._mark)
            if self._is_held:
                self._note_interval()
            self._last_start = self._start
        self._deadline, self._is_held = math.inf, False
        self._save(grant, used)

    def settle(self, rows: int, seconds: float, results: float, start: float, used: int) -> Grant:
        """Pushes that were not looked at are done, and count as one: the last of them began at
        ``start``, and they made ``used`` probes. What they were allowed."""
        self._start = start
        self._note_interval()
        grant = Grant(self._tokens + self._new(rows, seconds, results), self._tokens)
        if self.is_timed:
            self._last_start = start
        self._save(grant, used)
        return grant

    def _save(self, grant: Grant, used: int) -> None:
        """Keep what is left of ``grant``, or note a deficit."""
        left = grant.probes - used
        if math.isinf(left):
            left = 0.0
        self._tokens = max(-self._most(grant), min(left, self._most(grant)))

    def to_json(self) -> dict[str, Any]:
        """All that was measured, and tokens that were saved."""
        return {
            "tokens": self._tokens,
            "started": self._last_start,
            "interval": self._interval,
            "warm": self._is_warm,
            "cost": asdict(self.cost),
            "late cost": asdict(self.late_cost),
            "after": {part: asdict(line) for part, line in self._after.items()},
        }

    def load_json(self, values: Mapping[str, Any]) -> None:
        """Go on from what :meth:`to_json` wrote down."""
        self._tokens, self._is_warm = values["tokens"], values["warm"]
        self._last_start, self._interval = values["started"], values["interval"]
        self.cost = ProbeCost(**values["cost"])
        self.late_cost = ProbeCost(**values["late cost"])
        self._after |= {part: FittedLine(**line) for part, line in values["after"].items()}

    def _most(self, grant: Grant) -> float:
        """The most tokens that are saved, or owed: a single slip must not stop everything."""
        option = self._option
        if option.seconds is not None:
            return 0.0  # The time of one trigger is of no use to the next.
        if option.probes is not None:
            return max(1.0, option.probes * option.burst)
        fresh = grant.probes - grant.saved
        return max(1.0, fresh * option.burst) if math.isfinite(fresh) else 1.0
