"""Rows beyond memory go to Spark's folder for local files, if it has one on a disk."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import penstock
from penstock.cells.placement import place
from penstock.spark.cells.cell import Cell, CellSettings, local_folder

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64())])
QUERY = penstock.parse(
    "SELECT A.k AS k FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE A.k = B.k",
    dict.fromkeys("AB", SCHEMA),
)


def settings(**options: object) -> CellSettings:
    return CellSettings(QUERY, place(QUERY, 1), options=options)


def test_the_first_folder_of_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    assert local_folder() is None
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},{tmp_path / 'other'}")
    assert local_folder() == str(tmp_path)
    limited = settings(limits=penstock.Limits(memory=1000))
    for engine in (
        limited.engine(),
        Cell.restore(limited, Cell(limited, limited.engine()).checkpoint()).engine,
    ):
        spilling = engine._join.spilling
        assert spilling is not None
        assert spilling.files.folder == str(tmp_path)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "gone"))
    assert local_folder() is None


def test_a_folder_that_is_given_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = tmp_path / "given"
    given.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    assert settings(spill_folder=str(given)).engine_options["spill_folder"] == str(given)
