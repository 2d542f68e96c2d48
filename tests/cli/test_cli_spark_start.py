"""Spark that does not start is one line, with the reason; what it says meanwhile is kept apart."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.cli import main as cli
from penstock.cli.run import spark_start
from penstock.errors import PenstockError

pytest.importorskip("pyspark")

JOB = """
query = "SELECT A.value FROM A [NOW]"
checkpoint = "state"
[sources.A]
format = "rate"
[sink]
format = "noop"
"""
UNRESOLVED = """\
:: resolving dependencies ::
Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: org.x#kafka;9: nope]
"""


def installed(module: str) -> bool:
    return True


@pytest.mark.parametrize(
    ("said", "error", "told"),
    [
        (
            "",
            PenstockError("Spark needs Java 17 or newer: java is Java 11. Install one"),
            "penstock: Spark needs Java 17 or newer: java is Java 11. Install one\n",
        ),
        (
            UNRESOLVED,
            RuntimeError("Java gateway process exited"),
            "penstock: Spark cannot get org.x:kafka:9; is the version right, and can this machine "
            "reach a Maven repository?\n",
        ),
        (
            "noise\nError: Could not create the Java Virtual Machine.\nmore\n",
            RuntimeError("Java gateway process exited"),
            "penstock: Spark does not start: Error: Could not create the Java Virtual Machine.; "
            "penstock doctor looks for the cause\n",
        ),
        (
            "noise\nInvalid maximum heap size: -Xmxx\nError: Could not create the Java Virtual "
            "Machine.\n",
            RuntimeError("Java gateway process exited"),
            "penstock: Spark does not start: Invalid maximum heap size: -Xmxx; penstock doctor "
            "looks for the cause\n",
        ),
    ],
)
def test_one_line(
    said: str,
    error: Exception,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def refuse(*_: object) -> None:
        os.write(2, said.encode())  # As a child process does.
        raise error

    monkeypatch.setattr(spark_start, "is_installed", installed)
    monkeypatch.setattr("penstock.spark.jobs.job_session.job_session", refuse)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    job = tmp_path / "job.toml"
    job.write_text(JOB)
    assert cli.main(["run", str(job)]) == cli.USER_ERROR
    shown = capfd.readouterr()
    assert shown.out == "starting Spark …\n"
    assert shown.err == told
    assert os.listdir(tmp_path) == ["job.toml"]
