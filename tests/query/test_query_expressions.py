"""Expressions: what conversions are put in, and what type comes out."""

from __future__ import annotations

import pytest
from query_schemas import accept, refuse

from penstock.query.expression import Constant


@pytest.mark.parametrize(
    ("written", "expression", "kind"),
    [
        # literals
        ("5", "5", "int64"),
        ("-5", "-5", "int64"),
        ("9223372036854775807", "9223372036854775807", "int64"),
        ("-9223372036854775808", "-9223372036854775808", "int64"),
        ("9223372036854775808", "9223372036854775808", "decimal128(19, 0)"),
        ("1.50", "1.50", "decimal128(3, 2)"),
        (".5", "0.5", "decimal128(1, 1)"),
        ("007.0", "7.0", "decimal128(2, 1)"),
        ("1e3", "1000.0", "double"),
        ("'it''s'", "'it''s'", "string"),
        ("TRUE", "TRUE", "bool"),
        ("NULL", "NULL", "null"),
        ("DATE '2026-01-31'", "DATE '2026-01-31'", "date32[day]"),
        ("TIMESTAMP '2026-01-31 12:00'", "TIMESTAMP '2026-01-31 12:00:00'", "timestamp[us]"),
        (
            "TIMESTAMP '2026-01-31T12:00:00+02:00'",
            "TIMESTAMP '2026-01-31 10:00:00+00:00'",
            "timestamp[us, tz=UTC]",
        ),
        ("INTERVAL 5 SECONDS", "INTERVAL 5 SECONDS", "duration[ms]"),
        ("INTERVAL '5' SECOND", "INTERVAL 5 SECONDS", "duration[ms]"),
        ("INTERVAL '1 day 2 hours'", "INTERVAL 26 HOURS", "duration[ms]"),
        ("INTERVAL -1.5 SECONDS", "INTERVAL -1500 MILLISECONDS", "duration[ms]"),
        ("INTERVAL 7 MICROSECONDS", "INTERVAL 7 MICROSECONDS", "duration[us]"),
        # arithmetic
        ("x + y", "(A.x + CAST(A.y AS int64))", "int64"),
        ("y + y", "(CAST(A.y AS int64) + CAST(A.y AS int64))", "int64"),
        ("x + 1 * 2", "(A.x + 2)", "int64"),
        ("(x + 1) * 2", "((A.x + 1) * 2)", "int64"),
        ("7 % 4 + -7 % 4", "0", "int64"),
        ("x % 3", "(A.x % 3)", "int64"),
        ("x / 2", "(CAST(A.x AS double) / 2.0)", "double"),
        ("d / 2", "(CAST(A.d AS double) / 2.0)", "double"),
        ("z * 1.5", "(A.z * 1.5)", "double"),
        ("f + f", "(CAST(A.f AS double) + CAST(A.f AS double))", "double"),
        ("f + x", "(CAST(A.f AS double) + CAST(A.x AS double))", "double"),
        (
            "d + d",
            "(CAST(A.d AS decimal128(11, 2)) + CAST(A.d AS decimal128(11, 2)))",
            "decimal128(11, 2)",
        ),
        ("d * 1.5", "(CAST(A.d AS decimal128(13, 3)) * 1.500)", "decimal128(13, 3)"),
        ("d % 3", "(A.d % 3.00)", "decimal128(10, 2)"),
        ("x * 1.5", "(CAST(A.x AS decimal128(23, 1)) * 1.5)", "decimal128(23, 1)"),
        ("u + 1", "(CAST(A.u AS decimal128(21, 0)) + 1)", "decimal128(21, 0)"),
        ("-y", "-CAST(A.y AS int64)", "int64"),
        ("-d", "-A.d", "decimal128(10, 2)"),
        ("-(-5)", "5", "int64"),
        ("+x", "A.x", "int64"),
        ("x + NULL", "NULL", "int64"),
        # time
        ("ts + INTERVAL 5 SECONDS", "(A.ts + INTERVAL 5 SECONDS)", "timestamp[ms]"),
        ("INTERVAL 5 SECONDS + ts", "(A.ts + INTERVAL 5 SECONDS)", "timestamp[ms]"),
        (
            "ts - INTERVAL 5 US",
            "(CAST(A.ts AS timestamp[us]) - INTERVAL 5 MICROSECONDS)",
            "timestamp[us]",
        ),
        ("ts - ts", "(A.ts - A.ts)", "duration[ms]"),
        ("ts - day", "(A.ts - CAST(A.day AS timestamp[ms]))", "duration[ms]"),
        (
            "day + INTERVAL 1 HOUR",
            "(CAST(A.day AS timestamp[ms]) + INTERVAL 1 HOUR)",
            "timestamp[ms]",
        ),
        ("took + INTERVAL 1 MS", "(A.took + INTERVAL 1 MILLISECOND)", "duration[ms]"),
        ("-took", "-A.took", "duration[ms]"),
        ("INTERVAL 1 HOUR - INTERVAL 1 MINUTE", "INTERVAL 59 MINUTES", "duration[ms]"),
        # casts: none where the type is right already
        ("CAST(x AS BIGINT)", "A.x", "int64"),
        ("CAST(y AS BIGINT)", "CAST(A.y AS int64)", "int64"),
        ("CAST(x AS string)", "CAST(A.x AS string)", "string"),
        ("CAST(x AS DOUBLE PRECISION)", "CAST(A.x AS double)", "double"),
        ("CAST(s AS DECIMAL(12, 3))", "CAST(A.s AS decimal128(12, 3))", "decimal128(12, 3)"),
        ("CAST(s AS DECIMAL)", "CAST(A.s AS decimal128(10, 0))", "decimal128(10, 0)"),
        ("CAST(5 AS DOUBLE)", "5.0", "double"),
        ("CAST(NULL AS INT)", "NULL", "int32"),
        ("CAST(1.5 AS INT)", "CAST(1.5 AS int32)", "int32"),
        # functions
        ("ABS(y)", "ABS(CAST(A.y AS int64))", "int64"),
        ("abs(d)", "ABS(A.d)", "decimal128(10, 2)"),
        ("LENGTH(code)", "LENGTH(CAST(A.code AS string))", "int32"),
        ("LOWER(big)", "LOWER(CAST(A.big AS string))", "string"),
        ("UPPER(s)", "UPPER(A.s)", "string"),
        ("COALESCE(y, 5)", "COALESCE(A.y, 5)", "int32"),
        ("COALESCE(y, x)", "COALESCE(CAST(A.y AS int64), A.x)", "int64"),
        ("COALESCE(NULL, x, NULL)", "A.x", "int64"),
        # comparisons: the constant takes the type of the column where it fits
        ("x = 5", "A.x = 5", "bool"),
        ("y = 5", "A.y = 5", "bool"),
        ("y = 5000000000", "CAST(A.y AS int64) = 5000000000", "bool"),
        ("y < 5.0", "A.y < 5", "bool"),
        ("y < 5.5", "CAST(A.y AS decimal128(11, 1)) < 5.5", "bool"),
        ("u = 5", "A.u = 5", "bool"),
        ("u > -1", "CAST(A.u AS decimal128(20, 0)) > -1", "bool"),
        ("u > x", "CAST(A.u AS decimal128(20, 0)) > CAST(A.x AS decimal128(20, 0))", "bool"),
        ("x = y", "A.x = CAST(A.y AS int64)", "bool"),
        ("x = z", "CAST(A.x AS double) = A.z", "bool"),
        ("f = 0.5", "A.f = 0.5", "bool"),
        ("f = 0.1", "CAST(A.f AS double) = 0.1", "bool"),
        ("f = f", "A.f = A.f", "bool"),
        ("d = 1", "A.d = 1.00", "bool"),
        ("d = 1.005", "CAST(A.d AS decimal128(11, 3)) = 1.005", "bool"),
        ("d = x", "CAST(A.d AS decimal128(22, 2)) = CAST(A.x AS decimal128(22, 2))", "bool"),
        ("s = code", "A.s = CAST(A.code AS string)", "bool"),
        ("big = 'a'", "CAST(A.big AS string) = 'a'", "bool"),
        ("raw = raw", "CAST(A.raw AS binary) = CAST(A.raw AS binary)", "bool"),
        ("day < ts", "CAST(A.day AS timestamp[ms]) < A.ts", "bool"),
        ("ts > DATE '2026-01-31'", "A.ts > TIMESTAMP '2026-01-31 00:00:00'", "bool"),
        ("zoned > TIMESTAMP '2026-01-31T00:00:00Z'", None, "bool"),
        ("ts - ts < INTERVAL 5 SECONDS", "(A.ts - A.ts) < INTERVAL 5 SECONDS", "bool"),
        ("took < INTERVAL 5 SECONDS", "A.took < INTERVAL 5 SECONDS", "bool"),
        ("x != 3", "A.x <> 3", "bool"),
        ("x == 3", "A.x = 3", "bool"),
        ("3 >= x", "3 >= A.x", "bool"),
        ("1 < 2", "TRUE", "bool"),
        ("x = NULL", "NULL", "bool"),
        # logic
        ("flag AND x = 1 AND NOT flag", "(A.flag AND A.x = 1 AND NOT A.flag)", "bool"),
        ("flag OR (x = 1 OR x = 2)", "(A.flag OR A.x = 1 OR A.x = 2)", "bool"),
        ("NOT x = 1", "A.x <> 1", "bool"),
        ("NOT (x < 1 OR flag)", "(A.x >= 1 AND NOT A.flag)", "bool"),
        ("NOT NOT flag", "A.flag", "bool"),
        ("flag OR TRUE", "TRUE", "bool"),
        ("flag OR FALSE", "A.flag", "bool"),
        ("flag AND NULL", "(A.flag AND NULL)", "bool"),
        ("x IN (1, 2)", "(A.x = 1 OR A.x = 2)", "bool"),
        ("x IN (y)", "A.x = CAST(A.y AS int64)", "bool"),
        ("x NOT IN (1, 2)", "(A.x <> 1 AND A.x <> 2)", "bool"),
        ("x BETWEEN 1 AND y", "(A.x >= 1 AND A.x <= CAST(A.y AS int64))", "bool"),
        ("x NOT BETWEEN 1 AND 2", "(A.x < 1 OR A.x > 2)", "bool"),
        ("tags IS NULL", "A.tags IS NULL", "bool"),
        ("x IS NOT NULL", "NOT A.x IS NULL", "bool"),
        ("code LIKE 'a%'", "CAST(A.code AS string) LIKE 'a%'", "bool"),
        ("s NOT LIKE 'a_'", "NOT A.s LIKE 'a_'", "bool"),
        # names
        ("a.X", "A.x", "int64"),
        ('"A"."x"', "A.x", "int64"),
        ("`x`", "A.x", "int64"),
        ("tags", "A.tags", "list<item: string>"),
    ],
)
def test_expression(written: str, expression: str | None, kind: str) -> None:
    (item,) = accept(f"SELECT {written} AS value FROM A [NOW]").select
    assert expression is None or str(item.expression) == expression
    assert str(item.expression.type) == kind


