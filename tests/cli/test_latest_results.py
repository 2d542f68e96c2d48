"""The newest results of a job, out of the files that its sink writes."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from penstock.cli.run.latest_results import SHOWN, LatestResults
from penstock.job import Sink


def write(folder: Path, kind: str, number: int, rows: list[int], header: bool = True) -> Path:
    """A file as Spark names it, newer than those before."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"part-{number:05}-c000.{kind if kind != 'parquet' else 'snappy.parquet'}"
    table = pa.table({"a": rows, "b": [f"text {row}" for row in rows]})
    if kind == "parquet":
        pq.write_table(table, file)
    elif kind == "orc":
        orc.write_table(table, str(file))
    elif kind == "csv":
        options = pyarrow.csv.WriteOptions(include_header=header)
        pyarrow.csv.write_csv(table, file, options)
    else:
        file.write_text("".join(f'{{"a": {row}, "b": "text {row}"}}\n' for row in rows))
    os.utime(file, (number, number))
    return file


@pytest.mark.parametrize("kind", ["parquet", "orc", "json", "csv"])
def test_the_newest_rows_of_files(kind: str, tmp_path: Path) -> None:
    latest = LatestResults.of(Sink(kind, str(tmp_path), {"header": "true"}))
    assert latest is not None
    assert latest.rows() == []
    write(tmp_path, kind, 1, [1, 2])
    assert latest.rows() == [{"a": 1, "b": "text 1"}, {"a": 2, "b": "text 2"}]
    write(tmp_path / "c=x", kind, 2, list(range(SHOWN - 1)))
    rows = latest.rows()
    assert len(rows) == SHOWN
    assert rows[0] == {"a": 2, "b": "text 2"}
    assert rows[-1] == {"a": SHOWN - 2, "b": f"text {SHOWN - 2}", "c": "x"}
    assert latest.rows() == rows


def test_a_csv_file_without_a_heading(tmp_path: Path) -> None:
    latest = LatestResults.of(Sink("csv", str(tmp_path)))
    assert latest is not None
    write(tmp_path, "csv", 1, [7], header=False)
    assert latest.rows() == [{"f0": 7, "f1": "text 7"}]


@pytest.mark.parametrize("kind", ["parquet", "orc", "json"])
def test_a_file_that_is_being_written_is_read_later(kind: str, tmp_path: Path) -> None:
    latest = LatestResults.of(Sink(kind, str(tmp_path)))
    assert latest is not None
    file = write(tmp_path, kind, 1, [1])
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    assert latest.rows() == []
    file.write_bytes(whole)
    assert latest.rows() == [{"a": 1, "b": "text 1"}]


def test_other_sinks_have_no_sample() -> None:
    assert LatestResults.of(Sink("kafka")) is None
    assert LatestResults.of(Sink("parquet", "hdfs://host/folder")) is None
