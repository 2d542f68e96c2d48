"""When a cell writes a snapshot, and which one it goes on from.

In the cache, a snapshot is worth what reading the window again would take, and costs what writing
and loading it takes. All of this is measured: ten million rows of two streams are read again from
local parquet in 2 CPU seconds, from JSON lines in 6, and loaded from a snapshot in 3. So the cell
knows how long a row of its sources takes to read, and where that makes more than a snapshot of the
window takes, one is written

- when the engine had to be made anew in this batch: it will be lost again, as where batches are
  further apart than Spark lets an idle worker live;
- else when the batches since the last one have taken :data:`_SHARE` times as long as writing it
  takes, so that snapshots are a few per cent of the work.

Where windows reach further back than sources keep their rows, one is written to the checkpoint
folder at an interval, and kept for as long as Spark may go back to a batch behind it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

from penstock.errors import CheckpointError
from penstock.sources.ledger import Position, Skipped
from penstock.sources.snapshot import SnapshotFolder, cached_snapshots
from penstock.spark.cells.cell import Cell
from penstock.spark.data_source.engine_cache import LiveCell
from penstock.spark.data_source.lane import Lane
from penstock.spark.state.plan_orders import PlanOrders

_WORTH_SECONDS = 1.0
"""Seconds that reading the window again must take before the cache is used at all: below, a batch
is late by less than a trigger."""
_WORTH_SAVES = 1.5
"""Reading the window again takes so many times as long as writing a snapshot, or none is written:
loading it takes about as long as writing it."""
_SHARE = 20
"""Seconds of work for each second of writing snapshots."""
_ROWS_A_SECOND = 5_000_000
"""Rows of windows that are written in a second, until it has been measured."""


@dataclass(frozen=True)
class CellSnapshots:
    """The snapshots of cell ``number`` of ``lane``."""

    lane: Lane
    number: int

    def near(
        self, positions: dict[Position, SnapshotFolder], at: Position, skipped: Skipped
    ) -> LiveCell | None:
        """The cell as a snapshot at ``at`` has it, if :meth:`known` has one that is whole, of the
        batch without the files that are ``skipped``."""
        folder = positions.get(at)
        if folder is None:
            return None
        owner = self._owner(folder)
        found = folder.read(owner, at)
        if found is None or found.about.get("skipped", {}) != skipped:
            return None
        settings, obeyed = self.lane.settings, int(found.about["obeyed"])
        given = PlanOrders.read(self.lane.orders).given(settings.plan)
        try:
            cell = Cell.restore(settings, found.blob, keep_plan=given.hold(obeyed))
        except CheckpointError:  # It is damaged; what it stands for can be read again.
            folder.remove(owner, at)
            return None
        live = LiveCell(at, cell, obeyed=obeyed, skipped=skipped)
        live.written = float(found.about["written"])
        return live

    def known(self) -> dict[Position, SnapshotFolder]:
        """Where there are snapshots, and in which folder; the cache is asked first."""
        found: dict[Position, SnapshotFolder] = {}
        for folder in (self._durable, self._cache):
            if folder is not None:
                found |= dict.fromkeys(folder.positions(self._owner(folder)), folder)
        return found

    def keep(self, live: LiveCell, seconds: float, is_new: bool, rows: int) -> None:
        """Write a snapshot of ``live`` if it is due.

        ``seconds`` is how long the batch took, ``is_new`` whether the engine was made anew in it,
        ``rows`` how many its windows hold.
        """
        live.unsaved_seconds += seconds
        now = time.time()
        if is_new and live.written == 0.0:
            live.written = now if live.position.number <= 1 else 0.0
        due = self.lane.durable_seconds
        is_durable = due is not None and now - live.written >= due
        is_cached = self._cache is not None and self._is_worth(live, is_new, rows)
        if not is_durable and not is_cached:
            return
        self.write(live, is_durable, is_cached)

    def write(self, live: LiveCell, is_durable: bool = False, is_cached: bool = True) -> None:
        """Write a snapshot of ``live`` to the checkpoint folder, the cache or both."""
        began = time.perf_counter()
        if is_durable:
            live.written = time.time()
        about = {"obeyed": live.obeyed, "written": live.written, "skipped": live.skipped}
        chosen = ((is_durable, self._durable), (is_cached, self._cache))
        for is_wanted, folder in chosen:
            if is_wanted and folder is not None:
                try:
                    parts = live.cell.checkpoint_parts()
                    folder.write(self._owner(folder), live.position, about, parts)
                except OSError as problem:
                    raise CheckpointError(
                        f"a snapshot cannot be written to the checkpoint folder: {problem}"
                    ) from None
        live.save_seconds = time.perf_counter() - began
        live.unsaved_seconds = 0.0

    def _is_worth(self, live: LiveCell, is_new: bool, rows: int) -> bool:
        reading = rows * live.read_seconds / max(1, live.read_rows)
        writing = live.save_seconds or rows / _ROWS_A_SECOND
        if reading < max(_WORTH_SECONDS, _WORTH_SAVES * writing):
            return False
        return is_new or live.unsaved_seconds >= _SHARE * writing

    def _owner(self, folder: SnapshotFolder) -> str:
        """Snapshots in the checkpoint folder are copied with it, those in the cache are not."""
        is_cache = folder is self._cache
        return f"{self.lane.state_fingerprint(is_cache)}{self.number:04}"

    @cached_property
    def _cache(self) -> SnapshotFolder | None:
        most = self.lane.cache_bytes
        return cached_snapshots(most) if most else None

    @cached_property
    def _durable(self) -> SnapshotFolder | None:
        return durable_snapshots(self.lane)


def durable_snapshots(lane: Lane) -> SnapshotFolder | None:
    """The snapshots in the checkpoint folder of ``lane``, None if it needs none."""
    if lane.ledger is None or lane.durable_seconds is None:
        return None
    system, folder = lane.ledger.place
    return SnapshotFolder(system, f"{folder}/snapshots")
