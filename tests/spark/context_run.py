"""A program of a Spark user: takes a session, joins three streams, prints what became of it.

``context_run.py FOLDER``: reads the files of FOLDER/A, B and C, writes FOLDER/results, and prints a
line of JSON with the settings of the session. How Spark is started is left to whoever runs it. With
``job`` behind it, the same is done as a job, and the line has what its events told, too; with
``job source``, Penstock reads the files itself.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession, is_remote

import penstock
import penstock.spark
from penstock.job import read_job
from penstock.spark.jobs.job_run import JobRun
from penstock.spark.jobs.prepared_job import prepare
from penstock.telemetry import Batch, Event
from penstock.testing import Oracle, rows_of

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("x", pa.int64()), ("y", pa.int64())])
STREAMS = ("A", "B", "C")
QUERY = """SELECT A.id AS a, B.id AS b, C.id AS c
           FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND], C [RANGE 1 SECOND]
           WHERE A.x = B.x AND A.y = C.y"""
SETTINGS = (
    "spark.master",
    "spark.app.name",
    "spark.ui.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.shuffle.partitions",
    "spark.sql.streaming.stateStore.providerClass",
    "spark.sql.streaming.checkpointFileManagerClass",
    "spark.python.daemon.module",
    "spark.storage.blockManagerHeartbeatTimeoutMs",
    "spark.python.unix.domain.socket.enabled",
    "spark.driver.extraJavaOptions",
)


def graph() -> penstock.JoinGraph:
    return penstock.parse(QUERY, schemas=dict.fromkeys(STREAMS, SCHEMA))


def write_rows(folder: Path, batches: int = 2) -> None:
    """A file of each stream for each micro-batch, a second of event time each."""
    for name in STREAMS:
        (folder / name).mkdir(parents=True)
        for batch in range(batches):
            ids = [100 * batch + number for number in range(60)]
            times = [1_000_000 + 1_000 * batch + 16 * number for number in range(60)]
            shift = STREAMS.index(name)
            keys = [[(number * step + shift) % 7 for number in range(60)] for step in (3, 5)]
            table = pa.table([ids, times, *keys], schema=SCHEMA)
            pq.write_table(table, folder / name / f"{batch}.parquet")


def expected(folder: Path) -> list[tuple[object, ...]]:
    """The oracle's answer to all files of ``folder``."""
    tables = {name: pq.read_table(folder / name) for name in STREAMS}
    return sorted(Oracle(graph()).push(tables), key=repr)


def found(folder: Path) -> list[tuple[object, ...]]:
    """The rows of the sink."""
    return sorted(rows_of(pq.read_table(folder / "results")), key=repr)


def run(spark: SparkSession, folder: str) -> None:
    """The join in the session of somebody else, from files to files."""
    columns = ", ".join(f"{name} BIGINT" for name in SCHEMA.names)
    frames = {}
    for name in STREAMS:
        stream = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
        frames[name] = stream.parquet(f"{folder}/{name}")
    query = (
        penstock.spark.join(graph(), frames, cells=2, lateness="10 seconds")
        .writeStream.option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{folder}/results", format="parquet")
    )
    query.awaitTermination()


def run_job(spark: SparkSession, folder: str, lane: str = "") -> dict[str, Any]:
    """The same as a job; what its events told. ``lane`` is a line of the job file."""
    columns = ", ".join(f"{name} BIGINT" for name in SCHEMA.names)
    sources = "".join(
        f'[sources.{name}]\nformat = "parquet"\npath = "{name}"\nwatermark = "10 SECONDS"\n'
        f'schema = "{columns}"\noptions.maxFilesPerTrigger = 1\n'
        for name in STREAMS
    )
    file = Path(folder) / "job.toml"
    file.write_text(
        f'{lane}\nquery = """{QUERY}"""\ncheckpoint = "checkpoint"\ncells = 2\n'
        'trigger = "available-now"\nevent_time = "ts"\n'
        f'{sources}[sink]\nformat = "parquet"\npath = "results"\n'
    )
    events: list[Event] = []
    with JobRun(prepare(read_job(file), spark)) as job:
        events.append(job.start())
        while not job.ended:
            events += job.poll(0.2)
    batches = [each for each in events if isinstance(each, Batch)]
    return {
        "failure": None if job.failure is None else job.failure.reason,
        "rows": sum(sum(each.rows.values()) for each in batches),
        "results": sum(each.results for each in batches),
        "lane": job.prepared.lane.name,
        "cells": sorted({cell.cell for each in batches for cell in each.cells}),
    }


def main(folder: str, *more: str) -> None:
    session = penstock.spark.session()
    told: dict[str, Any] = {name: session.conf.get(name, None) for name in SETTINGS}
    told["connect"] = is_remote()
    if "job" in more:
        told |= run_job(session, folder, 'lane = "source"' if "source" in more else "")
    else:
        run(session, folder)
    print(json.dumps(told), flush=True)
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
