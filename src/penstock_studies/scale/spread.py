"""Where the tuples of a query go: how many copies of each are sent, and how full the cells get.

Real tuples are sent through the real router, batch by batch. Cells are dealt out to workers in
turn, as :mod:`penstock.spark` does it; with hot values there are more cells than were asked for, so
how evenly the work is spread can only be said of workers, of which there are as many as were asked
for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import penstock
from penstock.cells import Placement, Router


@dataclass(frozen=True)
class Spread:
    """Tuples by source, and what became of them."""

    rows: Mapping[str, int]
    received: Mapping[str, NDArray[np.int64]]
    """By source: copies that each cell gets."""

    @property
    def copies(self) -> float:
        """Sent for each tuple."""
        return sum(int(each.sum()) for each in self.received.values()) / sum(self.rows.values())

    def copies_of(self, source: str) -> float:
        return int(self.received[source].sum()) / self.rows[source]

    def loads(self, workers: int) -> NDArray[np.int64]:
        """Copies that each of so many workers gets."""
        cells = sum(self.received.values(), np.zeros(1, np.int64))
        loads = np.zeros(workers, np.int64)
        np.add.at(loads, np.arange(len(cells)) % workers, cells)
        return loads

    def skew(self, workers: int) -> float:
        """The fullest worker over the mean."""
        loads = self.loads(workers)
        return float(loads.max() / loads.mean())


def spread(
    query: penstock.JoinGraph, placement: Placement, tables: Mapping[str, pa.RecordBatch]
) -> Spread:
    """Send ``tables`` to the cells of ``placement``."""
    router = Router(query, placement)
    received = {}
    for source, table in tables.items():
        counts = np.zeros(placement.cells, np.int64)
        columns = dict(zip(table.schema.names, table.columns, strict=True))
        for share in router.route(source, columns, table.num_rows):
            size = table.num_rows if share.rows is None else len(share.rows)
            counts[list(share.cells)] += size
        received[source] = counts
    return Spread({source: table.num_rows for source, table in tables.items()}, received)
