"""Expressions on whole columns.

:func:`compile` turns an expression, once per query, into a tree of closures over Arrow's compute
kernels; running it costs one kernel call per node, so that a batch of one row is cheap. The result
is an Arrow array. :func:`compile_filter` is the same for conditions: its result is a numpy mask of
the rows where the condition is true.

**Constants** are folded when compiling and stay scalars, which kernels broadcast. A constant that
cannot be computed (``1 / 0``) is an error only when it meets a row.

**Comparisons** follow Spark SQL, where floats are totally ordered: NaN equals itself and is greater
than every other number. Arrow follows IEEE 754, where a comparison with NaN is false. So
``a <= b`` is IEEE's, or ``b`` is NaN; ``a >= b`` by symmetry; ``<`` and ``>`` are the negations of
these two; and ``a = b`` is IEEE's, or both are NaN. NULLs survive this, as the kernels used (``or``
and ``and``, not their Kleene forms) give NULL when any input is NULL. -0.0 equals 0.0 in both.

**A filter** needs no NULL at all. A condition is true, false or NULL; the set of rows where it is
true and the set where it is false are computed by the usual recursion: ``AND`` is true where all
operands are true, false where any is false; ``NOT`` swaps the two sets; ``a < b`` is false where
``a >= b`` is true. For types with ordered keys (:mod:`penstock.values.key_types`) a comparison
of values is one of int64 keys, NaN included.

**Errors**: overflow, division by zero and values that a cast cannot convert raise
:class:`~penstock.errors.InputError` with the text of the node. Kernels work on columns and so
evaluate what SQL would not: in ``y <> 0 AND x / y > 2`` the division also sees rows with ``y = 0``.
Hence, when an operand of ``AND`` or ``OR`` fails, it is computed once more, for only those rows on
which the operands to its left have left the answer open. The error stands if it occurs there.

**Casts** are those of Spark SQL in ANSI mode: a fraction is cut off on the way to an integer and
rounded half up on the way to a decimal, a double is the decimal that its shortest text names, text
may have white space around it, a value that does not fit is an error. Timestamps are instants,
printed, parsed and cut into days in UTC; one cast to a coarser unit is rounded down. Casts that
Arrow has, but rounds in another way (doubles and text to decimals, doubles to text), go value by
value and are slow; no comparison implies one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.errors import InputError, InvariantBroken
from penstock.query.expression import (
    And,
    Arithmetic,
    Case,
    Cast,
    Column,
    Comparison,
    Constant,
    Expression,
    Field,
    Function,
    IsNull,
    Like,
    Negative,
    Not,
    Or,
)
from penstock.values.arithmetic import arithmetic, negative
from penstock.values.arrow_kernel import (
    COMPARE,
    Kernel,
    failure,
    kernel_of,
    pair_kernel_of,
    simple_type,
)
from penstock.values.arrow_layout import booleans_of, numbers_of, validity_of
from penstock.values.cast import caster
from penstock.values.functions import function
from penstock.values.key_types import KeyType, key_type_of

Columns = Callable[[Column], pa.Array]
"""Where an expression finds the array of a column."""
Evaluator = Callable[[Columns, int], pa.Array]
"""Columns and their length, to the values of an expression."""
Booleans = NDArray[np.bool_]
Filter = Callable[[Columns, int], Booleans]
"""Columns and their length, to the rows where a condition is true."""


def compile(expression: Expression) -> Evaluator:
    """A function that evaluates ``expression``: given columns and their length, an array."""
    compiled = _compile(expression)
    return _repeated(compiled) if isinstance(compiled, pa.Scalar) else compiled


def compile_filter(expression: Expression) -> Filter:
    """A function that finds the rows where ``expression`` is true; NULL is not true."""
    return _rows_where(expression, True)


def conjunction(expressions: Sequence[Expression]) -> Filter | None:
    """The rows where all of ``expressions`` are true, taken from left to right; None for none."""
    if not expressions:
        return None
    if len(expressions) == 1:
        return compile_filter(expressions[0])
    return compile_filter(And(pa.bool_(), tuple(expressions)))


def evaluate(
    expression: Expression, columns: Columns | Mapping[Column, pa.Array], length: int
) -> pa.Array:
    """The values of ``expression`` on ``columns`` of ``length`` rows."""
    read = columns if callable(columns) else columns.__getitem__
    return compile(expression)(read, length)


def folded(expression: Expression) -> pa.Scalar | None:
    """The value of ``expression`` if all rows have the same; None if not, or if it is an error."""
    compiled = _compile(expression)
    return compiled if isinstance(compiled, pa.Scalar) else None


# -- values ----------------------------------------------------------------------------------------


def _compile(expression: Expression) -> Evaluator | pa.Scalar:
    """An evaluator, or the value if there is no column in ``expression``."""
    match expression:
        case Column():
            return lambda columns, length: columns(expression)
        case Constant():
            return pa.scalar(expression.value, expression.type)
    takes_any_type = isinstance(expression, Cast | IsNull)
    operands = [
        _compile(child if takes_any_type else _simplified(child)) for child in expression.children()
    ]
    if any(not isinstance(operand, pa.Scalar) for operand in operands):
        return _compile_node(expression, operands)
    lifted = _compile_node(expression, [_repeated(operand) for operand in operands])
    if isinstance(lifted, pa.Scalar):
        return lifted
    try:
        return lifted(_no_columns, 1)[0]
    except InputError:
        return lifted  # An error, but only for a row that needs it.


def _compile_node(
    expression: Expression, operands: list[Evaluator | pa.Scalar]
) -> Evaluator | pa.Scalar:
    """An evaluator for a node whose operands are compiled. Single operands are never scalars."""
    match expression:
        case Cast(operand=operand):
            return _unary(expression, operands[0], caster(operand.type, expression.type))
        case Negative():
            return _unary(expression, operands[0], negative(expression.type))
        case Not():
            return _unary(expression, operands[0], kernel_of("invert"))
        case IsNull():
            return _unary(expression, operands[0], kernel_of("is_null"))
        case Like(pattern=pattern):
            match_like = kernel_of("match_like", pc.MatchSubstringOptions(pattern))
            return _unary(expression, operands[0], match_like)
        case Comparison() | Arithmetic() if any(map(_is_null, operands)):
            return pa.scalar(None, expression.type)
        case Comparison(operator=operator, left=left):
            if pa.types.is_null(left.type):
                return pa.scalar(None, expression.type)
            if pa.types.is_floating(left.type):
                return _compare_floats(expression, operator, operands[0], operands[1])
            return _binary(expression, operands[0], operands[1], COMPARE[operator])
        case Arithmetic():
            kernel = arithmetic(expression)
            return _binary(expression, operands[0], operands[1], kernel)
        case And():
            return _connect(expression, operands, pc.get_function("and_kleene"))
        case Or():
            return _connect(expression, operands, pc.get_function("or_kleene"))
        case Case():
            return _case(expression, operands[len(expression.conditions) :])
        case Field(operand=operand, name=name):
            position = operand.type.get_field_index(name)
            field = kernel_of("struct_field", pc.StructFieldOptions([position]))
            return _unary(expression, operands[0], field)
        case Function(name="coalesce"):
            return _coalesce(expression, operands)
        case Function():
            return _call(expression, operands, function(expression))
    raise InvariantBroken(f"no rule to evaluate {type(expression).__name__}: {expression}")


def _unary(node: Expression, operand: Evaluator | pa.Scalar, kernel: Kernel) -> Evaluator:
    assert not isinstance(operand, pa.Scalar)

    def run(columns: Columns, length: int) -> pa.Array:
        values = operand(columns, length)
        try:
            return kernel(values)
        except pa.ArrowException as error:
            raise failure(node, error) from error

    return run


def _binary(
    node: Expression,
    left: Evaluator | pa.Scalar,
    right: Evaluator | pa.Scalar,
    kernel: Callable[[Any, Any], pa.Array],
) -> Evaluator:
    """``kernel`` on two operands, of which one may be a scalar."""

    def scalar_left(columns: Columns, length: int) -> pa.Array:
        values = right(columns, length)
        try:
            return kernel(left, values)
        except pa.ArrowException as error:
            raise failure(node, error) from error

    def scalar_right(columns: Columns, length: int) -> pa.Array:
        values = left(columns, length)
        try:
            return kernel(values, right)
        except pa.ArrowException as error:
            raise failure(node, error) from error

    def run(columns: Columns, length: int) -> pa.Array:
        values = left(columns, length)
        others = right(columns, length)
        try:
            return kernel(values, others)
        except pa.ArrowException as error:
            raise failure(node, error) from error

    if isinstance(left, pa.Scalar):
        return scalar_left
    return scalar_right if isinstance(right, pa.Scalar) else run


def _call(
    node: Expression, operands: list[Evaluator | pa.Scalar], kernel: Callable[..., pa.Array]
) -> Evaluator:
    """``kernel`` on all operands, of which one at least is a column."""

    def run(columns: Columns, length: int) -> pa.Array:
        values = [o if isinstance(o, pa.Scalar) else o(columns, length) for o in operands]
        try:
            return kernel(*values)
        except pa.ArrowException as error:
            raise failure(node, error) from error

    return run


def _case(node: Case, values: list[Evaluator | pa.Scalar]) -> Evaluator:
    """The value of the first condition that is true, for each row.

    A condition or a value that fails is computed once more for only the rows that come to it, as
    with AND and OR.
    """
    tests = [compile_filter(condition) for condition in node.conditions]

    def run(columns: Columns, length: int) -> pa.Array:
        undecided = np.ones(length, np.bool_)
        chosen: list[Booleans] = []
        for test in tests:
            try:
                rows = test(columns, length) & undecided
            except InputError:
                rows = _on_rows(test, columns, undecided)
            undecided &= ~rows
            chosen.append(rows)
        parts: list[pa.Array] = []
        places = np.empty(length, np.int64)
        first = 0
        for value, rows in zip(values, [*chosen, undecided], strict=True):
            positions = np.flatnonzero(rows)
            if isinstance(value, pa.Scalar):
                part = pa.repeat(value, 1)
                places[positions] = first
            else:
                try:
                    part = value(columns, length)
                    places[positions] = first + positions
                except InputError:
                    part = value(_taken(columns, positions), len(positions))
                    places[positions] = first + np.arange(len(positions))
            parts.append(part)
            first += len(part)
        return pa.concat_arrays(parts).take(pa.array(places))

    return run


def _repeated(value: Evaluator | pa.Scalar) -> Evaluator:
    """The scalar ``value`` as a column."""
    return lambda columns, length: pa.repeat(value, length)


def _no_columns(column: Column) -> pa.Array:
    raise InvariantBroken(f"{column} in a constant")


def _is_null(operand: Evaluator | pa.Scalar) -> bool:
    return isinstance(operand, pa.Scalar) and not operand.is_valid


def _simplified(expression: Expression) -> Expression:
    """``expression`` in a type that kernels know."""
    simple = simple_type(expression.type)
    return expression if simple == expression.type else Cast(simple, expression)


def _coalesce(node: Expression, operands: list[Evaluator | pa.Scalar]) -> Evaluator | pa.Scalar:
    """The first operand that is not NULL."""
    needed: list[Evaluator | pa.Scalar] = []
    for operand in operands:
        if not _is_null(operand):
            needed.append(operand)
            if isinstance(operand, pa.Scalar):
                break
    call = pc.get_function("coalesce").call
    simple = simple_type(node.type)
    finish = caster(simple, node.type)
    if not needed:
        return pa.scalar(None, node.type)
    if isinstance(needed[0], pa.Scalar):
        return _compile(Cast(node.type, Constant(simple, needed[0].as_py())))

    def run(columns: Columns, length: int) -> pa.Array:
        values = [o if isinstance(o, pa.Scalar) else o(columns, length) for o in needed]
        try:
            return finish(call(values))
        except pa.ArrowException as error:
            raise failure(node, error) from error

    return run


# -- comparisons and logic -------------------------------------------------------------------------


OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

_or = pair_kernel_of("or")
_and = pair_kernel_of("and")
_invert = kernel_of("invert")
_is_nan = kernel_of("is_nan")


def _compare_floats(
    node: Expression, operator: str, left: Evaluator | pa.Scalar, right: Evaluator | pa.Scalar
) -> Evaluator:
    """A comparison of floats in Spark's order, see the top of this file."""
    if isinstance(left, pa.Scalar):
        left, right, operator = right, left, _MIRRORED[operator]
    ieee = COMPARE[operator]
    opposite = COMPARE[OPPOSITE[operator]]
    if isinstance(right, pa.Scalar) and right.as_py() == right.as_py():
        # No NaN on the right: IEEE 754 says "false" to NaN on the left, right unless it is greater.
        if operator in (">", ">="):
            return _binary(node, left, right, lambda x, y: _invert(opposite(x, y)))
        return _binary(node, left, right, ieee)
    if isinstance(right, pa.Scalar):
        right = _repeated(right)

    def equal(x: pa.Array, y: pa.Array) -> pa.Array:
        return _or(COMPARE["="](x, y), _and(_is_nan(x), _is_nan(y)))

    kernels: dict[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
        "=": equal,
        "<>": lambda x, y: _invert(equal(x, y)),
        "<=": lambda x, y: _or(ieee(x, y), _is_nan(y)),
        ">=": lambda x, y: _or(ieee(x, y), _is_nan(x)),
        "<": lambda x, y: _invert(_or(opposite(x, y), _is_nan(x))),
        ">": lambda x, y: _invert(_or(opposite(x, y), _is_nan(y))),
    }
    return _binary(node, left, right, kernels[operator])


