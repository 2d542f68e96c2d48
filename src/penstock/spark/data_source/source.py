"""``format("penstock")``: the class that Spark is told about, and how it is told."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from penstock.errors import OptionError
from penstock.spark.cells.cell_report import OBSERVED
from penstock.spark.data_source.options import lane_of
from penstock.spark.data_source.plain_errors import plain_errors
from penstock.spark.private_spark import send_no_empty_profiles
from penstock.spark.rows.arrow_types import answer_schema
from penstock.spark.rows.envelope import observed, opened

FORMAT = "penstock"


class PenstockSource(DataSource):
    """The answer to a query as a table or a stream; options are those of
    :mod:`penstock.spark.data_source.options`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        send_no_empty_profiles()
        with plain_errors():
            self._lane = lane_of(options)
            self._answer: tuple[pa.Schema, StructType] = answer_schema(self._lane.emitted)

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return self._answer[1]

    def reader(self, schema: StructType) -> DataSourceReader:
        send_no_empty_profiles()
        from penstock.spark.data_source.batch_reader import BatchAnswer

        return BatchAnswer(self._lane, self._answer[0])

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        send_no_empty_profiles()
        from penstock.spark.data_source.stream_reader import StreamReader

        with plain_errors():
            if self._lane.ledger is None:
                raise OptionError(
                    'option "checkpointLocation" is missing: the checkpoint folder of the query, '
                    "as for writeStream; there it is kept which files each batch has taken"
                )
            return StreamReader(self._lane, self._answer[0])


def answers(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """The answer as a stream whose cells report to whoever listens to the session.

    ``options`` are those of the format, with ``reports`` on.
    """
    register(spark)
    wrapped = spark.readStream.format(FORMAT).options(**options).load()
    report = wrapped.columns[-1]
    found = observed(wrapped, report, f"{OBSERVED} data source")
    return found if "dropped" not in options else opened(found, options["dropped"])


def register(spark: SparkSession) -> None:
    """Make ``format("penstock")`` known to ``spark``; once per session is enough.

    >>> register(spark)                                          # doctest: +SKIP
    >>> spark.readStream.format("penstock").option("query", text)    # doctest: +SKIP
    """
    spark.dataSource.register(PenstockSource)
