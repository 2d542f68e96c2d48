"""Expressions of the language, and a table of odd values to try them on."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa

UTC = datetime.UTC
_NAN, _INFINITY = float("nan"), float("inf")

TABLE = pa.table(
    {
        "n": pa.array([None, 0, 1, -7, 25, -25, 12_345, 2**53 + 1, -(2**40), 15], pa.int64()),
        "m": pa.array([3, None, -2, 7, 0, 4, 10, 1, 1, -3], pa.int64()),
        "x": pa.array(
            [None, -0.0, 0.5, -2.5, 2.675, 1e300, _NAN, _INFINITY, -1.005, 1234.5], pa.float64()
        ),
        "y": pa.array([1.5, 0.0, None, 2.0, _NAN, -1.0, 3.0, 0.25, -_INFINITY, 1e-300]),
        "d": pa.array(
            [
                None,
                *map(
                    Decimal,
                    ["0.00", "9.99", "-9.95", "1.25", "-1.25", "99999.99", "0.05", "-0.05", "7.00"],
                ),
            ],
            pa.decimal128(7, 2),
        ),
        "s": pa.array([None, "", " ab ", "banana", "Ünïcode", "a%b", "äöü", "aa", "x  ", "日本語"]),
        "t": pa.array(["a", None, "b", "", "an", "z", "ö", "aaa", "  ", "本"]),
        "flag": pa.array([True, None, False, True, False, None, True, False, True, False]),
        "at": pa.array(
            [
                None,
                datetime.datetime(1970, 1, 1, tzinfo=UTC),
                datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
                datetime.datetime(2024, 2, 29, 12, 34, 56, 789_012, tzinfo=UTC),
                datetime.datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
                datetime.datetime(2020, 12, 31, 6, 7, 8, tzinfo=UTC),
                datetime.datetime(1601, 5, 17, 3, 2, 1, 500_000, tzinfo=UTC),
                datetime.datetime(2021, 1, 3, 23, 0, tzinfo=UTC),
                datetime.datetime(2023, 4, 1, 0, 30, tzinfo=UTC),
                datetime.datetime(2027, 10, 10, 10, 10, 10, 100, tzinfo=UTC),
            ],
            pa.timestamp("us", tz="UTC"),
        ),
        "day": pa.array(
            [
                datetime.date(2024, 12, 30),
                None,
                datetime.date(1969, 12, 31),
                datetime.date(2021, 1, 3),
                datetime.date(2000, 2, 29),
                datetime.date(1900, 3, 1),
                datetime.date(2026, 11, 17),
                datetime.date(2023, 7, 1),
                datetime.date(2016, 1, 3),
                datetime.date(1970, 1, 1),
            ],
            pa.date32(),
        ),
    }
)

_UNITS = (
    "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND",
    "MICROSECOND",
)  # fmt: skip
_PARTS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOW", "DOY", "DAYOFWEEK")

TEXTS = (
    "CASE WHEN n > 0 THEN 'plus' WHEN n < 0 THEN 'minus' END",
    "CASE n WHEN 1 THEN x WHEN 25 THEN y ELSE n END",
    "CASE WHEN m <> 0 THEN n % m ELSE -1 END",
    "CASE WHEN m = 0 THEN NULL WHEN 100 / m > 10 THEN d ELSE m END",
    "IF(flag, s, t)",
    "NULLIF(s, t)",
    "NULLIF(x, y)",
    "NVL(n, m)",
    "IFNULL(s, 'none')",
    "GREATEST(n, m)",
    "LEAST(n, m)",
    "GREATEST(x, y)",
    "LEAST(x, y)",
    "GREATEST(s, t, 'b')",
    "LEAST(s, t)",
    "GREATEST(d, 1.5)",
    "GREATEST(flag, n > 0)",
    "GREATEST(at, TIMESTAMP '2000-01-01 00:00:00Z')",
    "s || t",
    "s || '-' || n || '-' || flag || '-' || d || day",
    "CONCAT(s, t, 'x')",
    "SUBSTRING(s, 2)",
    "SUBSTRING(s, 2, 3)",
    "SUBSTRING(s, 0, 2)",
    "SUBSTRING(s, -2)",
    "SUBSTRING(s, -5, 3)",
    "SUBSTRING(s, -9, 2)",
    "SUBSTRING(s, 1, 0)",
    "SUBSTR(s, 3, -1)",
    "LEFT(s, 2)",
    "RIGHT(s, 2)",
    "RIGHT(s, 0)",
    "TRIM(s)",
    "LTRIM(s)",
    "RTRIM(s)",
    "REPLACE(s, 'an', 'AN')",
    "REPLACE(s, 'a')",
    "REPLACE(s, '', 'x')",
    "STARTSWITH(s, 'a')",
    "ENDSWITH(s, 'a')",
    "CONTAINS(s, 'an')",
    "CHAR_LENGTH(s)",
    "FLOOR(CASE WHEN x BETWEEN -1e9 AND 1e9 THEN x END)",
    "CEIL(CASE WHEN x BETWEEN -1e9 AND 1e9 THEN x END)",
    "FLOOR(d)",
    "CEIL(d)",
    "CEILING(n)",
    "ROUND(x)",
    "ROUND(x, 2)",
    "ROUND(x, -2)",
    "ROUND(d)",
    "ROUND(d, 1)",
    "ROUND(d, 5)",
    "ROUND(d, -1)",
    "ROUND(d, -6)",
    "ROUND(n)",
    "ROUND(n, -1)",
    "ROUND(n, -3)",
    "SQRT(x)",
    "EXP(y)",
    "LN(x)",
    "LOG10(y)",
    "POWER(x, 2)",
    "POW(n, y)",
    "SIGN(x)",
    "SIGN(d)",
    "MOD(n, 4)",
    *(f"DATE_TRUNC('{unit}', at)" for unit in _UNITS),
    "DATE_TRUNC('month', at)",
    *(f"EXTRACT({part} FROM at)" for part in (*_PARTS, "HOUR", "MINUTE", "SECOND")),
    *(f"EXTRACT({part} FROM day)" for part in _PARTS),
    "DAYOFYEAR(day)",
    "HOUR(at)",
    "MINUTE(at)",
    "SECOND(at)",
    "WEEKOFYEAR(day)",
    "DAYOFMONTH(at)",
    "at + INTERVAL 90 MINUTES",
)
"""Each has one meaning here and in Spark SQL, up to the width of integers."""