def _connect(
    node: Expression, operands: list[Evaluator | pa.Scalar], kernel: pc.Function
) -> Evaluator:
    """AND or OR of all operands."""
    first = operands[0]
    others = operands[1:]
    if isinstance(first, pa.Scalar):
        first = _repeated(first)
    one_by_one: list[Filter] = []

    def run(columns: Columns, length: int) -> pa.Array:
        result = first(columns, length)
        try:
            for other in others:
                operand = other if isinstance(other, pa.Scalar) else other(columns, length)
                result = kernel.call([result, operand])
        except InputError:
            if not one_by_one:
                one_by_one.extend([_rows_where(node, True), _rows_where(node, False)])
            true, false = (rows_where(columns, length) for rows_where in one_by_one)
            return pa.array(true, mask=~(true | false))
        return result

    return run


# -- filters ---------------------------------------------------------------------------------------


def _rows_where(expression: Expression, truth: bool) -> Filter:
    """The rows where ``expression`` is ``truth`` (and not NULL)."""
    match expression:
        case And(operands=operands) | Or(operands=operands):
            parts = [_rows_where(operand, truth) for operand in operands]
            return _all_of(parts) if isinstance(expression, And) == truth else _any_of(parts)
        case Not(operand=operand):
            return _rows_where(operand, not truth)
        case IsNull(operand=operand):
            return _rows_where_null(compile(operand), truth)
        case Comparison(operator=operator, left=left, right=right):
            type = simple_type(left.type)
            compiled = _compile(_simplified(left)), _compile(_simplified(right))
            columns = sum(not isinstance(side, pa.Scalar) for side in compiled)
            if columns and not pa.types.is_null(type) and not any(map(_is_null, compiled)):
                name: str = operator if truth else OPPOSITE[operator]
                if pa.types.is_floating(type) and not pa.types.is_float16(type):
                    return _filter_floats(name, *compiled, type.to_pandas_dtype())
                if _has_ordered_keys(type):
                    return _filter_keys(name, *compiled, key_type_of(type))
    compiled_whole = _compile(expression)
    if isinstance(compiled_whole, pa.Scalar):
        holds = compiled_whole.as_py() is truth
        return lambda columns, length: np.full(length, holds)
    return _filter_values(compiled_whole, truth)


