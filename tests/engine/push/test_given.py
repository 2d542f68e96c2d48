"""Data as people have it: pandas and polars frames, lists of dicts, types that are nearly right."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import InputError, OptionError

pandas = pytest.importorskip("pandas")

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("price", pa.decimal128(10, 2)),
        ("name", pa.string()),
        ("ts", pa.timestamp("ms")),
    ]
)
TEXT = """SELECT A.id, A.price, B.name FROM A [RANGE 1 MINUTE], B [RANGE 1 MINUTE]
          WHERE A.id = B.id"""
MOMENT = datetime.datetime(2026, 1, 1, 12, 0, 0, 250_000)
ROWS: list[dict[str, Any]] = [
    {"id": 1, "price": Decimal("9.50"), "name": "one", "ts": MOMENT},
    {"id": 2, "price": None, "name": "two", "ts": MOMENT},
    {"id": None, "price": Decimal("1.00"), "name": None, "ts": MOMENT},
]
ANSWER = [
    {"id": 1, "price": Decimal("9.50"), "name": "one"},
    {"id": 2, "price": None, "name": "two"},
]


def query() -> penstock.JoinGraph:
    return penstock.parse(TEXT, {"A": SCHEMA, "B": SCHEMA})


def as_frame() -> Any:
    """pandas counts nanoseconds and has doubles where an integer is missing."""
    frame = pandas.DataFrame(ROWS)
    assert frame["id"].dtype == "float64"
    return frame


class Speaking:
    """Something else that speaks Arrow's interface."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def nearly() -> pa.Table:
    table = pa.Table.from_pylist(ROWS, SCHEMA)
    kinds = [pa.int16(), pa.decimal128(5, 3), pa.large_string(), pa.timestamp("us")]
    return table.cast(pa.schema(list(zip(SCHEMA.names, kinds, strict=True))))


@pytest.mark.parametrize("execution", ["auto", "reference"])
@pytest.mark.parametrize(
    "given",
    [
        pytest.param(lambda: ROWS, id="dicts"),
        pytest.param(as_frame, id="pandas"),
        pytest.param(nearly, id="other types"),
        pytest.param(lambda: nearly().to_batches()[0], id="batch"),
        pytest.param(lambda: Speaking(nearly()), id="interface"),
    ],
)
def test_nothing_is_lost(given: Any, execution: Any) -> None:
    engine = penstock.Engine(query(), execution=execution)
    plain = pa.Table.from_pylist(ROWS, SCHEMA)
    assert engine.push({"A": given()}).num_rows == 0
    assert sorted(engine.push({"B": given()}).to_pylist(), key=lambda r: r["id"]) == ANSWER
    again = engine.push({"A": plain})  # and the declared types still go
    assert sorted(again.to_pylist(), key=lambda r: r["id"]) == ANSWER


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(ROWS, schema_overrides={"price": polars.Decimal(10, 2)})
    for graph in (query(), penstock.parse(TEXT, {"A": frame, "B": SCHEMA})):
        engine = penstock.Engine(graph)
        engine.push({"A": frame})
        answer = engine.push({"B": ROWS})
        assert sorted(answer.to_pylist(), key=lambda r: r["id"]) == ANSWER
        assert len(polars.from_arrow(answer)) == len(ANSWER)
    with pytest.raises(InputError, match="is of type LazyFrame; collect"):
        engine.push({"A": frame.lazy()})


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        ("id", pa.array([1.5]), r"it with that loss: table\['id'\].cast\('int64', safe=False\)"),
        ("id", pa.array(["1"]), r"given int64; convert it first: table\['id'\].cast\('int64'\)"),
        ("price", pa.array([Decimal("1.005")]), r"cast\(pyarrow.decimal128\(10, 2\), safe=Fal"),
        ("price", pa.array([[1]]), r"given decimal128\(10, 2\)$"),
        ("price", pa.array([1.5]), "of type double; the query was given decimal128"),
        ("ts", pa.array([1], pa.timestamp("us")), "not every value can be had in it"),
        ("ts", pa.array([1], pa.timestamp("ms", "UTC")), "the batch has a time zone"),
        ("ts", pa.array(["2026-01-01"]), "parse it first"),
    ],
)
def test_what_would_be_lost_is_refused(column: str, values: pa.Array, says: str) -> None:
    engine = penstock.Engine(query())
    good = pa.Table.from_pylist(ROWS[:1], SCHEMA)
    bad = good.set_column(SCHEMA.get_field_index(column), column, values)
    with pytest.raises(InputError, match=says):
        engine.push({"A": bad})
    engine.push({"A": good})
    assert len(engine.push({"B": good})) == 1


