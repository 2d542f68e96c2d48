"""Windows, freshness, event time, static relations: what FROM makes of a stream."""

from __future__ import annotations

import pyarrow as pa
import pytest
from query_schemas import NARROW, SCHEMAS, WIDE, accept, pointed_at, refuse

from penstock.errors import OptionError, QueryError
from penstock.query import parse
from penstock.query.window import Range, Rows, Static, Unbounded, Window

MINUTE = 60_000


@pytest.mark.parametrize(
    ("written", "window"),
    [
        ("[RANGE 5 MINUTES]", Range(5 * MINUTE)),
        ("[range 5 minute]", Range(5 * MINUTE)),
        ("[ RANGE 5 MIN ]", Range(5 * MINUTE)),
        ("[RANGE 1 MILLISECOND]", Range(1)),
        ("[RANGE 250 MS]", Range(250)),
        ("[RANGE 1.5 SECONDS]", Range(1_500)),
        ("[RANGE 90 SEC]", Range(90_000)),
        ("[RANGE 0.5 HOURS]", Range(30 * MINUTE)),
        ("[RANGE 2 DAYS]", Range(2 * 24 * 60 * MINUTE)),
        ("[RANGE 1 WEEK]", Range(7 * 24 * 60 * MINUTE)),
        ("[RANGE 2000 MICROSECONDS]", Range(2)),
        ("[RANGE 5MINUTES]", Range(5 * MINUTE)),
        ("[NOW]", Range(0)),
        ("[now]", Range(0)),
        ("[UNBOUNDED]", Unbounded()),
        ("[RANGE UNBOUNDED]", Unbounded()),
        ("[ROWS UNBOUNDED]", Unbounded()),
        ("[ROWS 1]", Rows(1)),
        ("[ROWS 1000000]", Rows(1_000_000)),
        ("[ROW 1]", Rows(1)),
        ("[PARTITION BY x ROWS 3]", Rows(3, ("x",))),
        ("[partition by X, s rows 3]", Rows(3, ("x", "s"))),
        ('[PARTITION BY "x", x ROWS 3]', Rows(3, ("x",))),
        ("/* first */ [ -- inside\n RANGE 5 MINUTES ]", Range(5 * MINUTE)),
    ],
)
def test_window(written: str, window: Window) -> None:
    (stream,) = accept(f"SELECT A.x FROM A {written}").streams
    assert stream.window == window
    assert stream.event_time == "ts"


@pytest.mark.parametrize(
    "written",
    [
        "A [RANGE 5 MINUTES] AS a",
        "A [RANGE 5 MINUTES] a",
        "A AS a [RANGE 5 MINUTES]",
        "A a [RANGE 5 MINUTES]",
        'A AS "a" [RANGE 5 MINUTES]',
        "`A` [RANGE 5 MINUTES] AS `a`",
    ],
)
def test_alias_on_either_side_of_the_window(written: str) -> None:
    (stream,) = accept(f"SELECT a.x FROM {written}").streams
    assert (stream.alias, stream.source, stream.window) == ("a", "A", Range(5 * MINUTE))


@pytest.mark.parametrize(
    ("written", "milliseconds"),
    [
        ("A [RANGE 5 MINUTES] FRESHNESS 12 MINUTES", 12 * MINUTE),
        ("A [RANGE 5 MINUTES] FRESHNESS 5 MINUTES", 5 * MINUTE),
        ("A [RANGE 5 MINUTES] AS a FRESHNESS 0.5 HOURS", 30 * MINUTE),
        ("A [RANGE 5 MINUTES] freshness 400 seconds a", 400_000),
        ("A AS a FRESHNESS 6 MIN [RANGE 5 MINUTES]", 6 * MINUTE),
        ("A [NOW] FRESHNESS 1 MS", 1),
        ("A [RANGE 5 MINUTES]", None),
    ],
)
def test_freshness(written: str, milliseconds: int | None) -> None:
    (stream,) = accept(f"SELECT x FROM {written}").streams
    assert stream.freshness == milliseconds


