"""The engine's evaluator on columns against the oracle's on single rows, and Spark's corners.

The slow twin is :mod:`penstock.testing.evaluate_row`.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import math
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError, PenstockError
from penstock.query.expression import (
    And,
    Arithmetic,
    Case,
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
    columns_of,
    walk,
)
from penstock.testing.evaluate_row import Row
from penstock.testing.evaluate_row import evaluate as evaluate_on_row
from penstock.testing.python_values import canonical, python_values
from penstock.values.evaluate import compile, compile_filter, evaluate

BOOL, INT, LONG, DOUBLE, FLOAT = pa.bool_(), pa.int32(), pa.int64(), pa.float64(), pa.float32()
TEXT, DATE, MICROS = pa.string(), pa.date32(), pa.timestamp("us")
MONEY, WIDE = pa.decimal128(7, 2), pa.decimal128(30, 4)
NAN, INF = math.nan, math.inf
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")

VALUES: dict[pa.DataType, list[Any]] = {
    BOOL: [True, False],
    INT: [0, 1, -1, 7, -7, 2**31 - 1, -(2**31)],
    LONG: [0, 1, -1, 2, 3, -5, 2**53 + 1, 2**63 - 1, -(2**63)],
    DOUBLE: [0.0, -0.0, 1.0, -1.5, 2.5, 1e300, -1e300, 5e-324, NAN, INF, -INF],
    FLOAT: [0.0, -0.0, 1.0, -1.5, 3.0e38, NAN, INF, -INF],
    TEXT: ["", "a", "A", "ab", "a\0b", "é", "ß", "a%b", "a_b", "x\ny", "Straße"],
    DATE: [datetime.date(1970, 1, 1), datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)],
    MICROS: [0, -1, 1, 1_500_000, -86_400_000_001, 1_709_164_800_000_000],
    MONEY: [Decimal("0.00"), Decimal("1.05"), Decimal("-1.05"), Decimal("99999.99")],
    WIDE: [Decimal("0.0000"), Decimal("1.2345"), Decimal("-99999999999999999999999999.9999")],
}
NAMES = {type: f"c{i}" for i, type in enumerate(VALUES)}


def evaluate_row(expression: Expression, row: Row) -> Any:
    """The twin, with room for all digits of a decimal."""
    with localcontext(Context(prec=400)):
        return evaluate_on_row(expression, row)


def column(type: pa.DataType, copy: int = 0) -> Column:
    return Column(type, "A", f"{NAMES[type]}_{copy}")


def constants(type: pa.DataType) -> st.SearchStrategy[Expression]:
    return st.sampled_from([*VALUES[type], None]).map(lambda value: Constant(type, value))


def leaves(type: pa.DataType) -> st.SearchStrategy[Expression]:
    columns: st.SearchStrategy[Expression] = st.sampled_from([column(type, 0), column(type, 1)])
    return columns | columns | constants(type)


CASTS = {
    INT: [BOOL, LONG, DOUBLE, FLOAT, MONEY, WIDE],
    LONG: [BOOL, INT, DOUBLE, FLOAT, MONEY, WIDE],
    DOUBLE: [INT, LONG, MONEY, WIDE, FLOAT, BOOL],
    FLOAT: [DOUBLE, BOOL, MONEY],
    BOOL: [INT, LONG, DOUBLE],
    MONEY: [INT, LONG, WIDE, BOOL],
    WIDE: [MONEY, INT, LONG],
    TEXT: [INT, LONG, BOOL, DATE],
    DATE: [MICROS],
    MICROS: [DATE],
}


@functools.cache
def expressions(type: pa.DataType, depth: int) -> st.SearchStrategy[Expression]:
    """Well-typed expressions of ``type``."""
    if depth == 0:
        return leaves(type)

    def below(other: pa.DataType) -> st.SearchStrategy[Expression]:
        return st.deferred(lambda: expressions(other, depth - 1))

    nodes: list[st.SearchStrategy[Expression]] = [
        leaves(type),
        st.lists(below(type), min_size=1, max_size=3).map(
            lambda arguments: Function(type, "coalesce", tuple(arguments))
        ),
    ]
    nodes += [below(source).map(lambda e: Cast(type, e)) for source in CASTS[type]]
    tests = st.lists(st.tuples(below(BOOL), below(type)), min_size=1, max_size=2)
    nodes.append(st.builds(functools.partial(_case, type), tests, below(type)))
    if type in (INT, LONG, DOUBLE, FLOAT, MONEY, WIDE):
        operators = st.sampled_from("+-*%/" if type not in (INT, LONG) else "+-*%")
        nodes.append(st.builds(Arithmetic, st.just(type), operators, below(type), below(type)))
        nodes.append(below(type).map(lambda e: Negative(type, e)))
        nodes.append(below(type).map(lambda e: Function(type, "abs", (e,))))
    if type == TEXT:
        name = st.sampled_from(["lower", "upper"])
        nodes.append(st.builds(lambda n, e: Function(TEXT, n, (e,)), name, below(TEXT)))
    if type in (INT, LONG):
        nodes.append(below(TEXT).map(lambda e: Function(type, "length", (e,))))
    if type == BOOL:
        nodes += [comparisons(other, depth) for other in VALUES]
        operands = st.lists(below(BOOL), min_size=2, max_size=3).map(tuple)
        nodes.append(operands.map(lambda o: And(BOOL, o)))
        nodes.append(operands.map(lambda o: Or(BOOL, o)))
        nodes.append(below(BOOL).map(lambda e: Not(BOOL, e)))
        nodes += [below(other).map(lambda e: IsNull(BOOL, e)) for other in VALUES]
        patterns = st.sampled_from(["%", "a%", "_", "a\\%b", "%b", "", "a_b", "x%y"])
        nodes.append(st.builds(lambda e, p: Like(BOOL, e, p), below(TEXT), patterns))
    return st.one_of(nodes)


def _case(
    type: pa.DataType, branches: list[tuple[Expression, Expression]], otherwise: Expression
) -> Expression:
    values = (*(value for _, value in branches), otherwise)
    return Case(type, tuple(test for test, _ in branches), values)


@functools.cache
def comparisons(type: pa.DataType, depth: int) -> st.SearchStrategy[Expression]:
    side = st.deferred(lambda: expressions(type, depth - 1))
    return st.builds(Comparison, st.just(BOOL), st.sampled_from(OPERATORS), side, side)


Batch = dict[str, pa.Array]


@st.composite
def cases(draw: st.DrawFn, type: pa.DataType, depth: int) -> tuple[Expression, Batch, int]:
    """An expression, its columns (each with an offset of its own), and their length."""
    expression = draw(expressions(type, depth))
    length = draw(st.integers(0, 5))
    batch = {}
    for c in columns_of(expression):
        values = VALUES[c.type]
        options = st.sampled_from([*values, None] if draw(st.booleans()) else values)
        cells = draw(st.lists(options, min_size=length, max_size=length))
        skip = draw(st.sampled_from([0, 1, 9]))
        padded = pa.array([None] * skip + cells + values[:1], c.type)
        batch[c.name] = padded.slice(skip, length)
    return expression, batch, length


def agree(expression: Expression, batch: Batch, length: int) -> None:
    """Both evaluators give the same, or both fail."""

    def lookup(c: Column) -> pa.Array:
        return batch[c.name]

    cells = {c.name: python_values(batch[c.name]) for c in columns_of(expression)}
    rows = [{"A": {name: values[i] for name, values in cells.items()}} for i in range(length)]
    expected: list[Any] | None = None
    got: pa.Array | None = None
    problem: InputError | None = None
    with contextlib.suppress(PenstockError, ArithmeticError, ValueError):
        expected = [evaluate_row(expression, row) for row in rows]
    try:
        got = compile(expression)(lookup, length)
    except InputError as error:
        problem = error
    if problem is not None:
        assert expected is None, f"{expression}: {problem}"
        assert "cannot compute" in str(problem)
        return
    if expected is None:
        assert any(map(may_be_skipped, walk(expression))), expression
        return
    assert isinstance(got, pa.Array)
    assert got.type == expression.type
    got.validate(full=True)
    assert list(map(canonical, python_values(got))) == list(map(canonical, expected))
    if expression.type == BOOL:
        assert compile_filter(expression)(lookup, length).tolist() == [e is True for e in expected]
        inverse = compile_filter(Not(BOOL, expression))(lookup, length)
        assert inverse.tolist() == [e is False for e in expected]


def may_be_skipped(node: Expression) -> bool:
    """Whether an error below or in ``node``, which the twin always sees, may stay unseen."""
    match node:
        case And() | Or() | Case() | Constant(value=None) | Function(name="coalesce"):
            return True
        case Cast(type=type, operand=operand):
            # NaN as a decimal is NULL.
            return bool(pa.types.is_decimal(type) and pa.types.is_floating(operand.type))
    return False


@pytest.mark.parametrize("type", list(VALUES), ids=str)
def test_agrees_with_the_oracle(type: pa.DataType) -> None:
    @settings(derandomize=True, max_examples=150, deadline=None, database=None)
    @given(cases(type, 2))
    def run(case: tuple[Expression, Batch, int]) -> None:
        agree(*case)

    run()


@settings(derandomize=True, max_examples=250, deadline=None, database=None)
@given(cases(BOOL, 3))
def test_conditions_agree_with_the_oracle(case: tuple[Expression, Batch, int]) -> None:
    agree(*case)


@pytest.mark.parametrize("type", list(VALUES), ids=str)
@pytest.mark.parametrize("operator", OPERATORS)
def test_all_pairs_of_values(type: pa.DataType, operator: Any) -> None:
    """Column with column, column with constant, constant with column; values and filters."""
    values = [*VALUES[type], None]
    left, right = column(type, 0), column(type, 1)
    pairs = [(x, y) for x in values for y in values]
    batch = {
        left.name: pa.array([x for x, _ in pairs], type),
        right.name: pa.array([y for _, y in pairs], type),
    }
    agree(Comparison(BOOL, operator, left, right), batch, len(pairs))
    for value in values:
        agree(Comparison(BOOL, operator, left, Constant(type, value)), batch, len(pairs))
        agree(Comparison(BOOL, operator, Constant(type, value), right), batch, len(pairs))


def run(expression: Expression, **columns: pa.Array) -> list[Any]:
    length = len(next(iter(columns.values()))) if columns else 1
    result = evaluate(expression, lambda c: columns[c.name], length)
    assert result.type == expression.type
    assert len(result) == length
    return list(result.to_pylist())


def x(type: pa.DataType) -> Column:
    return Column(type, "A", "x")


def y(type: pa.DataType) -> Column:
    return Column(type, "A", "y")


def test_a_column_passes_through_untouched() -> None:
    array = pa.array([1, 2, 3])
    assert compile(x(LONG))(lambda c: array, 3) is array


def test_columns_may_be_a_mapping() -> None:
    assert evaluate(x(LONG), {x(LONG): pa.array([1])}, 1).to_pylist() == [1]


def test_null_is_not_true() -> None:
    condition = Comparison(BOOL, "<", x(LONG), Constant(LONG, 2))
    columns = {x(LONG): pa.array([1, 2, None])}
    assert compile_filter(condition)(columns.__getitem__, 3).tolist() == [True, False, False]


@pytest.mark.parametrize("length", [0, 1, 5])
def test_constants_at_the_top(length: int) -> None:
    for type, values in VALUES.items():
        for value in [*values, None]:
            array = evaluate(Constant(type, value), {}, length)
            assert array.type == type
            assert len(array) == length
    total = Arithmetic(LONG, "+", Constant(LONG, 1), Constant(LONG, 2))
    assert evaluate(total, {}, length).to_pylist() == [3] * length
    true = Comparison(BOOL, "<", Constant(LONG, 1), Constant(LONG, 2))
    assert compile_filter(true)(lambda c: pa.nulls(0), length).tolist() == [True] * length


@pytest.mark.parametrize(
    ("operator", "left", "right", "reason"),
    [
        ("+", 2**63 - 1, 1, "overflow"),
        ("-", -(2**63), 1, "overflow"),
        ("*", 2**62, 2, "overflow"),
        ("%", 1, 0, "division by zero"),
        ("/", 1, 0, "division by zero"),
    ],
)
def test_errors_name_the_expression(operator: Any, left: int, right: int, reason: str) -> None:
    node = Arithmetic(LONG, operator, x(LONG), y(LONG))
    with pytest.raises(InputError) as raised:
        run(node, x=pa.array([0, left]), y=pa.array([1, right]))
    assert reason in str(raised.value)
    assert f"(A.x {operator} A.y)" in str(raised.value)
    # NULL beside it is no error, and neither is no row.
    assert run(node, x=pa.array([None], LONG), y=pa.array([0])) == [None]
    assert run(node, x=pa.array([], LONG), y=pa.array([], LONG)) == []
    by_constant = Arithmetic(LONG, operator, x(LONG), Constant(LONG, right))
    assert run(by_constant, x=pa.array([], LONG)) == []
    assert run(by_constant, x=pa.array([None], LONG)) == [None]
    constant = Arithmetic(LONG, operator, Constant(LONG, left), Constant(LONG, right))
    assert evaluate(constant, {}, 0).to_pylist() == []
    with pytest.raises(InputError, match=reason):
        evaluate(constant, {}, 1)


@pytest.mark.parametrize("operator", "/%")
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_doubles_divide_by_zero(operator: Any, zero: float) -> None:
    with pytest.raises(InputError, match="division by zero"):
        run(
            Arithmetic(DOUBLE, operator, x(DOUBLE), y(DOUBLE)),
            x=pa.array([1.0]),
            y=pa.array([zero]),
        )


@pytest.mark.parametrize(
    "node",
    [Negative(LONG, x(LONG)), Function(LONG, "abs", (x(LONG),))],
    ids=str,
)
def test_the_least_integer_has_no_opposite(node: Expression) -> None:
    assert run(node, x=pa.array([-(2**63) + 1])) == [2**63 - 1]
    with pytest.raises(InputError, match="overflow"):
        run(node, x=pa.array([-(2**63)]))


def test_remainder_has_the_sign_of_the_dividend() -> None:
    for type, cast in ((LONG, int), (INT, int), (DOUBLE, float), (MONEY, Decimal)):
        values = pa.array([cast(v) for v in (7, -7, 7, -7)], type)
        others = pa.array([cast(v) for v in (3, 3, -3, -3)], type)
        assert run(Arithmetic(type, "%", x(type), y(type)), x=values, y=others) == [1, -1, 1, -1]
    least = Arithmetic(LONG, "%", x(LONG), Constant(LONG, -1))
    assert run(least, x=pa.array([-(2**63), None])) == [0, None]


GUARDED = And(
    BOOL,
    (
        Comparison(BOOL, "<>", y(LONG), Constant(LONG, 0)),
        Comparison(BOOL, ">", Arithmetic(LONG, "%", x(LONG), y(LONG)), Constant(LONG, 1)),
    ),
)


def test_a_guard_protects_what_is_right_of_it() -> None:
    batch = {"x": pa.array([5, 5, 6, None]), "y": pa.array([0, 3, 3, 0])}
    assert run(GUARDED, **batch) == [False, True, False, False]
    assert compile_filter(GUARDED)(lambda c: batch[c.name], 4).tolist() == [
        False,
        True,
        False,
        False,
    ]
    negated = Or(BOOL, tuple(Not(BOOL, part) for part in GUARDED.operands))
    assert run(negated, **batch) == [True, False, True, True]
    with pytest.raises(InputError, match="division by zero"):
        run(And(BOOL, GUARDED.operands[::-1]), **batch)
    null_leaves_it_open = And(BOOL, (Constant(BOOL, None), GUARDED.operands[1]))
    with pytest.raises(InputError, match="division by zero"):
        run(null_leaves_it_open, **batch)


def test_a_guard_works_for_columns_without_a_take_kernel() -> None:
    text = pa.string_view()
    guard = Like(BOOL, x(text), "1%")
    number = Comparison(BOOL, "=", Cast(LONG, x(text)), Constant(LONG, 12))
    batch = {"x": pa.array(["a", "12", None], text)}
    assert run(And(BOOL, (guard, number)), **batch) == [False, True, None]


NULLS = [True, False, None]


def test_three_valued_logic() -> None:
    pairs = [(a, b) for a in NULLS for b in NULLS]
    batch = {
        "x": pa.array([a for a, _ in pairs], BOOL),
        "y": pa.array([b for _, b in pairs], BOOL),
    }
    conjunction = [False if False in p else None if None in p else True for p in pairs]
    disjunction = [True if True in p else None if None in p else False for p in pairs]
    assert run(And(BOOL, (x(BOOL), y(BOOL))), **batch) == conjunction
    assert run(Or(BOOL, (x(BOOL), y(BOOL))), **batch) == disjunction
    for value in NULLS:
        constant = Constant(BOOL, value)
        assert run(And(BOOL, (constant, y(BOOL))), **batch) == run(
            And(BOOL, (y(BOOL), constant)), **batch
        )


def test_null_of_no_type() -> None:
    null = Constant(pa.null(), None)
    assert run(Comparison(BOOL, "=", null, null)) == [None]
    assert run(Comparison(BOOL, "=", x(pa.null()), y(pa.null())), x=pa.nulls(2), y=pa.nulls(2)) == [
        None,
        None,
    ]
    assert run(IsNull(BOOL, x(pa.null())), x=pa.nulls(2)) == [True, True]
    assert run(Cast(MONEY, x(pa.null())), x=pa.nulls(2)) == [None, None]


@pytest.mark.parametrize(
    "type",
    [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
    ids=str,
)
def test_other_kinds_of_text(type: pa.DataType) -> None:
    values = pa.array(["aB", None, "éa"]).cast(type)
    others = pa.array(["b", "b", "éa"]).cast(type)
    assert run(Function(type, "upper", (x(type),)), x=values) == ["AB", None, "ÉA"]
    assert run(Function(INT, "length", (x(type),)), x=values) == [2, None, 2]
    assert run(Like(BOOL, x(type), "_B"), x=values) == [True, None, False]
    equal = Comparison(BOOL, "=", x(type), y(type))
    assert run(equal, x=values, y=others) == [False, None, True]
    batch = {"x": values, "y": others}
    assert compile_filter(equal)(lambda c: batch[c.name], 3).tolist() == [False, False, True]
    assert run(Function(type, "coalesce", (x(type), y(type))), **batch) == ["aB", "b", "éa"]
    assert run(IsNull(BOOL, x(type)), x=values) == [False, True, False]
    null = IsNull(BOOL, x(type))
    assert compile_filter(null)({x(type): values}.__getitem__, 3).tolist() == [False, True, False]
    for target in (pa.string(), pa.large_string(), pa.string_view(), pa.binary()):
        expected = ["aB", None, "éa"] if target != pa.binary() else [b"aB", None, "éa".encode()]
        assert run(Cast(target, x(type)), x=values) == expected
    assert run(Cast(type, x(pa.string())), x=pa.array(["q", None])) == ["q", None]


def test_length_of_binaries_counts_bytes() -> None:
    binary = pa.array(["é".encode(), b"", None])
    assert run(Function(INT, "length", (x(pa.binary()),)), x=binary) == [2, 0, None]


DAY = datetime.date
TIME = datetime.datetime
UTC = datetime.UTC


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        # integers and floats
        (2**53 + 1, LONG, DOUBLE, float(2**53)),
        (1.9, DOUBLE, LONG, 1),
        (-1.9, DOUBLE, LONG, -1),
        (0.1, FLOAT, DOUBLE, float(np.float32(0.1))),
        (1e300, DOUBLE, FLOAT, INF),
        (3, LONG, BOOL, True),
        (NAN, DOUBLE, BOOL, True),
        (True, BOOL, LONG, 1),
        (True, BOOL, pa.decimal128(3, 1), Decimal("1.0")),
        # decimals
        (5, INT, pa.decimal128(3, 2), Decimal("5.00")),
        (2**64 - 1, pa.uint64(), pa.decimal128(20, 0), Decimal(2**64 - 1)),
        (2**63 - 1, LONG, pa.decimal128(38, 18), Decimal(2**63 - 1)),
        (Decimal("9.95"), pa.decimal128(3, 2), pa.decimal128(3, 1), Decimal("10.0")),
        (Decimal("-0.05"), pa.decimal128(3, 2), pa.decimal128(2, 1), Decimal("-0.1")),
        (Decimal("9" * 38), pa.decimal128(38, 0), pa.decimal256(50, 4), Decimal("9" * 38)),
        (Decimal("-1.99"), MONEY, LONG, -1),
        (Decimal("0.01"), MONEY, BOOL, True),
        (Decimal("0.1"), pa.decimal64(5, 1), pa.decimal32(9, 3), Decimal("0.100")),
        (1.005, DOUBLE, pa.decimal128(4, 2), Decimal("1.01")),
        (NAN, DOUBLE, MONEY, None),
        (INF, DOUBLE, MONEY, None),
        (Decimal("36028797018963.97"), pa.decimal128(18, 2), DOUBLE, 36028797018963.97),
        (Decimal("0.000000000123456789"), pa.decimal128(30, 18), DOUBLE, 1.23456789e-10),
        # text
        (" +5 ", TEXT, LONG, 5),
        ("-7", TEXT, INT, -7),
        ("1e3", TEXT, DOUBLE, 1000.0),
        (" 1.555", TEXT, pa.decimal128(4, 2), Decimal("1.56")),
        ("Yes", TEXT, BOOL, True),
        (" f", TEXT, BOOL, False),
        ("2024-02-29", TEXT, DATE, DAY(2024, 2, 29)),
        ("2024-02-29 23:59:59", TEXT, DATE, DAY(2024, 2, 29)),
        ("2024-02-29 01:02:03.5", TEXT, MICROS, TIME(2024, 2, 29, 1, 2, 3, 500_000)),
        ("2024-02-29", TEXT, MICROS, TIME(2024, 2, 29)),
        ("2024-02-29T01:00:00+02:00", TEXT, MICROS, TIME(2024, 2, 28, 23)),
        (
            "2024-02-29 01:00:00",
            TEXT,
            pa.timestamp("ms", "UTC"),
            TIME(2024, 2, 29, 1, tzinfo=UTC),
        ),
        ("x", TEXT, pa.binary(1), b"x"),
        (12, LONG, TEXT, "12"),
        (True, BOOL, TEXT, "true"),
        (Decimal("1.50"), pa.decimal128(3, 2), TEXT, "1.50"),
        (Decimal("0.00000001"), pa.decimal128(9, 8), TEXT, "0.00000001"),
        (1.0, DOUBLE, TEXT, "1.0"),
        (-0.0, DOUBLE, TEXT, "-0.0"),
        (0.001, DOUBLE, TEXT, "0.001"),
        (1e7, DOUBLE, TEXT, "1.0E7"),
        (-1.25e-10, DOUBLE, pa.large_string(), "-1.25E-10"),
        (INF, DOUBLE, TEXT, "Infinity"),
        (0.1, FLOAT, TEXT, "0.1"),
        (DAY(2024, 2, 29), DATE, TEXT, "2024-02-29"),
        (1_500_000, MICROS, TEXT, "1970-01-01 00:00:01.5"),
        (10_000_000, MICROS, TEXT, "1970-01-01 00:00:10"),
        (10, pa.timestamp("s", "Europe/Paris"), TEXT, "1970-01-01 00:00:10"),
        (b"ab", pa.binary(2), pa.binary(), b"ab"),
        (b"ab", pa.binary_view(), pa.binary(2), b"ab"),
        # time
        (DAY(1969, 12, 31), DATE, MICROS, TIME(1969, 12, 31)),
        (-1, MICROS, DATE, DAY(1969, 12, 31)),
        (-1, MICROS, pa.timestamp("s"), TIME(1969, 12, 31, 23, 59, 59)),
        (-1, MICROS, LONG, -1),
        (-1, LONG, MICROS, TIME(1969, 12, 31, 23, 59, 59)),
        (0, MICROS, pa.timestamp("us", "Asia/Tokyo"), TIME(1970, 1, 1, tzinfo=UTC)),
        (0, pa.timestamp("us", "Asia/Tokyo"), MICROS, TIME(1970, 1, 1)),
        (-1, pa.timestamp("us", "Asia/Tokyo"), DATE, DAY(1969, 12, 31)),
        (1_999, pa.duration("us"), pa.duration("ms"), datetime.timedelta(milliseconds=1)),
        (1_999, pa.time64("us"), pa.time32("ms"), datetime.time(0, 0, 0, 1_000)),
    ],
)
def test_casts(value: Any, source: pa.DataType, target: pa.DataType, expected: Any) -> None:
    node = Cast(target, x(source))
    array = pa.array([None, value, value], source)
    got = run(node, x=array)
    assert [canonical(v) for v in got] == [None, canonical(expected), canonical(expected)]
    assert [canonical(v) for v in run(node, x=array.slice(1, 1))] == [canonical(expected)]
    assert run(node, x=array.slice(0, 0)) == []
    assert run(node, x=array.slice(0, 1)) == [None]
    constant = Cast(target, Constant(source, value))
    assert [canonical(v) for v in run(constant)] == [canonical(expected)]


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        (2**31, LONG, INT),
        (-1, LONG, pa.uint8()),
        (2.0**63, DOUBLE, LONG),
        (NAN, DOUBLE, LONG),
        (INF, DOUBLE, INT),
        (1000, LONG, pa.decimal128(3, 0)),
        (Decimal("99999.99"), MONEY, pa.decimal128(5, 1)),
        (1e10, DOUBLE, MONEY),
        ("x", TEXT, LONG),
        ("", TEXT, LONG),
        ("0x5", TEXT, LONG),
        ("5.0", TEXT, LONG),
        ("x", TEXT, DOUBLE),
        ("1_0", TEXT, MONEY),
        ("NaN", TEXT, MONEY),
        ("maybe", TEXT, BOOL),
        ("2024-13-01", TEXT, DATE),
        ("noon", TEXT, MICROS),
        (2**62, pa.timestamp("s"), MICROS),
    ],
)
def test_casts_that_fail(value: Any, source: pa.DataType, target: pa.DataType) -> None:
    with pytest.raises(InputError, match=r"cannot compute CAST\(A.x AS"):
        run(Cast(target, x(source)), x=pa.array([None, value], source))


@settings(derandomize=True, max_examples=150, deadline=None, database=None)
@given(st.lists(st.integers(-(10**18) + 1, 10**18 - 1), max_size=20), st.integers(0, 18))
def test_decimals_to_doubles_are_rounded_once(unscaled: list[int], scale: int) -> None:
    for precision in (18, 15):
        type = pa.decimal128(precision, min(scale, precision))
        fitting = [n for n in unscaled if abs(n) < 10**precision]
        values = [Decimal(n).scaleb(-type.scale) for n in fitting]
        got = run(Cast(DOUBLE, x(type)), x=pa.array(values, type))
        assert got == [float(v) for v in values]


@pytest.mark.parametrize(
    "type",
    [pa.decimal128(5, 2), pa.decimal128(18, 6), pa.decimal128(30, 10), pa.decimal128(38, 18)],
    ids=str,
)
@pytest.mark.parametrize("operator", "+-*/%")
def test_decimal_arithmetic(type: pa.DataType, operator: Any) -> None:
    step = Decimal(1).scaleb(-type.scale)
    largest = Decimal("9" * type.precision).scaleb(-type.scale, Context(prec=50))
    values = [step, -step, step * 3, step * 7, Decimal(1), Decimal(-2), largest, step * 0]
    left, right = x(type), y(type)
    node = Arithmetic(type, operator, left, right)
    for a in values:
        for b in values:
            try:
                expected = evaluate_row(node, {"A": {"x": a, "y": b}})
            except PenstockError:
                with pytest.raises(InputError):
                    run(node, x=pa.array([a], type), y=pa.array([b], type))
                continue
            batch = {"x": pa.array([a, None], type), "y": pa.array([b, b], type)}
            assert run(node, **batch) == [expected, None]
            with_constant = Arithmetic(type, operator, left, Constant(type, b))
            assert run(with_constant, x=batch["x"]) == [expected, None]


def test_coalesce_stops_at_a_constant() -> None:
    node = Function(LONG, "coalesce", (Constant(LONG, None), x(LONG), Constant(LONG, 0), y(LONG)))
    assert run(node, x=pa.array([1, None])) == [1, 0]
    first = Function(LONG, "coalesce", (Constant(LONG, 3), x(LONG)))
    assert run(first, x=pa.array([1, None])) == [3, 3]
    nothing = Function(LONG, "coalesce", (Constant(LONG, None),))
    assert run(nothing) == [None]


def test_case_mapping_is_full() -> None:
    texts = pa.array(["straße", "ΟΔΟΣ", None, "ascii"])
    assert run(Function(TEXT, "upper", (x(TEXT),)), x=texts) == ["STRASSE", "ΟΔΟΣ", None, "ASCII"]
    assert run(Function(TEXT, "lower", (x(TEXT),)), x=texts) == ["straße", "οδος", None, "ascii"]
