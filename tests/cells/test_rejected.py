"""Rows without a place on the time line: which they are, why, and what they were."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.cells.rejected import set_aside
from penstock.query.unreadable import CORRUPT

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), (CORRUPT, pa.string())])


def batch(rows: list[tuple[int | None, int | None, str | None]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    arrays = [pa.array(c, t) for c, t in zip(columns, SCHEMA.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def test_nothing_is_rejected_of_rows_that_were_read() -> None:
    rows = batch([(1, 5, None), (None, 6, None), (2, 7, "half read")])
    assert set_aside(rows, "ts", ["id", "ts"], True) is None


def test_each_row_with_its_reason_and_its_text() -> None:
    rows = [(1, 5, None), (None, None, "{oops"), (7, None, None), (8, None, "{8,")]
    found = set_aside(batch(rows), "ts", ["id", "ts"], True)
    assert found is not None
    assert found[0].column("id").to_pylist() == [1]
    assert [tuple(row.values()) for row in found[1].to_pylist()] == [
        ("unreadable", "{oops", 1),
        ("no event time", '{"id": 7, "ts": null}', 1),
        ("unreadable", "{8,", 1),
    ]


def test_an_event_time_from_elsewhere_does_not_make_a_row_readable() -> None:
    """As Kafka's own timestamp, beside a value that is no JSON."""
    found = set_aside(batch([(None, 5, "hello"), (3, 6, None)]), "ts", ["id"], False)
    assert found is not None
    assert found[1].to_pylist() == [{"reason": "unreadable", "value": None, "count": 1}]


values = st.one_of(st.none(), st.integers(0, 9))


@given(st.lists(st.tuples(values, values, st.one_of(st.none(), st.just("text")))), st.booleans())
def test_every_row_is_accounted_for(
    rows: list[tuple[int | None, int | None, str | None]], wanted: bool
) -> None:
    found = set_aside(batch(rows), "ts", ["id", "ts"], wanted)
    expected = [row for row in rows if row[1] is None]
    kept = rows if found is None else list(zip(*found[0].to_pydict().values(), strict=True))
    assert [row for row in rows if row[1] is not None] == kept
    counts = [] if found is None else found[1].column("count").to_pylist()
    assert sum(counts) == len(expected)
