"""The parent of workers: which pyspark it takes."""

from __future__ import annotations

from pathlib import Path

import pyspark

from penstock.spark.processes.worker_daemon import leave_out_zip

SITE = str(Path(pyspark.__file__).parent.parent)
ZIP = str(Path(pyspark.__file__).parent / "python" / "lib" / "pyspark.zip")


def test_the_zip_goes_if_the_same_pyspark_is_installed() -> None:
    assert leave_out_zip(["/job", ZIP, SITE]) == ["/job", SITE]


def test_the_zip_stays_if_another_pyspark_or_none_is_installed() -> None:
    other = "/opt/spark/python/lib/pyspark.zip"
    assert leave_out_zip([other, SITE]) == [other, SITE]
    assert leave_out_zip([ZIP, "/job"]) == [ZIP, "/job"]
