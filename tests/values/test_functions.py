"""Scalar functions: kernels on columns against the twin on single rows."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from function_texts import TABLE, TEXTS

from penstock.errors import InputError, PenstockError
from penstock.query import parse
from penstock.query.expression import Column, Expression
from penstock.query.functions import FUNCTIONS
from penstock.testing.evaluate_row import evaluate
from penstock.testing.python_values import python_values
from penstock.values.evaluate import compile


def expression_of(text: str, schema: pa.Schema = TABLE.schema) -> Expression:
    ordered = schema.append(pa.field("arrival", pa.int64()))
    graph = parse(f"SELECT {text} AS v FROM T [ROWS 1]", {"T": ordered})
    return graph.select[0].expression


def on_rows(expression: Expression, table: pa.Table) -> list[Any]:
    columns = {name: python_values(table.column(name)) for name in table.column_names}
    rows = [{name: column[i] for name, column in columns.items()} for i in range(len(table))]
    return [evaluate(expression, {"T": row}) for row in rows]


def on_columns(expression: Expression, table: pa.Table) -> pa.Array:
    def column(wanted: Column) -> pa.Array:
        return table.column(wanted.name).combine_chunks()

    return compile(expression)(column, len(table))


def close(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (left != left and right != right) or math.isclose(left, right)
    return type(left) is type(right) and bool(left == right)


@pytest.mark.parametrize("text", TEXTS)
def test_columns_and_rows_agree(text: str) -> None:
    expression = expression_of(text)
    wanted: list[Any] = []
    for i in range(len(TABLE)):
        row = TABLE.slice(i, 1)
        try:
            wanted += on_rows(expression, row)
        except (PenstockError, ArithmeticError):
            with pytest.raises(InputError):
                on_columns(expression, row)
            wanted.append(None)
            continue
        found = on_columns(expression, row)
        assert found.type == expression.type
        assert close(python_values(found)[0], wanted[-1]), (row.to_pylist(), wanted[-1])
    good = [i for i in range(len(TABLE)) if not _fails(expression, TABLE.slice(i, 1))]
    together = python_values(on_columns(expression, TABLE.take(good)))
    assert all(close(a, wanted[i]) for a, i in zip(together, good, strict=True)), together


def _fails(expression: Expression, row: pa.Table) -> bool:
    try:
        on_columns(expression, row)
    except InputError:
        return True
    return False


def test_every_function_is_tried() -> None:
    written = " ".join(TEXTS).upper()
    by_expressions = {"ABS", "COALESCE", "LENGTH", "LOWER", "UPPER"}  # test_evaluate.py
    by_extract = {"DAY", "MONTH", "YEAR", "QUARTER", "WEEK", "DAYOFWEEK", "DAYOFYEAR"}
    untried = {name for name in FUNCTIONS if f"{name}(" not in written}
    assert untried <= by_expressions | by_extract


def test_a_branch_that_is_not_taken_cannot_fail() -> None:
    table = pa.table({"a": pa.array([1, 0, 2]), "b": pa.array([4, 5, 6])})
    expression = expression_of("CASE WHEN a <> 0 THEN b % a ELSE -1 END", table.schema)
    assert on_columns(expression, table).to_pylist() == [0, -1, 0]
    with pytest.raises(InputError, match="division by zero"):
        on_columns(expression_of("CASE WHEN a = 0 THEN b % a END", table.schema), table)


def test_fields_of_structs() -> None:
    kind = pa.struct([("id", pa.int64()), ("at", pa.struct([("city", pa.string())]))])
    values = [{"id": 1, "at": {"city": "Graz"}}, None, {"id": None, "at": None}]
    table = pa.table({"who": pa.array(values, kind)})
    assert on_columns(expression_of("T.who.id", table.schema), table).to_pylist() == [1, None, None]
    for text in ("who.at.city", "T.who.at.city", "WHO.AT.CITY"):
        city = expression_of(text, table.schema)
        assert on_columns(city, table).to_pylist() == ["Graz", None, None]
        assert on_rows(city, table) == ["Graz", None, None]
