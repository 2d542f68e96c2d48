"""The sink of a job: whatever Spark writes.

Results are only ever added, so the output mode is always append. Files are exactly once: Spark's
file sink commits a batch as a whole. Kafka is at least once, as Spark's sink for it is. ``encode``
turns rows into the two columns that Kafka takes.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import InputError
from penstock.job.job import Job, Sink
from penstock.job.mistake import did_you_mean
from penstock.spark.spark_mistake import SPARK_ERRORS, condition_of


def start_sink(results: DataFrame, job: Job) -> StreamingQuery:
    """Begin to write ``results``."""
    sink = job.sink
    rows = _encoded(results, sink) if sink.encode else results
    _check_columns("partition_by", sink.partition_by, results)
    writer = rows.writeStream.format(sink.format).outputMode("append").options(**sink.options)
    writer = writer.option("checkpointLocation", job.checkpoint)
    if sink.partition_by:
        writer = writer.partitionBy(*sink.partition_by)
    if job.trigger == "available-now":
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{job.trigger} milliseconds")
    try:
        return writer.start() if sink.path is None else writer.start(sink.path)
    except SPARK_ERRORS as error:
        if condition_of(error).startswith("DATA_SOURCE_NOT_FOUND"):
            raise InputError(f'format: found "{sink.format}", which Spark does not have') from None
        raise


def _encoded(results: DataFrame, sink: Sink) -> DataFrame:
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
