"""Everything that Penstock takes of pyspark that pyspark does not promise.

A name with an underscore, the Java virtual machine behind a session, a setting or a module without
documentation: any release may change it. So all of them are here, each as a function with a meaning
of its own, and ``tests/spark/start/test_private_spark.py`` looks whether each is still there. They
were seen in the versions of :data:`SEEN_IN`.

On Spark Connect there is no Java virtual machine on this side, and :func:`java_of` says so with
None. Nothing that :func:`penstock.spark.join` does needs one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext, TaskContext
from pyspark.accumulators import _accumulatorRegistry
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import DataFrame, SparkSession, is_remote

SEEN_IN = ("4.2", "4.3")
"""Releases of pyspark in which all of this was seen and tested."""

JAVA_ERROR = Py4JError
"""What a call into the Java virtual machine raises, also one that is gone."""

WATERMARK_DELAY = "spark.watermarkDelayMs"
"""Key in the metadata of a column that ``withWatermark`` has named: its delay in milliseconds."""

_PROFILES = (-1, -2)
"""Numbers of the accumulators in which a process of Spark's sends what its profiler has found."""
_BATCH_ID = "streaming.sql.batchId"
_ours: Any = None
"""The gateway to the Java virtual machine that Penstock has started."""


def is_running() -> bool:
    """Whether this process has a Spark, classic or Connect, that somebody has started."""
    if is_remote():
        return SparkSession.getActiveSession() is not None
    return SparkContext._active_spark_context is not None


def has_java() -> bool:
    """Whether this process has a Java virtual machine of Spark's, or was started by one."""
    return SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ


def start_java() -> None:
    """Start the Java virtual machine of this process, with the arguments in the environment."""
    SparkContext._ensure_initialized()


def claim_java() -> None:
    """Note that this process' Java virtual machine was started by Penstock."""
    global _ours
    _ours = SparkContext._gateway


def java_is_ours() -> bool:
    """Whether this process has the Java virtual machine that was claimed."""
    return _ours is not None and SparkContext._gateway is _ours


def settings_of_java() -> dict[str, str]:
    """The settings that ``spark-submit`` has gathered, from its arguments and files."""
    start_java()
    return dict(SparkConf(_jvm=SparkContext._jvm).getAll())


def spark_home() -> str:
    """The folder of the Spark that pyspark starts."""
    return str(_find_spark_home())


def jars_folder() -> Path:
    """The folder with Spark's jars."""
    return Path(pyspark.__file__).parent / "jars"


def load_worker() -> None:
    """Load what the Python processes of a query load: workers, and those that plan."""
    import pyspark.sql.streaming.proto.StateMessage_pb2
    import pyspark.sql.streaming.python_streaming_source_runner
    import pyspark.sql.worker.create_data_source
    import pyspark.sql.worker.lookup_data_sources
    import pyspark.sql.worker.plan_data_source_read
    import pyspark.worker  # noqa: F401


def run_worker_daemon() -> None:
    """Be the parent of Python workers, as Spark's own is."""
    from pyspark.daemon import manager

    manager()


def java_of(spark: SparkSession) -> Any:
    """The Java virtual machine behind ``spark``; None on Spark Connect."""
    return None if is_remote() else spark.sparkContext._jvm


def hadoop_settings(spark: SparkSession) -> Any:
    """Hadoop's ``Configuration`` of a classic session, which its tasks are sent."""
    return spark.sparkContext._jsc.hadoopConfiguration()


def java_array(spark: SparkSession, kind: Any, *values: Any) -> Any:
    """A Java array of ``values``."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    array = gateway.new_array(kind, len(values))
    for place, value in enumerate(values):
        array[place] = value
    return array


def end_java(spark: SparkSession, seconds: float) -> None:
    """Stop ``spark`` and wait for the end of its Java virtual machine."""
    gateway = spark.sparkContext._gateway
    spark.stop()
    assert gateway is not None
    gateway.proc.stdin.close()  # The JVM ends when nobody writes to it any more.
    gateway.proc.wait(seconds)


def watermark_delay(frame: DataFrame, column: str) -> int | None:
    """The delay of ``withWatermark`` on ``column`` in milliseconds; None if there is none."""
    delay: int | None = frame.schema[column].metadata.get(WATERMARK_DELAY)
    return delay


def look_again(frame: DataFrame) -> None:
    """Let DataFrames made of ``frame`` from now on find files that have come or gone since.

    A classic DataFrame of files lists them once. On Spark Connect every use does so anew.
    """
    if not is_remote():
        frame._jdf.queryExecution().analyzed().refresh()


def send_no_empty_profiles() -> None:
    """Let this process, if Spark started it to plan with a data source, send no profiles unless one
    is being made.

    It would send two empty ones, which a server of Spark Connect hands to whatever runs just then;
    a listener of the client ends at that, and so does the client of a pipeline (pyspark 4.3).
    """
    if sys.getprofile() is None and sys.gettrace() is None:
        for number in _PROFILES:
            if number in _accumulatorRegistry and not _accumulatorRegistry[number]._value:
                del _accumulatorRegistry[number]


def batch_number() -> int | None:
    """The number of the micro-batch that this task works for; None outside of one."""
    context = TaskContext.get()
    told = None if context is None else context.getLocalProperty(_BATCH_ID)
    return None if told is None else int(told)


def add_files(
    rows: DataFrame,
    batch: int,
    kind: str,
    folder: str,
    partition_by: list[str],
    options: dict[str, str],
) -> bool:
    """Write ``rows`` to ``folder`` as Spark's file sink for streams does: once for each ``batch``.

    False if there is no Java virtual machine on this side (Spark Connect).
    """
    java = java_of(rows.sparkSession)
    if java is None:
        return False
    session = rows.sparkSession._jsparkSession
    spark_sql = java.org.apache.spark.sql.execution
    found = spark_sql.datasources.DataSource.lookupDataSource(kind, session.sessionState().conf())
    if str(found.getName()).endswith("V2"):  # Files are written by the older of two classes.
        found = found.newInstance().fallbackFileFormat()
    sink = spark_sql.streaming.sinks.FileStreamSink(
        session,
        folder,
        found.newInstance(),
        java.PythonUtils.toSeq(partition_by),
        java.PythonUtils.toScalaMap({**options, "path": folder}),
    )
    sink.addBatch(batch, rows._jdf)
    return True
