"""The engines of this process, by what they have taken in: a cache with a limit in bytes.

Module globals live as long as Spark keeps the Python worker. An engine is filed under its lane and
cell, with the position in the ledger that it has taken in. It may be ahead of what is asked for
(the batch is done again), behind (another worker did the last batches) or in another branch; who
takes it looks (:mod:`penstock.spark.data_source.sourced_cell`). While an engine works it is in no
cache, so an attempt that dies in the middle leaves none behind. One that ends does, and the batch
may be done again without some of its files; so an engine knows which it was without.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from penstock.sources.ledger import Position, Skipped
from penstock.spark.cells.cell import Cell

MOST_BYTES = 4 << 30
"""Of all engines of a worker together, as they measure themselves. One more is always kept: it has
just been used, and will be again."""

_engines: OrderedDict[tuple[str, int], LiveCell] = OrderedDict()


@dataclass(slots=True)
class LiveCell:
    """A cell in memory, and where in the ledger it stands."""

    position: Position
    cell: Cell
    size: int = 0
    """Bytes of its state."""
    obeyed: int = 0
    """The number of the last order about the plan that it has obeyed."""
    skipped: Skipped = field(default_factory=dict)
    """Files that the batch at its position was done without."""
    read_seconds: float = 0.0
    """Seconds that reading rows of its sources has taken so far."""
    read_rows: int = 0
    """Rows that it has got so."""
    save_seconds: float = 0.0
    """Seconds that its last snapshot took to write; 0 if there was none."""
    unsaved_seconds: float = 0.0
    """Seconds of work since its last snapshot."""
    written: float = 0.0
    """When its last durable snapshot was written, in seconds since 1970; 0 if that is not known."""


def take(lane: str, cell: int) -> LiveCell | None:
    """The engine of a cell, which leaves the cache while it works."""
    return _engines.pop((lane, cell), None)


def put(lane: str, cell: int, live: LiveCell, most: int = MOST_BYTES) -> None:
    """Keep an engine for the next batch; others go, those not used for longest first."""
    _engines[(lane, cell)] = live
    total = sum(each.size for each in _engines.values())
    while total > most and len(_engines) > 1:
        _, gone = _engines.popitem(last=False)
        total -= gone.size


def clear() -> None:
    """Forget all engines, as a worker does that ends."""
    _engines.clear()
