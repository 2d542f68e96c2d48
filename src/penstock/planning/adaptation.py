"""When to change the plan of a running query: the controller's decision, as a pure function.

Every now and then the controller looks: with the statistics of the moment it prices the plan that
runs and the best plan there is, and :func:`look` decides to keep or to migrate. A change costs
(:mod:`penstock.planning.migration_cost`), and what it gains depends on how long the streams stay as
they are, which nobody knows.

**The rule.** For every rival, a plan that was best at some look, *credit* adds up what it would
have saved since the present plan runs: ``credit ← max(0, credit + (cpu − cpu of rival) · time)``,
with the mean of two looks for the time between them. Migrate when

    credit + gain · trust · W  ≥  cost of the change,     W: the longest window.

With ``trust`` = 0 this is the rule for hiring skis: change when the regret has become as large as
the price. Total cost is then within a small constant factor of that of somebody who knows the
future (it is a metrical task system, Borodin, Linial and Saks, JACM 1992), whatever the streams do;
and when selectivities swing to and fro, credit that was won in one swing is lost in the other,
and the plan stays. But hiring skis first is a waste when streams do change for long. So there is
trust that things stay as they are for a while, ``trust · W`` seconds: more after a change that has
repaid its cost before the next one, half after one that has not.

**Which rival.** Several plans may be about equally good, and one of them much dearer to get to than
another. Of the plans that are clearly better, up to :data:`RIVALS` with the least CPU, the rival is
the one that costs least over a window with the change paid. That is for up to
:data:`STREAMS_COMPARED` streams; beyond, it is the plan with the least CPU.

**Bursts.** Not every gain is trusted. One below :data:`WORTHWHILE` of the present cost may be a
mistake of the estimates; and one that there is only with the statistics of the moment, and not with
those of several windows, is that of a burst, which will be over. Such gains have no horizon: the
credit alone must pay for the change. Nothing is vetoed: a small gain that lasts, or a burst that
does not end, pays in time.

**Lessons.** What the plan that runs has cost is measured, in CPU seconds per second and in bytes,
and its ratio to the model is remembered for that plan (:mod:`penstock.planning.lessons`). A plan
that was left because the model flattered another is come back to when the other has been measured.

**Limits** go first. If the present plan is over a limit and another is within, that one is taken
at once. If none is within, the nearest is taken when it is clearly nearer, and every such decision
says so (``exceeded``): a running query is never stopped for want of a plan. To come back to a
cheaper plan, there must be some room below the limits (:data:`ROOM`): estimates swing too.

Everything is in seconds of event time and CPU seconds. No clock is read here: what was measured is
given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from penstock.plan.notation import read
from penstock.plan.plan import Plan, write
from penstock.planning.block import Cost
from penstock.planning.jtree_finder import jtree_finder
from penstock.planning.lessons import CALM, UNMEASURED, Lessons, Measured, learnt
from penstock.planning.limits import Limits
from penstock.planning.migration_cost import change_cost, migration_cost
from penstock.planning.mjoin_ordering import mjoin_ordering
from penstock.planning.planner import decide
from penstock.planning.problem import Candidate, Problem
from penstock.planning.verdict import (
    Choice,
    Refusal,
    Verdict,
    is_qualified,
    overrun,
    verdict_on,
)
from penstock.planning.written_cost import written_cost

Action = Literal["keep", "migrate"]
NOT_YET = "the gain does not repay the change yet"
FIRST = "the first batch says so"
AHEAD = "the push that comes says so"

WORTHWHILE = 0.1
"""The least gain that is trusted to last, as a share of what the present plan costs."""
ROOM = 0.9
"""The share of the limits that a plan must be within to be taken for its gain."""
CLEARLY = math.log(1.1)
"""By how much nearer to the limits another plan must be, when all are over them."""
DOUBTED = 0.15
"""The gain over one mjoin, as a share of its cost, that a first batch is not believed."""
MOST_TRUST = 1.0
LEAST_TRUST = 1 / 64
RIVALS = 4
"""Plans that have credit, at most; of more, those with the least lose it."""
SEVERAL = 16
"""Plans with the least modelled CPU that are compared by what was measured, at most."""
STREAMS_COMPARED = 4
"""Streams of a block up to which all its plans are compared; with more there are too many."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided, with the numbers that it rests on.

    CPU is a share of a core, memory bytes.
    """

    action: Action
    reason: str
    plan: str
    """The plan that was running."""
    rival: str
    """The best other plan, the new one if it migrates; the same as ``plan`` if there is none."""
    at: float
    """Event time since the first tuple, in seconds; arrivals on the arrival line."""
    cpu: float
    rival_cpu: float
    memory: float
    rival_memory: float
    cost: float
    """CPU seconds that the change costs."""
    credit: float
    """CPU seconds that the rival would have saved so far."""
    horizon: float
    """Seconds for which the gain is trusted to last."""
    exceeded: tuple[str, ...] = ()
    """The limits that even the plan that runs from now on exceeds: some of cpu and memory."""

    @property
    def gain(self) -> float:
        """CPU seconds per second."""
        return self.cpu - self.rival_cpu

    @property
    def shortfall(self) -> float:
        """CPU seconds that the rival has yet to save before the change to it is repaid."""
        return self.cost - self.credit - self.gain * self.horizon

    @property
    def runs(self) -> str:
        """The plan that runs from now on."""
        return self.rival if self.action == "migrate" else self.plan


@dataclass(frozen=True, slots=True)
class Memory:
    """What the controller remembers from look to look."""

    at: float | None = None
    """Seconds of event time at the last look."""
    credit: Mapping[str, float] = field(default_factory=dict)
    """CPU seconds by rival, without probe orders."""
    gains: Mapping[str, float] = field(default_factory=dict)
    """CPU seconds per second that each of them, and ``left``, would have saved at the last look."""
    trust: float = 0.5
    left: str | None = None
    """The plan before the last change of its own; None if that was not its own."""
    debt: float = 0.0
    """CPU seconds that the change cost and has not earned back; below 0 if it has."""
    ratios: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Measured over modelled CPU, and bytes, by plan without probe orders."""
    modelled: float | None = None
    """CPU of the plan that runs, by the model at the last look; None after a change."""

    def to_json(self) -> dict[str, Any]:
        return {
            "at": self.at,
            "credit": dict(self.credit),
            "gains": dict(self.gains),
            "trust": self.trust,
            "left": self.left,
            "debt": self.debt,
            "modelled": self.modelled,
            "ratios": {plan: list(ratio) for plan, ratio in self.ratios.items()},
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Memory:
        known = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        ratios = {plan: (cpu, size) for plan, (cpu, size) in known.get("ratios", {}).items()}
        return cls(**known | {"ratios": ratios})

    def repriced(self, factor: float) -> Memory:
        """The model says ``factor`` times as much of CPU as it did; what was measured is the
        same."""
        ratios = {plan: (cpu / factor, size) for plan, (cpu, size) in self.ratios.items()}
        modelled = None if self.modelled is None else self.modelled * factor
        return replace(self, ratios=ratios, modelled=modelled)

    def afresh(self, at: float) -> Memory:
        """After a change by somebody else: nothing is held for or against any plan."""
        return Memory(at=at, trust=self.trust, ratios=self.ratios)


def look(
    problem: Problem,
    plan: Plan,
    limits: Limits,
    memory: Memory,
    at: float,
    usual: Problem | None = None,
    measured: Measured = UNMEASURED,
    price_ratio: float = 1.0,
) -> tuple[Decision, Memory]:
    """Keep ``plan`` or migrate, at ``at`` seconds of event time; and what to remember.

    ``usual`` is the same with statistics over several windows, if there have been as many.
    ``measured`` is what ``plan`` has cost since the last look, ``price_ratio`` what changes have
    cost over their prices.
    """
    elapsed = 0.0 if memory.at is None else max(0.0, at - memory.at)
    modelled = written_cost(problem, plan)
    own = problem.outline_of(plan)
    then = memory.modelled
    if then is None or not 1 / CALM <= modelled.cpu / max(then, 1e-30) <= CALM:
        measured = replace(measured, cpu=None)
    lessons = Lessons(own, learnt(memory.ratios, own, modelled, measured))
    here = lessons.corrected(own, modelled)
    gains: dict[str, float] = {}
    if memory.left is not None:
        left = read(memory.left)
        gains[memory.left] = (
            here.cpu - lessons.corrected(problem.outline_of(left), written_cost(problem, left)).cpu
        )
        earned = -_mean(memory.gains, gains, memory.left) * elapsed
        memory = replace(memory, debt=memory.debt - earned)
    within = is_qualified(here, limits)
    aim = lessons.modelled(_with_room(limits) if within else limits)
    small = _small_choice(problem, plan, here, aim, lessons) if within else None
    verdict = small or best_plan(problem, aim)
    candidate = verdict.candidate if isinstance(verdict, Choice) else verdict.nearest
    outline = problem.outline(candidate)
    there = lessons.corrected(outline, candidate.cost)
    if isinstance(verdict, Choice) and not is_qualified(there, limits):
        # It has been tried, and needs more than the model says: store nothing instead.
        candidate = mjoin_ordering(problem)
        outline = problem.outline(candidate)
        there = lessons.corrected(outline, candidate.cost)
        verdict = verdict_on(
            Candidate(candidate.shapes, there), limits, "the plans that fit by the model do not"
        )
    rival = problem.plan_of(candidate)
    nothing_better = within and (isinstance(verdict, Refusal) or not is_qualified(there, limits))
    same_shape = candidate.shapes == problem.shapes_of(plan)
    if nothing_better or (same_shape and here.cpu <= there.cpu * (1 + 1e-9)):
        rival, there = plan, here
    gains[outline] = here.cpu - there.cpu
    for known in memory.credit:
        gains.setdefault(known, here.cpu - lessons.corrected(known, problem.price(read(known))).cpu)
    credit = {
        known: max(0.0, memory.credit.get(known, 0.0) + _mean(memory.gains, gains, known) * elapsed)
        for known in gains
        if known != memory.left
    }
    horizon = memory.trust * longest_window(problem)
    if gains[outline] < WORTHWHILE * here.cpu or _is_passing(usual, plan, rival, lessons):
        horizon = 0.0
    cost = price_ratio * migration_cost(problem, plan, rival)
    decision = Decision(
        "keep",
        "",
        write(plan),
        write(rival),
        at,
        here.cpu,
        there.cpu,
        here.memory,
        there.memory,
        cost,
        credit.get(outline, 0.0),
        horizon,
        () if within or isinstance(verdict, Choice) else _exceeded(here, limits),
    )
    decision = _decided(decision, verdict, here, there, limits)
    if decision.action == "keep":
        return decision, replace(
            memory,
            at=at,
            credit=_most(credit),
            gains=gains,
            ratios=lessons.ratios,
            modelled=modelled.cpu,
        )
    trust = memory.trust
    if memory.left is not None:
        trust = min(MOST_TRUST, 2 * trust) if memory.debt <= 0 else trust / 2
        trust = trust if trust >= LEAST_TRUST else 0.0
    left_plan = write(plan)
    return decision, Memory(
        at,
        gains={left_plan: -decision.gain},
        trust=trust,
        left=left_plan,
        debt=cost,
        ratios=lessons.ratios,
    )


def first_look(problem: Problem, plan: Plan, limits: Limits) -> Decision:
    """Begin with ``plan`` or another, while there are no windows yet and a change costs nothing.

    One batch may be that of a burst. An mjoin costs least to leave, and next to nothing to change,
    so a plan that stores joins has to be clearly better than the best mjoin.
    """
    here = written_cost(problem, plan)
    verdict = best_plan(problem, limits)
    candidate = verdict.candidate if isinstance(verdict, Choice) else verdict.nearest
    mjoin = mjoin_ordering(problem)
    if (
        isinstance(verdict, Choice)
        and is_qualified(mjoin.cost, limits)
        and candidate.cost.cpu > (1 - DOUBTED) * mjoin.cost.cpu
    ):
        candidate = mjoin
    rival, there = problem.plan_of(candidate), candidate.cost
    better = there.cpu < here.cpu or not is_qualified(here, limits)
    return Decision(
        "migrate" if better else "keep",
        FIRST if better else "it is the best plan",
        write(plan),
        write(rival if better else plan),
        0.0,
        here.cpu,
        there.cpu if better else here.cpu,
        here.memory,
        there.memory if better else here.memory,
        0.0,
        0.0,
        0.0,
        () if isinstance(verdict, Choice) else verdict.exceeded,
    )


def look_ahead(
    problem: Problem, plan: Plan, limits: Limits, seconds: float, price_ratio: float = 1.0
) -> Decision:
    """Keep ``plan`` for a push that lasts ``seconds`` and is unlike those before it, or change it.

    What comes after the push is not known, so what the change gains by its end must repay it. An
    mjoin is a rival as well: often it costs next to nothing to change to.
    """
    here, own = written_cost(problem, plan), problem.shapes_of(plan)
    verdict = best_plan(problem, limits)
    rivals = [mjoin_ordering(problem)]
    if isinstance(verdict, Choice):
        rivals.append(verdict.candidate)
    within = [each for each in rivals if is_qualified(each.cost, limits)] or rivals

    def change(candidate: Candidate) -> float:
        return price_ratio * change_cost(problem, own, candidate.shapes)

    rival = min(within, key=lambda each: each.cost.cpu * seconds + change(each))
    there, cost = rival.cost, change(rival)
    gain = here.cpu - there.cpu
    better = gain >= WORTHWHILE * here.cpu and gain * seconds >= cost
    better &= is_qualified(there, limits) or not is_qualified(here, limits)
    return Decision(
        "migrate" if better else "keep",
        AHEAD if better else "it is the best plan for the push that comes",
        write(plan),
        write(problem.plan_of(rival) if better else plan),
        0.0,
        here.cpu,
        there.cpu if better else here.cpu,
        here.memory,
        there.memory if better else here.memory,
        cost if better else 0.0,
        0.0,
        seconds,
        _exceeded(there if better else here, limits),
    )


def best_plan(problem: Problem, limits: Limits, cross_products: bool = False) -> Verdict:
    """The plan with the least CPU within ``limits``, or a refusal.

    ``cross_products``: whether they are looked at if nothing else is within the limits. A running
    query does without: it has a plan, and a look must be cheap.
    """
    # No limit on CPU makes planners look for the least.
    least = Limits(memory=limits.memory)
    verdict = decide(problem, least, cross_products=cross_products and limits.cpu is None)
    if isinstance(verdict, Choice) and is_qualified(verdict.candidate.cost, limits):
        return verdict
    if limits.cpu is None:
        return verdict
    return decide(problem, limits, cross_products=cross_products)


def _small_choice(
    problem: Problem, plan: Plan, here: Cost, limits: Limits, lessons: Lessons
) -> Choice | None:
    """Of the plans clearly better than ``plan``, the one that costs least over a window, with the
    change to it; the best of all if none is; None if there is none or if they are too many."""
    if any(len(block.windows) > STREAMS_COMPARED for block in problem.blocks):
        return None
    found = jtree_finder(problem, limits, keep="all")
    if not found:
        return None
    window, shapes = longest_window(problem), problem.shapes_of(plan)

    def cpu(candidate: Candidate) -> float:
        return lessons.corrected(problem.outline(candidate), candidate.cost).cpu

    def total(candidate: Candidate) -> float:
        return cpu(candidate) * window + change_cost(problem, shapes, candidate.shapes)

    found = sorted(found[:SEVERAL], key=cpu)
    better = [each for each in found[:RIVALS] if cpu(each) <= (1 - WORTHWHILE) * here.cpu]
    return Choice(min(better, key=total, default=found[0]), "the least CPU of all plans")


def _is_passing(usual: Problem | None, plan: Plan, rival: Plan, lessons: Lessons) -> bool:
    """Whether ``rival`` is better than ``plan`` only with the statistics of the moment."""
    if usual is None or plan == rival:
        return False
    here, there = (
        lessons.corrected(usual.outline_of(each), written_cost(usual, each)).cpu
        for each in (plan, rival)
    )
    return there >= here


def _with_room(limits: Limits) -> Limits:
    return Limits(
        None if limits.cpu is None else limits.cpu * ROOM,
        None if limits.memory is None else max(1, int(limits.memory * ROOM)),
    )


def longest_window(problem: Problem) -> float:
    """Seconds (arrivals) that a tuple lives at most, where tuples die at all."""
    turnovers = [float(t) for block in problem.blocks for t in block.cardinality.turnovers]
    return max((1 / each for each in turnovers if each > 0), default=0.0)


def _decided(
    decision: Decision, verdict: Verdict, here: Cost, there: Cost, limits: Limits
) -> Decision:
    """``decision`` with its action and reason."""
    if decision.plan == decision.rival:
        if decision.exceeded:
            return replace(decision, reason=f"{verdict.why}; this plan is nearest")
        return replace(decision, reason="it is the best plan")
    if isinstance(verdict, Refusal):
        nearer = overrun(here, limits) - overrun(there, limits) > CLEARLY
        return replace(
            decision,
            action="migrate" if nearer else "keep",
            reason=f"{verdict.why}; {'another' if nearer else 'this'} plan is nearest",
            exceeded=verdict.exceeded if nearer else decision.exceeded,
        )
    if not is_qualified(here, limits):
        over = " and ".join(_exceeded(here, limits))
        return replace(decision, action="migrate", reason=f"it is over the limit of {over}")
    if decision.gain <= 0:
        return replace(decision, reason="it is the best plan")
    if decision.shortfall > 0:
        return replace(decision, reason=NOT_YET)
    return replace(decision, action="migrate", reason="the gain repays the change")


def _mean(before: Mapping[str, float], now: Mapping[str, float], plan: str) -> float:
    """The gain between two looks; none, if the plan was not looked at before."""
    return (before[plan] + now[plan]) / 2 if plan in before else 0.0


def _most(credit: Mapping[str, float]) -> dict[str, float]:
    ranked = sorted(credit, key=lambda rival: -credit[rival])
    return {rival: credit[rival] for rival in ranked[:RIVALS]}


def _exceeded(cost: Cost, limits: Limits) -> tuple[str, ...]:
    return tuple(
        name
        for name, used, limit in (
            ("cpu", cost.cpu, limits.cpu),
            ("memory", cost.memory, limits.memory),
        )
        if limit is not None and used > limit
    )
