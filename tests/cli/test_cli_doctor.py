"""The doctor: finds what is wrong, says how to mend it, and its exit code tells."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest
from rich.console import Console

from penstock.cli import main as cli
from penstock.cli.doctor import checks
from penstock.cli.doctor.checks import Check
from penstock.engine.state.available_memory import available_memory

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with enough of everything."""
    monkeypatch.setattr(checks, "package_check", lambda module, name: Check(name, "ok", "1"))
    monkeypatch.setattr(checks, "java_check", lambda: Check("Java", "ok", "17"))
    monkeypatch.setattr(checks, "available_memory", lambda: 8 << 30)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, 9 << 30))


@pytest.mark.usefixtures("healthy")
def test_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--quick"]) == 0
    shown = capsys.readouterr().out
    assert shown.endswith("all is well\n")
    for name in ("Java", "pyspark", "memory", "temporary", "cache", "shared memory"):
        assert f"✓ {name}" in shown


@pytest.mark.usefixtures("healthy")
def test_a_problem_has_a_remedy_and_a_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checks, "available_memory", lambda: 1 << 20)
    assert cli.main(["doctor"]) == 1  # And Spark is not even started.
    shown = capsys.readouterr().out
    assert "✗ memory" in shown
    assert "→ end other programs" in shown
    assert "1 problem, 0 warnings" in shown


@pytest.mark.usefixtures("healthy")
def test_a_job_is_looked_at_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "job.toml"
    text = (
        'query = "SELECT A.value FROM A [NOW]"\ncheckpoint = "s3a://bucket/state"\n'
        '[sources.A]\nformat = "rate"\n[sink]\nformat = "parquet"\npath = "results"\n'
    )
    job.write_text(text)
    assert cli.main(["doctor", "--quick", str(job)]) == 0
    shown = capsys.readouterr().out
    assert "elsewhere, not checked" in shown
    assert f"{tmp_path / 'results'}, " in shown
    job.write_text(text.replace("rate", "rte"))
    assert cli.main(["doctor", "--quick", str(job)]) == 1
    assert "did you mean rate?" in capsys.readouterr().out


def test_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.package_check("pyarrow", "pyarrow").status == "ok"
    missing = checks.package_check("no_such.package", "no-such")
    assert (missing.status, missing.found) == ("problem", "not installed")
    versions = {"pyspark": "3.5.1", "pandas": "3.0.0"}
    monkeypatch.setattr(importlib.metadata, "version", versions.__getitem__)
    assert (
        checks.package_check("pyspark", "pyspark").mend == "Penstock needs PySpark 4.3: upgrade it"
    )
    assert checks.package_check("pandas", "pandas").status == "problem"


def test_an_old_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from penstock.spark.start import java

    script = tmp_path / "bin" / "java"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    script.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(java, "_packaged_java", lambda: None)
    check = checks.java_check()
    assert check.status == "problem"
    assert "is Java 11" in check.found


@pytest.mark.parametrize(
    ("limit", "used", "expected"),
    [("max", "5", 4_096_000), ("2000000", "500000", 1_500_000), ("nonsense", "5", 4_096_000)],
)
def test_memory_of_a_container(tmp_path: Path, limit: str, used: str, expected: int) -> None:
    group = tmp_path / "sys" / "fs" / "cgroup"
    group.mkdir(parents=True)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 4000 kB\n")
    (group / "memory.max").write_text(f"{limit}\n")
    (group / "memory.current").write_text(used)
    assert available_memory(tmp_path) == expected
    assert available_memory(tmp_path / "nothing") is None


@pytest.mark.parametrize(
    ("available", "status"), [(None, "ok"), (1 << 28, "problem"), (2 << 30, "warning")]
)
def test_memory(available: int | None, status: str) -> None:
    assert checks.memory_check(available).status == status


def test_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert checks.folder_check("x", tmp_path / "not" / "yet", "mend").status in ("ok", "warning")
    assert not (tmp_path / "not").exists()
    file = tmp_path / "file"
    file.touch()
    blocked = checks.folder_check("x", file / "below", "mend it")
    assert (blocked.status, blocked.mend) == ("problem", "mend it")
    for free, status in ((1, "problem"), (1 << 30, "warning"), (9 << 30, "ok")):
        usage = Usage(0, 0, free)
        monkeypatch.setattr(shutil, "disk_usage", lambda path, usage=usage: usage)
        assert checks.folder_check("x", tmp_path, "mend").status == status
    assert checks.shared_memory_check(tmp_path).status == "ok"
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, 1))
    assert checks.shared_memory_check(tmp_path).status == "warning"
    assert checks.shared_memory_check(tmp_path / "none").status == "warning"
    assert os.listdir(tmp_path) == ["file"]


def test_spark_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.cli.run import spark_start
    from penstock.errors import PenstockError

    def refused() -> None:
        raise PenstockError("pyspark cannot be found")

    monkeypatch.setattr(spark_start, "need_spark", refused)
    (check,) = checks.spark_checks(Console(quiet=True))
    assert (check.status, check.found) == ("problem", "pyspark cannot be found")