@pytest.mark.parametrize(
    ("written", "says", "hint"),
    [
        ("x = s", "A.x (int64) and A.s (string) cannot be compared", "CAST"),
        ("5 = s", "5 (int64) and A.s (string) cannot be compared", "CAST"),
        ("day = '2026-01-31'", "cannot be compared", "DATE '"),
        ("ts = '2026-01-31'", "cannot be compared", "TIMESTAMP '"),
        ("ts = 5", "cannot be compared", "CAST"),
        ("ts = zoned", "only one of them has a time zone", "TIMESTAMP_NTZ"),
        ("day = zoned", "a date has no time zone", "CAST"),
        ("tags = tags", "A.tags (list<item: string>) and A.tags", None),
        ("took > 5", "cannot be compared", "INTERVAL"),
        ("flag = 1", "cannot be compared", None),
        ("clock = ts", "cannot be compared", None),
        ("s + 1", "+ is not defined for A.s (string) and 1 (int64)", "CAST"),
        ("ts + 5", "+ is not defined", "INTERVAL"),
        ("ts + ts", "+ is not defined", None),
        ("ts * 2", "* is not defined", "INTERVAL"),
        ("x + INTERVAL 5 SECONDS", "+ is not defined", "own unit"),
        ("ts - zoned", "cannot be subtracted", "TIMESTAMP_NTZ"),
        ("-s", "- is not defined for A.s (string)", None),
        ("x AND flag", "AND needs a condition; A.x (int64) is none", "compare"),
        ("NOT s", "NOT needs a condition", None),
        ("x LIKE 'a'", "LIKE needs a string", "CAST"),
        ("s LIKE code", "LIKE needs a pattern in quotes", None),
        ("ABS(s)", "ABS needs a number", None),
        ("ABS(x, y)", "ABS takes one argument, not 2", None),
        ("LOWER(x)", "LOWER needs a string", "CAST"),
        ("COALESCE(x, s)", "cannot be compared", "CAST"),
        ("COALESCE()", "COALESCE takes an argument or more", None),
        ("UPPER(*)", "UPPER(*) does not exist", None),
        ("FOO(x)", "unknown function FOO; functions are ABS, AVG", None),
        ("UPPR(s)", "unknown function UPPR", "did you mean UPPER?"),
        ("CAST(x AS NOPE)", "unknown type NOPE", "BIGINT"),
        ("CAST(tags AS INT)", "cannot be cast to int32", None),
        ("CAST(x AS DECIMAL(50, 2))", "DECIMAL(50, 2) does not exist", "38"),
        ("CAST(x AS DECIMAL(1, 2, 3))", "precision and a scale", None),
        ("CAST(x AS VARCHAR(10))", "VARCHAR takes no size", None),
        ("1 / 0", "division by zero", None),
        ("9223372036854775807 + 1", "does not fit int64", None),
        ("1e999", "larger than any double", None),
        ("1e", "not a number", None),
        ("12" * 20, "at most 38 digits", None),
        ("0." + "12" * 20, "at most 38 digits", None),
        ("DATE '2026-02-30'", "not a date", "DATE '2026-01-31'"),
        ("TIMESTAMP 'noon'", "not a timestamp", "TIMESTAMP '"),
        ("TIMESTAMP '2026-01-31 00:00:00.1234567'", "six digits", None),
        ("INTERVAL 5 MONTHS", "no fixed length", "DAYS"),
        ("INTERVAL '5 moons' ", "not a length of time", "SECONDS"),
        ("INTERVAL 0.1 US", "whole number of microseconds", None),
        ("q", "unknown column q; columns are A.id", None),
        ("idd", "unknown column idd", "did you mean A.id?"),
        ("A.idd", "A has no column idd; it has id, x", "did you mean id?"),
        ("AA.id", "unknown stream AA; streams in FROM are A", "did you mean A?"),
        ("A.x.y", "A.x is int64, which has no fields", None),
        ("x::INT", "expected FROM, found ':'", None),
        ("x | s", "expected FROM, found '|'", None),
        ("x << 2", "expected an expression, found '<'", None),
        ("x AT TIME ZONE 'UTC'", "AT TIME ZONE", None),
        ("(x, y)", "row values", None),
        ("x IS 3", "expected NULL after IS", None),
        ("s ILIKE 'x'", "ILIKE", "LOWER"),
        ("CASE WHEN x THEN 2 END", "WHEN needs a condition", "x <> 0"),
        ("CASE WHEN x = 1 THEN 2", "expected END, found 'AS'", "CASE WHEN"),
        ("CASE x = 1 THEN 2 END", "expected WHEN, found 'THEN'", "CASE WHEN"),
        ("CASE WHEN x = 1 THEN 2 ELSE s END", "cannot be compared", "CAST"),
        ("DATE_TRUNC('FORTNIGHT', ts)", "no unit 'FORTNIGHT'", "'HOUR'"),
        ("DATE_TRUNC(s, ts)", "a text in quotes as its unit", None),
        ("EXTRACT(MOON FROM ts)", "EXTRACT has no MOON", "YEAR"),
        ("HOUR(x)", "needs a timestamp or a date", "CAST"),
        ("SUBSTRING(s, x)", "a whole number as its position", None),
        ("SUBSTRING(s)", "takes 2 to 3 arguments, not 1", None),
        ("ROUND(x, 99)", "-38 to 38 places", None),
        ("CONCAT(tags)", "needs strings", None),
        ("5 * *", "* stands only alone", None),
        ("[1]", "a window stands in FROM", None),
    ],
)
def test_refused_expression(written: str, says: str, hint: str | None) -> None:
    error = refuse(f"SELECT {written} AS value FROM A [NOW]")
    assert says in error.message
    assert hint is None or hint in (error.hint or "")
    assert error.start is not None
    assert error.end is not None
    assert 7 <= error.start < error.end <= 7 + len(written) + 9