def test_a_value_of_a_dict_that_does_not_fit() -> None:
    engine = penstock.Engine(query())
    with pytest.raises(InputError, match="'id' of A is no int64"):
        engine.push({"A": [{"id": "one", "price": None, "name": "", "ts": MOMENT}]})
    with pytest.raises(InputError, match=r"is no timestamp.*event_time_format"):
        engine.push({"A": [{"id": 1, "price": None, "name": "", "ts": "2026-01-01"}]})
    with pytest.raises(InputError, match="has no column 'id'"):
        engine.push({"A": [{"price": None, "name": "", "ts": MOMENT}]})
    assert engine.push({"A": []}).num_rows == 0


def test_a_dict_of_columns() -> None:
    engine = penstock.Engine(query())
    columns = {key: [row[key] for row in ROWS] for key in ROWS[0]}
    engine.push({"A": columns})
    assert sorted(engine.push({"B": ROWS}).to_pylist(), key=lambda r: r["id"]) == ANSWER
    for one in (ROWS[0], columns | {"id": [1]}, columns | {"name": "abc"}):
        with pytest.raises(InputError, match="is a dict, and its values are no lists of one len"):
            engine.push({"A": one})


@pytest.mark.parametrize(
    ("batches", "says"),
    [
        (as_frame(), "push takes a dict of stream name to batch, such as {'A': batch}; found Data"),
        ({"A": [(1, 2)]}, "is a list with a value of type tuple; give a pyarrow Table"),
        ({"A": [ROWS[0], None]}, "is a list with a value of type NoneType"),
        ({"A": 3}, "is of type int; give"),
    ],
)
def test_what_is_no_batch_is_refused(batches: Any, says: str) -> None:
    engine = penstock.Engine(query())
    for _ in range(2):  # Before and after batches have been converted.
        with pytest.raises(InputError, match=says):
            engine.push(batches)
        engine.push({"A": ROWS})


def test_schemas_from_data() -> None:
    graph = penstock.parse(TEXT, {"A": ROWS, "B": as_frame()})
    assert [s.schema.field("name").type for s in graph.streams] == [pa.string(), pa.string()]
    assert penstock.parse(TEXT, {"A": SCHEMA, "B": nearly()}).streams[1].schema == nearly().schema
    with pytest.raises(
        OptionError, match=r"the schema of B is of type list; .* list of dicts with"
    ):
        penstock.parse(TEXT, {"A": SCHEMA, "B": []})
    with pytest.raises(OptionError, match="'name' of B has no value that tells its type"):
        penstock.parse(TEXT, {"A": SCHEMA, "B": [{"id": 1, "price": 1, "name": None, "ts": 0}]})


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int64(), 1.5),
        (pa.int32(), Decimal("1.5")),
        (pa.timestamp("ms"), datetime.datetime(2026, 1, 1, 1, 2, 3, 123_456)),
        (pa.date32(), datetime.datetime(2026, 1, 1, 1)),
        (pa.duration("s"), datetime.timedelta(milliseconds=5)),
        (pa.time32("ms"), datetime.time(1, 2, 3, 123_456)),
    ],
)
@pytest.mark.parametrize("as_columns", [False, True])
def test_values_of_lists_are_not_cut_off(kind: pa.DataType, value: Any, as_columns: bool) -> None:
    """Arrow makes 1 of 1.5 if an integer is asked for, of a table's column it does not."""
    schema = pa.schema([("ts", pa.int64()), ("x", pa.int64()), ("v", kind)])
    text = "SELECT A.v FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE A.x = B.x"
    engine = penstock.Engine(penstock.parse(text, dict.fromkeys("AB", schema)))
    row = {"ts": 0, "x": 1, "v": value}
    given: Any = {name: [each] for name, each in row.items()} if as_columns else [row]
    with pytest.raises(InputError, match=r"column 'v' of A is of type .* cut off; declare 'v' as"):
        engine.push({"A": given})
    whole = {int: 2, float: 2.0, Decimal: Decimal(2)}.get(type(value))
    if whole is not None:
        row = {"ts": 0, "x": 1, "v": whole}
        assert engine.push({"A": [row], "B": [row]}).to_pylist() == [{"v": 2}]
