"""Scalar functions mean what they mean in Spark SQL: both are asked, on a table of odd values."""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.errors import InputError
from penstock.query import parse
from penstock.query.expression import Column
from penstock.values.evaluate import compile

sys.path.append(str(Path(__file__).parents[1] / "values"))
from function_texts import TABLE, TEXTS


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, int | float | Decimal):
        number = float(right)
        return left == number or (left != left and number != number) or math.isclose(left, number)
    if isinstance(left, Decimal) and isinstance(right, float):
        return math.isclose(left, right)
    return bool(left == right)


def test_functions_give_what_spark_gives(spark: SparkSession) -> None:
    frame = spark.createDataFrame(TABLE)
    schema = TABLE.schema.append(pa.field("arrival", pa.int64()))
    different: list[str] = []
    for text in TEXTS:
        graph = parse(f"SELECT {text} AS v FROM T [ROWS 1]", {"T": schema})
        value = compile(graph.select[0].expression)

        def column(wanted: Column) -> Any:
            return TABLE.column(wanted.name).combine_chunks()

        try:
            ours = value(column, len(TABLE)).to_pylist()
        except InputError as error:
            pytest.fail(f"{text}: {error}")
        theirs = frame.selectExpr(f"{text} AS v").toArrow().column("v").to_pylist()
        wrong = [(a, b) for a, b in zip(ours, theirs, strict=True) if not _same(a, b)]
        if wrong:
            different.append(f"{text}: {wrong}")
    assert not different, "\n".join(different)
