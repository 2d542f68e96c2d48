"""One measured run of ``penstock bench spark``, in a process of its own.

The order comes as JSON on stdin, the measurement goes as JSON to the last line of stdout: ``python
-m penstock.spark.bench.bench_run < order.json``. All kinds read the same files, one file per source
and micro-batch, and run on the same settings of Spark and with the same archive of Java's classes.
Two things differ, in favour of Spark's own joins: they get Java's optimising compiler and its usual
collector, and a heap (``heap``) that is large enough for their state. With the one gigabyte that
Spark has by default, and Penstock gets by with, they need about twice as many CPU seconds.

- ``penstock``: :func:`penstock.spark.join`, with as many cells as there are ``partitions``.
- ``source``: the same as a data source, ``format("penstock")``, which reads the files itself.
- ``spark``: Spark's own joins, chained in the order of the query. The second event time is dropped
  after the first join and the third pair compared as plain integers, since Spark takes no join
  with two event times on one side. Spark's condition is symmetric like that of the query.
- ``empty``: a stateful Python operator that does nothing, for the fixed cost of a micro-batch.

With a ``broker``, streams are topics of JSON values instead of files, ``per_batch`` of each in a
micro-batch, and results go to a topic, as JSON (:mod:`penstock.spark.bench.bench_topics`).

CPU seconds are those of the whole process tree: this process, the JVM, the Python workers. There
are two figures. ``cpu_seconds`` has everything from the start of this process to the last commit.
``query_cpu_seconds`` has the query alone, from its plan to its last commit, in a session that has
run the same query before, on the few rows of ``rehearsal``, with another checkpoint: without the
start of Java and Python, and without what either does once, when something is first used. A
streaming query runs for months, so that is what the join costs.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import penstock
from penstock.spark.bench.bench_topics import count_messages, topic_name
from penstock.spark.data_source.source import register
from penstock.spark.jobs.job_lane import FRAMES, SOURCE
from penstock.spark.jobs.job_session import PACKAGES, kafka_packages
from penstock.spark.join import join
from penstock.spark.private_spark import java_of
from penstock.spark.rows.arrow_types import arrow_schema
from penstock.spark.session import EMPTY_BATCHES, PARTITIONS, PROVIDER, ROCKSDB, session_with
from penstock.spark.start.process_tree import cpu_seconds
from penstock.spark.start.tuning import tricks_of

HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"
_USUAL_JAVA = "-XX:TieredStopAtLevel=4 -XX:+UseG1GC"
_START = 1_700_000_000_000
"""The first event time. It must not be 0, which Spark takes for late before it has a watermark."""
_LOOK = 0.25
"""Seconds between two looks at the query where batches are told apart: each costs CPU time."""
_WARM = 5
"""So many batches are not counted where the cost of one batch is the question."""


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Carry out ``order``."""
    options: dict[str, Any] = {
        PROVIDER: HDFS if order["store"] == "hdfs" else ROCKSDB,
        **({JOIN_FORMAT: "4"} if order["store"] == "rocksdb-4" else {}),
        PARTITIONS: order["partitions"],
        EMPTY_BATCHES: "false",
    }
    if order["kind"] == "spark":
        options["spark.driver.extraJavaOptions"] = _USUAL_JAVA
        options["spark.driver.memory"] = order["heap"]
    broker = order.get("broker")
    if broker is not None and (packages := kafka_packages()):
        options[PACKAGES] = ",".join(packages)
    start = time.monotonic()
    lane = SOURCE if order["kind"] == "source" else FRAMES
    tricks = [each for each in tricks_of(lane) if each.name not in order.get("without", ())]
    spark = session_with(tricks, order["master"], **options)
    work = Path(order["work"])
    if order["rehearsal"] is not None:
        _start(spark, order, Path(order["rehearsal"]), work / "rehearsal").awaitTermination()
    before, begun = cpu_seconds(os.getpid()), time.monotonic()
    query = _start(spark, order, Path(order["folder"]), work)
    at_batch: list[tuple[int, float]] = []
    while order["by_batch"] and query.isActive:
        time.sleep(_LOOK)
        last = query.lastProgress
        if last is not None and (not at_batch or at_batch[-1][0] != last.batchId):
            at_batch.append((last.batchId, cpu_seconds(os.getpid())))
    query.awaitTermination()
    cpu, end = cpu_seconds(os.getpid()), time.monotonic()
    progress = query.recentProgress
    counted = [p.durationMs["triggerExecution"] for p in progress[_WARM:]]
    later = [each for each in at_batch if each[0] >= _WARM - 1]
    measured = {
        "cpu_seconds": cpu,
        "query_cpu_seconds": cpu - before,
        "wall_seconds": end - start,
        "query_wall_seconds": end - begun,
        "batches": len(progress),
        "batch_ms": statistics.median(counted) if counted else None,
        "batch_cpu_ms": 1e3 * (later[-1][1] - later[0][1]) / (later[-1][0] - later[0][0])
        if len(later) > 1
        else None,
        "results": _counted(work) if broker is None else count_messages(broker, _topic_of(work)),
        "java": str(java_of(spark).System.getProperty("java.version")),
    }
    spark.stop()
    return measured


