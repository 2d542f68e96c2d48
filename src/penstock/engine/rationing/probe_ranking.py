"""Rank of rows for probing: the newest first, or those whose partners came at the right time.

``newest`` ranks rows by birth. ``correlated`` ranks them by the matches that they can expect at the
first half-way join of their probe order, from the lags at which matches were found before
(:mod:`penstock.overload.time_correlation`). The stored births are those of a sample of the target,
the same for learning and for ranking, so that shares of pairs are comparable; what counts is the
order of rows, not the number of their matches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from penstock.engine.join.join_operator import JoinOperator
from penstock.engine.join.join_step import Input
from penstock.engine.state.clock import END, START
from penstock.engine.state.composites import Composites
from penstock.engine.state.leaf_window import LeafWindow, date
from penstock.overload.time_correlation import LagProfile
from penstock.plan.stream_set import StreamSet

Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]

_SAMPLE = 1024
_RANGES = 16
_FADE = 0.9


class ProbeRanking(ABC):
    """Ranks the rows that want to probe; the highest rank comes first."""

    def __init__(self, leaves: Mapping[str, LeafWindow]) -> None:
        self._leaves = leaves

    @abstractmethod
    def ranks(
        self, operator: JoinOperator, position: int, delta: Composites
    ) -> Int64s | Floats: ...

    @abstractmethod
    def learn(
        self, operator: JoinOperator, position: int, probing: Composites, made: list[Composites]
    ) -> None:
        """The rows ``probing`` of input ``position`` have made these."""

    def _births(self, ids: Mapping[str, Int64s]) -> Int64s:
        return date(ids, self._leaves).births


class Newest(ProbeRanking):
    """By birth."""

    def ranks(self, operator: JoinOperator, position: int, delta: Composites) -> Int64s:
        return delta.births if delta.dated else self._births(delta.ids)

    def learn(
        self, operator: JoinOperator, position: int, probing: Composites, made: list[Composites]
    ) -> None:
        """Nothing to learn."""


class Correlated(ProbeRanking):
    """By expected matches."""

    def __init__(self, leaves: Mapping[str, LeafWindow]) -> None:
        super().__init__(leaves)
        self._profiles: dict[tuple[StreamSet, int], LagProfile] = {}

    def ranks(self, operator: JoinOperator, position: int, delta: Composites) -> Floats:
        births = delta.births if delta.dated else self._births(delta.ids)
        profile = self._profiles.get((operator.streams, position))
        stored = self._stored(operator, position)
        if profile is None or len(stored) == 0:
            return births.astype(np.float64)
        return profile.expected_matches(births, stored)

    def learn(
        self, operator: JoinOperator, position: int, probing: Composites, made: list[Composites]
    ) -> None:
        target = operator.steps[position][0][1].target
        stored = self._stored(operator, position)
        if len(stored) == 0 or len(probing) == 0:
            return
        births = self._births(probing.ids)
        lags = np.concatenate(
            [
                self._births({s: part.ids[s] for s in probing.ids})
                - self._births({s: part.ids[s] for s in target.streams})
                for part in made
            ]
            or [births[:0]]
        )
        key = (operator.streams, position)
        if key not in self._profiles:
            spans = [self._leaves[stream].span for stream in operator.streams]
            reach = max([_RANGES, *(span for span in spans if span < END)])
            edges = np.unique(np.linspace(-reach, reach + 1, _RANGES + 1).astype(np.int64))
            self._profiles[key] = LagProfile.empty(edges)
        step = max(1, len(births) // _SAMPLE)
        self._profiles[key] = self._profiles[key].observe(births[::step], stored, lags, _FADE)

    def _stored(self, operator: JoinOperator, position: int) -> Int64s:
        """Births in the first target of input ``position``, ascending: of a sample."""
        target: Input = operator.steps[position][0][1].target
        rows = target.rows
        step = max(1, len(rows) // _SAMPLE)
        births, deaths = target.lifespans(np.arange(rows.tail, rows.head, step, dtype=np.int64))
        return np.sort(births[(births <= deaths) & (births > START)])
