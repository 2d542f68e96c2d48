"""The bounded answer: all rows that there are, as one push in each cell, and the end of time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from penstock.errors import PenstockWarning
from penstock.sources.ledger import without
from penstock.spark.data_source.lane import Lane
from penstock.spark.data_source.plain_errors import plain_errors
from penstock.spark.data_source.skipped_files import unreadable
from penstock.spark.data_source.sourced_cell import SourcedCell

_ROWS = 1 << 17
"""Rows of a record batch that is handed to Spark."""


@dataclass
class WholePartition(InputPartition):
    """All portions, for one cell."""

    cell: int
    portions: Mapping[str, Any]


class BatchAnswer(DataSourceReader):
    """Reads the answer of ``lane`` to what there is now."""

    def __init__(self, lane: Lane, schema: pa.Schema) -> None:
        self._lane = lane
        self._schema = schema

    def partitions(self) -> list[WholePartition]:
        with plain_errors():
            portions = {name: source.everything() for name, source in self._lane.sources.items()}
            skipped = unreadable(self._lane, portions)
            for name, files in skipped.items():
                told = ", ".join(f"{file} ({why})" for file, why in files.items())
                warnings.warn(f"{name}: left out: {told}", PenstockWarning, stacklevel=2)
            kept = without(portions, skipped)
        return [WholePartition(n, kept) for n in range(self._lane.placement.cells)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, WholePartition)
        with plain_errors():
            answer = SourcedCell(self._lane, partition.cell).everything(partition.portions)
        yield from answer.cast(self._schema).to_batches(_ROWS)
