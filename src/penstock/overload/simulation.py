"""A turn-by-turn simulation of half-way joins under an allocation.

It shows what the model only predicts: how results and stale results come out over time, while
rates are random, states fill and selectivities change. Time goes in turns. In every turn tuples
arrive (Poisson), and the joins work bottom-up: the new tuples of an input make the probes that are
allowed, and are inserted then, before the next input of that join probes. So two new tuples meet
once, as in the engine.

Numbers of tuples are real numbers, since plans of the paper's size make millions of intermediate
tuples per second. What a tuple *is* (when its parts arrived) is followed by a sample: a batch of n
tuples is at most ``sample`` particles that stand for n / ``sample`` tuples each. A match joins a
random particle of the probing tuples with one of the state. So counts have the noise of the
arrivals alone, and ages have that of the sample.

Two kinds of states:

- ``count``: as in the paper, a state holds a fixed number of tuples, and new ones displace the
  oldest. A state that is rarely refreshed is full and stale.
- ``lifespan``: as in the engine, a combination dies with its first member. Such a state is thin
  instead, and no result is older than the windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from penstock.overload.allocation import Allocation
from penstock.overload.flow import saturated
from penstock.overload.path_model import PathModel
from penstock.overload.random_shedding import kept
from penstock.overload.staleness import Freshness, dwell
from penstock.plan.stream_set import StreamSet

Floats = NDArray[np.float64]
States = Literal["count", "lifespan"]

_FILLED = 512
"""Particles of a state at the start."""


@dataclass(frozen=True, slots=True)
class Phase:
    """For ``seconds`` the streams behave as in ``model``, and ``allocation`` holds.

    Results older than ``freshness`` count as stale.
    """

    model: PathModel
    allocation: Allocation
    freshness: Freshness
    seconds: float


@dataclass(frozen=True, slots=True)
class Run:
    """What came out of each turn; times are at the end of the turn, in seconds."""

    times: Floats
    results: Floats
    stale: Floats
    probes: Floats

    def after(self, seconds: float) -> Run:
        """The turns that end after ``seconds``."""
        later = self.times > seconds
        return Run(*(each[later] for each in (self.times, self.results, self.stale, self.probes)))

    @property
    def throughput(self) -> float:
        """Results per second, stale ones included."""
        return self._rate(self.results)

    @property
    def resources(self) -> float:
        """Probes per second."""
        return self._rate(self.probes)

    @property
    def stale_share(self) -> float:
        """The share of the results that were stale."""
        total = float(self.results.sum())
        return float(self.stale.sum()) / total if total else 0.0

    def _rate(self, counts: Floats) -> float:
        turn = float(self.times[1] - self.times[0])
        return float(counts.sum()) / (turn * len(counts))


def simulate(
    phases: Sequence[Phase],
    seed: int,
    *,
    states: States = "count",
    turn: float = 0.25,
    sample: int = 32,
) -> Run:
    """Run ``phases`` one after the other; all have the same plan.

    At the start every state is as it is when all has been processed so far.
    """
    chance = np.random.default_rng(seed)
    world = _World(phases[0].model, states, chance, sample)
    rows = []
    number = 0
    for phase in phases:
        world.enter(phase)
        for _ in range(round(phase.seconds / turn)):
            number += 1
            rows.append((number * turn, *world.turn(number * turn, turn)))
    times, results, stale, probes = np.array(rows).T
    return Run(times, results, stale, probes)


@dataclass(slots=True)
class _Particles:
    """``born[i, j]``: when the tuple of stream j in particle i arrived; oldest particles first."""

    born: Floats
    weights: Floats

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    def draw(self, count: int, chance: np.random.Generator) -> Floats:
        """The births of ``count`` particles, drawn by weight."""
        bounds = np.cumsum(self.weights)
        at = np.searchsorted(bounds, chance.random(count) * bounds[-1], "right")
        drawn: Floats = self.born[np.minimum(at, len(bounds) - 1)]
        return drawn

    def insert(self, other: _Particles) -> None:
        self.born = np.concatenate([self.born, other.born])
        self.weights = np.concatenate([self.weights, other.weights])

    def displace(self, size: float) -> None:
        """Keep the newest ``size`` tuples."""
        excess = self.total - size
        if excess <= 0:
            return
        gone = int(np.searchsorted(np.cumsum(self.weights), excess, "right"))
        before = float(self.weights[:gone].sum())
        self.born, self.weights = self.born[gone:], self.weights[gone:].copy()
        if len(self.weights):
            self.weights[0] -= excess - before

    def drop_expired(self, deaths: Floats) -> None:
        """Keep what is alive: every part born at ``deaths`` or later."""
        alive = (self.born >= deaths).all(axis=1)
        if not alive.all():
            self.born, self.weights = self.born[alive], self.weights[alive]


class _World:
    """The states, and what a turn does to them."""

    def __init__(
        self, model: PathModel, states: States, chance: np.random.Generator, sample: int
    ) -> None:
        self._kind = states
        self._chance = chance
        self._sample = sample
        self._streams = list(model.rates)
        self._columns = {stream: i for i, stream in enumerate(self._streams)}
        full = saturated(model).made
        self._states = {
            streams: self._filled(model, streams, size, full)
            for streams, size in model.sizes.items()
        }
        self._carried: dict[object, float] = {}

    def _filled(
        self, model: PathModel, streams: StreamSet, size: float, full: Mapping[StreamSet, float]
    ) -> _Particles:
        """A state as of time 0; parts that it does not have were born in the far future."""
        born = np.full((_FILLED, len(self._streams)), np.inf)
        waited = np.zeros(_FILLED)
        if len(streams) > 1 and self._kind == "count":
            wait = min(dwell(model, streams, full[streams]), 1e6)
            waited = np.linspace(wait, 0.0, _FILLED)
        for stream in streams:
            ages = self._chance.random(_FILLED) * model.windows[stream]
            if len(streams) == 1:
                ages = -np.sort(-ages)
            born[:, self._columns[stream]] = -(ages + waited)
        return _Particles(born, np.full(_FILLED, size / _FILLED))

    def enter(self, phase: Phase) -> None:
        """The next turns are of ``phase``."""
        model, allocation = phase.model, phase.allocation
        self._model = model if allocation.keep == 1 else kept(model, allocation.keep)
        self._allowed = allocation.probes
        self._matching = {
            step: productivity / self._model.sizes[step.target]
            if self._model.sizes[step.target]
            else 0.0
            for direction in self._model.directions
            for step, productivity in zip(direction.steps, direction.productivities, strict=True)
        }
        self._fresh = np.array([phase.freshness.get(s, np.inf) for s in self._streams])
        self._windows = np.array([model.windows[s] for s in self._streams])

    def turn(self, now: float, seconds: float) -> tuple[float, float, float]:
        """Results, stale results and probes of the turn that ends at ``now``."""
        if self._kind == "lifespan":
            for state in self._states.values():
                state.drop_expired(now - seconds - self._windows)
        new = {StreamSet.of(s): self._arrivals(s, now, seconds) for s in self._streams}
        probes = 0.0
        for direction in self._model.directions:
            batch = new[direction.origin]
            for step in direction.steps:
                made = self._spend(step, batch.total, self._allowed.get(step, 0.0), seconds)
                probes += made
                target = self._states[step.target]
                batch = self._match(batch, target, made * self._matching[step] * target.total)
            if direction.result in new:
                new[direction.result].insert(batch)
            else:
                new[direction.result] = batch
            own = self._states[direction.origin]
            own.insert(new[direction.origin])
            if self._kind == "count":
                own.displace(self._model.sizes[direction.origin])
        results = new[self._model.plan.root.streams]
        stale = (now - results.born > self._fresh).any(axis=1)
        return results.total, float(results.weights[stale].sum()), probes

    def _arrivals(self, stream: str, now: float, seconds: float) -> _Particles:
        count = float(self._chance.poisson(self._model.rates[stream] * seconds))
        size = min(self._sample, int(count))
        born = np.full((size, len(self._streams)), np.inf)
        born[:, self._columns[stream]] = np.linspace(now - seconds, now, size)
        return _Particles(born, np.full(size, count / max(1, size)))

    def _spend(self, step: object, coming: float, allowed: float, seconds: float) -> float:
        """Probes of this turn; up to a second's worth of the allowance is carried over."""
        there = min(self._carried.get(step, 0.0), allowed) + allowed * seconds
        made = min(coming, there)
        self._carried[step] = there - made
        return made

    def _match(self, batch: _Particles, target: _Particles, matches: float) -> _Particles:
        if matches <= 0 or batch.total <= 0:
            return _Particles(np.empty((0, len(self._streams))), np.empty(0))
        left = batch.draw(self._sample, self._chance)
        right = target.draw(self._sample, self._chance)
        return _Particles(np.minimum(left, right), np.full(self._sample, matches / self._sample))
