"""A SparkSession with what Penstock needs, and a check of sessions that came from elsewhere.

What a streaming join needs of Spark is only RocksDB as the state store: ``transformWithState`` runs
on no other. The rest is measured tuning, and how much of it there is depends on whose Spark it is:

======================================  =======================================================
there is a session already              the state store, if it is unset; nothing else
``spark-submit``, a cluster, Connect    the state store and settings of SQL, where unset
no Spark, and no master but this        the same, and what concerns the whole process: Java's
machine                                 options, Python workers, Hadoop's local files
======================================  =======================================================

What was set by a job, by ``spark-submit``, in ``spark-defaults.conf`` or on the running session
stays as it is (:mod:`penstock.spark.start.given_settings`).

On one machine a failed task is tried again (``local[N,4]``), which plain ``local[N]`` does not do,
and there are as many shuffle partitions as cores, since each costs a fixed time per micro-batch.
There also the JVM is told to compile quickly rather than well, with one thread for its garbage: the
work on rows is done elsewhere, and what is left for Java is long code that runs a few times per
batch. Without that, most of its CPU seconds go into compiling it again, and better. It starts with
a small heap, which grows as it has to and is mostly for new objects, since few live longer than a
batch, and takes its classes from an archive if there is one
(:mod:`penstock.spark.start.class_archive`). Hadoop's settings, which go with everything, are fewer
(:mod:`penstock.spark.start.hadoop_defaults`). What each is worth stands beside it
(:mod:`penstock.spark.start.tuning`).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession, is_remote
from pyspark.sql import functions as sf

from penstock.errors import OptionError
from penstock.spark import private_spark
from penstock.spark.start import process_tree
from penstock.spark.start.given_settings import given_settings
from penstock.spark.start.java import find_java
from penstock.spark.start.launch import launch_java
from penstock.spark.start.tuning import TRICKS, Trick

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"
EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"
SOCKETS = "spark.python.unix.domain.socket.enabled"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_ATTEMPTS = 4
"""Times that a task is tried on one machine before its query fails, as on a cluster."""
_MASTER = "spark.master"
_REMOTE = "spark.remote"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOGGING = "-Dlog4j2.configurationFile"
_QUIET_FILE = (Path(__file__).parent / "log4j2.properties").as_uri()
_NEEDED = {PROVIDER: ROCKSDB}
_OWN = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A machine that slept for two minutes would miss its own executor and wait for ever.
    "spark.storage.blockManagerHeartbeatTimeoutMs": "365d",
    # A state server takes whoever comes to its port first for its worker, and waits for ever.
    SOCKETS: "true",
}
"""Settings of a Spark that Penstock itself has started on one machine."""
_QUIET = "ERROR"


def session(
    master: str | None = None,
    app_name: str | None = None,
    log_level: str | None = None,
    **conf: Any,
) -> SparkSession:
    """A SparkSession that is set up for :func:`penstock.spark.join`.

    ``conf`` are Spark's own settings, with ``__`` for the dots:
    ``session(spark__driver__memory="4g")``. Only what nobody has set is set by Penstock: a session
    that is running is used as it is; what ``spark-submit``, ``SPARK_REMOTE`` and
    ``spark-defaults.conf`` say counts. ``master`` is by default theirs, else that of the variable
    ``PENSTOCK_MASTER``, else this machine with all its cores. ``log_level`` is by default that of
    Spark, or only errors where Penstock starts Spark on this machine.
    """
    return session_with(TRICKS, master, app_name, log_level, **conf)


def session_with(
    tricks: Sequence[Trick],
    master: str | None = None,
    app_name: str | None = None,
    log_level: str | None = None,
    **conf: Any,
) -> SparkSession:
    """:func:`session` with these ``tricks`` alone."""
    asked = {name.replace("__", "."): str(value) for name, value in conf.items()}
    if app_name is not None:
        asked["spark.app.name"] = app_name
    if private_spark.is_running():
        asked.pop("spark.app.name", None)
        spark = _built(asked)
        _set_unset(spark, _NEEDED)
    else:
        if master is not None:
            asked[_MASTER] = master
        spark = _started(asked, log_level, tricks)
    if log_level is not None and not is_remote():
        spark.sparkContext.setLogLevel(log_level)
    return spark


def _started(asked: dict[str, str], log_level: str | None, tricks: Sequence[Trick]) -> SparkSession:
    """A new session with the settings that were ``asked`` for, and ``tricks`` where they may be."""
    sql = _NEEDED | {n: v for each in tricks if each.anywhere for n, v in each.settings.items()}
    by_others = private_spark.has_java() and not private_spark.java_is_ours()
    given = given_settings() | asked
    remote = given.get(_REMOTE) or os.environ.get("SPARK_REMOTE")
    if remote is not None:
        spark = _built({**asked, _REMOTE: remote})
        _set_unset(spark, sql)
        return spark
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    here = f"local[{cores},{_ATTEMPTS}]"
    chosen = given.get(_MASTER) or os.environ.get("PENSTOCK_MASTER", here)
    settings = {_MASTER: chosen, "spark.app.name": "penstock", **sql}
    on_one_machine = chosen.startswith("local")
    if on_one_machine:
        settings[PARTITIONS] = str(_threads_of(chosen, cores or 1))
    if by_others or not on_one_machine:
        if not by_others:
            os.environ["JAVA_HOME"] = str(find_java().home)
        return _built(_unset_in(given, settings) | asked)
    found = find_java()
    os.environ["JAVA_HOME"] = str(found.home)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings |= _OWN
    java = given.get(_JAVA_OPTIONS, "")  # Of options that contradict, Java takes the last.
    lean = [] if _LOGGING in java else [f"{_LOGGING}={_QUIET_FILE}"]
    more: dict[str, str] = {}
    for each in tricks:
        settings |= each.settings
        more |= each.found(found, given)
        for name, value in each.environment().items():
            os.environ.setdefault(name, value)
        if not each.unless or each.unless not in java:
            lean.append(each.java(found))
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        os.environ.setdefault(name, sys.executable)
    options = {_JAVA_OPTIONS: " ".join(filter(None, [*lean, java]))}
    spark = _built(_unset_in(given, settings) | asked | options | more)
    private_spark.claim_java()
    if log_level is None:
        spark.sparkContext.setLogLevel(_QUIET)
    for each in tricks:
        each.after(spark)
    return spark


def _built(settings: Mapping[str, str]) -> SparkSession:
    """The session that Spark makes or finds with ``settings``."""
    builder = SparkSession.Builder()
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _no_orphans():
        if _REMOTE not in settings and not is_remote():
            launch_java(settings)
        return builder.getOrCreate()


def _unset_in(given: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """Those of ``settings`` that are not ``given``."""
    return {name: value for name, value in settings.items() if name not in given}


def _set_unset(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Set those of ``settings`` that ``spark`` has only as defaults."""
    for name, value in settings.items():
        if spark.conf.get(name, None) is None:
            spark.conf.set(name, value)


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


def parallelism(spark: SparkSession) -> int:
    """Tasks that ``spark`` runs at once, as far as it knows."""
    if not is_remote():
        return spark.sparkContext.defaultParallelism
    # A range has as many partitions; the client of a server can find out no other way.
    numbers = spark.range(1 << 16).select(sf.spark_partition_id().alias("number"))
    partitions = numbers.agg(sf.max("number")).first()
    assert partitions is not None
    return int(partitions[0]) + 1


def _threads_of(master: str, cores: int) -> int:
    """How many tasks of ``master`` run at once, if it is on this machine."""
    inside = master.partition("[")[2].partition("]")[0].split(",")
    first = inside[0].strip()
    if master.startswith("local-cluster"):
        return int(first) * int(inside[1]) if len(inside) > 1 else cores
    if not first:
        return 1
    return cores if first == "*" else int(first)
