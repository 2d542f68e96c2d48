"""How answers and reports leave a cell.

The stateful operator of Spark has one output, so rows of the answer and the report of the cell
share it: a row has either an answer or, in one more column, a report. Spark collects the reports as
an observed metric, and then lets the answers through.

The operator takes pandas DataFrames. Columns that wrap Arrow arrays pass it unchanged, whatever is
in them, as long as their types are flat; there is no way through for lists, maps and structs. An
answer with such a column travels as Arrow chunks instead, which costs one more hop through Python.

Where dropped rows are wanted, they leave in the same way, as JSON in one more column, and become a
column of structs there (:mod:`penstock.spark.rows.side_rows`): NULL in answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from penstock.cells.delivery import from_chunk, to_chunk
from penstock.spark.cells.cell_report import COLUMN, CellReport, numbers
from penstock.spark.rows.arrow_types import answer_schema
from penstock.spark.rows.side_rows import AS_TEXT, COLUMNS, SideRow

_ROWS = 1 << 17
_CHUNK = "chunk"


@dataclass(frozen=True, slots=True)
class Envelope:
    """Wraps answers of ``schema``, which has Spark's types."""

    schema: pa.Schema
    side: str | None = None
    """The column of dropped rows, if they are wanted."""

    @classmethod
    def of(cls, schema: pa.Schema, side: str | None = None) -> Envelope:
        """For answers of ``schema``, with any types that Spark has or has wider ones for."""
        return cls(answer_schema(schema)[0], side)

    @property
    def is_flat(self) -> bool:
        """Whether answers pass as they are."""
        return not any(pa.types.is_nested(kind) for kind in self.schema.types)

    @property
    def wrapped(self) -> StructType:
        """What the operator emits."""
        _, answers = answer_schema(self.schema)
        fields = answers.fields if self.is_flat else [StructField(_CHUNK, BinaryType())]
        texts = [self._report] if self.side is None else [self._report, self.side]
        return StructType([*fields, *(StructField(name, StringType()) for name in texts)])

    @property
    def _report(self) -> str:
        name = "report"
        while name in self.schema.names or name == self.side:
            name += "_"
        return name

    def wrap(
        self, results: pa.Table, report: CellReport, dropped: Sequence[SideRow] = ()
    ) -> Iterator[pd.DataFrame]:
        """The results and the report of a cell, and the rows that it dropped, if wanted."""
        results = results.cast(self.schema)
        for start in range(0, results.num_rows, _ROWS):
            part = results.slice(start, _ROWS)
            if not self.is_flat:
                part = pa.table([pa.array([to_chunk(part)], pa.binary())], names=[_CHUNK])
            yield _frame(self._with_texts(part.columns, None, None))
        nothing = self.schema.types if self.is_flat else [pa.binary()]
        yield _frame(self._with_texts([pa.nulls(1, kind) for kind in nothing], report, None))
        rows = [] if self.side is None else dropped
        for start in range(0, len(rows), _ROWS):
            part_of_rows = rows[start : start + _ROWS]
            empty = [pa.nulls(len(part_of_rows), kind) for kind in nothing]
            yield _frame(self._with_texts(empty, None, part_of_rows))

    def _with_texts(
        self,
        columns: Sequence[pa.Array | pa.ChunkedArray],
        report: CellReport | None,
        dropped: Sequence[SideRow] | None,
    ) -> pa.Table:
        count = len(columns[0])
        told = [None if report is None else report.to_json()] * count
        texts = [pa.array(told, pa.string())]
        if self.side is not None:
            asides = [None] * count if dropped is None else [row.to_json() for row in dropped]
            texts.append(pa.array(asides, pa.string()))
        return pa.table([*columns, *texts], names=self.wrapped.names)

    def unwrap(self, wrapped: DataFrame, name: str, sources: Sequence[str]) -> DataFrame:
        """The answers; reports become an observed metric called ``name``.

        Beside the reports it has their sums, in numbers that a person can read.
        """
        answers = observed(wrapped, self._report, name, sources)
        if not self.is_flat:
            fields = answer_schema(self.schema)[1].fields
            if self.side is not None:
                fields = [*fields, StructField(self.side, StringType())]
            unpack = _unpacking(self.schema, self.side)
            answers = answers.mapInArrow(unpack, StructType(fields))
        if self.side is None:
            return answers
        return opened(answers, self.side)


def report_column(schema: pa.Schema) -> str:
    """The name of the column with reports beside answers of ``schema``."""
    name = "report"
    while name in schema.names:
        name += "_"
    return name


def observed(
    wrapped: DataFrame, column: str, name: str, sources: Sequence[str] | None = None
) -> DataFrame:
    """The answers among rows that have an answer or a report in ``column``; reports become an
    observed metric called ``name``, with their sums if ``sources`` are given.

    Spark works on each sum for every row of the answer: with four thousand rows in a batch, 18 sums
    took 14 % of the task.
    """
    report = sql.col(column)
    sums = [] if sources is None else numbers(report, sources)
    seen = wrapped.observe(name, sql.collect_list(report).alias(COLUMN), *sums)
    return seen.where(report.isNull()).drop(column)


def opened(answers: DataFrame, side: str) -> DataFrame:
    """``answers`` with the texts of dropped rows in the column ``side`` as structs."""
    quoted = "`" + side.replace("`", "``") + "`"
    return answers.withColumn(side, _opened(sql.col(quoted)))


def _frame(table: pa.Table) -> pd.DataFrame:
    return pd.DataFrame(
        {
            name: pd.Series(pd.arrays.ArrowExtensionArray(column))
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
    )


def _opened(text: Column) -> Column:
    """The struct of a dropped row in ``text``; NULL where there is none."""
    row = sql.from_json(text, AS_TEXT)
    names = [field.split()[0] for field in COLUMNS.split(", ")]
    fields = [
        sql.timestamp_micros(row[name]) if name in ("event_time", "watermark") else row[name]
        for name in names
    ]
    named = [field.alias(name) for field, name in zip(fields, names, strict=True)]
    return sql.when(text.isNotNull(), sql.struct(*named))


def _unpacking(
    schema: pa.Schema, side: str | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    whole = schema if side is None else schema.append(pa.field(side, pa.string()))

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for chunk in batch.column(_CHUNK).drop_null():
                rows = from_chunk(chunk.as_buffer()).cast(schema)
                if side is not None:
                    rows = rows.append_column(side, pa.nulls(len(rows), pa.string()))
                yield from rows.to_batches()
            if side is not None:
                texts = batch.column(side).drop_null()
                nothing = [pa.nulls(len(texts), kind) for kind in schema.types]
                if len(texts):
                    yield pa.RecordBatch.from_arrays([*nothing, texts], schema=whole)

    return unpack
