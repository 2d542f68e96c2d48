"""A workload: a query, streams that follow given distributions, and plans that a person would try.

Every stream has a rate, which may depend on time, and its columns are drawn in every batch from
distributions that may depend on time too. Nothing depends on the engine, so all runs of a workload
see the same rows in the same batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import penstock

Batches = dict[str, pa.Table]
Chance = np.random.Generator
Columns = dict[str, NDArray[np.int64] | pa.Array]
Draw = Callable[[Chance, int, float], Columns]
"""The columns of so many rows that come at a time in seconds."""
Rate = Callable[[float], float]
"""Rows per second at a time in seconds."""


@dataclass(frozen=True)
class Source:
    """One stream: its rate and its columns."""

    rate: float | Rate
    draw: Draw

    def rate_at(self, seconds: float) -> float:
        """Rows per second."""
        return self.rate(seconds) if callable(self.rate) else self.rate


@dataclass(frozen=True)
class Workload:
    """A query on streams, and plans by hand."""

    name: str
    about: str
    select: str
    """The SELECT list, with GROUP BY after ``where`` if there is one."""
    where: str
    sources: Mapping[str, Source]
    plans: tuple[str, ...]
    window: str = "RANGE 2 SECONDS"
    windows: Mapping[str, str] = field(default_factory=dict)
    """Windows of streams that have another one."""
    seconds: float = 40.0
    """Event time of the run."""
    slices: int = 10
    """Batches per second."""
    seed: int = 1

    @property
    def query(self) -> penstock.JoinGraph:
        """The query, with the types of the first rows."""
        schemas = {
            name: table.schema for name, table in self._batch(0.0, {}, self._chance()).items()
        }
        listed = ", ".join(
            f"{name} [{self.windows.get(name, self.window)}]" for name in self.sources
        )
        return penstock.parse(
            f"SELECT {self.select} FROM {listed} WHERE {self.where}", schemas=schemas
        )

    @property
    def turns(self) -> int:
        """Batches of the run."""
        return round(self.seconds * self.slices)

    def shortened(self, share: float) -> Workload:
        """The first ``share`` of it."""
        return replace(self, seconds=self.seconds * share)

    def with_plans(self, plans: tuple[str, ...]) -> Workload:
        """The same with these plans by hand."""
        return replace(self, plans=plans)

    def batches(self) -> Iterator[Batches]:
        """All batches, in order."""
        chance = self._chance()
        done: dict[str, float] = {}
        for turn in range(self.turns):
            yield self._batch(turn / self.slices, done, chance)

    def _chance(self) -> Chance:
        return np.random.default_rng(self.seed)

    def _batch(self, start: float, done: dict[str, float], chance: Chance) -> Batches:
        """Rows from ``start`` on; ``done`` are the rows owed to each stream, in fractions."""
        made = {}
        for name, source in self.sources.items():
            owed = done.get(name, 0.0) + source.rate_at(start) / self.slices
            count = int(owed)
            done[name] = owed - count
            times = start + np.arange(count) / max(1, count) / self.slices
            columns: Columns = {"ts": (times * 1000).astype(np.int64)}
            made[name] = pa.table(columns | source.draw(chance, count, start))
        return made


def uniform(**values: int) -> Draw:
    """Independent columns, each with so many values that are equally frequent."""

    def draw(chance: Chance, count: int, _: float) -> Columns:
        return {name: chance.integers(0, size, count) for name, size in values.items()}

    return draw
