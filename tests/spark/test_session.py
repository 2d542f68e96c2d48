"""What a session leaves behind: no process if it is interrupted, no file beside those it writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.spark import process_tree
from penstock.spark.session import _no_orphans

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
def test_local_files_are_written_alone(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).write.parquet(str(tmp_path / "rows"))
    written = [file.name for file in (tmp_path / "rows").iterdir()]
    assert any(name.endswith(".parquet") for name in written)
    assert [name for name in written if name.endswith(".crc")] == []
    assert spark.read.parquet(str(tmp_path / "rows")).count() == 1
