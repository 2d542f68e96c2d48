"""Options that cannot be meant are told in one line, before Spark has anything to do."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import OptionError
from penstock.spark.data_source.options import lane_of

QUERY = "SELECT A.id AS a FROM A [RANGE 5 MINUTES], B [RANGE 5 MINUTES] WHERE A.x = B.x"


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("flush", "perhaps", "flush is true or false, not 'perhaps'"),
        ("reports", "1", "reports is true or false, not '1'"),
        ("snapshotinterval", "often", "snapshotInterval='often' is not a duration"),
        ("snapshotcache", "lots", "snapshotCache is bytes"),
        ("a.format", "parqet", "choose from: parquet, arrow, feather, json, csv, kafka, rate"),
    ],
)
def test_what_cannot_be_meant(option: str, value: str, told: str, tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "ts": pa.array([1], pa.timestamp("ms")), "x": [1]})
    options = {"query": QUERY, "watermark": "5 SECONDS"}
    for name in "ab":
        (tmp_path / name).mkdir()
        pq.write_table(rows, tmp_path / name / "0.parquet")
        options[f"{name}.path"] = str(tmp_path / name)
    assert not lane_of(options).flushes
    with pytest.raises(OptionError, match=told) as found:
        lane_of(options | {option: value})
    assert "\n" not in str(found.value)
