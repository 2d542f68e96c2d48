"""The stateful processor: Spark's side of a cell.

Called once per cell and micro-batch with all packed rows of the cell. Spark commits the state and
the sink's output of a batch together or not at all; :mod:`penstock.spark.cell_history` does the
rest.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import (
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
    ValueState,
)

from penstock.errors import InvariantBroken
from penstock.spark import engine_cache
from penstock.spark.cell import CellSettings
from penstock.spark.cell_history import CellHistory
from penstock.spark.delivery import Delivery, to_chunk
from penstock.spark.packing import NO_NEWS

RESULTS = "chunk BINARY"
"""The columns of packed results, as Spark has them."""

_ROWS_PER_CHUNK = 1 << 17
_QUERY_ID = "sql.streaming.queryId"


class CellProcessor(StatefulProcessor):
    """Runs the cells of ``settings``; ``keys`` are the keys of the cells in order."""

    def __init__(self, settings: CellSettings, keys: tuple[int, ...], fingerprint: str) -> None:
        self._settings = settings
        self._numbers = {key: number for number, key in enumerate(keys)}
        self._fingerprint = fingerprint

    def init(self, handle: StatefulProcessorHandle) -> None:
        header = handle.getValueState("header", "text STRING")
        values = handle.getMapState("values", "number BIGINT", "bytes BINARY")
        self._store = SparkStore(header, values)
        context = TaskContext.get()
        self._run = (context.getLocalProperty(_QUERY_ID) if context else None) or ""

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        number = self._numbers[int(key[0])]
        delivery = delivered(self._settings, rows)
        history = CellHistory(self._store, self._settings, number, self._fingerprint)
        history.read()
        live = engine_cache.take(self._run, number)
        results, live = history.take(delivery, live, secrets.token_hex(16))
        engine_cache.put(self._run, number, live)
        for chunk in packed_results(results):
            yield pd.DataFrame({"chunk": [chunk]})

    def close(self) -> None:
        """Nothing is held beyond the cache."""


class SparkStore:
    """State variables of the current cell as a :class:`~penstock.spark.cell_history.CellStore`."""

    def __init__(self, header: ValueState, values: MapState) -> None:
        self._header = header
        self._values = values

    def header(self) -> str | None:
        found = self._header.get()
        return None if found is None else str(found[0])

    def put_header(self, text: str) -> None:
        self._header.update((text,))

    def value(self, number: int) -> bytes:
        found = self._values.getValue((number,))
        if found is None:
            raise InvariantBroken(f"value {number} of a cell is not in the state store")
        return bytes(found[0])

    def put_value(self, number: int, value: bytes) -> None:
        self._values.updateValue((number,), (value,))

    def remove_value(self, number: int) -> None:
        self._values.removeKey((number,))


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


def packed_results(results: pa.Table) -> Iterator[bytes]:
    """``results`` as chunks of a size that Spark likes."""
    for start in range(0, results.num_rows, _ROWS_PER_CHUNK):
        yield to_chunk(results.slice(start, _ROWS_PER_CHUNK))