def _start(spark: SparkSession, order: dict[str, Any], folder: Path, work: Path) -> StreamingQuery:
    """The query of ``order`` on the files of ``folder``, or on the topics that go with it, which
    ends when they are read."""
    frames = {} if order["kind"] == "source" else _sources(spark, order, folder)
    answer = {
        "source": lambda: _source(spark, order, folder, work),
        "penstock": lambda: _penstock(frames, order["query"]),
        "spark": lambda: _chained(frames, order["pairs"], order["window"]),
        "empty": lambda: _empty(frames),
    }[order["kind"]]()
    broker = order.get("broker")
    if broker is not None:
        answer = answer.select(sql.to_json(sql.struct("*")).alias("value"))
    writer = answer.writeStream.option("checkpointLocation", str(work / "checkpoint"))
    writer = writer.trigger(availableNow=True)
    if broker is None:
        return writer.start(str(work / "results"), format="parquet")
    writer = writer.option("kafka.bootstrap.servers", broker).option("topic", _topic_of(work))
    return writer.format("kafka").start()


def _topic_of(work: Path) -> str:
    """The topic that the results of a run in ``work`` go to."""
    return topic_name("results", str(work))


def _counted(work: Path) -> int:
    """Rows of results in files."""
    files = (work / "results").glob("*.parquet")
    return sum(pq.ParquetFile(file).metadata.num_rows for file in files)


def _ddl(columns: list[str]) -> str:
    return ", ".join(["id BIGINT", "ts TIMESTAMP", *(f"{c} BIGINT" for c in columns)])


def _sources(spark: SparkSession, order: dict[str, Any], folder: Path) -> dict[str, DataFrame]:
    found = {}
    for name, columns in order["columns"].items():
        stream = spark.readStream
        if (broker := order.get("broker")) is None:
            files = stream.schema(_ddl(columns)).option("maxFilesPerTrigger", 1)
            found[name] = files.parquet(str(folder / name))
            continue
        stream = stream.format("kafka").option("kafka.bootstrap.servers", broker)
        stream = stream.option("subscribe", topic_name(name, str(folder)))
        stream = stream.option("startingOffsets", "earliest")
        stream = stream.option("maxOffsetsPerTrigger", order["per_batch"][folder.name])
        value = sql.from_json(sql.col("value").cast("string"), _ddl(columns)).alias("row")
        found[name] = stream.load().select(value).select("row.*")
    return found


