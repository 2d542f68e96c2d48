"""A window in a checkpoint: the rows that may still join, with births, keys and payload.

Deaths are not saved, they follow from the rest. On the arrival line a row that has been pushed out
joins nothing that is still to come. Keys that an interner has numbered are numbered anew when they
are read (:mod:`penstock.engine.state.windows`).

A window may be larger than memory, with most of it in files. So it is saved and loaded a piece at a
time: what was read of files for one is let go before the next, and a host that has a limit on
memory moves rows to files again as they are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.recovery.columns import booleans, integers, whole
from penstock.engine.recovery.verify import check_columns
from penstock.engine.state.arrival import Arrival
from penstock.engine.state.clock import START
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.rows import BIRTH, DEATH
from penstock.kernels.lifespan import FOREVER
from penstock.values.arrow_chunks import copied
from penstock.values.interner import Interner

Int64s = NDArray[np.int64]
Renumbering = tuple[Int64s, Int64s]
"""Numbers that an interner gave before a restart, ascending, and the number of each since."""


PIECE_BYTES = 16 << 20
"""Bytes of a piece, about."""
LEAST_PIECE = 1024
"""Rows of a piece at least, however wide they are."""


def saved_rows(window: LeafWindow) -> Int64s:
    """The rows that are saved: on the arrival line only those that have not been pushed out."""
    return _saved(window, window.rows.tail, window.rows.head)


def _saved(window: LeafWindow, start: int, stop: int) -> Int64s:
    rows = np.arange(start, stop, dtype=np.int64)
    return rows[window.rows.take(DEATH, rows) == FOREVER] if window.by_rows else rows


def save_window(window: LeafWindow) -> Iterator[pa.Table]:
    """The rows that are saved with births, encoded columns and payload, in pieces."""
    tail, head = window.rows.tail, window.rows.head
    width = (window.nbytes + window.bytes_away) // max(1, head - tail)
    most = max(LEAST_PIECE, PIECE_BYTES // max(1, width))
    for start in range(tail, max(head, tail + 1), most):
        yield _piece(window, _saved(window, start, min(head, start + most)))
        window.let_go()


def _piece(window: LeafWindow, rows: Int64s) -> pa.Table:
    columns = {"birth": pa.array(window.rows.take(BIRTH, rows))}
    for position in range(window.key_count):
        taken = window.rows.take(window.key_column(position), rows)
        columns[f"key {position}"] = pa.array(taken)
    chosen = window.chosen(rows)
    if chosen is not None:
        columns["chosen"] = pa.array(chosen)
    if window.seen_at is not None:
        columns["seen at"] = pa.array(window.seen_at.of(rows))
    for name in window.payload.columns:
        columns[f"payload {name}"] = window.payload.take(name, rows)
    return pa.Table.from_arrays(list(columns.values()), names=list(columns))


def load_window(
    window: LeafWindow,
    pieces: Iterable[pa.Table],
    renumbered: Mapping[Interner, Renumbering],
    grown: Callable[[], None],
) -> None:
    """Fill the empty ``window`` with what :func:`save_window` wrote; ``grown`` is called after
    each piece."""
    payload = window.payload.columns
    expected = {"birth": pa.int64()}
    expected |= {f"key {position}": pa.int64() for position in range(window.key_count)}
    if window.by_rows:
        expected["chosen"] = pa.bool_()
    expected |= {f"payload {name}": each.type for name, each in payload.items()}
    for piece in pieces:
        if "seen at" in piece.column_names:  # It depends on an option, and older ones lack it.
            expected["seen at"] = pa.int64()
        check_columns(piece, expected, f"the window of {window.stream.alias}")
        _load_piece(window, piece, renumbered)
        grown()


def _load_piece(
    window: LeafWindow, table: pa.Table, renumbered: Mapping[Interner, Renumbering]
) -> None:
    keys = []
    for position, interner in enumerate(window.encoder.interners):
        values = integers(table, f"key {position}")
        keys.append(values if interner is None else _mapped(values, *renumbered[interner]))
    births = integers(table, "birth")
    # What it was read from is not kept alive.
    columns = {name: copied(whole(table, f"payload {name}")) for name in window.payload.columns}
    chosen = None
    if window.by_rows:
        flags = booleans(table, "chosen")
        chosen = None if flags.all() else np.flatnonzero(flags)
    partitions = window.lifespan.partitions_of(columns, len(births))
    window.append(Arrival(births, keys, columns, chosen, partitions))
    if window.seen_at is not None and "seen at" in table.column_names:
        window.seen_at.note_each(integers(table, "seen at"))
    elif window.seen_at is not None:
        window.seen_at.note(START)


def _mapped(values: Int64s, old: Int64s, new: Int64s) -> Int64s:
    """``new`` where a value is in ``old``; others belong to rows in no index and do not matter."""
    if len(old) == 0:
        return np.full(len(values), -1, np.int64)
    positions = np.minimum(np.searchsorted(old, values), len(old) - 1)
    return np.where(old[positions] == values, new[positions], -1)