def _filter_values(values: Evaluator, truth: bool) -> Filter:
    def run(columns: Columns, length: int) -> Booleans:
        array = values(columns, length)
        rows = booleans_of(array)
        if not truth:
            rows = ~rows
        validity = validity_of(array)
        if validity is not None:
            rows &= validity
        return rows

    return run


def _rows_where_null(values: Evaluator, truth: bool) -> Filter:
    def run(columns: Columns, length: int) -> Booleans:
        array = values(columns, length)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        validity = validity_of(array)
        if validity is None:
            return np.full(length, not truth)
        return ~validity if truth else validity

    return run


def _all_of(parts: list[Filter]) -> Filter:
    first, others = parts[0], parts[1:]

    def run(columns: Columns, length: int) -> Booleans:
        rows = first(columns, length)
        for other in others:
            try:
                rows &= other(columns, length)
            except InputError:
                rows = _on_rows(other, columns, rows)
        return rows

    return run


def _any_of(parts: list[Filter]) -> Filter:
    first, others = parts[0], parts[1:]

    def run(columns: Columns, length: int) -> Booleans:
        rows = first(columns, length)
        for other in others:
            try:
                rows |= other(columns, length)
            except InputError:
                rows |= _on_rows(other, columns, ~rows)
        return rows

    return run


