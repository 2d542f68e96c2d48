"""Which strategy a change of plan takes: what each would cost, and how long it would halt.

Three prices, in CPU seconds (:class:`Prices`):

- *Moving state* makes all that is missing before the next answer. What that takes is not modelled
  but tried: the first rows are completed in lots of growing size, and what one row more takes is
  what the second lot took beyond the first (:class:`~penstock.engine.completion.trial.Trial`).
  That work is not lost, whoever goes on
  with it.
- *JISC* makes the same on demand and beside pushes. Until nothing is missing every push asks for it
  first, for each state that lacks something: a price per push, and the number of pushes is what
  there is to complete over what is completed beside each.
- *Parallel track* works off every push twice until the rows of now have died.

**The rule.** JISC and moving state do the same work, and JISC pays for asking on top; so moving
state is cheaper in all, and halts. It is taken where its halt is within the budget (``max_halt``,
by default two pushes as they have been lately), JISC elsewhere. The budget is kept by the clock,
not by the price: a trial that takes longer is given up, and what it has made is where JISC
begins. Parallel track is dearer than JISC wherever a window is longer than a few pushes, and
needs memory for both plans: it is priced, so that one can see that, and left to whoever asks for
it.

**Fitted while the query runs.** What a change costs is measured where the work is done
(:mod:`penstock.engine.completion.change_time`), until nothing is missing any more or the older plan
has ended. What of it was not completing, against the price of asking, corrects the next price of
asking, what the older plan took that of parallel track (:meth:`ChangeCosts.learn`); and the whole
of it, against the price that a controller went by, corrects what the controller thinks that changes
cost. Of a change that another one overtakes nothing is learnt.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from statistics import median

from penstock.engine.completion.trial import COMPLETED_PER_ROW, Trial, Work

ASKING = 2e-4
"""CPU seconds of a push to ask for what one state lacks: 0.1 to 0.4 ms were measured."""
NORMAL_PUSHES = 2.0
"""Normal pushes that a change may halt the query for, if nobody says how long."""
_RECENT_PUSHES = 15
"""Pushes whose median is a normal one."""
_LEARNING = 0.5
"""The weight of the latest change in what is learnt."""
_MOST_DEAR = 8.0
"""Times its price that a change is believed to cost at most, and the reverse at least."""


@dataclass(frozen=True, slots=True)
class Prices:
    """CPU seconds beyond normal pushes, by strategy."""

    jisc: float
    moving_state: float
    """All of it before the next answer."""
    parallel_track: float


@dataclass(frozen=True, slots=True)
class StrategyChoice:
    """A strategy and why it was taken."""

    strategy: str
    reason: str
    prices: Prices | None = None
    budget: float = 0.0
    """CPU seconds that the change may halt the query for."""

    def numbers(self) -> dict[str, float]:
        """What the choice rests on, by name."""
        if self.prices is None:
            return {}
        return {
            "jisc_cost": self.prices.jisc,
            "moving_state_cost": self.prices.moving_state,
            "parallel_track_cost": self.prices.parallel_track,
            "max_halt": self.budget,
        }


class ChangeCosts:
    """What normal pushes cost, and what changes of plan have cost against their prices."""

    def __init__(self, max_halt: float | None) -> None:
        """``max_halt`` is in seconds; None for :data:`NORMAL_PUSHES`."""
        self._max_halt = max_halt
        self._recent: deque[float] = deque(maxlen=_RECENT_PUSHES)
        self.ratio = 1.0
        """What asking has cost over what it is priced at, lately."""
        self.parallel_ratio = 1.0
        """What an older plan that runs beside has cost over normal pushes, lately."""

    def note_push(self, seconds: float) -> None:
        """A push took so many CPU seconds, and nothing was missing."""
        self._recent.append(seconds)

    @property
    def push(self) -> float:
        """CPU seconds of a normal push; 0 if there was none."""
        return median(self._recent) if self._recent else 0.0

    @property
    def budget(self) -> float:
        """CPU seconds that a change may halt the query for."""
        return NORMAL_PUSHES * self.push if self._max_halt is None else self._max_halt

    def learn(self, strategy: str, prices: Prices, cost: float) -> None:
        """A change with these ``prices`` has ``cost`` so many CPU seconds."""
        asking = prices.jisc - prices.moving_state
        if strategy == "jisc" and asking > 0:
            self.ratio = corrected(self.ratio, (cost - prices.moving_state) / asking)
        elif strategy == "parallel-track" and prices.parallel_track > 0:
            self.parallel_ratio = corrected(self.parallel_ratio, cost / prices.parallel_track)

    def prices(self, work: Work, moving: float, rows: int, window: int) -> Prices:
        """What to complete ``work`` costs, if to do it at once costs ``moving``. ``rows`` are those
        of a push, ``window`` those of all windows."""
        rows = max(1, rows)
        pushes = min(work.rows / (COMPLETED_PER_ROW * rows), window / rows)
        return Prices(
            moving + self.ratio * ASKING * work.states * (1 + pushes),
            moving,
            self.parallel_ratio * self.push * window / rows,
        )

    def choice(self, work: Work, trial: Trial, rows: int, window: int) -> StrategyChoice:
        """The strategy of a change after a ``trial`` of its ``work``; ``rows`` and ``window`` are
        as for :meth:`prices`."""
        tried = trial.spent + trial.ahead
        moving = work.likely if trial.is_least else tried
        prices = self.prices(work, moving, rows, window)
        allowed = f"a change may halt it for {_text(self.budget)}"
        if trial.is_done:
            reason = f"to complete all took {_text(moving)}, and {allowed}"
            return StrategyChoice("moving-state", reason, prices, self.budget)
        about = "at least" if trial.is_least else "about"
        reason = f"to complete all would take {about} {_text(tried)}, and {allowed}"
        return StrategyChoice("jisc", reason, prices, self.budget)


NOTHING_MISSING = StrategyChoice("jisc", "the new plan lacks nothing")


def corrected(ratio: float, found: float) -> float:
    """The ratio of cost to price from now on, if a price that it was part of has been ``found`` to
    be so many times too low."""
    found = ratio * min(_MOST_DEAR, max(1 / _MOST_DEAR, found))
    mixed = math.exp((1 - _LEARNING) * math.log(ratio) + _LEARNING * math.log(found))
    return min(_MOST_DEAR, max(1 / _MOST_DEAR, mixed))


def _text(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms"
