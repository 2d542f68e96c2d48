"""What a session leaves behind: no process if it is interrupted, no file beside those it writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.spark.session import _no_orphans
from penstock.spark.start import hadoop_defaults, local_files, process_tree

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
def test_local_files_are_written_alone(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).write.parquet(str(tmp_path / "rows"))
    written = [file.name for file in (tmp_path / "rows").iterdir()]
    assert any(name.endswith(".parquet") for name in written)
    assert [name for name in written if name.endswith(".crc")] == []
    assert spark.read.parquet(str(tmp_path / "rows")).count() == 1


@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(os.name != "posix", reason="needs permissions as POSIX has them")
def test_permissions_are_set_as_hadoop_sets_them(spark: SparkSession, tmp_path: Path) -> None:
    java = spark.sparkContext._jvm
    assert java is not None
    hadoop = java.org.apache.hadoop
    ours = hadoop.fs.FileSystem.getLocal(spark.sparkContext._jsc.hadoopConfiguration())
    theirs = hadoop.fs.LocalFileSystem()
    theirs.initialize(java.java.net.URI("file:///"), hadoop.conf.Configuration())
    theirs.setWriteChecksum(False)
    assert ours.getClass().getName() == "penstock.LocalFiles"
    modes = []
    for name, files in (("ours", ours), ("theirs", theirs)):
        file = tmp_path / name / "deep" / "file"
        path = hadoop.fs.Path(str(file))
        files.create(path).close()
        found = [file.stat().st_mode, file.parent.stat().st_mode]
        for mode in (0o640, 0o1755):
            files.setPermission(path, hadoop.fs.permission.FsPermission(format(mode, "o")))
            found.append(file.stat().st_mode)
        modes.append(found)
    assert modes[0] == modes[1]
    assert modes[0][2] & 0o7777 == 0o640
    assert list((tmp_path / "ours" / "deep").iterdir()) == [tmp_path / "ours" / "deep" / "file"]


@pytest.mark.xdist_group("spark")
def test_without_a_compiler_hadoops_own_files_remain(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = spark.sparkContext._jvm
    assert java is not None
    get_local = java.org.apache.hadoop.fs.FileSystem.getLocal
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    get_local(configuration).close()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(local_files, "_SOURCE", "no Java")
            local_files.set_up_local_files(spark)
        assert get_local(configuration).getClass().getName() != "penstock.LocalFiles"
    finally:
        local_files.set_up_local_files(spark)
    assert get_local(configuration).getClass().getName() == "penstock.LocalFiles"


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
    before = spark.sparkContext._jsc.hadoopConfiguration().size()
    hadoop_defaults.forget_needless_defaults(spark)
    assert spark.sparkContext._jsc.hadoopConfiguration().size() == before
