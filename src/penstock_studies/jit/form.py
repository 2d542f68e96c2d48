"""The forms of the algorithm: with feedback or without, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.errors import OptionError

Detection = Literal["exact", "bloom"]
Leaving = Literal["oldest", "latest"]


@dataclass(frozen=True, slots=True)
class Form:
    """How consumers give feedback.

    ``level`` is the largest number of streams in a sub-tuple that is looked at: None for all of
    the lattice, 0 for ∅ alone. ``detection`` by Bloom filter finds level 1 only, and not all of
    it. ``guarded``: at no join may sub-tuples sleep on both sides that agree with each other.
    ``leaves_with``: the tuple with which a partial result dies. The paper takes the latest, so
    that partial results outlive their oldest tuple, and some of what is given is no result.
    """

    feedback: bool = True
    level: int | None = None
    detection: Detection = "exact"
    guarded: bool = True
    leaves_with: Leaving = "oldest"

    def __post_init__(self) -> None:
        if self.level is not None and self.level < 0:
            raise OptionError(f"level={self.level} must be 0 or more, or None for no limit")
        if self.detection not in ("exact", "bloom"):
            raise OptionError(f"detection={self.detection!r}: choose from 'exact', 'bloom'")


REF = Form(feedback=False)
"""The reference of section VI: no feedback."""
REF_AS_PUBLISHED = Form(feedback=False, leaves_with="latest")
"""No feedback, with the timestamps of the paper."""
AS_PUBLISHED = Form(guarded=False, leaves_with="latest")
"""Loses results in bushy plans."""
JIT = Form()
"""As published, with the rule that makes it exact."""
DOE = Form(level=0)
"""Demand-driven operator execution: only an empty opposite state suspends."""