def _on_rows(condition: Filter, columns: Columns, rows: Booleans) -> Booleans:
    """Those of ``rows`` where ``condition`` holds, looking at no other row."""
    chosen = np.flatnonzero(rows)
    result = np.zeros(len(rows), np.bool_)
    result[chosen] = condition(_taken(columns, chosen), len(chosen))
    return result


def _taken(columns: Columns, positions: NDArray[np.int64]) -> Columns:
    """``columns`` at ``positions`` alone."""
    indices = pa.array(positions)

    def taken(column: Column) -> pa.Array:
        array = columns(column)
        simple = simple_type(array.type)
        if simple == array.type:
            return array.take(indices)
        return caster(simple, array.type)(caster(array.type, simple)(array).take(indices))

    return taken


_UFUNC = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _has_ordered_keys(type: pa.DataType) -> bool:
    try:
        return key_type_of(type).ordered
    except InputError:
        return False


def _filter_keys(
    operator: str,
    left: Evaluator | pa.Scalar,
    right: Evaluator | pa.Scalar,
    encoder: KeyType,
) -> Filter:
    """A comparison by int64 keys."""
    if isinstance(left, pa.Scalar):
        left, right, operator = right, left, _MIRRORED[operator]
    compare = _UFUNC[operator]
    encode = encoder.encode

    if isinstance(right, pa.Scalar):
        constant = int(encode(pa.repeat(right, 1))[0][0])

        def run_constant(columns: Columns, length: int) -> Booleans:
            keys, validity = encode(left(columns, length))
            rows: Booleans = compare(keys, constant)
            if validity is not None:
                rows &= validity
            return rows

        return run_constant

    def run(columns: Columns, length: int) -> Booleans:
        left_keys, left_validity = encode(left(columns, length))
        right_keys, right_validity = encode(right(columns, length))
        rows: Booleans = compare(left_keys, right_keys)
        if left_validity is not None:
            rows &= left_validity
        if right_validity is not None:
            rows &= right_validity
        return rows

    return run


