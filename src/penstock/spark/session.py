"""A SparkSession with what Penstock needs, and a check of sessions that came from elsewhere.

What a stateful join needs is only RocksDB as the state store: ``transformWithState`` runs on no
other. The rest is measured tuning. As many shuffle partitions as cores, since each costs a fixed
time per micro-batch; changelog checkpoints, so that a batch writes what it changed; larger Arrow
batches, since rows are packed per batch; workers that fork from a parent with everything loaded
(:mod:`penstock.spark.worker_daemon`).

On one machine a failed task is tried again (``local[N,4]``), which plain ``local[N]`` does not do.
There also the JVM is told to compile early, and quickly rather than well, with one thread for its
garbage: the work on rows is done elsewhere, and what is left for Java is long code that runs a few
times per batch. Without that, most of its CPU seconds go into compiling it again, and better. It
may also load Spark's classes without collecting garbage each time there are more of them, starts
with a small heap, which grows as it has to and is mostly for new objects, since few live longer
than a batch, and takes its classes from an archive if there is one
(:mod:`penstock.spark.class_archive`). Local files are written without a second file and a process
for each (:mod:`penstock.spark.local_files`), and Hadoop's settings, which go with everything, are
fewer (:mod:`penstock.spark.hadoop_defaults`). Processes keep some of the memory that they free:
rows come and go in pieces of megabytes, and to give each back to the system and ask for it again
took a third of the CPU time that the system spends on a Python worker.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.errors import OptionError
from penstock.spark import process_tree
from penstock.spark.class_archive import archive_options
from penstock.spark.hadoop_defaults import forget_needless_defaults
from penstock.spark.java import find_java
from penstock.spark.local_files import set_up_local_files
from penstock.spark.worker_python import worker_python

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_ATTEMPTS = 4
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOGGING = "-Dlog4j2.configurationFile"
_QUIET_FILE = (Path(__file__).parent / "log4j2.properties").as_uri()
_TUNING = {
    PROVIDER: ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # A limit in bytes would be looked at after every row: an eighth of the time to hand rows over.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    # Workers of both stages must have one environment, or each gets a daemon of its own.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "penstock.spark.worker_daemon",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_ONE_MACHINE = {
    # Files of the checkpoint are written and renamed: enough where renaming is atomic.
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming."
    "checkpointing.FileSystemBasedCheckpointFileManager",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}
_ONE_PROCESS = {
    # A machine that slept for two minutes would miss its own executor and wait for ever.
    "spark.storage.blockManagerHeartbeatTimeoutMs": "365d",
    # Rows go to Python workers and back past the network.
    "spark.python.unix.domain.socket.enabled": str(os.name == "posix").lower(),
    # What is shuffled does not leave the machine, and is numbers for the most part.
    "spark.shuffle.compress": "false",
}
_MEMORY = {
    "MALLOC_ARENA_MAX": "2",  # Else every thread of Java's has a heap.
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(128 << 20),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""How processes get memory and when they give it back: the C library's ways, and Arrow like it."""
_LEAN_COMPILER = "-XX:TieredStopAtLevel=1 -XX:CompileThresholdScaling=0.5 -XX:MetaspaceSize=256m"
# Arrow would check the bounds of every value that is handed over, a quarter of the time to do so;
# Spark makes room before it writes.
_UNCHECKED = "-Darrow.enable_unsafe_memory_access=true"
_LEAN_COLLECTOR = "-XX:+UseSerialGC -Xms320m -XX:NewSize=160m"
_QUIET = "ERROR"


def session(
    master: str | None = None, app_name: str = "penstock", log_level: str = _QUIET, **conf: Any
) -> SparkSession:
    """A SparkSession that is set up for :func:`penstock.spark.join`.

    ``master`` is by default this machine with all its cores. ``conf`` are Spark's own settings,
    with ``__`` for the dots: ``session(spark__driver__memory="4g")``; they go before ours. If a
    session is running already, it is used, and those of its settings that can still change are
    set.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    archive = ""
    if SparkSession.getActiveSession() is None:
        found = find_java()
        os.environ["JAVA_HOME"] = str(found.home)
        archive = archive_options(found)
    if master is None:
        master = os.environ.get("PENSTOCK_MASTER", f"local[{cores},{_ATTEMPTS}]")
    python = worker_python() if master.startswith("local") else sys.executable
    os.environ.setdefault("PYSPARK_PYTHON", python)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    settings = dict(_TUNING)
    builder = SparkSession.Builder().appName(app_name)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        for name, value in _MEMORY.items():
            os.environ.setdefault(name, value)
        settings[PARTITIONS] = str(_threads_of(master, cores or 1))
        settings |= _ONE_MACHINE
        settings |= {} if master.startswith("local-cluster") else _ONE_PROCESS
    settings |= {name.replace("__", "."): str(value) for name, value in conf.items()}
    java = settings.get(_JAVA_OPTIONS, "")  # Of options that contradict, Java takes the last.
    if _LOGGING not in java:
        java = f"{_LOGGING}={_QUIET_FILE} {java}"
    if master.startswith("local"):
        lean = [] if "Archive" in java else [archive]
        lean += [_LEAN_COMPILER, _UNCHECKED] + ([] if "GC" in java else [_LEAN_COLLECTOR])
        java = " ".join([*lean, java])
    settings[_JAVA_OPTIONS] = java.strip()
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _no_orphans():
        spark = builder.master(master).getOrCreate()
    spark.sparkContext.setLogLevel(log_level)
    if master.startswith("local"):
        set_up_local_files(spark)
        forget_needless_defaults(spark)
    return spark


@contextmanager
def _no_orphans() -> Iterator[None]:
    """End the JVM that is being started if that is interrupted.

    It would live for ever: a JVM that cannot tell PySpark its port does not look whether PySpark is
    still there.
    """
    before = set(process_tree.processes(os.getpid())) if process_tree.is_known() else None
    try:
        yield
    except KeyboardInterrupt:
        if before is not None:
            for pid in process_tree.processes(os.getpid()):
                if pid not in before:
                    with suppress(OSError):
                        os.kill(pid, signal.SIGTERM)
        raise


def check_session(spark: SparkSession) -> None:
    """:class:`OptionError` with what is missing if ``spark`` cannot run a streaming join."""
    found = spark.conf.get(PROVIDER, "")
    if found != ROCKSDB:
        raise OptionError(
            f"this SparkSession keeps state with {found or 'its default provider'}, and a "
            f"streaming join needs RocksDB: spark.conf.set({PROVIDER!r}, {ROCKSDB!r}) before the "
            "query starts, or take the session from penstock.spark.session()"
        )


def _threads_of(master: str, cores: int) -> int:
    """How many tasks of ``master`` run at once, if it is on this machine."""
    inside = master.partition("[")[2].partition("]")[0].split(",")
    first = inside[0].strip()
    if master.startswith("local-cluster"):
        return int(first) * int(inside[1]) if len(inside) > 1 else cores
    if not first:
        return 1
    return cores if first == "*" else int(first)
