"""What a push costs on this machine, learned from pushes.

A push takes f + a·(rows) + c·(work) seconds, about, where work is probes and what they lead to, at
fixed prices in probes (:mod:`penstock.overload.prices`): every push has its checks and its books,
every tuple that is taken in is stored and purged, and only work can be saved. If all the time were
put on the work, a push that sheds most of it would make each probe look dearer, the next would shed
more, and so on down to none; and if all that is not work were put on the rows, it would be rows. So
all three are learned, by least squares over recent pushes or slices of pushes (older ones fade, and
large ones count for more, in proportion), and a budget of s seconds allows (s - f - a·rows) / c of
work.

While they go up and down together the three cannot be told apart, so a little weight stays on the
first guess of their ratios, until pushes differ. A push that takes many times as long as foreseen
has more likely met something that has nothing to do with its rows (a kernel that is loaded, a
machine that stands still) than dearer probes; so it counts as several times as long and no more. If
it was the probes, the next one says so again.

How the three share the time changes slowly, and how much it is in all may change from one slice to
the next, when windows fill in a burst or a neighbour begins to compute. So there is a *level*
beside the sums, a mean over the last few, by which all costs are multiplied.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

FADE = 0.95
_GUESS = (3e-4, 6e-8, 1e-8)
"""Seconds per push, per row and per probe before anything is known, of W1 on a core of 2020."""
_CHEAPEST = 0.25
"""A probe does not cost less than so much of what it would at the first guess of the ratios."""
_WEIGHT = 1e-3
"""How much the guess counts against what was seen."""
_SURPRISE = 3.0
"""A push counts as at most so many times as long as foreseen."""
_FAST = 0.5
"""How much the last push counts for the level."""
_LEAST_PROBE_SECONDS = 1e-12
"""Seconds of a probe, at least."""
_PUSHES_TO_LEARN = 3
"""Pushes before costs are known: the first ones are taken as they are."""


class Costs(NamedTuple):
    """Seconds, none below zero."""

    push: float
    row: float
    probe: float


@dataclass(frozen=True, slots=True)
class ProbeCost:
    """Sums over pushes of products of 1, rows, probes and seconds, divided by rows + probes."""

    products: tuple[float, ...] = (0.0,) * 6
    """Of 1, rows and probes with each other: the upper half of a matrix, row by row."""
    seconds: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Of seconds with 1, rows and probes."""
    pushes: int = 0
    level: float = 1.0
    """What the last few pushes took, divided by what they should have."""
    _slow: tuple[float, ...] = field(init=False, repr=False, compare=False)
    """The costs over many pushes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_slow", _fitted(self.products, self.seconds))

    def to_json(self) -> dict[str, Any]:
        """As plain values, which :meth:`from_json` reads."""
        return {
            "products": self.products,
            "seconds": self.seconds,
            "pushes": self.pushes,
            "level": self.level,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ProbeCost:
        """What was learned by another engine; nothing, if that was an earlier version."""
        if "products" not in values:
            return cls()
        one, two, three = values["seconds"]
        return cls(tuple(values["products"]), (one, two, three), values["pushes"], values["level"])

    @property
    def is_known(self) -> bool:
        """Whether more is known than a first guess."""
        return self.pushes >= _PUSHES_TO_LEARN

    def observe(self, rows: int, probes: float, seconds: float) -> ProbeCost:
        """What is known after a push of ``rows`` that did so much work in ``seconds``."""
        if rows + probes == 0:
            return self
        counts = (1.0, float(rows), probes)
        level = 1.0
        if self.is_known:
            foreseen = _dot(self._slow, counts)
            seconds = min(seconds, _SURPRISE * self.level * foreseen)
            level = self.level
            if foreseen > 0:
                level += _FAST * (seconds / foreseen - level)
        weight = 1.0 / (rows + probes)
        new = [weight * counts[i] * counts[j] for i in range(3) for j in range(i, 3)]
        one, two, three = (
            FADE * old + weight * count * seconds
            for old, count in zip(self.seconds, counts, strict=True)
        )
        return ProbeCost(
            tuple(FADE * old + each for old, each in zip(self.products, new, strict=True)),
            (one, two, three),
            self.pushes + 1,
            level,
        )

    @property
    def costs(self) -> Costs:
        """Seconds per push, per row and per probe."""
        push, row, probe = (self.level * each for each in self._slow)
        return Costs(push, row, max(_LEAST_PROBE_SECONDS, probe))

    @property
    def steady(self) -> ProbeCost:
        """The same without what the last few pushes took, for who need not be in time."""
        return replace(self, level=1.0)

    def per_probe(self, results: float, after: float = 0.0) -> float:
        """Seconds of work that makes ``results``, each of which takes ``after`` later on."""
        return self.costs.probe + after * results

    def probes_in(
        self, seconds: float, rows: int, results: float = 0.0, after: float = 0.0
    ) -> float:
        """The work that fits into ``seconds`` beside storing ``rows``; below 0 if these do not."""
        if math.isinf(seconds):
            return seconds
        costs = self.costs
        return (seconds - costs.push - costs.row * rows) / self.per_probe(results, after)


@lru_cache(maxsize=8)  # The same sums come back with another level.
def _fitted(products: tuple[float, ...], seconds: tuple[float, ...]) -> tuple[float, ...]:
    """The costs that fit sums best, with a little of the guess."""
    oo, orow, op, rr, rp, pp = products
    if rr + pp == 0:
        return _GUESS
    matrix = [[oo, orow, op], [orow, rr, rp], [op, rp, pp]]
    foreseen = sum(_GUESS[i] * _dot(matrix[i], _GUESS) for i in range(3))
    scale = _dot(seconds, _GUESS) / foreseen if foreseen > 0 else 1.0
    guess = [scale * each for each in _GUESS]
    target = list(seconds)
    for i in range(3):
        weight = _WEIGHT * matrix[i][i]
        matrix[i][i] += weight
        target[i] += weight * guess[i]
    found = [0.0, 0.0, 0.0]
    kept = [i for i in range(3) if matrix[i][i] > 0]
    while kept:
        solved = _solved([[matrix[i][j] for j in kept] for i in kept], [target[i] for i in kept])
        if min(solved) >= 0:
            for place, value in zip(kept, solved, strict=True):
                found[place] = value
            break
        kept = [place for place, value in zip(kept, solved, strict=True) if value >= 0]
    least = _CHEAPEST * guess[2]
    if found[2] < least:
        found[2] = least
        others = [max(0.0, target[i] - least * matrix[i][2]) for i in range(2)]
        total = guess[0] * matrix[0][0] + guess[1] * matrix[0][1]
        share = others[0] / total if total > 0 else 0.0
        found[:2] = [share * guess[0], share * guess[1]]
    return tuple(found)


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


def _solved(matrix: list[list[float]], target: list[float]) -> list[float]:
    """The solution of linear equations, by Gauss."""
    rows = [[*row, value] for row, value in zip(matrix, target, strict=True)]
    count = len(rows)
    for i in range(count):
        pivot = max(range(i, count), key=lambda each: abs(rows[each][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for j in range(count):
            if j != i:
                factor = rows[j][i] / rows[i][i]
                rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [rows[i][count] / rows[i][i] for i in range(count)]