def _source(spark: SparkSession, order: dict[str, Any], folder: Path, work: Path) -> DataFrame:
    """The join as a data source that reads the files of ``folder``, or their topics, itself."""
    register(spark)
    stream = spark.readStream.format("penstock").option("query", order["query"])
    stream = stream.option("checkpointLocation", str(work / "checkpoint"))
    stream = stream.option("watermark", "0 SECONDS").option("cells", order["partitions"])
    for name, columns in order["columns"].items():
        if (broker := order.get("broker")) is None:
            given = {"path": str(folder / name), "maxFilesPerTrigger": "1"}
        else:
            given = {
                "format": "kafka",
                "kafka.bootstrap.servers": broker,
                "subscribe": topic_name(name, str(folder)),
                "startingOffsets": "earliest",
                "maxOffsetsPerTrigger": str(order["per_batch"][folder.name]),
                "decode": "json",
                "schema": _ddl(columns),
            }
        stream = stream.options(**{f"{name}.{key}": value for key, value in given.items()})
    return stream.load()


def _penstock(frames: dict[str, DataFrame], text: str) -> DataFrame:
    schemas = {name: arrow_schema(frame) for name, frame in frames.items()}
    return join(penstock.parse(text, schemas=schemas), frames, lateness=0)


def _chained(
    frames: dict[str, DataFrame], pairs: list[tuple[str, str, str]], window: int
) -> DataFrame:
    """Binary joins from left to right, each with the conditions that its new stream brings."""
    limit = 1_000 * window
    named = {
        name: frame.select([sql.col(c).alias(f"{name}_{c}") for c in frame.columns])
        .withWatermark(f"{name}_ts", "0 seconds")
        .withColumn(f"{name}_us", sql.unix_micros(f"{name}_ts"))
        for name, frame in frames.items()
    }
    first, *others = named
    joined, together = named[first], [first]
    for name in others:
        conditions = [f"{a}_{c} = {b}_{c}" for a, b, c in pairs if {a, b} <= {*together, name}]
        conditions = [c for c in conditions if f"{name}_" in c]
        span = f"INTERVAL {window} MILLISECONDS"
        conditions.append(f"{name}_ts BETWEEN {first}_ts - {span} AND {first}_ts + {span}")
        conditions += [
            f"{name}_us BETWEEN {other}_us - {limit} AND {other}_us + {limit}"
            for other in together[1:]
        ]
        joined = joined.join(named[name], sql.expr(" AND ".join(conditions))).drop(f"{name}_ts")
        together.append(name)
    return joined.select([f"{name}_id" for name in frames])


class _Idle(StatefulProcessor):
    def init(self, handle: Any) -> None:
        self._seen = handle.getValueState("seen", "text STRING")

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[Any]:
        for _ in rows:
            pass
        self._seen.update(("seen",))
        yield from ()

    def close(self) -> None:
        pass


def _empty(frames: dict[str, DataFrame]) -> DataFrame:
    """All sources, reduced to one row per partition before they reach Python."""
    parts = [frame.select((sql.col("id") % 2).alias("key")) for frame in frames.values()]
    united = parts[0]
    for part in parts[1:]:
        united = united.unionAll(part)
    return united.groupBy("key").transformWithStateInPandas(_Idle(), "key BIGINT", "Append", "None")


def write_streams(
    tables: dict[str, pa.RecordBatch], folder: Path, batches: int
) -> dict[str, list[str]]:
    """``tables`` as one file per source and micro-batch; the join columns of each."""
    columns = {}
    for name, rows in tables.items():
        clock = pc.add(rows.column("ts"), _START).cast(pa.timestamp("ms"))
        clock = clock.cast(pa.timestamp("us", "UTC"))
        table = pa.Table.from_batches([rows]).set_column(1, "ts", clock)
        (folder / name).mkdir(parents=True)
        size = -(-len(table) // batches)
        for number in range(batches):
            file = folder / name / f"{number:04}.parquet"
            pq.write_table(table.slice(number * size, size), file)
            os.utime(file, (1_700_000_000 + 10 * number,) * 2)  # Spark reads files by age.
        columns[name] = [c for c in table.column_names if c not in ("id", "ts")]
    return columns


if __name__ == "__main__":
    print(json.dumps(run(json.load(sys.stdin))))
