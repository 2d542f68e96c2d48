"""The query of the kill tests as a program, so that there is a driver to kill.

``python kill_run.py FOLDER MASTER`` runs it on the files of FOLDER that are not yet read, and ends.
With ``sides`` and a lane behind it, it is a job whose rejected rows go to a folder of their own;
with the address of a broker behind that, it reads the topics A, B and C instead of files. With
``partitions`` behind that, these are partitioned by the key of a join that has one alone.
With ``speculation`` behind it, Spark starts copies of slow tasks, and some are slow: the first
attempt of a task in every third batch falls asleep when all its work is done.
"""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path

import pyarrow as pa
from acting_cells import acting
from pyspark import TaskContext

import penstock
import penstock.spark
from penstock.spark.operator.cell_processor import CellProcessor

STREAMS = ("A", "B", "C")
SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("x", pa.int64()), ("y", pa.int64())])
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


def sleepy(folder: Path) -> type[CellProcessor]:
    """A processor that leaves a file for each attempt that falls asleep, and for each copy."""

    def act(cell: CellProcessor) -> None:
        context = TaskContext.get()
        assert context is not None
        name = f"{cell._batch} {context.partitionId()}"
        if context.attemptNumber():
            (folder / f"copy {name}").touch()
        elif cell._batch % 3 == 2 and context.partitionId() == 0:
            (folder / f"asleep {name}").touch()
            time.sleep(_ASLEEP)

    return acting(act)


def run(folder: Path, master: str, speculation: bool = False) -> None:
    options = SPECULATION if speculation else {}
    if speculation:
        module = importlib.import_module("penstock.spark.join")  # The package has the function.
        module.CellProcessor = sleepy(folder)  # type: ignore[attr-defined]
    spark = penstock.spark.session(master, **{"spark.driver.memory": "1g", **options})
    columns = ", ".join(f"{name} BIGINT" for name in SCHEMA.names)
    frames = {
        name: spark.readStream.schema(columns)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / name))
        for name in STREAMS
    }
    results = penstock.spark.join(graph(), frames, CELLS, lateness=LATENESS)
    query = (
        results.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "results"), format="parquet")
    )
    query.awaitTermination()
    spark.stop()


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

    columns = ", ".join(f"{name} BIGINT" for name in SCHEMA.names)
    is_partitioned = how == "partitions"
    kind = SOURCE if address is None else TOPIC + (PARTITIONED if is_partitioned else "")
    lateness = APART if is_partitioned else LATENESS
    about = {"columns": columns, "lateness": lateness, "address": address}
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
        run(Path(sys.argv[1]), sys.argv[2], "speculation" in sys.argv[3:])
