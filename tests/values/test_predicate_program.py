"""Programs of predicates against the evaluator on columns, with which they have to agree."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.kernels import predicate as kernel
from penstock.query.expression import (
    And,
    Arithmetic,
    Cast,
    Column,
    Comparison,
    Constant,
    Expression,
    Function,
    IsNull,
    Like,
    Negative,
    Not,
    Or,
)
from penstock.values.evaluate import compile_filter, conjunction
from penstock.values.predicate_program import program_of

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()]
FLOATS = [pa.float32(), pa.float64()]
TIMES = [pa.timestamp("ms"), pa.timestamp("us", "UTC"), pa.date32(), pa.time64("us")]
OPERATORS = ["=", "<>", "<", "<=", ">", ">="]


def _integers(type_: pa.DataType) -> st.SearchStrategy[int]:
    info = np.iinfo(type_.to_pandas_dtype())
    edges = [0, 1, info.min, info.max, info.max // 2 + 1]
    if info.min < 0:
        edges += [-1, -2, info.min // 2]
    return st.sampled_from(edges) | st.integers(max(info.min, -9), 9)


def _values(type_: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_integer(type_):
        return _integers(type_)
    if pa.types.is_floating(type_):
        edges = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -1.5, 3.0]
        return st.sampled_from(edges) | st.floats(-9, 9, width=16)
    top = 86_399_999_999 if pa.types.is_time(type_) else 9_000
    low = 0 if pa.types.is_time(type_) else -9_000
    return st.integers(low, top) | st.sampled_from([low, 0, top])


def _column(type_: pa.DataType) -> st.SearchStrategy[Expression]:
    return st.sampled_from("AB").map(lambda stream: Column(type_, stream, str(type_)))


def _expressions(type_: pa.DataType) -> st.SearchStrategy[Expression]:
    leaves = _column(type_)
    if not pa.types.is_temporal(type_):
        constants = st.none() | _values(type_)
        leaves |= constants.map(lambda value: Constant(type_, value))
    if pa.types.is_temporal(type_):
        return leaves
    operators = ["+", "-", "*", "%"]
    if pa.types.is_floating(type_):
        operators.append("/")
    if type_ in (pa.int64(), pa.float64()):
        narrow = INTEGERS[:3] if type_ == pa.int64() else [*INTEGERS, pa.float32()]
        narrower = st.sampled_from(narrow)
        leaves |= narrower.flatmap(_column).map(lambda operand: Cast(type_, operand))
    if type_ == pa.int8():
        leaves |= _column(pa.int64()).map(lambda operand: Cast(type_, operand))

    def nodes(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        pair = st.tuples(inner, inner)
        return (
            st.builds(
                lambda operator, operands: Arithmetic(type_, operator, *operands),
                st.sampled_from(operators),
                pair,
            )
            | inner.map(lambda operand: Negative(type_, operand))
            | inner.map(lambda operand: Function(type_, "abs", (operand,)))
            | pair.map(lambda operands: Function(type_, "coalesce", operands))
        )

    return st.recursive(leaves, nodes, max_leaves=4)


def _conditions() -> st.SearchStrategy[Expression]:
    types = st.sampled_from([*INTEGERS, *FLOATS, *FLOATS, *TIMES])
    compared = types.flatmap(lambda t: st.tuples(_expressions(t), _expressions(t)))
    leaves = st.builds(
        lambda operator, operands: Comparison(pa.bool_(), operator, *operands),
        st.sampled_from(OPERATORS),
        compared,
    ) | types.flatmap(_expressions).map(lambda operand: IsNull(pa.bool_(), operand))

    def nodes(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return (
            several.map(lambda operands: And(pa.bool_(), operands))
            | several.map(lambda operands: Or(pa.bool_(), operands))
            | inner.map(lambda operand: Not(pa.bool_(), operand))
        )

    return st.recursive(leaves, nodes, max_leaves=5)


class _Rings:
    """Columns of A and B in rings of 16 rows, and candidates that name rows of both."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.columns: dict[tuple[str, str], pa.Array] = {}
        self.places: dict[tuple[str, str], tuple[int, int, int, int]] = {}
        self._kept: list[Any] = []
        for slot, stream in enumerate("AB"):
            for type_ in (*INTEGERS, *FLOATS, *TIMES):
                self._add(random, slot, stream, type_)
        self.made = random.integers(100, 116, (2, 40))

    def _add(self, random: Any, slot: int, stream: str, type_: pa.DataType) -> None:
        if pa.types.is_integer(type_):
            info = np.iinfo(type_.to_pandas_dtype())
            edges = np.array([0, 1, info.min, info.max, info.min + 1, 2, 3, info.max // 2])
            values = random.choice(edges, 16).astype(type_.to_pandas_dtype())
        elif pa.types.is_floating(type_):
            floats = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -2.25, 3.0]
            values = random.choice(floats, 16).astype(type_.to_pandas_dtype())
        else:
            dtype = np.int32 if type_.bit_width == 32 else np.int64
            values = random.integers(0, 4, 16).astype(dtype)
        valid = random.random(16) < (0.8 if random.random() < 0.5 else 2)
        self._kept += (values, valid)
        flags = 0 if valid.all() else valid.ctypes.data
        self.places[stream, str(type_)] = (values.ctypes.data, 15, slot, flags)
        array = pa.array(values, mask=~valid)
        self.columns[stream, str(type_)] = array.view(type_) if array.type != type_ else array

    def read(self, column: Column, only: int | None = None) -> pa.Array:
        slot = "AB".index(column.stream)
        rows = self.made[slot] & 15
        if only is not None:
            rows = rows[only : only + 1]
        return self.columns[column.stream, column.name].take(pa.array(rows))

    def run(self, expressions: tuple[Expression, ...]) -> tuple[list[int], list[int]]:
        program = program_of(expressions)
        assert program is not None
        code = program.code(lambda column: self.places[column.stream, column.name])
        keep, failed = np.arange(40), np.empty(40, np.int64)
        kept, wrong = kernel.keep_where(
            np.array([0, *code]), 1, len(program.parts), program.depth, self.made, keep, 40, failed
        )
        return keep[:kept].tolist(), sorted(failed[:wrong].tolist())


@given(st.lists(_conditions(), min_size=1, max_size=3).map(tuple), st.integers(0, 20))
def test_a_program_agrees_with_columns(expressions: tuple[Expression, ...], seed: int) -> None:
    rings = _Rings(seed)
    filter_ = conjunction(expressions)
    assert filter_ is not None
    held, failed = [], []
    for i in range(40):  # Row by row: an error of one is not one of another.
        try:
            if filter_(partial(rings.read, only=i), 1)[0]:
                held.append(i)
        except InputError:
            failed.append(i)
    assert rings.run(expressions) == (held, failed)
    if not failed:
        assert np.flatnonzero(filter_(rings.read, 40)).tolist() == held


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_products_that_do_not_fit_are_seen(x: int, y: int) -> None:
    for a, b in ((x, y), (x >> 31, y >> 31), (x, y >> 60)):
        product, fits = kernel._multiply(a, b)
        assert fits == (-(2**63) <= a * b < 2**63)
        assert not fits or product == a * b


@pytest.mark.parametrize(
    "expression",
    [
        Like(pa.bool_(), Column(pa.string(), "A", "s"), "a%"),
        Comparison(pa.bool_(), "<", Column(pa.uint64(), "A", "u"), Column(pa.uint64(), "B", "u")),
        Comparison(
            pa.bool_(),
            "<",
            Cast(pa.int64(), Column(pa.float64(), "A", "f")),
            Column(pa.int64(), "B", "i"),
        ),
    ],
)
def test_what_has_no_program_is_left_to_columns(expression: Expression) -> None:
    assert program_of((expression,)) is None


def test_candidates_go_block_by_block() -> None:
    values = np.arange(5000)
    left, right = Column(pa.int64(), "A", "x"), Column(pa.int64(), "B", "x")
    remainder = Arithmetic(pa.int64(), "%", left, Constant(pa.int64(), 7))
    expression = Comparison(pa.bool_(), "=", remainder, right)
    program = program_of((expression,))
    assert program is not None
    threes = np.full(8192, 3)
    ring = np.resize(values, 8192)
    made = np.stack([values, values])
    code = program.code(
        lambda column: (
            (ring if column.stream == "A" else threes).ctypes.data,
            8191,
            "AB".index(column.stream),
            0,
        )
    )
    keep, failed = values.copy(), np.empty(5000, np.int64)
    kept, wrong = kernel.keep_where(np.array(code), 0, 1, program.depth, made, keep, 5000, failed)
    assert wrong == 0
    assert keep[:kept].tolist() == values[values % 7 == 3].tolist()
    columns = {left: pa.array(values), right: pa.array(np.full(5000, 3))}
    mask = compile_filter(expression)(columns.__getitem__, 5000)
    assert kept == np.count_nonzero(mask)
