"""A batch of composites: row ids into the leaf windows, one column per stream.

Late materialisation (design, section 3): nothing else is copied until a result leaves. Not even
lifespans: a composite lives as long as all its rows do, so birth and death can be looked up when
somebody asks. Composites that have them with them are *dated*; others may turn out never to have
lived, when rows met that share no instant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.kernels import ring

Int64s = NDArray[np.int64]

NOTHING = np.empty(0, np.int64)


class _Run(Mapping[str, Int64s]):
    """The ids of consecutive rows of a stream, which nobody may ever ask for."""

    __slots__ = ("_count", "_first", "_rows", "_stream")

    def __init__(self, stream: str, first: int, count: int) -> None:
        self._stream, self._first, self._count = stream, first, count
        self._rows: Int64s | None = None

    def __getitem__(self, stream: str) -> Int64s:
        if stream != self._stream:
            raise KeyError(stream)
        if self._rows is None:
            self._rows = np.arange(self._first, self._first + self._count, dtype=np.int64)
        return self._rows

    def __iter__(self) -> Iterator[str]:
        yield self._stream

    def __len__(self) -> int:
        return 1


@dataclass(slots=True)
class Composites:
    """``ids[stream][i]`` is the leaf row of ``stream`` in composite ``i``."""

    ids: Mapping[str, Int64s]
    births: Int64s
    deaths: Int64s
    dated: bool = True
    first: int = -1
    """The first row, if these are consecutive rows of one stream and known to be."""
    table: NDArray[np.int64] | None = None
    """All of it, if it is in one piece: a row for each of ``ids``, then births and deaths."""

    @classmethod
    def undated(cls, ids: Mapping[str, Int64s]) -> Composites:
        """Composites whose lifespans have not been looked up."""
        return cls(ids, NOTHING, NOTHING, False)

    @classmethod
    def run(cls, stream: str, first: int, births: Int64s, deaths: Int64s) -> Composites:
        """Consecutive rows of one stream, from ``first`` on."""
        return cls(_Run(stream, first, len(births)), births, deaths, True, first)

    def __len__(self) -> int:
        if self.dated:
            return len(self.births)
        for rows in self.ids.values():
            return len(rows)
        return 0

    def pick(self, positions: Int64s) -> Composites:
        """The composites at ``positions``."""
        ids = {stream: ring.pick(rows, positions) for stream, rows in self.ids.items()}
        if not self.dated:
            return Composites.undated(ids)
        return Composites(ids, ring.pick(self.births, positions), ring.pick(self.deaths, positions))

    def slice(self, start: int, stop: int) -> Composites:
        """The composites from ``start`` to ``stop``, without copying."""
        return Composites(
            {stream: rows[start:stop] for stream, rows in self.ids.items()},
            self.births[start:stop],
            self.deaths[start:stop],
            self.dated,
            self.first if self.first < 0 else self.first + start,
        )


def concatenate(parts: Sequence[Composites]) -> Composites:
    """All composites of ``parts``: not empty, of one set of streams, all dated or none."""
    if len(parts) == 1:
        return parts[0]
    ids = {stream: np.concatenate([part.ids[stream] for part in parts]) for stream in parts[0].ids}
    if not parts[0].dated:
        return Composites.undated(ids)
    return Composites(
        ids,
        np.concatenate([part.births for part in parts]),
        np.concatenate([part.deaths for part in parts]),
        parts[0].dated,
    )


def none_of(streams: Sequence[str]) -> Composites:
    """No composites over ``streams``."""
    return Composites(dict.fromkeys(streams, NOTHING), NOTHING, NOTHING)
