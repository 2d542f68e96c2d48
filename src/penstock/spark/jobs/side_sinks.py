"""Answers, late rows and rejected rows to sinks of their own, from one query.

A streaming query of Spark has one output. With ``join(…, dropped="dropped")`` dropped rows leave in
it beside the answers, and :func:`split` takes them apart in ``foreachBatch``:

    >>> results = penstock.spark.join(query, frames, dropped="dropped")          # doctest: +SKIP
    >>> write = penstock.spark.split(results=keep, late=tell, rejected=tell)     # doctest: +SKIP
    >>> results.writeStream.foreachBatch(write).option(…).start()                # doctest: +SKIP

Each function gets a DataFrame and the number of the batch. Spark keeps the batch while all are
called, so the join is computed once; and it commits the batch when all have returned, so after a
failure the batch comes again, with the same number and the same rows. A function that writes a
number only once makes its sink exactly once.

A job does this for ``[late]`` and ``[rejected]``. Answers in files go through the sink that Spark
has for streams of files, which notes the numbers of its batches: so they are exactly once, as
without side outputs, and a job may get side outputs, or lose them, from one run to the next. That
sink must see every batch from the first on, and dropped rows are rare: their files go to a folder
for each batch that has any, ``batch=17``, which is replaced if the batch comes again. Delta tables
get the number as the version of a transaction. Everything else is appended as a batch: at least
once, as Kafka is anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from penstock.engine.push.dropped import LATE
from penstock.job.job import Sink
from penstock.job.spark_options import FILE_FORMATS
from penstock.spark.private_spark import add_files

DROPPED = "dropped"
"""The column of dropped rows in a job."""

Write: TypeAlias = Callable[[DataFrame, int], None]
"""Takes the rows of a micro-batch, and its number."""


def split(
    results: Write | None = None,
    late: Write | None = None,
    rejected: Write | None = None,
    column: str = DROPPED,
) -> Write:
    """A function for ``foreachBatch`` that hands answers, late and rejected rows to others.

    ``column`` is the one that :func:`penstock.spark.join` was given as ``dropped``. Late and
    rejected rows come with the columns ``source``, ``reason``, ``event_time``, ``watermark`` and
    ``value``; functions are not called for batches without any.
    """
    quoted = "`" + column.replace("`", "``") + "`"

    def write(batch: DataFrame, number: int) -> None:
        aside = sf.col(quoted)
        if results is not None:
            results(batch.where(aside.isNull()).drop(column), number)
        dropped = batch.where(aside.isNotNull()).select(f"{quoted}.*")
        is_late = sf.col("reason") == LATE
        for hand, condition in ((late, is_late), (rejected, ~is_late)):
            if hand is not None:
                rows = dropped.where(condition)
                if not rows.isEmpty():
                    hand(rows, number)

    return write


def batch_writer(
    sink: Sink, name: str, encoded: Callable[[DataFrame], DataFrame], every_batch: bool
) -> Write:
    """Writes micro-batches of the job ``name`` to ``sink``: all of them, or those with rows."""
    is_files = sink.format in FILE_FORMATS and sink.path is not None

    def write(batch: DataFrame, number: int) -> None:
        rows = encoded(batch)
        options, path, mode = dict(sink.options), sink.path, "append"
        if is_files and every_batch:
            columns = list(sink.partition_by)
            if add_files(rows, number, sink.format, str(sink.path), columns, options):
                return
        elif is_files:
            path, mode = f"{sink.path}/batch={number}", "overwrite"
        if sink.format == "delta":
            options |= {"txnAppId": name, "txnVersion": str(number)}
        writer = rows.write.format(sink.format).mode(mode).options(**options)
        if sink.partition_by:
            writer = writer.partitionBy(*sink.partition_by)
        writer.save(path)

    return write
