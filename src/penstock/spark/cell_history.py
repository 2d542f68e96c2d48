"""What Spark's state store keeps of a cell, and how a live engine is trusted.

State is a *base* (a checkpoint of the engine) and the deliveries since then. An engine is a
function of what was pushed, so the base with the deliveries pushed once more, their results
dropped, is the engine as it was: windows, clock, late decisions, what set difference holds. When
the deliveries have grown to the size of the base, a new base takes the place of everything. So a
batch writes on average about twice what it brings, whatever the size of the windows, tuples whose
window has passed go with the old base, and a restart reads at most about twice the windows.

Live engines stay in the memory of Python workers. Spark may run a batch again (a failed task, a
restarted query, a speculative copy), or run it elsewhere, so a live engine may be ahead of the
state, behind it, or beside it. Every attempt draws a *nonce* and leaves it with its entry. A live
engine carries version and nonce of the last entry it took in, and is used only if the state has
this very entry: if it is the last, as it is; if not, after pushing the entries behind it. An
attempt that was not committed left its nonce in no state, so its engine is never used. While an
engine works, it is in no cache.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from penstock.errors import CheckpointError
from penstock.spark.cell import Cell, CellSettings, with_static
from penstock.spark.delivery import Delivery

PART = 1 << 24
"""Bytes of the largest value in the state store."""
SMALLEST = 1 << 20
"""Deliveries are not rewritten into a base before they have this size together."""
MOST_ENTRIES = 256


class CellStore(Protocol):
    """The state of one cell: a header and numbered values."""

    def header(self) -> str | None: ...

    def put_header(self, text: str) -> None: ...

    def value(self, number: int) -> bytes: ...

    def put_value(self, number: int, value: bytes) -> None: ...

    def remove_value(self, number: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A base or a delivery: its values in the store, and the attempt that wrote it."""

    version: int
    nonce: str
    first: int
    stop: int
    size: int
    is_base: bool


@dataclass(slots=True)
class LiveCell:
    """A cell in memory, with the last entry that it has taken in."""

    version: int
    nonce: str
    cell: Cell


@dataclass(slots=True)
class CellHistory:
    """The entries of cell ``number``; ``fingerprint`` tells queries and placements apart."""

    store: CellStore
    settings: CellSettings
    number: int
    fingerprint: str
    entries: list[Entry] = field(default_factory=list)

    def read(self) -> None:
        """Read the header; :class:`CheckpointError` if it belongs to something else."""
        text = self.store.header()
        if text is None:
            return
        header: dict[str, Any] = json.loads(text)
        if header["fingerprint"] != self.fingerprint:
            raise CheckpointError(
                "this checkpoint folder belongs to another query, or to the same one with another "
                f"number of cells: it was written with {header['about']}, and this query has "
                f"{about(self.settings)}; start it with another checkpoint folder"
            )
        self.entries = [Entry(**each) for each in header["entries"]]

    def take(
        self, delivery: Delivery, live: LiveCell | None, nonce: str
    ) -> tuple[pa.Table, LiveCell]:
        """Push ``delivery`` into the cell and write it down; the results, and the cell."""
        cell = self._current(live)
        if not self.entries:
            delivery = with_static(self.settings, self.number, delivery)
        results = cell.push(delivery)
        version = self.entries[-1].version + 1 if self.entries else 1
        self._write(delivery.to_bytes(), cell.checkpoint, version, nonce)
        return results, LiveCell(version, nonce, cell)

    def _current(self, live: LiveCell | None) -> Cell:
        """The cell as of the last entry: the live one if it can be trusted, else made anew."""
        rest = self.entries
        cell: Cell | None = None
        if live is not None:
            for position, entry in enumerate(self.entries):
                if (entry.version, entry.nonce) == (live.version, live.nonce):
                    cell, rest = live.cell, self.entries[position + 1 :]
        if cell is None and rest and rest[0].is_base:
            cell, rest = Cell.restore(self.settings, self._bytes_of(rest[0])), rest[1:]
        cell = cell or Cell(self.settings, self.settings.engine())
        for entry in rest:
            cell.push(Delivery.from_bytes(self._bytes_of(entry)))
        return cell

    def _write(
        self, delivery: bytes, checkpoint: Callable[[], bytes], version: int, nonce: str
    ) -> None:
        base = sum(e.size for e in self.entries if e.is_base)
        grown = sum(e.size for e in self.entries if not e.is_base) + len(delivery)
        is_base = grown > max(base, SMALLEST) or len(self.entries) >= MOST_ENTRIES
        value = checkpoint() if is_base else delivery
        first = self.entries[-1].stop if self.entries else 0
        stop = first
        for start in range(0, len(value), PART):
            self.store.put_value(stop, value[start : start + PART])
            stop += 1
        if is_base:
            for entry in self.entries:
                for number in range(entry.first, entry.stop):
                    self.store.remove_value(number)
            self.entries = []
        self.entries.append(Entry(version, nonce, first, stop, len(value), is_base))
        header = {
            "fingerprint": self.fingerprint,
            "about": about(self.settings),
            "entries": [asdict(entry) for entry in self.entries],
        }
        self.store.put_header(json.dumps(header))

    def _bytes_of(self, entry: Entry) -> bytes:
        parts = [self.store.value(number) for number in range(entry.first, entry.stop)]
        return parts[0] if len(parts) == 1 else b"".join(parts)


def about(settings: CellSettings) -> str:
    """A query and its placement in one line, for messages."""
    cells = settings.placement.cells
    text = " ".join(settings.query.text.split())
    shown = text if len(text) <= 200 else f"{text[:200]}…"
    return f"{cells} {'cell' if cells == 1 else 'cells'}: {shown}"
