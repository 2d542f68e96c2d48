"""Scalar functions mean what they mean in Spark SQL: both are asked, on a table of odd values."""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

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
    schema = TABLE.schema.append(pa.field("arrival", pa.int64()))
    selected = [f"{text} AS v{i}" for i, text in enumerate(TEXTS)]
    graph = parse(f"SELECT {', '.join(selected)} FROM T [ROWS 1]", {"T": schema})
    theirs = spark.createDataFrame(TABLE).selectExpr(*selected).toArrow()

    def column(wanted: Column) -> pa.Array:
        return TABLE.column(wanted.name).combine_chunks()

    different: list[str] = []
    for i, (text, item) in enumerate(zip(TEXTS, graph.select, strict=True)):
        ours = compile(item.expression)(column, len(TABLE)).to_pylist()
        pairs = zip(ours, theirs.column(i).to_pylist(), strict=True)
        wrong = [(a, b) for a, b in pairs if not _same(a, b)]
        if wrong:
            different.append(f"{text}: {wrong}")
    assert not different, "\n".join(different)
