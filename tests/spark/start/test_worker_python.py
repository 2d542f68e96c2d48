"""The script that Spark starts as Python."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from penstock.spark.start.worker_python import worker_python


@pytest.mark.skipif(os.name != "posix", reason="a shell script")
@pytest.mark.parametrize("jar", ["", ":/x y/pyspark/jars/spark-core_2.13-4.3.0.jar"])
@pytest.mark.parametrize("rest", ["", ":/my folder/lib", ":/a/spark-core_mine.jar:/b"])
def test_it_is_python_without_the_zips_and_the_jar(
    jar: str, rest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = "/x y/pyspark/python/lib"
    zips = f"{folder}/pyspark.zip:{folder}/py4j-0.10.9.9-src.zip"
    monkeypatch.setenv("PYTHONPATH", f"{zips}{jar}{rest}")
    script = worker_python()
    assert script.startswith(str(tmp_path))
    program = "import os, sys, pyspark, py4j; print(os.environ['PYTHONPATH'], sys.argv[1], sep='|')"
    told = subprocess.run(
        [script, "-c", program, "an argument"], capture_output=True, text=True, check=True
    )
    assert told.stdout == f"{rest.lstrip(':')}|an argument\n"


@pytest.mark.skipif(os.name != "posix", reason="a shell script")
def test_environments_of_one_user_do_not_take_each_others_python_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    ours = Path(worker_python())
    before = ours.read_text()
    monkeypatch.setattr("sys.executable", "/another/environment/bin/python")
    theirs = Path(worker_python())
    assert "/another/environment" in theirs.read_text()
    assert ours.read_text() == before
