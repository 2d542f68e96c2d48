"""The rows of a push on their way into the windows, and how a large push is cut into slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.kernels import lifespan

Int64s = NDArray[np.int64]


@dataclass(slots=True)
class SourceRows:
    """The rows of one source in one push: on time, in order, with their place on the time line."""

    births: Int64s
    columns: Mapping[str, pa.Array]

    def __len__(self) -> int:
        return len(self.births)


@dataclass(slots=True)
class Arrival:
    """The rows of one push for one leaf, encoded: nothing of the leaf has changed yet."""

    births: Int64s
    keys: list[Int64s]
    payload: dict[str, pa.Array]
    chosen: Int64s | None
    """Positions of the rows that may be in results; None for all."""
    partitions: Int64s | None

    def __len__(self) -> int:
        return len(self.births)

    def between(self, first: int, after: int) -> Arrival:
        """The rows born at ``first`` or later, but before ``after``."""
        start, stop = np.searchsorted(self.births, [first, after])
        chosen = self.chosen
        if chosen is not None:
            chosen = chosen[(chosen >= start) & (chosen < stop)] - start
        return Arrival(
            self.births[start:stop],
            [values[start:stop] for values in self.keys],
            {name: values.slice(start, stop - start) for name, values in self.payload.items()},
            chosen,
            None if self.partitions is None else self.partitions[start:stop],
        )


SLICE = 1 << 15
"""A push with more new rows than twice this is worked off in slices of about this many."""


def slices_of(arrivals: Sequence[Arrival], size: int | None = None) -> list[int]:
    """Instants that cut a push into slices: from each to the next.

    ``size`` is how many rows a slice should have (the first one fewer, as a trial); if None, only a
    large push is cut.
    """
    total = sum(len(each) for each in arrivals)
    if total <= (2 * SLICE if size is None else size):
        return [int(lifespan.BEGINNING), int(lifespan.FOREVER)]
    births = np.sort(np.concatenate([each.births for each in arrivals]))
    step = SLICE if size is None else min(size, SLICE)
    first = births[: 0 if size is None else step][step >> 3 :: step]
    inner = np.unique(np.concatenate([first, births[step::step]]))
    inner = inner[inner > lifespan.BEGINNING]
    return [int(lifespan.BEGINNING), *inner.tolist(), int(lifespan.FOREVER)]