def _filter_floats(
    operator: str, left: Evaluator | pa.Scalar, right: Evaluator | pa.Scalar, dtype: Any
) -> Filter:
    """A comparison of floats in Spark's order, see the top of this file."""
    if isinstance(left, pa.Scalar):
        left, right, operator = right, left, _MIRRORED[operator]
    width = np.dtype(dtype).itemsize
    compare = _UFUNC[operator]
    opposite = _UFUNC[OPPOSITE[operator]]

    if isinstance(right, pa.Scalar) and right.as_py() == right.as_py():
        constant = dtype(right.as_py())
        negated = operator in (">", ">=")

        def run_constant(columns: Columns, length: int) -> Booleans:
            array = left(columns, length)
            values = numbers_of(array, dtype, width)
            rows: Booleans = ~opposite(values, constant) if negated else compare(values, constant)
            validity = validity_of(array)
            if validity is not None:
                rows &= validity
            return rows

        return run_constant
    if isinstance(right, pa.Scalar):
        right = _repeated(right)

    def equal(x: NDArray[Any], y: NDArray[Any]) -> Booleans:
        rows: Booleans = (x == y) | ((x != x) & (y != y))
        return rows

    kernels: dict[str, Callable[[NDArray[Any], NDArray[Any]], Booleans]] = {
        "=": equal,
        "<>": lambda x, y: ~equal(x, y),
        "<=": lambda x, y: compare(x, y) | (y != y),
        ">=": lambda x, y: compare(x, y) | (x != x),
        "<": lambda x, y: ~(opposite(x, y) | (x != x)),
        ">": lambda x, y: ~(opposite(x, y) | (y != y)),
    }
    kernel = kernels[operator]

    def run(columns: Columns, length: int) -> Booleans:
        left_array = left(columns, length)
        right_array = right(columns, length)
        rows = kernel(numbers_of(left_array, dtype, width), numbers_of(right_array, dtype, width))
        validity = validity_of(left_array)
        if validity is not None:
            rows &= validity
        validity = validity_of(right_array)
        if validity is not None:
            rows &= validity
        return rows

    return run
