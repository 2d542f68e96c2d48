"""JSON that Penstock reads itself gives the values of Spark's reader, odd ones included."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.query.column_list import read_columns
from penstock.query.unreadable import CORRUPT
from penstock.sources.file_format import format_of

pytestmark = pytest.mark.xdist_group("spark")

COLUMNS = (
    "id BIGINT, small INT, ts TIMESTAMP, at TIMESTAMP_NTZ, day DATE, x STRING, f DOUBLE, "
    "b BOOLEAN, price DECIMAL(9, 2)"
)
LINES = [
    '{"id": 1, "ts": "2026-01-01T12:00:00Z", "x": "a", "day": "2026-01-02", "f": 1, "b": true}',
    '{"id": 2, "ts": "2026-01-01T12:00:00.123+02:00", "price": 1.5, "small": -7, "more": [1]}',
    '{"id": 3, "ts": "2026-01-01 12:00:00", "at": "2026-01-01T12:00:00.5", "price": 7}',
    '{"id": 4, "ts": "2026-01-01T12:00:00.123456789Z", "x": ""}',
    '{"id": 5, "x": 7}',
    '{"id": 6, "x": true}',
    '{"id": 7, "x": {"y": [1, null]}}',
    '{"id": 8, "ts": 1700000000}',
    '{"id": "9", "x": "a text for a number"}',
    '{"id": 10.0, "x": "a fraction for a whole number"}',
    '{"id": 11, "small": 3000000000, "x": "too large"}',
    '{"id": 12, "b": "true", "x": "a text for a truth"}',
    '{"id": 13, "f": "NaN"}',
    '{"id": 14, "f": "-Infinity"}',
    '{"id": 15, "f": "much"}',
    '{"id": 16, "price": 1.555}',
    '{"id": 17, "price": "2.25"}',
    '{"id": 18, "price": 123456789012}',
    '{"id": 19, "ts": "yesterday", "x": "no time"}',
    '{"id": 20, "day": "soon"}',
    '{"id": 21, "ts": null, "x": null}',
    '{"ID": 22, "X": "other names"}',
    "{}",
    "[1]",
    "7",
    '"a text"',
    "{broken",
    '{"id": 23',
    "not at all",
    "",
    '{"id": 24, "ts": "2026-01-01"}',
]


def test_values_are_those_of_sparks_reader(spark: SparkSession, tmp_path: Path) -> None:
    """Each line in a file of its own, and all in one: bulk and one by one."""
    for number, line in enumerate(LINES):
        (tmp_path / f"{number:02}.json").write_text(f"{line}\n")
    (tmp_path / "all.json").write_text("\n".join(LINES) + "\n")
    schema = read_columns(COLUMNS)
    kind = format_of("json")
    reader = spark.read.schema(f"{COLUMNS}, {CORRUPT} STRING").option("mode", "PERMISSIVE")
    read = reader.json(str(tmp_path)).selectExpr("*", "_metadata.file_name AS file").toArrow()
    expected: dict[str, list[str]] = {}
    for row in read.to_pylist():
        expected.setdefault(row.pop("file"), []).append(str(row))
    wrong = []
    for file in sorted(tmp_path.iterdir()):
        with pa.OSFile(str(file)) as opened:
            if not file.read_text().strip():
                continue
            found = kind.read(opened, schema.names, schema, {})
        if CORRUPT not in found.column_names:
            found = found.append_column(CORRUPT, pa.nulls(len(found), pa.string()))
        rows = found.cast(read.drop_columns("file").schema).to_pylist()
        for row, wanted in zip(map(str, rows), expected.get(file.name, []), strict=True):
            if row != wanted:
                wrong.append(f"{file.name}: found {row}, expected {wanted}")
    assert not wrong, "\n".join(wrong)
