"""Avro values in bulk: what reading them one by one gives, and bad ones are told."""

from __future__ import annotations

import io
import json
import random
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import InputError, OptionError
from penstock.query.unreadable import CORRUPT
from penstock.sources.avro_values import read_values

fastavro = pytest.importorskip("fastavro")
TIME = {"type": "long", "logicalType": "timestamp-micros"}
SCHEMA = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "ts", "type": ["null", TIME]},
        {"name": "x", "type": ["null", "string"]},
        {"name": "more", "type": {"type": "array", "items": "int"}},
    ],
}
TEXT = json.dumps(SCHEMA)
WANTED = pa.schema([("id", pa.int64()), ("x", pa.string()), ("ts", pa.timestamp("us", "UTC"))])


def encoded(value: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(SCHEMA), value)
    return file.getvalue()


def value_of(chance: random.Random) -> dict[str, Any]:
    return {
        "id": chance.randrange(-(2**40), 2**40),
        "ts": chance.choice([None, datetime.fromtimestamp(chance.randrange(2**30), UTC)]),
        "x": chance.choice([None, "", "é", "a text of some length"]),
        "more": [chance.randrange(100) for _ in range(chance.randrange(4))],
    }


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_values_and_bad_ones(share: float, seed: int) -> None:
    """Cut, longer than they should be, of other bytes, with a heading, or none at all."""
    chance = random.Random(seed)
    values: list[bytes | None] = []
    expected: list[dict[str, Any] | None] = []
    for _ in range(500):
        row = value_of(chance)
        value = encoded(row)
        if chance.random() < 0.1:
            value = b"\0\0\0\0\7" + value
        values.append(value)
        expected.append(row)
        if chance.random() < share:
            kind = chance.randrange(4)
            values[-1] = [encoded(row)[:-2], encoded(row) + b"\x01\x02", b"\xff\xff", None][kind]
            expected[-1] = [None, row, None, {}][kind]
    table = read_values(values, WANTED, TEXT)
    for name in WANTED.names:
        wanted = [None if row is None else row.get(name) for row in expected]
        assert table.column(name).to_pylist() == wanted
    bad = [v.hex() if row is None and v else None for v, row in zip(values, expected, strict=True)]
    if any(bad):
        assert table.column(CORRUPT).to_pylist() == bad
    else:
        assert table.column_names == WANTED.names


@pytest.mark.parametrize("unit", ["millis", "micros"])
@pytest.mark.parametrize("may_be_null", [False, True], ids=["time", "time or NULL"])
def test_times(unit: str, may_be_null: bool) -> None:
    """Of a schema whose times have another unit than the column, and of one that has none."""
    kind: Any = {"type": "long", "logicalType": f"timestamp-{unit}"}
    field = {"name": "ts", "type": ["null", kind] if may_be_null else kind}
    schema = {"type": "record", "name": "T", "fields": [field]}
    times = [datetime(2026, 1, 1, 0, 0, n, 5_000, UTC) for n in range(3)]
    values = []
    for at in times:
        file = io.BytesIO()
        fastavro.schemaless_writer(file, fastavro.parse_schema(schema), {"ts": at})
        values.append(file.getvalue())
    wanted = pa.schema([("ts", pa.timestamp("us", "UTC"))])
    assert read_values(values, wanted, json.dumps(schema)).column("ts").to_pylist() == times
    plain = pa.schema([("ts", pa.int64())])
    bare = {"type": "record", "name": "T", "fields": [{"name": "ts", "type": "long"}]}
    if not may_be_null:
        found = read_values(values, plain, json.dumps(bare)).column("ts").to_pylist()
        assert found == [int(at.timestamp() * (1e3 if unit == "millis" else 1e6)) for at in times]


def test_a_first_field_that_is_zero_is_no_heading() -> None:
    rows = [{"id": n % 3, "ts": None, "x": f"text {n}", "more": [n]} for n in range(300)]
    values = [encoded(row) for row in rows]
    assert read_values(values, WANTED, TEXT).column("x").to_pylist() == [r["x"] for r in rows]
    headed = [b"\0\0\0\1\2" + value for value in values]
    found = read_values(headed, WANTED, TEXT)
    assert found.to_pydict() == read_values(values, WANTED, TEXT).to_pydict()


def test_mistakes() -> None:
    with pytest.raises(OptionError, match="avroSchema is missing"):
        read_values([], WANTED, None)
    with pytest.raises(OptionError, match="avroSchema is not a schema of Avro"):
        read_values([], WANTED, "{")
    with pytest.raises(OptionError, match="not that of a record"):
        read_values([], WANTED, '"string"')
    other = pa.schema([("x", pa.int64())])
    row: dict[str, Any] = {"id": 1, "ts": None, "x": "a", "more": []}
    with pytest.raises(InputError, match="values do not fit the schema"):
        read_values([encoded(row)], other, TEXT)
    assert len(read_values([], WANTED, TEXT)) == 0