def test_columns_may_be_called_like_words_of_other_dialects() -> None:
    import pyarrow as pa

    from penstock.query import parse

    names = ["timestamp", "date", "key", "value", "offset", "range", "rows", "interval", "istream"]
    names += ["left", "first", "end", "partition", "now", "window", "freshness", "comment"]
    schema = pa.schema([(name, pa.int64()) for name in [*names, "ts"]])
    for name in names:
        graph = parse(f"SELECT {name}, A.{name} AS b FROM A [NOW] WHERE {name} > 5", {"A": schema})
        assert str(graph.select[0].expression) == f"A.{name}"
    reserved = pa.schema([("order", pa.int64()), ("group", pa.int64()), ("ts", pa.int64())])
    graph = parse('SELECT A.order, "group" FROM A [NOW]', {"A": reserved})
    assert graph.schema.names == ["order", "group"]


def test_constants_are_plain_python_values() -> None:
    (item,) = accept("SELECT 5 AS five FROM A [NOW]").select
    assert isinstance(item.expression, Constant)
    assert item.expression.value == 5


def test_a_function_that_is_only_a_little_like_another_gets_no_hint() -> None:
    assert refuse("SELECT CUONT(s) AS value FROM A [NOW]").hint == "did you mean COUNT?"
    assert refuse("SELECT CONVERT_TO(s) AS value FROM A [NOW]").hint is None
    assert refuse("SELECT CORR(s) AS value FROM A [NOW]").hint is None
