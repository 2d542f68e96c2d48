"""Plain batches: columns of fixed width without NULLs, in order, taken in by their addresses.

To ask pyarrow for a column costs more than to join the few rows that it may have. Most batches are
plain: their columns are numbers or times without NULLs, nobody is late, and time does not go back.
Of such a batch nothing is needed but where its columns lie, and Arrow tells that of all of them at
once. Whether a batch is plain is found by looking; one that is not goes the general way, which
gives the same answer.

The struct that Arrow fills is released as soon as the addresses have been read. What they point at
belongs to the batch, which does not change, so whoever uses them keeps the batch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.kernels import arrow_struct as kernel
from penstock.kernels.lifespan import BEGINNING

Int64s = NDArray[np.int64]

_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_RELEASES: dict[int, Any] = {}
"""Arrow's functions that release a struct, by their addresses."""


def release(function: int, address: int) -> None:
    """Let go of the struct at ``address`` by the ``function`` that it names itself."""
    known = _RELEASES.get(function)
    if known is None:
        known = _RELEASES[function] = _Release(function)
    known(address)


def plain_width(type_: pa.DataType) -> int | None:
    """Bytes of a value of ``type_`` if all that it has is a buffer of them; else None."""
    if pa.types.is_boolean(type_) or not pa.types.is_primitive(type_):
        return None
    return int(type_.bit_width) // 8


class PlainBatches:
    """Looks at batches of one source, all of one schema."""

    def __init__(
        self, schema: pa.Schema, columns: Sequence[str], time: str, ticks: int, farthest: int
    ) -> None:
        """``columns`` are wanted, among them the event times ``time``, which count ``ticks``."""
        self.columns = tuple(columns)
        self.time = self.columns.index(time)
        self.ticks = ticks
        self.farthest = farthest // ticks
        self.positions = np.array([schema.get_field_index(c) for c in columns], np.int64)
        self.widths = np.array([plain_width(schema.field(c).type) for c in columns], np.int64)
        self._struct = np.zeros(kernel.WORDS, np.int64)
        self._address = self._struct.ctypes.data
        self._found = np.zeros(len(columns), np.int64)

    def look(
        self, batch: pa.RecordBatch, earliest: int | None
    ) -> tuple[Int64s, dict[str, int]] | None:
        """Event times and the address of each column, or None if the batch is not plain.

        ``batch`` has rows and the right schema; rows before ``earliest`` are late.
        """
        batch._export_to_c(self._address)
        try:
            is_plain = kernel.look(
                self._struct,
                self.positions,
                self.widths,
                self.time,
                self.ticks,
                self.farthest,
                BEGINNING if earliest is None else earliest,
                len(batch),
                self._found,
            )
        finally:
            release(self._struct.item(kernel.RELEASE), self._address)
        if not is_plain:
            return None
        births = np.empty(len(batch), np.int64)
        found = self._found.tolist()
        kernel.births_of(found[self.time], self.ticks, births)
        return births, dict(zip(self.columns, found, strict=True))
