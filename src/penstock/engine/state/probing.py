"""Probes of a hash index by whole batches of keys.

A probe that finds too many matches for its table is made again with a larger one. If they are more
by millions, it has ended before all were counted
(:data:`penstock.kernels.probe.MATCHES_TO_PAUSE`), and it is worth less than several probes of fewer
keys: a caller that can make these is told so by :class:`Surplus`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.rows import BIRTH, DEATH, Rows
from penstock.engine.state.working_memory import WORKING
from penstock.kernels import demand, probe

Int64s = NDArray[np.int64]

ACTIVE = np.empty((2, 2 * probe.GROUP), np.int64)
"""Working space of probes, which run one at a time."""


class Surplus(Exception):  # noqa: N818 - not an error
    """Some keys have millions of matches: ``per_key`` of them on average, at least."""

    def __init__(self, per_key: float) -> None:
        super().__init__(per_key)
        self.per_key = per_key


def _room_for(count: int, keys: int, splits: bool) -> int:
    """The room for ``count`` matches of ``keys`` keys, of which there was not enough."""
    if count <= probe.MATCHES_TO_PAUSE:
        return count + 1
    if splits and keys > 1:
        raise Surplus(count / keys)
    return 2 * count


def probe_all(
    keys: Int64s,
    births: Int64s,
    deaths: Int64s,
    rows: Rows,
    index: HashIndex,
    bound: int,
    expected: float,
    row_deaths: int = DEATH,
    splits: bool = False,
) -> NDArray[np.int64]:
    """All matches of a batch with the rows before ``bound``: a table of four rows.

    ``expected`` is how many matches to make room for; with more, the probe is made twice, or, if it
    ``splits``, raises :class:`Surplus`.
    """
    room = int(1.25 * expected) + 64
    while True:
        WORKING.ask(room, 4)
        out = np.empty((4, room), np.int64)
        count = probe.probe(
            keys,
            births,
            deaths,
            index.heads,
            index.entries,
            index.narrow,
            index.shift,
            rows.columns[BIRTH],
            rows.columns[row_deaths],
            rows.mask,
            rows.low,
            index.stop - 1,
            bound,
            ACTIVE,
            out,
        )
        if count < room:
            return out[:, :count]
        room = _room_for(count, len(keys), splits)


def probe_keys(
    keys: Int64s,
    rows: Rows,
    index: HashIndex,
    bound: int,
    expected: float,
    offset: int = 0,
    splits: bool = False,
) -> NDArray[np.int64]:
    """As :func:`probe_all`, by keys alone: a table of two rows, position + ``offset`` and row."""
    room = int(1.25 * expected) + 64
    while True:
        WORKING.ask(room, 2)
        out = np.empty((2, room), np.int64)
        count = probe.probe_keys(
            keys,
            index.heads,
            index.entries,
            index.narrow,
            index.shift,
            rows.mask,
            rows.low,
            index.stop - 1,
            bound,
            offset,
            ACTIVE,
            out,
        )
        if count < room:
            return out[:, :count]
        room = _room_for(count, len(keys), splits)


def exists(
    keys: Int64s,
    rows: Rows,
    index: HashIndex,
    found: NDArray[np.bool_],
    since: int | None = None,
) -> int:
    """Set ``found`` where a row that probes may see has the key, or one from ``since`` on; how many
    are found."""
    number: int = demand.exists(
        keys,
        index.heads,
        index.entries,
        index.narrow,
        index.shift,
        rows.mask,
        rows.low if since is None else since,
        rows.head - 1,
        ACTIVE,
        found,
    )
    return number
