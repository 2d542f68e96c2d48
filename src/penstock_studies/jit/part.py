"""A part of a result: a stream tuple or a partial result, as an input of one join knows it.

Two parts on both sides of a join must meet exactly once. Without feedback that is when the later of
them arrives. Parts that sleep and wake several times need more: a part is *present* from the tick
at which it was stored to the tick at which it fell asleep, and two parts have met if they were
present together, or if one of them found the other in a scan that was interrupted.

(The paper compares the arrival time of one with the suspension time of the other. That does not
even settle its own example, where b1 and b2 arrived together and a1 has met b1 alone; and it says
nothing about two parts that have both slept.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock_studies.jit.mns import Mns

Span = tuple[int, float]


class Part:
    """``values`` are those of the columns that joins further up compare."""

    __slots__ = ("asleep", "ids", "met", "oldest", "past", "place", "since", "time", "values")

    def __init__(
        self, ids: tuple[int, ...], values: tuple[int, ...], oldest: int, time: int
    ) -> None:
        """``ids`` number the tuple of each stream; ``oldest`` is the earliest event time, ``time``
        that from which its life is counted."""
        self.ids = ids
        self.values = values
        self.oldest = oldest
        self.time = time
        self.place = 0
        """The row of the state that holds it."""
        self.since: int | None = None
        """When it was stored; None while it is not."""
        self.past: list[Span] | None = None
        """From when to when it was present before."""
        self.met: set[Part] | None = None
        """Parts that it has met in scans that were interrupted."""
        self.asleep: Mns | None = None
        """What it sleeps for."""

    def fall_asleep(self, mns: Mns, tick: int) -> None:
        """It is not present from now on."""
        self.asleep = mns
        if self.since is not None:
            if self.past is None:
                self.past = []
            self.past.append((self.since, tick))
            self.since = None

    def has_met(self, others: list[Part]) -> None:
        """It has met ``others`` in a scan that was interrupted."""
        if others:
            self.met = {*(self.met or ()), *others}

    def spans(self) -> list[Span]:
        """When it was present."""
        now: list[Span] = [] if self.since is None else [(self.since, math.inf)]
        return [*(self.past or ()), *now]

    def knows(self, other: Part) -> bool:
        """Whether they met in a scan that was interrupted."""
        return (self.met is not None and other in self.met) or (
            other.met is not None and self in other.met
        )

    def together(self, other: Part) -> Iterator[Span]:
        """When both were present."""
        for start, end in self.spans():
            for other_start, other_end in other.spans():
                both = max(start, other_start), min(end, other_end)
                if both[0] < both[1]:
                    yield both
