"""A batch of composites: row ids into the leaf windows, one column per stream, with lifespans.

Late materialisation (design, section 3): nothing else is copied until a result leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.engine.kernels import ring

Int64s = NDArray[np.int64]


@dataclass(slots=True)
class Composites:
    """``ids[stream][i]`` is the leaf row of ``stream`` in composite ``i``."""

    ids: dict[str, Int64s]
    births: Int64s
    deaths: Int64s

    def __len__(self) -> int:
        return len(self.births)

    def pick(self, positions: Int64s) -> Composites:
        """The composites at ``positions``."""
        return Composites(
            {stream: ring.pick(rows, positions) for stream, rows in self.ids.items()},
            ring.pick(self.births, positions),
            ring.pick(self.deaths, positions),
        )

    def slice(self, start: int, stop: int) -> Composites:
        """The composites from ``start`` to ``stop``, without copying."""
        return Composites(
            {stream: rows[start:stop] for stream, rows in self.ids.items()},
            self.births[start:stop],
            self.deaths[start:stop],
        )


def concatenate(parts: Sequence[Composites]) -> Composites:
    """All composites of ``parts``, which is not empty and has one set of streams."""
    if len(parts) == 1:
        return parts[0]
    return Composites(
        {stream: np.concatenate([part.ids[stream] for part in parts]) for stream in parts[0].ids},
        np.concatenate([part.births for part in parts]),
        np.concatenate([part.deaths for part in parts]),
    )


def none_of(streams: Sequence[str]) -> Composites:
    """No composites over ``streams``."""
    nothing = np.empty(0, np.int64)
    return Composites(dict.fromkeys(streams, nothing), nothing, nothing)
