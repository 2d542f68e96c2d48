"""How answers and reports leave a cell.

The stateful operator of Spark has one output, so rows of the answer and the report of the cell
share it: a row has either an answer or, in one more column, a report. Spark collects the reports as
an observed metric, and then lets the answers through.

The operator takes pandas DataFrames. Columns that wrap Arrow arrays pass it unchanged, whatever is
in them, as long as their types are flat; there is no way through for lists, maps and structs. An
answer with such a column travels as Arrow chunks instead, which costs one more hop through Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from penstock.cells.delivery import from_chunk, to_chunk
from penstock.spark.arrow_types import answer_schema
from penstock.spark.cell_report import COLUMN, CellReport, numbers

_ROWS = 1 << 17
_CHUNK = "chunk"


@dataclass(frozen=True, slots=True)
class Envelope:
    """Wraps answers of ``schema``, which has Spark's types."""

    schema: pa.Schema

    @classmethod
    def of(cls, schema: pa.Schema) -> Envelope:
        """For answers of ``schema``, with any types that Spark has or has wider ones for."""
        return cls(answer_schema(schema)[0])

    @property
    def is_flat(self) -> bool:
        """Whether answers pass as they are."""
        return not any(pa.types.is_nested(kind) for kind in self.schema.types)

    @property
    def wrapped(self) -> StructType:
        """What the operator emits."""
        _, answers = answer_schema(self.schema)
        fields = answers.fields if self.is_flat else [StructField(_CHUNK, BinaryType())]
        return StructType([*fields, StructField(self._report, StringType())])

    @property
    def _report(self) -> str:
        name = "report"
        while name in self.schema.names:
            name += "_"
        return name

    def wrap(self, results: pa.Table, report: CellReport) -> Iterator[pd.DataFrame]:
        """The results and the report of a cell."""
        results = results.cast(self.schema)
        for start in range(0, results.num_rows, _ROWS):
            part = results.slice(start, _ROWS)
            if self.is_flat:
                yield _frame(part.append_column(self._report, pa.nulls(len(part), pa.string())))
            else:
                chunk = pa.array([to_chunk(part)], pa.binary())
                yield _frame(pa.table([chunk, pa.nulls(1, pa.string())], self.wrapped.names))
        *others, last = self.wrapped.names
        nothing = self.schema.types if self.is_flat else [pa.binary()]
        columns = [pa.nulls(1, kind) for kind in nothing]
        text = pa.array([report.to_json()], pa.string())
        yield _frame(pa.table([*columns, text], names=[*others, last]))

    def unwrap(self, wrapped: DataFrame, name: str, sources: Sequence[str]) -> DataFrame:
        """The answers; reports become an observed metric called ``name``.

        Beside the reports it has their sums, in numbers that a person can read.
        """
        report = sql.col(self._report)
        seen = wrapped.observe(
            name,
            sql.collect_list(report).alias(COLUMN),
            *numbers(report, sources),
        )
        answers = seen.where(report.isNull()).drop(self._report)
        if self.is_flat:
            return answers
        return answers.mapInArrow(_unpacking(self.schema), answer_schema(self.schema)[1])


def _frame(table: pa.Table) -> pd.DataFrame:
    return pd.DataFrame(
        {
            name: pd.Series(pd.arrays.ArrowExtensionArray(column))
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
    )


def _unpacking(
    schema: pa.Schema,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for chunk in batch.column(_CHUNK):
                yield from from_chunk(chunk.as_buffer()).cast(schema).to_batches()

    return unpack
