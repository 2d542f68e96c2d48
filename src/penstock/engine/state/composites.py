"""A batch of composites: row ids into the leaf windows, one column per stream.

Late materialisation (design, section 3): nothing else is copied until a result leaves. Not even
lifespans: a composite lives as long as all its rows do, so birth and death can be looked up when
somebody asks. Composites that have them with them are *dated*; others may turn out never to have
lived, when rows met that share no instant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.recovery.columns import integers
from penstock.engine.recovery.verify import check_columns, check_rows
from penstock.kernels import ring

Int64s = NDArray[np.int64]

SavedRows = Mapping[str, Int64s]
"""The rows of each window that are saved, ascending."""

NOTHING = np.empty(0, np.int64)


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

    def without(self, others: Composites) -> Composites:
        """The composites that are not among ``others``."""
        gone = set(zip(*(rows.tolist() for rows in others.ids.values()), strict=True))
        mine = zip(*(self.ids[alias].tolist() for alias in others.ids), strict=True)
        keep = np.array([each not in gone for each in mine], np.bool_)
        return self.pick(np.flatnonzero(keep))

    def save(self, saved: SavedRows) -> pa.Table:
        """The composites as places among the ``saved`` rows of windows; -1 where a part is gone."""
        columns = {f"row {a}": pa.array(places_of(rows, saved[a])) for a, rows in self.ids.items()}
        if self.dated:
            columns |= {"birth": pa.array(self.births), "death": pa.array(self.deaths)}
        return pa.table(columns)

    @classmethod
    def load(
        cls, table: pa.Table, streams: Sequence[str], counts: Mapping[str, int], what: str = ""
    ) -> Composites:
        """What :meth:`save` wrote of ``streams``, whose windows have ``counts`` rows.

        ``what`` it is, for a message if it is damaged.
        """
        what = what or f"the combinations of {' '.join(streams)}"
        expected = {f"row {alias}": pa.int64() for alias in streams}
        dated = "birth" in table.column_names
        if dated:
            expected |= {"birth": pa.int64(), "death": pa.int64()}
        check_columns(table, expected, what)
        ids = {alias: integers(table, f"row {alias}") for alias in streams}
        for alias, rows in ids.items():
            check_rows(rows, counts[alias], what)
        if not dated:
            return cls.undated(ids)
        return cls(ids, integers(table, "birth"), integers(table, "death"))


def places_of(rows: Int64s, saved: Int64s) -> Int64s:
    """The places of ``rows`` among the ``saved`` ones; -1 for those that are not."""
    if len(saved) == 0:
        return np.full(len(rows), -1, np.int64)
    at = np.minimum(np.searchsorted(saved, rows), len(saved) - 1)
    return np.where(saved[at] == rows, at, -1)


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
