"""The parent of workers: which pyspark it takes, and what it has loaded before it forks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from penstock.spark.start.worker_daemon import leave_out_zip

SITE = str(Path(pyspark.__file__).parent.parent)
ZIP = str(Path(pyspark.__file__).parent / "python" / "lib" / "pyspark.zip")


def test_the_zip_goes_if_the_same_pyspark_is_installed() -> None:
    assert leave_out_zip(["/job", ZIP, SITE]) == ["/job", SITE]


def test_the_zip_stays_if_another_pyspark_or_none_is_installed() -> None:
    other = "/opt/spark/python/lib/pyspark.zip"
    assert leave_out_zip([other, SITE]) == [other, SITE]
    assert leave_out_zip([ZIP, "/job"]) == [ZIP, "/job"]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_nothing_runs_beside_the_thread_that_forks() -> None:
    program = (
        "import os; os.environ['OPENBLAS_NUM_THREADS'] = '1'\n"
        "from penstock.spark.start.worker_daemon import preload; preload()\n"
        "tasks = [open(f'/proc/self/task/{t}/comm').read().strip() "
        "for t in os.listdir('/proc/self/task')]\n"
        "print(len([t for t in tasks if 'jemalloc' not in t]))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ),
    )
    assert told.stdout.split() == ["1"], told.stderr
