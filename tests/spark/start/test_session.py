"""What a session leaves behind if it is interrupted, and what it does to Hadoop's settings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.spark.session import SOCKETS, _no_orphans
from penstock.spark.start import hadoop_defaults, process_tree

needs_proc = pytest.mark.skipif(not process_tree.is_known(), reason="needs /proc")


def sleeping() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


def interrupted(started: list[subprocess.Popen[bytes]]) -> None:
    with _no_orphans():
        started.append(sleeping())
        raise KeyboardInterrupt


@needs_proc
def test_what_was_started_meanwhile_ends_and_nothing_else() -> None:
    older = sleeping()
    started: list[subprocess.Popen[bytes]] = []
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted(started)
        assert started[0].wait(30) != 0
        assert older.poll() is None
    finally:
        older.kill()
        older.wait()


@needs_proc
def test_without_an_interrupt_all_goes_on() -> None:
    with _no_orphans():
        started = sleeping()
    assert started.poll() is None
    started.kill()
    started.wait()


@pytest.mark.xdist_group("spark")
def test_a_machine_may_sleep(spark: SparkSession) -> None:
    """An executor in the same process cannot get lost, however long its heartbeat is away."""
    context = spark.sparkContext._jsc.sc()
    timeout = context.conf().getTimeAsMs("spark.storage.blockManagerHeartbeatTimeoutMs")
    assert timeout > 30 * 24 * 3_600_000


@pytest.mark.xdist_group("spark")
def test_workers_are_spoken_to_by_sockets_that_nobody_else_can_open(spark: SparkSession) -> None:
    """Any process of the machine, and a client of a server that is gone, may come to a port: Spark
    then takes it for a worker, and the micro-batch never ends."""
    assert spark.sparkContext.getConf().get(SOCKETS) == "true"

    def listening(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = os.environ.get("PYTHON_UNIX_DOMAIN_ENABLED", "false").lower()
        yield pa.RecordBatch.from_pylist([{"found": found}])

    assert spark.range(1).mapInArrow(listening, "found STRING").collect()[0][0] == "true"


@pytest.mark.xdist_group("spark")
def test_only_defaults_of_other_programs_are_forgotten(spark: SparkSession) -> None:
    java = spark.sparkContext._jvm
    assert java is not None
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    everything = java.org.apache.hadoop.mapred.JobConf()
    for name in ("yarn.acl.enable", "mapreduce.job.maps", "ha.zookeeper.parent-znode"):
        assert everything.get(name) is not None
        assert settings.get(name) is None
    for name in (
        "fs.s3a.impl",
        "hadoop.tmp.dir",
        "io.serializations",
        "mapreduce.outputcommitter.factory.scheme.s3a",
        "mapreduce.fileoutputcommitter.algorithm.version",
        "mapreduce.input.fileinputformat.split.minsize",
    ):
        assert settings.get(name) is not None
    settings.set("yarn.acl.enable", "true")
    try:
        hadoop_defaults.forget_needless_defaults(spark)
        assert settings.get("yarn.acl.enable") == "true"
    finally:
        settings.unset("yarn.acl.enable")


@pytest.mark.xdist_group("spark")
def test_without_a_compiler_hadoops_defaults_remain(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hadoop_defaults, "_FORGET", "no Java")
    hadoop_defaults.forget_needless_defaults(spark)  # It lets Hadoop read what it has not read yet.
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    before = settings.size()
    hadoop_defaults.forget_needless_defaults(spark)
    assert settings.size() == before
    assert settings.get("hadoop.tmp.dir") is not None
