"""The query of the kill tests as a program, so that there is a driver to kill.

``python kill_run.py FOLDER MASTER LANE`` runs it on the files of FOLDER that are not yet read, and
ends. With ``speculation`` behind it, Spark starts copies of slow tasks, and some are slow: the
first attempt of a task in every third batch falls asleep when all its work is done.
With ``sides`` before the lane, it is a job whose rejected rows go to a folder of their own; with
the address of a broker behind that, it reads the topics A, B and C instead of files. With
``partitions`` behind that, these are partitioned by the key of a join that has one alone.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from acting_cells import acting
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

import penstock
import penstock.spark
from penstock.spark.data_source.source import PenstockSource
from penstock.spark.data_source.stream_reader import StreamReader
from penstock.spark.private_spark import batch_number

STREAMS = ("A", "B", "C")
SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("x", pa.int64()), ("y", pa.int64())])
COLUMNS = ", ".join(f"{name} BIGINT" for name in SCHEMA.names)
LATENESS = 500
"""More than there is: after a restart Spark may put more files into a batch, and then other rows
would be late."""
CELLS = 3
QUERY = """SELECT A.id AS a, B.id AS b, C.id AS c
           FROM A [RANGE 400 MILLISECONDS], B [RANGE 400 MILLISECONDS], C [RANGE 400 MILLISECONDS]
           WHERE A.x = B.x AND A.y = C.y"""


PARTITIONS = 6
"""Of each topic that is partitioned by the key."""
APART = 60_000
"""Milliseconds that partitions may be apart: a batch takes of each what there is in proportion."""


def query_of(is_partitioned: bool) -> str:
    return QUERY.replace("A.y = C.y", "A.x = C.x") if is_partitioned else QUERY


def graph(is_partitioned: bool = False) -> penstock.JoinGraph:
    return penstock.parse(query_of(is_partitioned), schemas=dict.fromkeys(STREAMS, SCHEMA))


SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.quantile": "0.4",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "1s",
    "spark.executor.memory": "700m",
    "spark.sql.shuffle.partitions": "2",
}
_ASLEEP = 60.0


def fall_asleep(folder: Path, batch: int) -> None:
    """Sleep in some first attempts; a file is left for each that does, and for each copy."""
    context = TaskContext.get()
    assert context is not None
    name = f"{batch} {context.partitionId()}"
    if context.attemptNumber():
        (folder / f"copy {name}").touch()
    elif batch % 3 == 2 and context.partitionId() == 0:
        (folder / f"asleep {name}").touch()
        time.sleep(_ASLEEP)


def sleepy_source(folder: Path) -> type[PenstockSource]:
    """The data source with cells that fall asleep when they have taken their batch."""

    class SleepyReader(StreamReader):
        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            answer = list(super().read(partition))
            fall_asleep(folder, batch_number() or 0)
            yield from answer

    class SleepySource(PenstockSource):
        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
            return SleepyReader(self._lane, self._answer[0])

    return SleepySource


def run(folder: Path, master: str, lane: str, speculation: bool = False) -> None:
    options = SPECULATION if speculation else {}
    spark = penstock.spark.session(master, **{"spark.driver.memory": "1g", **options})
    answer = read_by_cells if lane == "source" else read_by_spark
    query = (
        answer(spark, folder, speculation)
        .writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "results"), format="parquet")
    )
    query.awaitTermination()
    spark.stop()


def read_by_spark(spark: SparkSession, folder: Path, speculation: bool) -> DataFrame:
    if speculation:
        module = importlib.import_module("penstock.spark.join")  # The package has the function.
        sleepy = acting(lambda cell: fall_asleep(folder, cell._batch))
        module.CellProcessor = sleepy  # type: ignore[attr-defined]
    frames = {
        name: spark.readStream.schema(COLUMNS)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / name))
        for name in STREAMS
    }
    return penstock.spark.join(graph(), frames, CELLS, lateness=LATENESS)


def read_by_cells(spark: SparkSession, folder: Path, speculation: bool) -> DataFrame:
    spark.dataSource.register(sleepy_source(folder) if speculation else PenstockSource)
    options = {
        "query": QUERY,
        "cells": str(CELLS),
        "watermark": f"{LATENESS} MILLISECONDS",
        "maxFilesPerTrigger": "1",
        "checkpointLocation": str(folder / "checkpoint"),
    }
    for name in STREAMS:
        options |= {f"{name}.path": str(folder / name), f"{name}.schema": COLUMNS}
    return spark.readStream.format("penstock").options(**options).load()


JOB = """
lane = "{lane}"
trigger = "available-now"
checkpoint = "checkpoint"
cells = {cells}
query = '''{query}'''
{sources}
[sink]
format = "parquet"
path = "results"
[rejected]
format = "parquet"
path = "rejected"
"""
SOURCE = """
[sources.{name}]
format = "parquet"
path = "{name}"
schema = "{columns}"
watermark = "{lateness} MILLISECONDS"
options.maxFilesPerTrigger = "1"
"""


TOPIC = """
[sources.{name}]
format = "kafka"
decode = "json"
schema = "{columns}"
watermark = "{lateness} MILLISECONDS"
options.subscribe = "{name}"
options.startingOffsets = "earliest"
options.maxOffsetsPerTrigger = "24"
options.kafka.bootstrap.servers = "{address}"
"""
PARTITIONED = """options.partitionedBy = "x"
options.partitioner = "crc32"
"""


def run_with_sides(
    folder: Path, master: str, lane: str, address: str | None = None, how: str = ""
) -> None:
    from penstock.job import read_job
    from penstock.spark.jobs.job_run import JobRun
    from penstock.spark.jobs.prepared_job import prepare

    is_partitioned = how == "partitions"
    kind = SOURCE if address is None else TOPIC + (PARTITIONED if is_partitioned else "")
    lateness = APART if is_partitioned else LATENESS
    about = {"columns": COLUMNS, "lateness": lateness, "address": address}
    sources = [kind.format(name=name, **about) for name in STREAMS]
    query = query_of(is_partitioned)
    file = folder / "job.toml"
    file.write_text(JOB.format(lane=lane, cells=CELLS, query=query, sources="".join(sources)))
    spark = penstock.spark.session(master, **{"spark.driver.memory": "1g"})
    with JobRun(prepare(read_job(file), spark)) as job:
        job.start()
        while not job.ended:
            job.poll(0.1)
    spark.stop()
    if job.failure is not None:
        sys.exit(f"{job.failure.reason}\n{job.failure.details}")


if __name__ == "__main__":
    if "sides" in sys.argv[3:]:
        run_with_sides(Path(sys.argv[1]), sys.argv[2], *sys.argv[4:])
    else:
        run(Path(sys.argv[1]), sys.argv[2], sys.argv[3], "speculation" in sys.argv[4:])
