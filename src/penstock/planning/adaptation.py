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
the one that costs least over a window with the change paid. That is for up to :data:`SMALL`
streams; beyond, it is the plan with the least CPU.

**Enough.** A gain below :data:`WORTHWHILE` of the present cost is not worth a change: estimates are
not better than that.

**Limits** go first. If the present plan is over a limit and another is within, that one is taken
at once. If none is within, the nearest is taken when it is clearly nearer, and every such decision
says so (``exceeded``): a running query is never stopped for want of a plan. To come back to a
cheaper plan, there must be some room below the limits (:data:`ROOM`): estimates swing too.

Everything is in seconds of event time and CPU seconds of the cost model. No clock is read.
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
from penstock.planning.limits import Limits
from penstock.planning.migration_cost import change_cost, migration_cost
from penstock.planning.planner import decide
from penstock.planning.problem import Candidate, Problem
from penstock.planning.verdict import Choice, Refusal, Verdict, is_qualified, overrun
from penstock.planning.written_cost import written_cost

Action = Literal["keep", "migrate"]
NOT_YET = "the gain does not repay the change yet"

WORTHWHILE = 0.1
"""The least gain that is worth a change, as a share of what the present plan costs."""
ROOM = 0.9
"""The share of the limits that a plan must be within to be taken for its gain."""
CLEARLY = math.log(1.1)
"""By how much nearer to the limits another plan must be, when all are over them."""
MOST_TRUST = 1.0
LEAST_TRUST = 1 / 64
RIVALS = 4
"""Plans that have credit, at most; of more, those with the least lose it."""
SMALL = 4
"""Streams of a block of which all plans are compared."""


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

    def to_json(self) -> dict[str, Any]:
        return {
            "at": self.at,
            "credit": dict(self.credit),
            "gains": dict(self.gains),
            "trust": self.trust,
            "left": self.left,
            "debt": self.debt,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Memory:
        return cls(**{name: values[name] for name in cls.__dataclass_fields__ if name in values})

    def afresh(self, at: float) -> Memory:
        """After a change by somebody else: nothing is held for or against any plan."""
        return Memory(at=at, trust=self.trust)


def look(
    problem: Problem, plan: Plan, limits: Limits, memory: Memory, at: float
) -> tuple[Decision, Memory]:
    """Keep ``plan`` or migrate, at ``at`` seconds of event time; and what to remember."""
    elapsed = 0.0 if memory.at is None else max(0.0, at - memory.at)
    here = written_cost(problem, plan)
    gains: dict[str, float] = {}
    if memory.left is not None:
        gains[memory.left] = here.cpu - written_cost(problem, read(memory.left)).cpu
        earned = -_mean(memory.gains, gains, memory.left) * elapsed
        memory = replace(memory, debt=memory.debt - earned)
    within = is_qualified(here, limits)
    small = _small_choice(problem, plan, here, _with_room(limits)) if within else None
    verdict = small or best_plan(problem, _with_room(limits) if within else limits)
    candidate = verdict.candidate if isinstance(verdict, Choice) else verdict.nearest
    rival, there = problem.plan_of(candidate), candidate.cost
    outline = problem.outline(candidate)
    nothing_better = within and isinstance(verdict, Refusal)
    same_shape = candidate.shapes == problem.shapes_of(plan)
    if nothing_better or (same_shape and here.cpu <= there.cpu * (1 + 1e-9)):
        rival, there = plan, here
    gains[outline] = here.cpu - there.cpu
    for known in memory.credit:
        gains.setdefault(known, here.cpu - problem.price(read(known)).cpu)
    credit = {
        known: max(0.0, memory.credit.get(known, 0.0) + _mean(memory.gains, gains, known) * elapsed)
        for known in gains
        if known != memory.left
    }
    horizon = memory.trust * longest_window(problem)
    cost = migration_cost(problem, plan, rival)
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
        return decision, replace(memory, at=at, credit=_most(credit), gains=gains)
    trust = memory.trust
    if memory.left is not None:
        trust = min(MOST_TRUST, 2 * trust) if memory.debt <= 0 else trust / 2
        trust = trust if trust >= LEAST_TRUST else 0.0
    left = write(plan)
    return decision, Memory(at, gains={left: -decision.gain}, trust=trust, left=left, debt=cost)


def best_plan(problem: Problem, limits: Limits) -> Verdict:
    """The plan with the least CPU within ``limits``, or a refusal."""
    # No limit on CPU makes planners look for the least.
    verdict = decide(problem, Limits(memory=limits.memory))
    if isinstance(verdict, Choice) and is_qualified(verdict.candidate.cost, limits):
        return verdict
    return verdict if limits.cpu is None else decide(problem, limits)


def _small_choice(problem: Problem, plan: Plan, here: Cost, limits: Limits) -> Choice | None:
    """Of the plans clearly better than ``plan``, the one that costs least over a window, with the
    change to it; the best of all if none is; None if there is none or if they are too many."""
    if any(len(block.windows) > SMALL for block in problem.blocks):
        return None
    found = jtree_finder(problem, limits, keep="all")
    if not found:
        return None
    enough = (1 - WORTHWHILE) * here.cpu
    better = [each for each in found[:RIVALS] if each.cost.cpu <= enough]
    window, shapes = longest_window(problem), problem.shapes_of(plan)

    def total(candidate: Candidate) -> float:
        return candidate.cost.cpu * window + change_cost(problem, shapes, candidate.shapes)

    return Choice(min(better, key=total, default=found[0]), "the least CPU of all plans")


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
    if decision.gain < WORTHWHILE * here.cpu:
        return replace(decision, reason="no other plan saves enough to be worth a change")
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
