"""The setting of section 6: left-deep plans over streams that all share one join attribute; and a
chain of comparisons in its place, which no index of equal values can stand in for.

Values are uniform and spread evenly over the streams; unless a setting says otherwise there are as
many values as a window has tuples, so a tuple has one partner per stream on average. (The paper
does not say how many.) Windows
are by event time, a tick per tuple of each stream, which is as many tuples for every stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import penstock

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "k")])
THETA_SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
_SCALE = 1 << 40
"""Values of a column that is compared: so many that hardly any comes twice."""

Batches = dict[str, pa.Table]


@dataclass(frozen=True)
class Setting:
    """``joins`` joins over windows of ``window`` tuples, pushed ``batch`` tuples per stream."""

    joins: int
    window: int
    batch: int
    join: str = "hash"
    """How streams are joined: by hash or by nested loops on ``k``, or, with ``theta``, by ``x``
    near to ``y`` from each stream to the next."""
    domain: float = 1.0
    """Values for each tuple of a window; with ``theta`` so many that a tuple has as many partners
    either way."""

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(f"S{number}" for number in range(self.joins + 1))

    def query(self) -> penstock.JoinGraph:
        """All streams equal on ``k``, or each near to the next."""
        first, *others = self.streams
        selected = ", ".join(f"{s}.id AS id_{s}" for s in self.streams)
        sources = ", ".join(f"{s} [RANGE {self.window} MILLISECONDS]" for s in self.streams)
        if self.join == "theta":
            width = round(_SCALE / (2 * self._values_of_window))
            linked = [
                f"{a}.x BETWEEN {b}.y - {width} AND {b}.y + {width}"
                for a, b in pairwise(self.streams)
            ]
        else:
            linked = [f"{first}.k = {s}.k" for s in others]
        return penstock.parse(
            f"SELECT {selected} FROM {sources} WHERE {' AND '.join(linked)}",
            schemas=dict.fromkeys(self.streams, self._schema),
        )

    @property
    def _schema(self) -> pa.Schema:
        return THETA_SCHEMA if self.join == "theta" else SCHEMA

    def engine(self, plan: str) -> penstock.Engine:
        """An engine without feedback, as the paper has none."""
        join = "hash" if self.join == "theta" else self.join
        return penstock.Engine(self.query(), plan=plan, feedback="off", join=join)

    def batches(self, windows: float, seed: int, start: float = 0.0) -> Iterator[Batches]:
        """Pushes for ``windows`` windows, after ``start`` windows."""
        random = np.random.default_rng(seed)
        clock, stop = round(start * self.window), round((start + windows) * self.window)
        while clock < stop:
            count = min(self.batch, stop - clock)
            times = np.arange(clock, clock + count)
            yield {
                stream: pa.table([times, times, *self._values(count, random)], schema=self._schema)
                for stream in self.streams
            }
            clock += count

    def _values(self, count: int, random: np.random.Generator) -> list[NDArray[np.int64]]:
        """The columns that are joined on, of ``count`` tuples."""
        if self.join != "theta":
            return [random.integers(0, max(1, round(self._values_of_window)), count)]
        return list(random.integers(0, _SCALE, (2, count)))

    @property
    def _values_of_window(self) -> float:
        return self.domain * self.window


def left_deep(order: Sequence[str]) -> str:
    """``(((S0 S1) S2) S3)``, in the notation."""
    text = order[0]
    for stream in order[1:]:
        text = f"({text} {stream})"
    return text


def best_case(order: Sequence[str]) -> tuple[str, ...]:
    """The two topmost streams change places: one state, just below the root, is incomplete."""
    return (*order[:-2], order[-1], order[-2])


def worst_case(order: Sequence[str]) -> tuple[str, ...]:
    """The order is turned round: every state is incomplete."""
    return tuple(reversed(order))


def complete_states(old: Sequence[str], new: Sequence[str]) -> int:
    """Definition 1: how many states of the left-deep plan ``new`` exist in ``old``.

    The state of the root counts: it always exists.
    """
    before = {frozenset(old[:size]) for size in range(2, len(old) + 1)}
    return sum(frozenset(new[:size]) in before for size in range(2, len(new) + 1))
