"""The stateful processor: Spark's side of a cell.

Called once per cell and micro-batch with all packed rows of the cell. Spark commits the state and
the sink's output of a batch together or not at all; :mod:`penstock.spark.cell_history` does the
rest.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import (
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from penstock.cells.delivery import Delivery
from penstock.cells.packing import NO_NEWS
from penstock.engine.overload import Overload
from penstock.errors import CheckpointError
from penstock.spark import engine_cache
from penstock.spark.cell import CellSettings
from penstock.spark.cell_history import CellHistory
from penstock.spark.cell_report import CellReport
from penstock.spark.cell_store import CellStore, FileValues, StateValues
from penstock.spark.envelope import Envelope
from penstock.spark.plan_orders import PlanOrders
from penstock.spark.trigger_budget import seconds_until_due

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


class CellProcessor(StatefulProcessor):
    """Runs the cells of ``settings``; ``keys`` are the keys of the cells in order.

    ``folder`` is where values are kept, None for the state store. ``orders`` is the file in which
    people say what they want of the plan. ``interval`` is that of the trigger in seconds, if there
    is one.
    """

    def __init__(
        self,
        settings: CellSettings,
        keys: tuple[int, ...],
        fingerprint: str,
        folder: str | None = None,
        orders: str | None = None,
        interval: float | None = None,
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._fingerprint = fingerprint
        self._folder = folder
        self._orders = None if orders is None else Path(orders)
        self._interval = interval

    def init(self, handle: StatefulProcessorHandle) -> None:
        # Each variable costs every task the same again to set up, so there are as few as can be.
        self._header = handle.getValueState("header", "text STRING")
        self._values: MapState | None = None
        if self._folder is None:
            self._values = handle.getMapState("values", "name STRING, part INT", "bytes BINARY")
        context = TaskContext.get()
        self._run = (context.getLocalProperty(_QUERY_ID) if context else None) or ""
        self._batch = int((context.getLocalProperty(_BATCH_ID) if context else None) or -1)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        start = time.perf_counter()
        number = self._keys.index(int(key[0]))
        delivery = delivered(self._settings, rows)
        orders = PlanOrders.read(self._orders).given(self._settings.plan)
        store = self._store(number)
        history = CellHistory(store, self._settings, number, self._fingerprint, orders)
        try:
            history.read()
            live = engine_cache.take(self._run, number)
            taken = history.take(delivery, live, secrets.token_hex(8), self._due(start))
        except EOFError:  # Spark's state server dies of what it cannot write, without a word.
            raise CheckpointError(
                "Spark's state store does not answer any more; is the disk of the checkpoint full?"
            ) from None
        engine_cache.put(self._run, number, taken.live)
        engine = taken.live.cell.engine
        report = CellReport(
            batch=self._batch,
            cell=number,
            rows=taken.rows,
            results=taken.results.num_rows,
            late=taken.late,
            state_bytes=taken.state_bytes,
            stored_bytes=taken.stored_bytes,
            engine_seconds=taken.engine_seconds,
            total_seconds=time.perf_counter() - start,
            origin=taken.origin,
            plan=str(engine.running_plan),
            watermark=engine.watermark,
            operators=taken.operators,
            decisions=tuple(event.to_json() for event in taken.decisions),
            overload=taken.overload,
        )
        ready = time.perf_counter()
        yield from Envelope.of(self._settings.query.schema).wrap(taken.results, report)
        count, handed = sum(taken.rows.values()), time.perf_counter() - ready
        engine.note_host(count, ready - taken.pushed, taken.results.num_rows, handed)

    def _due(self, start: float) -> float | None:
        """When the cell must be done that was called at ``start``, by the clock of ``start``."""
        option = self._settings.options.get("overload")
        if not isinstance(option, Overload) or option.seconds is None:
            return None
        if self._interval is None:
            return start + option.seconds
        return start + seconds_until_due(self._interval, option.seconds, time.time())

    def close(self) -> None:
        """Nothing is held beyond the cache."""

    def _store(self, number: int) -> CellStore:
        if self._values is not None:
            return StateValues(self._header, self._values)
        return FileValues(self._header, Path(self._folder or "") / self._run / f"cell-{number}")


def delivered(settings: CellSettings, frames: Iterable[pd.DataFrame]) -> Delivery:
    """The packed rows of one cell as a delivery."""
    columns = ["source", "partition", "sequence", "newest", "chunk"]
    packed = [
        row
        for frame in frames
        for row in zip(*(frame[column].tolist() for column in columns), strict=True)
    ]
    packed.sort(key=lambda row: row[:3])
    delivery = Delivery()
    for source, _, _, newest, chunk in packed:
        delivery.add(
            settings.query.sources[int(source)],
            None if newest == NO_NEWS else int(newest),
            None if chunk is None else bytes(chunk),
        )
    return delivery
