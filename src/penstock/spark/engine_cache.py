"""The live cells of this Python worker, between micro-batches.

Module globals survive as long as Spark keeps the worker. Whether a live cell is the one that the
state describes is decided by :mod:`penstock.spark.cell_history`.
"""

from __future__ import annotations

from collections import OrderedDict

from penstock.spark.cell_history import LiveCell

MOST = 64
"""Live cells of a worker; those not used for longest go first."""

_cells: OrderedDict[tuple[str, int], LiveCell] = OrderedDict()


def take(run: str, cell: int) -> LiveCell | None:
    """The live cell of ``run``, which leaves the cache while it works."""
    return _cells.pop((run, cell), None)


def put(run: str, cell: int, live: LiveCell) -> None:
    """Keep a cell for the next batch."""
    _cells[(run, cell)] = live
    while len(_cells) > MOST:
        _cells.popitem(last=False)
