"""The whole past of a run in a bounded number of points.

A point covers one micro-batch or several neighbours. When the points are full, neighbours are
merged two and two, and from then on a point covers twice as many batches: so an hour and a minute
take the same room, and nothing is ever left out of a sum. A reader that has seen the points up to
some place asks for what changed since; after a merger it gets everything anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

CAPACITY = 480

Rule: TypeAlias = Literal["sum", "max", "last"]


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a reader has read."""

    generation: int = -1
    points: int = 0


class Series:
    """Points with a time and ``columns``, each of which is merged by its rule."""

    def __init__(self, columns: Mapping[str, Rule], capacity: int = CAPACITY) -> None:
        self._rules = dict(columns)
        self._capacity = capacity - capacity % 2
        self._times: list[float] = []
        self._values: dict[str, list[float]] = {name: [] for name in columns}
        self._per_point = 1
        self._in_last = 0
        self._generation = 0

    def __len__(self) -> int:
        return len(self._times)

    def add(self, at: float, values: Mapping[str, float]) -> None:
        """One more micro-batch, which began at ``at``."""
        if self._times and self._in_last < self._per_point:
            self._in_last += 1
            for name, rule in self._rules.items():
                column = self._values[name]
                column[-1] = _merged(rule, column[-1], values.get(name, 0.0))
            return
        if len(self._times) == self._capacity:
            self._halve()
        self._times.append(at)
        self._in_last = 1
        for name, column in self._values.items():
            column.append(values.get(name, 0.0))

    def since(self, mark: Mark) -> tuple[dict[str, object], Mark]:
        """The points from ``first`` on that may have changed since ``mark``, and the new mark."""
        same = mark.generation == self._generation
        first = max(0, mark.points - 1) if same else 0
        told = {
            "first": first,
            "at": [round(each, 3) for each in self._times[first:]],
            "columns": {
                name: [float(f"{each:.6g}") for each in column[first:]]
                for name, column in self._values.items()
            },
        }
        return told, Mark(self._generation, len(self._times))

    def _halve(self) -> None:
        self._times = self._times[::2]
        for name, rule in self._rules.items():
            column = self._values[name]
            self._values[name] = [
                _merged(rule, one, other)
                for one, other in zip(column[::2], column[1::2], strict=True)
            ]
        self._per_point *= 2
        self._generation += 1


def _merged(rule: Rule, one: float, other: float) -> float:
    if rule == "sum":
        return one + other
    return max(one, other) if rule == "max" else other
