"""A window in a checkpoint: the rows that may still join, with births, keys and payload.

Deaths are not saved, they follow from the rest. On the arrival line a row that has been pushed out
joins nothing that is still to come. Keys that an interner has numbered are numbered anew when they
are read (:mod:`penstock.engine.state.windows`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.recovery.columns import booleans, integers, whole
from penstock.engine.recovery.verify import check_columns
from penstock.engine.state.arrival import Arrival
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.rows import BIRTH, DEATH
from penstock.kernels.lifespan import FOREVER
from penstock.values.interner import Interner

Int64s = NDArray[np.int64]
Renumbering = tuple[Int64s, Int64s]
"""Numbers that an interner gave before a restart, ascending, and the number of each since."""


def saved_rows(window: LeafWindow) -> Int64s:
    """The rows that are saved: on the arrival line only those that have not been pushed out."""
    rows = np.arange(window.rows.tail, window.rows.head, dtype=np.int64)
    return rows[window.rows.take(DEATH, rows) == FOREVER] if window.by_rows else rows


def save_window(window: LeafWindow, rows: Int64s) -> pa.Table:
    """The ``rows`` with births, encoded columns and payload."""
    columns = {"birth": pa.array(window.rows.take(BIRTH, rows))}
    for position in range(window.key_count):
        taken = window.rows.take(window.key_column(position), rows)
        columns[f"key {position}"] = pa.array(taken)
    chosen = window.chosen(rows)
    if chosen is not None:
        columns["chosen"] = pa.array(chosen)
    for name in window.payload.columns:
        columns[f"payload {name}"] = window.payload.take(name, rows)
    return pa.Table.from_arrays(list(columns.values()), names=list(columns))


def load_window(
    window: LeafWindow, table: pa.Table, renumbered: Mapping[Interner, Renumbering]
) -> None:
    """Fill the empty ``window`` with what :func:`save_window` wrote."""
    payload = window.payload.columns
    expected = {"birth": pa.int64()}
    expected |= {f"key {position}": pa.int64() for position in range(window.key_count)}
    if window.by_rows:
        expected["chosen"] = pa.bool_()
    expected |= {f"payload {name}": each.type for name, each in payload.items()}
    check_columns(table, expected, f"the window of {window.stream.alias}")
    keys = []
    for position, interner in enumerate(window.encoder.interners):
        values = integers(table, f"key {position}")
        keys.append(values if interner is None else _mapped(values, *renumbered[interner]))
    births = integers(table, "birth")
    columns = {name: whole(table, f"payload {name}") for name in payload}
    chosen = None
    if window.by_rows:
        flags = booleans(table, "chosen")
        chosen = None if flags.all() else np.flatnonzero(flags)
    partitions = window.lifespan.partitions_of(columns, len(births))
    window.append(Arrival(births, keys, columns, chosen, partitions))


def _mapped(values: Int64s, old: Int64s, new: Int64s) -> Int64s:
    """``new`` where a value is in ``old``; others belong to rows in no index and do not matter."""
    if len(old) == 0:
        return np.full(len(values), -1, np.int64)
    positions = np.minimum(np.searchsorted(old, values), len(old) - 1)
    return np.where(old[positions] == values, new[positions], -1)
