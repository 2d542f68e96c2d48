"""What it costs to send a batch: routing and packing where it is read, unpacking where it arrives.

The batch has as many rows as Spark hands to Python at a time. With more cells the same rows make
more and smaller chunks, each with a header of its own and a fixed cost; that is what grows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import pyarrow as pa

import penstock
from penstock.cells import Packer, Placement
from penstock.cells.delivery import from_chunk

T = TypeVar("T")
_REPEATED = 2
"""Memory that is new to the process makes the first time dear."""


@dataclass(frozen=True)
class PackingCost:
    """Means over all streams."""

    pack_ns: float
    """CPU time of a tuple that is read."""
    unpack_ns: float
    """CPU time of a copy that arrives."""
    copy_bytes: float
    """Of a copy on its way."""
    read_bytes: float
    """Of a tuple as it is read: its columns."""


def packing_cost(
    query: penstock.JoinGraph,
    placement: Placement,
    tables: Mapping[str, pa.RecordBatch],
    clock: Callable[[], float] = time.process_time,
) -> PackingCost:
    """Pack one batch of each source, and unpack what every cell gets of it; the least of some."""
    keys = tuple(range(placement.cells))
    packing = unpacking = 0.0
    copies = size = 0
    for source, table in tables.items():
        packer = Packer(query, placement, keys, source, table.schema, "ts")
        packed, took = _timed(partial(_packed, packer, table), clock)
        packing += took
        chunks = _chunks(packed)
        count, took = _timed(partial(_unpacked, chunks), clock)
        unpacking += took
        copies += count
        size += sum(chunk.size for chunk in chunks)
    rows = sum(table.num_rows for table in tables.values())
    return PackingCost(
        1e9 * packing / rows,
        1e9 * unpacking / max(1, copies),
        size / max(1, copies),
        sum(table.nbytes for table in tables.values()) / rows,
    )


def _packed(packer: Packer, table: pa.RecordBatch) -> list[pa.RecordBatch]:
    return list(packer.pack([table], 0))


def _chunks(packed: list[pa.RecordBatch]) -> list[pa.Buffer]:
    """Of all cells that get any."""
    return [
        chunk.as_buffer() for each in packed for chunk in each.column("chunk") if chunk.is_valid
    ]


def _unpacked(chunks: list[pa.Buffer]) -> int:
    """How many rows they have."""
    return sum(from_chunk(each).num_rows for each in chunks)


def _timed(work: Callable[[], T], clock: Callable[[], float]) -> tuple[T, float]:
    """What comes of it, and the least time that it took."""
    least = math.inf
    for _ in range(_REPEATED):
        start = clock()
        made = work()
        least = min(least, clock() - start)
    return made, least
