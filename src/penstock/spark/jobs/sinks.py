"""The sink of a job: whatever Spark writes.

Results are only ever added, so the output mode is always append. Files are exactly once: Spark's
file sink commits a batch as a whole. Kafka is at least once, as Spark's sink for it is. ``encode``
turns rows into the two columns that Kafka takes. With ``[late]`` or ``[rejected]`` in the job, one
query writes to all of them (:mod:`penstock.spark.jobs.side_sinks`). Spark has no stream into JDBC
either: each micro-batch is appended to the table as a batch, at least once.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.errors import InputError
from penstock.job.job import Job, Sink
from penstock.job.mistake import did_you_mean
from penstock.job.spark_options import WRITABLE
from penstock.spark.jobs.side_sinks import DROPPED, Write, batch_writer, split
from penstock.spark.jobs.spark_mistake import SPARK_ERRORS, condition_of

_JDBC = "jdbc"
_NEEDED_BY_JDBC = {"url": "jdbc:postgresql://host/database", "dbtable": "results"}
_READ_ALONE = ("binaryfile", "rate", "rate-micro-batch", "socket")
"""Formats of Spark that nothing can be written to."""


def check_sink(sink: Sink, spark: SparkSession, results: DataFrame | None) -> None:
    """:class:`InputError` if ``sink`` cannot be, found without starting it.

    ``results`` are what it is to take, where their columns are known. Spark has no question for a
    sink alone, so it is asked to read the format: whatever is wrong with that, a format that does
    not exist has an error of its own.
    """
    if results is not None:
        _check_columns("partition_by", sink.partition_by, results)
        _check_columns("key", (sink.key,) if sink.key is not None else (), results)
    try:
        spark.readStream.format(sink.format).load()
    except SPARK_ERRORS as error:
        if condition_of(error).startswith("DATA_SOURCE_NOT_FOUND"):
            raise _no_such_format(sink) from None
    _check_kind(sink)


def _check_kind(sink: Sink) -> None:
    """:class:`InputError` if nothing can be written to the format, or if it needs more options."""
    if sink.format.lower() in _READ_ALONE:
        raise InputError(
            f'format: found "{sink.format}", which Spark reads and does not write; expected one '
            "such as parquet, json, kafka or jdbc"
        )
    if sink.format.lower() == _JDBC:
        given = {key.lower() for key in sink.options}
        for key, example in _NEEDED_BY_JDBC.items():
            if key not in given:
                raise InputError(f'options: found no {key}, expected one such as "{example}"')


def _no_such_format(sink: Sink) -> InputError:
    hint = did_you_mean(sink.format, WRITABLE) or (
        "expected one such as parquet, json, kafka or, for databases, jdbc; is its package in "
        "spark.jars.packages?"
    )
    return InputError(f'format: found "{sink.format}", which Spark does not have; {hint}')


def start_sink(results: DataFrame, job: Job) -> StreamingQuery:
    """Begin to write ``results``."""
    sink = job.sink
    _check_kind(sink)
    _check_columns("partition_by", sink.partition_by, results)
    if job.late is None and job.rejected is None and sink.format.lower() == _JDBC:
        _encoded(results, sink)  # Mistakes are to be found now.
        writer = results.writeStream.foreachBatch(_batch_writer(job, "results", sink))
        sink = Sink("foreachBatch")
    elif job.late is None and job.rejected is None:
        rows = _encoded(results, sink)
        writer = rows.writeStream.format(sink.format).options(**sink.options)
        if sink.partition_by:
            writer = writer.partitionBy(*sink.partition_by)
    else:
        writer, sink = _to_all(results, job), Sink("foreachBatch")
    writer = writer.outputMode("append").option("checkpointLocation", job.checkpoint)
    if job.trigger == "available-now":
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{job.trigger} milliseconds")
    try:
        return writer.start() if sink.path is None else writer.start(sink.path)
    except SPARK_ERRORS as error:
        if condition_of(error).startswith("DATA_SOURCE_NOT_FOUND"):
            raise _no_such_format(sink) from None
        raise


def _to_all(results: DataFrame, job: Job) -> DataStreamWriter:
    """Answers and dropped rows to their sinks."""
    _encoded(results.drop(DROPPED), job.sink)  # Mistakes are to be found now.
    write = split(
        _batch_writer(job, "results", job.sink),
        None if job.late is None else _batch_writer(job, "late", job.late),
        None if job.rejected is None else _batch_writer(job, "rejected", job.rejected),
    )
    return results.writeStream.foreachBatch(write)


def _batch_writer(job: Job, name: str, sink: Sink) -> Write:
    if sink.format == "memory":
        raise InputError(f'{name}: found "memory", expected a sink that takes batches too')
    encoded = partial(_encoded, sink=sink)
    return batch_writer(sink, f"{job.name}.{name}", encoded, every_batch=name == "results")


def _encoded(results: DataFrame, sink: Sink) -> DataFrame:
    if sink.encode is None:
        return results
    value = sf.to_json(sf.struct("*")).alias("value")
    if sink.key is None:
        return results.select(value)
    _check_columns("key", (sink.key,), results)
    quoted = "`" + sink.key.replace("`", "``") + "`"
    return results.select(sf.col(quoted).cast("string").alias("key"), value)


def _check_columns(key: str, names: tuple[str, ...], results: DataFrame) -> None:
    for name in names:
        if name not in results.columns:
            have = ", ".join(results.columns)
            hint = did_you_mean(name, results.columns)
            raise InputError(
                f'{key}: found "{name}", expected one of the columns of the answer: {have}'
                f"{f'; {hint}' if hint else ''}"
            )
