"""What a planner answers: a qualified plan, or a refusal that says which limit, by how much, and
which plan came nearest."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.planning.block import Cost
from penstock.planning.limits import Limits, size_text, three_digits
from penstock.planning.problem import Candidate


@dataclass(frozen=True, slots=True)
class Choice:
    """A candidate within the limits, and why it was taken."""

    candidate: Candidate
    why: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """No candidate within the limits."""

    nearest: Candidate
    limits: Limits
    proven: bool
    """Whether there is no qualified plan at all, or none was found."""
    why: str

    @property
    def exceeded(self) -> tuple[str, ...]:
        """The limits that the nearest plan exceeds: some of ``cpu`` and ``memory``."""
        found = []
        if self.limits.cpu is not None and self.nearest.cost.cpu > self.limits.cpu:
            found.append("cpu")
        if self.limits.memory is not None and self.nearest.cost.memory > self.limits.memory:
            found.append("memory")
        return tuple(found)

    def in_words(self) -> str:
        """Which limit, and by how much the nearest plan exceeds it."""
        parts = []
        cost, limits = self.nearest.cost, self.limits
        if "cpu" in self.exceeded:
            assert limits.cpu is not None
            parts.append(
                f"CPU {three_digits(cost.cpu)} of a core against a limit of "
                f"{three_digits(limits.cpu)} "
                f"({three_digits(cost.cpu / limits.cpu)} times)"
            )
        if "memory" in self.exceeded:
            assert limits.memory is not None
            parts.append(
                f"memory {size_text(cost.memory)} against a limit of {size_text(limits.memory)} "
                f"({three_digits(cost.memory / limits.memory)} times)"
            )
        return " and ".join(parts)


Verdict = Choice | Refusal


def is_qualified(cost: Cost, limits: Limits) -> bool:
    """Definition 2 of the paper."""
    return (limits.cpu is None or cost.cpu <= limits.cpu) and (
        limits.memory is None or cost.memory <= limits.memory
    )


def overrun(cost: Cost, limits: Limits) -> float:
    """How far ``cost`` is outside: the sum of the logarithms by which it exceeds each limit.

    Zero for a qualified plan. Halving an overrun counts the same in CPU and in memory.
    """
    total = 0.0
    for used, limit in ((cost.cpu, limits.cpu), (cost.memory, limits.memory)):
        if limit is not None and used > limit:
            total += math.log(used / limit)
    return total


def nearest(candidates: Iterable[Candidate], limits: Limits) -> Candidate:
    """The candidate with the smallest overrun; of equals, the one with least CPU."""
    return min(candidates, key=lambda c: (overrun(c.cost, limits), c.cost.cpu, c.cost.memory))


def verdict_on(candidate: Candidate, limits: Limits, why: str) -> Verdict:
    """The verdict of a planner that has only one candidate."""
    if is_qualified(candidate.cost, limits):
        return Choice(candidate, why)
    return Refusal(candidate, limits, proven=False, why=why)
