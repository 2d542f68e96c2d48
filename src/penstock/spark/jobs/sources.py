"""Sources of a job as DataFrames: whatever Spark reads.

A streaming file source of Spark wants a schema; where the job gives none, the files that are there
already tell it, as for a batch. ``decode = "json"`` turns the texts in the column ``value`` (Kafka)
into columns; the other columns (Kafka's ``key``, ``timestamp``, …) stay where their names are free.

Texts that cannot be read, of JSON and CSV files and of messages, come in a column of their own
(:mod:`penstock.cells.rejected`), so that a join can say how many there were and what they are.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType

from penstock.errors import InputError
from penstock.job.job import Source
from penstock.job.mistake import did_you_mean
from penstock.job.spark_options import FILE_FORMATS, READABLE
from penstock.query.time_format import ISO
from penstock.query.unreadable import CORRUPT
from penstock.spark.jobs.spark_mistake import SPARK_ERRORS, blamed_on, condition_of, one_line

_NO_SUCH_FORMAT = "DATA_SOURCE_NOT_FOUND"
_NO_FILES = "UNABLE_TO_INFER_SCHEMA"
VALUE = "value"


def read_source(spark: SparkSession, source: Source) -> DataFrame:
    """The rows of ``source``; a stream unless it is static."""
    frame = _loaded(spark, source)
    if source.decode is not None:
        with blamed_on("schema"):
            frame = _decoded(frame, str(source.schema))
    if source.select:
        with blamed_on("select"):
            kept = [CORRUPT] if CORRUPT in frame.columns else []
            frame = frame.selectExpr(*source.select, *kept)
    return frame


def with_times(frame: DataFrame, column: str | None, pattern: str) -> DataFrame:
    """``frame`` with the texts of its event time as timestamps; a text that is none is NULL."""
    kind = None if column is None else frame.schema[column].dataType
    if column is None or not isinstance(kind, StringType):
        raise InputError(
            f'found "{pattern}", which is for an event time that is a text; {column or "it"} is '
            f"{'not there' if kind is None else kind.simpleString()}"
        )
    patterns = () if pattern == ISO else (sf.lit(pattern),)
    try:
        frame.sparkSession.range(1).select(sf.try_to_timestamp(sf.lit("x"), *patterns)).collect()
    except SPARK_ERRORS as error:
        raise InputError(f'found "{pattern}", which is no pattern: {one_line(error)}') from None
    return frame.withColumn(column, sf.try_to_timestamp(sf.col(f"`{column}`"), *patterns))


def _loaded(spark: SparkSession, source: Source) -> DataFrame:
    reader = spark.read if source.static else spark.readStream
    reader = reader.format(source.format).options(**source.options)
    try:
        if source.schema is not None and source.decode is None:
            with blamed_on("schema"):
                reader = reader.schema(_with_corrupt(source, source.schema))
        elif source.format in FILE_FORMATS and not source.static:
            batch = spark.read.format(source.format).options(**_of_batches(source))
            inferred = batch.load(source.path).schema
            if _may_be_corrupt(source) and CORRUPT not in inferred.names:
                inferred = inferred.add(CORRUPT, "string")
            reader = reader.schema(inferred)
        return reader.load() if source.path is None else reader.load(source.path)
    except SPARK_ERRORS as error:
        condition = condition_of(error)
        if condition.startswith(_NO_FILES):
            raise InputError(
                f"schema: found nothing, and no file in {source.path} to infer it from, expected "
                'columns with types, such as schema = "id BIGINT, ts TIMESTAMP"'
            ) from None
        if condition.startswith(_NO_SUCH_FORMAT):
            hint = did_you_mean(source.format, READABLE) or "is its package in spark.jars.packages?"
            raise InputError(
                f'format: found "{source.format}", which Spark does not have; {hint}'
            ) from None
        raise


def _may_be_corrupt(source: Source) -> bool:
    """Whether Spark tells the texts of ``source`` that it cannot read."""
    modes = [v for k, v in source.options.items() if k.lower() == "mode"]
    texts = source.format in ("json", "csv") and not source.static
    return texts and modes in ([], ["PERMISSIVE"])


def _with_corrupt(source: Source, schema: str) -> str:
    has_it = CORRUPT in schema
    return schema if has_it or not _may_be_corrupt(source) else f"{schema}, {CORRUPT} STRING"


def _of_batches(source: Source) -> dict[str, str]:
    """The options without those that only streams have."""
    streams_only = {"maxfilespertrigger", "maxbytespertrigger", "cleansource", "latestfirst"}
    return {k: v for k, v in source.options.items() if k.lower() not in streams_only}


def _decoded(frame: DataFrame, schema: str) -> DataFrame:
    if VALUE not in frame.columns:
        have = ", ".join(frame.columns)
        raise InputError(f"decode reads the column {VALUE}, and the source has {have}")
    if CORRUPT not in schema:
        schema = f"{schema}, {CORRUPT} STRING"
    parsed = sf.from_json(sf.col(VALUE).cast("string"), schema)
    others = [name for name in frame.columns if name != VALUE]
    opened = frame.select(parsed.alias(VALUE), *others).select(f"{VALUE}.*", *others)
    names = opened.columns
    free = [i for i, name in enumerate(names) if name not in names[:i]]
    return opened if len(free) == len(names) else _columns_at(opened, free)


def _columns_at(frame: DataFrame, positions: list[int]) -> DataFrame:
    """Some columns by position, where names are not unique."""
    numbered = frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))
    return numbered.select(*(sf.col(f"c{i}").alias(frame.columns[i]) for i in positions))