@pytest.mark.parametrize(
    ("written", "place", "says"),
    [
        ("A [RANGE 5]", "]", "unit of time"),
        ("A [RANGE 5 PARSECS]", "PARSECS", "unknown unit"),
        ("A [RANGE 1 MONTH]", "MONTH", "no fixed length"),
        ("A [RANGE MINUTES]", "MINUTES", "a length of time after RANGE"),
        ("A [RANGE 0 MINUTES]", "0 MINUTES", "longer than zero"),
        ("A [RANGE -5 MINUTES]", "-", "no sign"),
        ("A [RANGE 1.5 MS]", "1.5 MS", "whole number of milliseconds"),
        ("A [RANGE 1e3 MS]", "1e3", "plain number"),
        ("A [RANGE 900 YEARS]", "YEARS", "no fixed length"),
        ("A [RANGE 200000 DAYS]", "200000 DAYS", "longer than 285 years"),
        ("A [RANGE 99999999999999999999 DAYS]", "99999999999999999999", "plain number"),
        ("A [RANGE 5 MINUTES", "", "']'"),
        ("A [RANGE 5 MINUTES AS a", "AS", "']'"),
        ("A [RANGE 5 MINUTES SLIDE 1 MINUTE]", "SLIDE", "SLIDE"),
        ("A RANGE 5 MINUTES]", "RANGE", "found 'RANGE'"),
        ("A []", "]", "expected a window"),
        ("A [5 MINUTES]", "5", "expected a window"),
        ("A [ROWS 0]", "0", "holds nothing"),
        ("A [ROWS -1]", "-", "no sign"),
        ("A [ROWS 2.5]", "2.5", "whole number"),
        ("A [ROWS]", "]", "a number of rows"),
        ("A [ROWS 99999999999999999999999]", "99999999999999999999999", "too many"),
        ("A [PARTITION x ROWS 1]", "x", "BY after PARTITION"),
        ("A [PARTITION BY x]", "]", "ROWS"),
        ("A [PARTITION BY x RANGE 5 MINUTES]", "RANGE", "ROWS"),
        ("A [PARTITION BY A.x ROWS 5]", ".", "stream itself"),
        ("A [PARTITION BY nope ROWS 5]", "nope", "no column nope"),
        ("A [PARTITION BY tags ROWS 5]", "tags", "compared"),
        ("A [NOW] [NOW]", "[", "two windows"),
        ("A [NOW] AS a AS b", "AS", "two aliases"),
        ("A [NOW] FRESHNESS 1 MS FRESHNESS 2 MS", "FRESHNESS", "two FRESHNESS"),
        ("A [RANGE 5 MIN] FRESHNESS 4 MIN", "FRESHNESS 4 MIN", "shorter than its window"),
        ("A [ROWS 5] FRESHNESS 4 MIN", "FRESHNESS 4 MIN", "RANGE windows"),
        ("A [UNBOUNDED] FRESHNESS 4 MIN", "FRESHNESS 4 MIN", "RANGE windows"),
        ("A [NOW] FRESHNESS", "", "length of time after FRESHNESS"),
        ("A", "A", "A has no window"),
        ("A AS a", "A AS a", "a has no window"),
        ("D [RANGE 5 MINUTES]", "[RANGE 5 MINUTES]", "D has k, name"),
        ("D [NOW]", "[NOW]", "event-time column"),
        ("D [ROWS 5]", "[ROWS 5]", "arrival"),
        ("Queue [UNBOUNDED]", "[UNBOUNDED]", "event-time column"),
        ("Nope [NOW]", "Nope", "streams are A, B, C, D, Clicks, Queue"),
    ],
)
def test_refused_window(written: str, place: str, says: str) -> None:
    error = refuse(f"SELECT 1 AS one FROM {written}")
    assert says in error.message
    assert pointed_at(error) == place


