"""Columns of the tables in a checkpoint, as arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]


def whole(table: pa.Table, name: str) -> pa.Array:
    """The column ``name`` in one piece (or in chunks, if its dictionaries do not fit into one)."""
    chunks = table.column(name).chunks
    if not chunks:
        return pa.nulls(0, table.schema.field(name).type)
    if len(chunks) == 1:
        return chunks[0]
    try:
        return pa.concat_arrays(chunks)
    except pa.ArrowInvalid:
        return table.column(name)


def integers(table: pa.Table, name: str) -> Int64s:
    """The column ``name`` of 64-bit integers, in memory of its own."""
    return np.array(whole(table, name).to_numpy(zero_copy_only=False), np.int64)


def booleans(table: pa.Table, name: str) -> Bools:
    """The column ``name`` of truth values, in memory of its own."""
    return np.array(whole(table, name).to_numpy(zero_copy_only=False), np.bool_)
