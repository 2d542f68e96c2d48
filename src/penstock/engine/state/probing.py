"""Probes of a hash index by whole batches of keys."""

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


def probe_all(
    keys: Int64s,
    births: Int64s,
    deaths: Int64s,
    rows: Rows,
    index: HashIndex,
    bound: int,
    expected: float,
    row_deaths: int = DEATH,
) -> NDArray[np.int64]:
    """All matches of a batch with the rows before ``bound``: a table of four rows.

    ``expected`` is how many matches to make room for; with more, the probe is made twice.
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
        room = count + 1


def probe_keys(
    keys: Int64s, rows: Rows, index: HashIndex, bound: int, expected: float, offset: int = 0
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
        room = count + 1


def exists(keys: Int64s, rows: Rows, index: HashIndex, found: NDArray[np.bool_]) -> int:
    """Set ``found`` where a row that probes may see has the key; how many are found."""
    number: int = demand.exists(
        keys,
        index.heads,
        index.entries,
        index.narrow,
        index.shift,
        rows.mask,
        rows.low,
        rows.head - 1,
        ACTIVE,
        found,
    )
    return number