def test_the_two_time_lines_are_not_mixed() -> None:
    error = refuse("SELECT A.x FROM A [NOW], B [UNBOUNDED], C [ROWS 5] WHERE A.x = B.x AND A.x=C.x")
    assert pointed_at(error) == "[ROWS 5]"
    assert "[ROWS 5] on C cannot stand beside [NOW] on A" in error.message
    assert not accept("SELECT A.x FROM A [NOW], B [UNBOUNDED] WHERE A.x = B.x").by_rows
    assert accept("SELECT A.x FROM A [UNBOUNDED], B [ROWS 1] WHERE A.x = B.x").by_rows


def test_the_two_time_lines_are_not_mixed_across_except() -> None:
    error = refuse("SELECT x FROM A [ROWS 5] EXCEPT SELECT x FROM B [RANGE 5 SECONDS]")
    assert pointed_at(error) == "[RANGE 5 SECONDS]"


def test_static_relation() -> None:
    graph = accept("SELECT D.name FROM A [NOW], D WHERE A.x = D.k")
    assert graph.stream("D").window == Static()
    assert graph.stream("D").event_time is None
    assert not graph.stream("A").is_static


def test_rows_need_only_an_arrival_column() -> None:
    graph = accept("SELECT q.k FROM Queue [ROWS 5] q, Queue [UNBOUNDED] r WHERE q.k = r.k")
    assert [s.event_time for s in graph.streams] == [None, None]


def test_event_time_by_stream() -> None:
    schemas = {"A": WIDE, "B": NARROW}
    graph = parse("SELECT A.x FROM A [NOW], B WHERE A.x = B.x", schemas, {"A": "zoned", "B": None})
    assert graph.stream("A").event_time == "zoned"
    assert graph.stream("B").is_static
    assert parse("SELECT x FROM B", schemas, {"A": "ts"}).stream("B").is_static
    with pytest.raises(QueryError, match="needs an event-time column"):
        parse("SELECT x FROM B [NOW]", schemas, {"A": "ts"})


@pytest.mark.parametrize(
    ("kinds", "unit"),
    [
        ((pa.int64(),), "ms"),
        ((pa.uint8(),), "ms"),
        ((pa.timestamp("s"),), "ms"),
        ((pa.timestamp("s"), pa.timestamp("us", tz="UTC")), "us"),
        ((pa.timestamp("ns"), pa.int32()), "ns"),
    ],
)
def test_time_unit_is_the_finest(kinds: tuple[pa.DataType, ...], unit: str) -> None:
    schemas = {f"S{i}": pa.schema([("x", pa.int64()), ("ts", k)]) for i, k in enumerate(kinds)}
    # the finest may also stand after EXCEPT
    query = " EXCEPT ".join(f"SELECT x FROM {name} [NOW]" for name in schemas)
    graph = parse(query, schemas)
    assert [block.time_unit for block in graph.blocks] == [unit] * len(kinds)


@pytest.mark.parametrize("kind", [pa.string(), pa.float64(), pa.date32(), pa.bool_()])
def test_event_time_is_a_timestamp_or_an_integer(kind: pa.DataType) -> None:
    with pytest.raises(QueryError, match=f"the event time ts of S is {kind}".replace("[", r"\[")):
        parse("SELECT ts FROM S [NOW]", {"S": pa.schema([("ts", kind)])})


@pytest.mark.parametrize(
    ("schemas", "event_time", "says"),
    [
        ([WIDE], "ts", "schemas is of type list"),
        ({"A": ["x"]}, "ts", "the schema of A is of type list"),
        ({1: WIDE}, "ts", "a name in schemas is 1"),
        ({"A": WIDE}, 5, "event_time is of type int"),
        ({"A": WIDE}, {"B": "ts"}, "event_time names 'B'"),
        ({"A": WIDE}, {"A": "time"}, "'time' for A, which has no such column"),
        ({"A": pa.schema([("x", pa.int8()), ("x", pa.int8())])}, "ts", "has x twice"),
    ],
)
def test_wrong_options(schemas: object, event_time: object, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        parse("SELECT x FROM A [NOW]", schemas, event_time)  # type: ignore[arg-type]


def test_the_query_is_a_string() -> None:
    with pytest.raises(OptionError, match="of type bytes"):
        parse(b"SELECT x FROM A [NOW]", SCHEMAS)  # type: ignore[arg-type]
