"""The live cells of this Python worker, between micro-batches.

Module globals survive as long as Spark keeps the worker. A cell is kept under the digest of all
that it has taken in (:mod:`penstock.spark.state.cell_history`) and a mark for the settings that it
was made with. So it serves any state that names this digest: of a batch that is done again, of
another join in the same query with the same rows, of a copied checkpoint; and no other.

The limit is in bytes, those of the engine's windows and states and of an answer that is held. Cells
that were not used for longest go first. The one that was put last stays whatever its size: to make
a large engine anew in every batch is what the cache is there to avoid.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from penstock.spark.state.live_cell import LiveCell

HELD_ANSWER_BYTES = 64 << 20
"""Size of the largest answer that is held in case its batch is done again."""
_SHARE = 0.5
"""Of the memory of the machine, for the live cells of all its workers."""
_LEAST_BYTES = 256 << 20


def limit_bytes() -> int:
    """Bytes that the live cells of one worker may have: there is a worker for each core."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(_LEAST_BYTES, int(_SHARE * memory / (os.cpu_count() or 1)))


@dataclass(slots=True)
class EngineCache:
    """Live cells by mark and digest, ``limit`` bytes of them."""

    limit: int = field(default_factory=limit_bytes)
    _cells: OrderedDict[tuple[str, str], LiveCell] = field(default_factory=OrderedDict)
    _bytes: int = 0

    def take(self, mark: str, nonces: Iterable[str]) -> LiveCell | None:
        """The first live cell that has taken in one of ``nonces``; it leaves the cache."""
        for nonce in nonces:
            live = self._cells.pop((mark, nonce), None)
            if live is not None:
                self._bytes -= live.size
                return live
        return None

    def put(self, mark: str, live: LiveCell) -> None:
        """Keep a cell for the next batch."""
        if live.taken is not None and live.taken.results.nbytes > HELD_ANSWER_BYTES:
            live.taken = None
        self.take(mark, [live.nonce])
        self._cells[(mark, live.nonce)] = live
        self._bytes += live.size
        while self._bytes > self.limit and len(self._cells) > 1:
            _, gone = self._cells.popitem(last=False)
            self._bytes -= gone.size

    def clear(self) -> None:
        self._cells.clear()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._cells)


WORKER = EngineCache()
"""The cache of this worker."""
