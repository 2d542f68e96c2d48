"""Files of a checkpoint by Java alone: everything else is as Hadoop's own does it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.spark.private_spark import hadoop_settings, java_array, java_of
from penstock.spark.start import local_files
from penstock.spark.start.local_files import settings_with, use_for_sinks, write_jar

MANAGER = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
)


def test_settings_come_to_those_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    jar = tmp_path / "made.jar"
    assert settings_with(jar, {}) == {}
    jar.touch()
    (implementation,) = settings_with(jar, {}).keys() - {"spark.jars"}
    assert settings_with(jar, {"spark.jars": "a.jar,b.jar"})["spark.jars"] == f"a.jar,b.jar,{jar}"
    assert settings_with(jar, {implementation: "somebody.Else"}) == {}
    # The program comes too late to add to these.
    for told in ("--jars a.jar", "--conf spark.jars=a.jar"):
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{told} pyspark-shell")
        assert settings_with(jar, {"spark.jars": "a.jar"}) == {}
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages a:b:1 pyspark-shell")
    assert settings_with(jar, {})["spark.jars"] == str(jar)


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The folder of the jar, and Hadoop's settings with its classes in use for checkpoints."""
    folder = tmp_path_factory.mktemp("files")
    write_jar(spark, folder / "made.jar")
    java = java_of(spark)
    settings = java.org.apache.hadoop.conf.Configuration(hadoop_settings(spark))
    address = java.java.net.URI((folder / "made.jar").as_uri()).toURL()
    loader = java.java.net.URLClassLoader(
        java_array(spark, java.java.net.URL, address), settings.getClassLoader()
    )
    settings.setClassLoader(loader)
    name, value = settings_with(folder / "made.jar", {}).popitem()
    settings.set(name.removeprefix("spark.hadoop."), value)
    return folder, settings


@pytest.fixture(scope="module")
def manager(spark: SparkSession, made: tuple[Path, Any]) -> Any:
    """Spark's own manager of checkpoint files, with the file system in question."""
    folder, settings = made
    java = java_of(spark)
    path = java.org.apache.hadoop.fs.Path
    kind = java.java.lang.Class.forName(MANAGER)
    (maker,) = kind.getConstructors()
    files = maker.newInstance(java_array(spark, java.Object, path(folder.as_uri()), settings))

    def write(file: Path, text: str, replaces: bool) -> None:
        stream = files.createAtomic(path(file.as_uri()), replaces)
        stream.write(bytearray(text.encode()))
        stream.close()

    return write


def test_a_file_is_replaced_only_if_it_may_be(manager: Any, tmp_path: Path) -> None:
    file = tmp_path / "7"
    manager(file, "before", True)
    manager(file, "after", True)
    assert file.read_text() == "after"
    with pytest.raises(Exception, match="already exists"):
        manager(file, "never", False)
    assert file.read_text() == "after"


def test_checksums_are_written_and_permissions_are_those_of_hadoop(
    manager: Any, spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / "8"
    manager(file, "text", False)
    assert (tmp_path / ".8.crc").is_file()
    assert file.stat().st_mode & 0o777 == 0o644
    path = java_of(spark).org.apache.hadoop.fs.Path(file.as_uri())
    found = path.getFileSystem(hadoop_settings(spark)).open(path)  # Hadoop's own checks them.
    assert found.read() == ord("t")
    (tmp_path / "link").symlink_to(file)
    manager(tmp_path / "link", "beside", True)
    assert file.read_text() == "text"
    assert (tmp_path / "link").read_text() == "beside"


def test_sinks_write_by_the_same_way_and_go_by_hadoops_permissions(
    spark: SparkSession, made: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, settings = made
    monkeypatch.setattr(local_files, "hadoop_settings", lambda _: settings)
    java = java_of(spark)
    of_session = hadoop_settings(spark)
    use_for_sinks(spark)
    files = java.org.apache.hadoop.fs.FileSystem.newInstance(settings)
    assert files.getRaw().getClass().getName().startswith("penstock.LocalFiles")
    path = java.org.apache.hadoop.fs.Path
    stream = files.create(path((tmp_path / "deep" / "part").as_uri()))
    stream.write(bytearray(b"text"))
    stream.close()
    assert (tmp_path / "deep" / "part").read_text() == "text"
    assert (tmp_path / "deep" / "part").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "deep").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "deep" / ".part.crc").is_file()
    chosen = settings.get("fs.file.impl")
    settings.set("fs.file.impl", "somebody.Else")
    use_for_sinks(spark)
    assert settings.get("fs.file.impl") == "somebody.Else"
    settings.set("fs.file.impl", chosen)
    # Sessions whose checkpoints go another way, as that of the tests without a jar, are left alone.
    monkeypatch.undo()
    before = of_session.get("fs.file.impl")
    if of_session.get("fs.AbstractFileSystem.file.impl") != "penstock.LocalFiles":
        use_for_sinks(spark)
        assert of_session.get("fs.file.impl") == before
